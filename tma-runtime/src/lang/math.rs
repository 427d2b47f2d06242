//! Arithmetic functions that are hardware instructions.
//!
//! `min`, `max`, `clamp`, `abs`, `mul_add`, `sqrt`, `recip` and `copysign` are exact or correctly
//! rounded. They are also methods (`x.min(y)`, `x.mul_add(y, z)`) if the type has them in Rust.
//!
//! `rsqrt`, `exp`, `exp2`, `exp2_ftz`, `log`, `log2`, `pow`, `sin`, `cos` and `tanh` are the
//! hardware's approximations for `f32` only (`exp2_half` for `f16` and `bf16`), each with its error
//! bound. Rust's methods of these names are not available, since they are more precise.

use super::{bf16, device_only, f16, sealed::Sealed};

/// Numbers with [`min`] and [`max`]: integers, `f16`, `bf16`, `f32`, `f64`.
#[diagnostic::on_unimplemented(
    message = "`min` and `max` do not support `{Self}`",
    label = "not an integer, f16, bf16, f32 or f64",
    note = "convert 8-bit floats first: `cast::<f32>(x)`"
)]
pub trait Ordered: Sealed + Copy {}

/// Numbers with an absolute value ([`abs`]): signed integers, `f16`, `bf16`, `f32`, `f64`.
#[diagnostic::on_unimplemented(
    message = "`abs` does not support `{Self}`",
    label = "not a signed integer, f16, bf16, f32 or f64"
)]
pub trait Signed: Ordered {}

/// Floats that kernels compute with: `f16`, `bf16`, `f32`, `f64`.
#[diagnostic::on_unimplemented(
    message = "this function needs a float, not `{Self}`",
    label = "not f16, bf16, f32 or f64",
    note = "convert it first: `cast::<f32>(x)`"
)]
pub trait Real: Signed {}

/// Floats with [`sqrt`] and [`recip`] of their own precision: `f32`, `f64`.
#[diagnostic::on_unimplemented(
    message = "this function needs `f32` or `f64`, not `{Self}`",
    label = "not f32 or f64",
    note = "convert it first: `cast::<f32>(x)`"
)]
pub trait Precise: Real {}

/// Floats of 16 bits: `f16`, `bf16`.
#[diagnostic::on_unimplemented(
    message = "this function needs `f16` or `bf16`, not `{Self}`",
    label = "not f16 or bf16",
    note = "use `exp2(x)` for `f32`"
)]
pub trait Half: Real {}

/// Integers with [`mul_hi`]: `u32`, `i32`, `u64`, `i64`.
#[diagnostic::on_unimplemented(
    message = "`mul_hi` does not support `{Self}`",
    label = "not u32, i32, u64 or i64"
)]
pub trait WordInteger: Ordered {}

macro_rules! mark {
    ($marker:ident: $($scalar:ty),* $(,)?) => { $(impl $marker for $scalar {})* };
}

mark!(Ordered: i8, u8, i16, u16, i32, u32, i64, u64, usize, f16, bf16, f32, f64);
mark!(Signed: i8, i16, i32, i64, f16, bf16, f32, f64);
mark!(Real: f16, bf16, f32, f64);
mark!(Precise: f32, f64);
mark!(Half: f16, bf16);
mark!(WordInteger: u32, i32, u64, i64);

/// Returns the minimum of two numbers. The minimum of a NaN and a number is the number.
///
/// PTX: `min`.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(m: u32) {
/// let rows = min(128, m - block_idx().y * 128);
/// # }
/// ```
#[must_use]
pub fn min<T: Ordered>(a: T, b: T) -> T {
    device_only()
}

/// Returns the maximum of two numbers. The maximum of a NaN and a number is the number.
///
/// PTX: `max`.
#[must_use]
pub fn max<T: Ordered>(a: T, b: T) -> T {
    device_only()
}

/// Returns the upper half of the product of two integers, which has twice as many bits as they
/// have: of `u32`, `((a as u64 * b as u64) >> 32) as u32`.
///
/// PTX: `mul.hi`.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(random: u32, sides: u32) {
/// let side = mul_hi(random, sides); // from 0 to sides - 1, without a division
/// # }
/// ```
#[doc(alias = "__umulhi")]
#[must_use]
pub fn mul_hi<T: WordInteger>(a: T, b: T) -> T {
    device_only()
}

