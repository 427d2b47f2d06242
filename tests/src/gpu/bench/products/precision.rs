//! The types of the measured GEMMs.

use tma_kernels::gemm::Product;
use tma_runtime::prelude::*;

use super::contestants::tiled::{self, Tiled};
use crate::gpu::bench::libraries::types::{self, Compute, Types};
use crate::random::Sample;

/// An element of a matrix.
pub trait Number: Sample + Send + Sync {
    /// The largest relative error of rounding to the type.
    const ROUNDING: f64;

    /// Returns the nearest element.
    fn of(value: f64) -> Self;
    /// Returns the value of the element.
    fn value(self) -> f64;
}

macro_rules! numbers {
    ($($ty:ident, $rounding:expr, $of:expr, $value:expr;)+) => { $(
        impl Number for $ty {
            const ROUNDING: f64 = $rounding;

            fn of(value: f64) -> Self {
                $of(value)
            }

            fn value(self) -> f64 {
                $value(self)
            }
        }
    )+ };
}

numbers! {
    f16, 1.0 / 2048.0, f16::from_f64, f16::to_f64;
    bf16, 1.0 / 256.0, bf16::from_f64, bf16::to_f64;
    tf32, 1.0 / 2048.0, tf32::from_f64, tf32::to_f64;
    e4m3, 1.0 / 16.0, e4m3::from_f64, |x: e4m3| x.to_f64();
    f32, 1.0 / 16_777_216.0, |value| value as f32, f64::from;
    i8, 0.0, |value: f64| value.round() as i8, f64::from;
    i32, 0.0, |value: f64| value.round() as i32, f64::from;
}

/// The twelve shapes, as M, N and K, that are compared with cuBLASLt.
const SHAPES: [[usize; 3]; 12] = [
    [2048, 2048, 2048],
    [4096, 4096, 4096],
    [8192, 8192, 8192],
    [16384, 16384, 16384],
    [8192, 4096, 4096],
    [4096, 14336, 4096],
    [8192, 28672, 8192],
    [16384, 2048, 8192],
    [8192, 8192, 1024],
    [4096, 4096, 16384],
    [128, 8192, 8192],
    [64, 14336, 4096],
];

/// The types of a GEMM C = A · Bᵀ, and the kernels that compute it.
pub trait Precision: 'static {
    /// The elements of A and B.
    type Operand: Number + Product<Self::Result>;
    /// The elements of C.
    type Result: Number;

    /// The name in those of the contestants.
    const NAME: &'static str;
    /// The types, as libraries name them.
    const TYPES: Types;
    /// The standard deviation of the operands.
    const DEVIATION: f64;
    /// The error of a sum of K products, as a multiple of √K.
    const SUM_ERROR: f64;
    /// The shapes of the suite.
    const SUITE: &'static [[usize; 3]];

    /// Returns the kernels of this repository that compute all tiles in one launch.
    fn tiled() -> Vec<Tiled>;
}

macro_rules! precisions {
    ($($name:ident, $text:literal: $operand:ident as $cuda_operand:ident -> $result:ident as $cuda_result:ident,
       $compute:ident, deviation $deviation:expr, error $error:expr, $suite:expr, $kernels:path;)+) => { $(
        #[doc = concat!("Products of `", stringify!($operand), "`, with a result of `", stringify!($result), "`.")]
        #[derive(Debug)]
        pub enum $name {}

        impl Precision for $name {
            type Operand = $operand;
            type Result = $result;

            const NAME: &'static str = $text;
            const TYPES: Types = Types {
                operand: types::$cuda_operand,
                result: types::$cuda_result,
                compute: Compute::$compute,
            };
            const DEVIATION: f64 = $deviation;
            const SUM_ERROR: f64 = $error;
            const SUITE: &'static [[usize; 3]] = $suite;

            fn tiled() -> Vec<Tiled> {
                $kernels()
            }
        }
    )+ };
}

// An H200 truncates sums, those of 8-bit floats to 13 bits. Integers of deviation 1 would be mostly
// zeros and ones, which need little power.
precisions! {
    F16, "f16": f16 as F16 -> f16 as F16, F32, deviation 1.0, error 1e-3, &[[8192; 3]], tiled::of_f16;
    Bf16, "bf16": bf16 as BF16 -> bf16 as BF16, F32, deviation 1.0, error 1e-3, &SHAPES, tiled::of_bf16;
    Tf32, "tf32": tf32 as F32 -> f32 as F32, Tf32, deviation 1.0, error 1e-3, &[[8192; 3]], tiled::of_tf32;
    E4m3, "e4m3": e4m3 as E4M3 -> bf16 as BF16, F32Fast, deviation 1.0, error 0.06,
        SHAPES.split_at(10).0, tiled::of_e4m3;
    S8, "s8": i8 as S8 -> i32 as S32, I32, deviation 32.0, error 0.0, &[[8192; 3]], tiled::of_s8;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_has_the_shapes_that_the_targets_name() {
        assert_eq!((Bf16::SUITE.len(), E4m3::SUITE.len()), (12, 10));
        assert_eq!(E4m3::SUITE, &Bf16::SUITE[..10]);
        assert_eq!(S8::SUITE, [[8192; 3]]);
    }

    #[test]
    fn integers_are_rounded_and_clamped() {
        assert_eq!([-200.0, -2.5, 0.4, 2.5, 127.4].map(i8::of), [-128, -3, 0, 3, 127]);
    }
}
