//! Floating-point instructions and conversions.

use super::Operand::{B16, B32, B64, F32};
use super::{Instruction, pure};

// "Floating Point Instructions", without `.ftz` unless the built-in says so: subnormal numbers are
// kept.

pub(in crate::lower) const RSQRT: Instruction = pure("rsqrt.approx.f32 $0, $1;", F32, &[F32], 14);
pub(in crate::lower) const EX2: Instruction = pure("ex2.approx.f32 $0, $1;", F32, &[F32], 14);
pub(in crate::lower) const EX2_FTZ: Instruction = pure("ex2.approx.ftz.f32 $0, $1;", F32, &[F32], 14);
pub(in crate::lower) const LG2: Instruction = pure("lg2.approx.f32 $0, $1;", F32, &[F32], 14);
pub(in crate::lower) const SIN: Instruction = pure("sin.approx.f32 $0, $1;", F32, &[F32], 14);
pub(in crate::lower) const COS: Instruction = pure("cos.approx.f32 $0, $1;", F32, &[F32], 14);
pub(in crate::lower) const TANH: Instruction = pure("tanh.approx.f32 $0, $1;", F32, &[F32], 70);

// "cvt": two 8-bit floats at a time, the first operand in the upper half. Only the lower half is
// used. The upper one is a constant zero, which needs no register.

/// Rounds to nearest, ties away from zero: the only rounding mode before PTX 8.6.
pub(in crate::lower) const F32_TO_TF32: Instruction = pure("cvt.rna.tf32.f32 $0, $1;", B32, &[F32], 70);
pub(in crate::lower) const F32_TO_E4M3: Instruction =
    pure("cvt.rn.satfinite.e4m3x2.f32 $0, 0f00000000, $1;", B16, &[F32], 78);
pub(in crate::lower) const F32_TO_E5M2: Instruction =
    pure("cvt.rn.satfinite.e5m2x2.f32 $0, 0f00000000, $1;", B16, &[F32], 78);
pub(in crate::lower) const E4M3_TO_F16X2: Instruction = pure("cvt.rn.f16x2.e4m3x2 $0, $1;", B32, &[B16], 78);
pub(in crate::lower) const E5M2_TO_F16X2: Instruction = pure("cvt.rn.f16x2.e5m2x2 $0, $1;", B32, &[B16], 78);

// "prmt".

/// Swaps bytes 1 and 2.
pub(in crate::lower) const MIDDLE_BYTES_SWAPPED: Instruction =
    pure("prmt.b32 $0, $1, $1, 0x3120;", B32, &[B32], 20);

// "brev". LLVM has an intrinsic for it, but converts its leading zeros to trailing zeros, which it
// then counts with a branch.

pub(in crate::lower) const REVERSE_32: Instruction = pure("brev.b32 $0, $1;", B32, &[B32], 20);
pub(in crate::lower) const REVERSE_64: Instruction = pure("brev.b64 $0, $1;", B64, &[B64], 20);