/// Returns the absolute value. That of a type's minimum integer stops a checked kernel, and wraps
/// to itself in any other, as in Rust's debug and release builds.
///
/// PTX: `abs`.
#[must_use]
pub fn abs<T: Signed>(x: T) -> T {
    device_only()
}

/// Returns `a * b + c`, rounded once. Nothing else is fused: the expression `a * b + c` is rounded
/// twice, as in Rust.
///
/// PTX: `fma.rn`.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(x: Global<f32>, y: Global<f32>) {
/// let mut sum = 0.0;
/// for i in unroll(0..8) {
///     sum = fma(x.get(i), y.get(i), sum);
/// }
/// # }
/// ```
#[must_use]
pub fn fma<T: Real>(a: T, b: T, c: T) -> T {
    device_only()
}

/// Returns the square root, correctly rounded.
///
/// PTX: `sqrt.rn`.
#[must_use]
pub fn sqrt<T: Precise>(x: T) -> T {
    device_only()
}

/// Returns `1 / x`, correctly rounded.
///
/// PTX: `rcp.rn`.
#[must_use]
pub fn recip<T: Precise>(x: T) -> T {
    device_only()
}

/// Returns `1 / sqrt(x)`, fast and approximate.
///
/// PTX: `rsqrt.approx.f32`, with a relative error of at most 2^-22.9 (PTX ISA, "Floating Point
/// Instructions: rsqrt").
#[must_use]
pub fn rsqrt(x: f32) -> f32 {
    device_only()
}

/// Returns 2 to the power `x`, fast and approximate.
///
/// PTX: `ex2.approx.f32`, at most 2 units in the last place from the correctly rounded result (PTX
/// ISA, "Floating Point Instructions: ex2").
///
/// In a loop, scale once instead of calling [`exp`]: `exp(x * s)` is `exp2(x * (s * log2(e)))`.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(x: f32, log2_of_e: f32) {
/// let e_to_the_x = exp2(x * log2_of_e);
/// # }
/// ```
#[must_use]
pub fn exp2(x: f32) -> f32 {
    device_only()
}

/// Returns 2 to the power `x` for `f16` and `bf16`, fast and approximate. Two adjacent elements of
/// an array become one instruction.
///
/// PTX: `ex2.approx.f16`, with a relative error of at most 2^-9.9, and `ex2.approx.ftz.bf16`, with
/// one of at most 2^-7, which flushes subnormal numbers to zero; `.f16x2` and `.bf16x2` for pairs
/// (PTX ISA, "Half Precision Floating Point Instructions: ex2").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(x: Global<f16>) {
/// let i = thread_idx().x * 8;
/// let mut weights = x.get_vec::<8>(i);
/// for k in unroll(0..8usize) {
///     weights[k] = exp2_half(weights[k]);
/// }
/// x.set_vec(i, weights);
/// # }
/// ```
#[doc(alias = "h2exp2")]
#[must_use]
pub fn exp2_half<T: Half>(x: T) -> T {
    device_only()
}

/// Returns [`exp2`] without subnormal numbers: a subnormal `x` counts as 0, and a result below
/// 2^-126 is 0.
///
/// The hardware computes no subnormal powers. [`exp2`] therefore scales its argument and squares
/// the result where needed, which takes three more instructions each time. Use this function where
/// results that small make no difference, as in a softmax.
///
/// PTX: `ex2.approx.ftz.f32`, at most 2 units in the last place from the correctly rounded result
/// (PTX ISA, "Floating Point Instructions: ex2").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(score: f32, greatest: f32, scale: f32) {
/// let weight = exp2_ftz(fma(score, scale, -greatest * scale));
/// # }
/// ```
#[doc(alias = "ex2.approx.ftz")]
#[must_use]
pub fn exp2_ftz(x: f32) -> f32 {
    device_only()
}

/// Returns the base-2 logarithm, fast and approximate: NaN for a negative number, minus infinity
/// for 0.
///
/// PTX: `lg2.approx.f32`, with an absolute error of at most 2^-22 between 0.5 and 2, and a relative
/// one of 2^-22 elsewhere (PTX ISA, "Floating Point Instructions: lg2").
#[must_use]
pub fn log2(x: f32) -> f32 {
    device_only()
}

/// Returns e to the power `x`, fast and approximate.
///
/// PTX: `ex2.approx.f32` of `x` times log2(e), which is rounded first. The relative error therefore
/// grows with the exponent: at most 2.5 units in the last place and 2^-23 times `|x|`.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(score: f32, greatest: f32) {
/// let weight = exp(score - greatest); // of a softmax: at most 1
/// # }
/// ```
#[doc(alias = "__expf")]
#[must_use]
pub fn exp(x: f32) -> f32 {
    device_only()
}

/// Returns the natural logarithm, fast and approximate: NaN for a negative number, minus infinity
/// for 0.
///
/// PTX: `lg2.approx.f32`, times ln(2), rounded. The absolute error is at most 2^-22 between 0.5 and
/// 2, and the relative error 2^-21.5 elsewhere.
#[doc(alias = "__logf")]
#[must_use]
pub fn log(x: f32) -> f32 {
    device_only()
}

/// Returns `x` to the power `y`, fast and approximate, for an `x` that is not negative.
///
/// PTX: `ex2.approx.f32` of `y` times `lg2.approx.f32` of `x`, which is rounded first. The relative
/// error is at most 2.5 units in the last place and 2^-22 times the greater of `|y|` and
/// `|y * log2(x)|`. The result is NaN for a negative `x`, whatever `y` is, and for the power 0 of 0
/// and of infinity.
#[doc(alias = "__powf")]
#[must_use]
pub fn pow(x: f32, y: f32) -> f32 {
    device_only()
}

/// Returns the sine of an angle in radians, fast and approximate.
///
/// PTX: `sin.approx.f32`, with an absolute error of at most 2^-20.5 from -2π to 2π, and of 2^-14.7
/// from -100π to 100π. No bound is documented for larger angles: reduce them first. (PTX ISA,
/// "Floating Point Instructions: sin".)
#[doc(alias = "__sinf")]
#[must_use]
pub fn sin(x: f32) -> f32 {
    device_only()
}

/// Returns the cosine of an angle in radians, fast and approximate.
///
/// PTX: `cos.approx.f32`, with an absolute error of at most 2^-20.5 from -2π to 2π, and of 2^-14.7
/// from -100π to 100π. Larger angles must be reduced first, as for [`sin`]. (PTX ISA, "Floating
/// Point Instructions: cos".)
#[doc(alias = "__cosf")]
#[must_use]
pub fn cos(x: f32) -> f32 {
    device_only()
}

/// Returns the hyperbolic tangent, fast and approximate, for neural networks rather than for
/// numerics.
///
/// PTX: `tanh.approx.f32`, with a relative error of at most 2^-11 (PTX ISA, "Floating Point
/// Instructions: tanh").
#[must_use]
pub fn tanh(x: f32) -> f32 {
    device_only()
}

/// Returns `x`, limited to at least `low` and at most `high`. The result is exact. For a NaN it is
/// NaN, as in Rust.
///
/// `low` must not exceed `high`, and neither may be NaN. With constants, a violation is an error. A
/// checked kernel stops, where Rust would panic. In other kernels the result is unspecified.
///
/// PTX: `setp` and `selp` for floats, `min` and `max` for integers. If a NaN may become `low`,
/// `min(max(x, low), high)` takes half as many instructions.
#[must_use]
pub fn clamp<T: Ordered>(x: T, low: T, high: T) -> T {
    device_only()
}

/// Returns the magnitude of `x` with the sign of `sign`, which may be a zero or a NaN. The result
/// is exact. If `x` is a NaN, so is the result.
///
/// PTX: bitwise operations, which are one instruction of the hardware.
#[must_use]
pub fn copysign<T: Real>(x: T, sign: T) -> T {
    device_only()
}
