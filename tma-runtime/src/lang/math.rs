//! Arithmetic functions that are hardware instructions.
//!
//! `min`, `max`, `abs`, `mul_add`, `sqrt` and `recip` are also methods (`x.min(y)`,
//! `x.mul_add(y, z)`) if the type has them in Rust.

use super::{bf16, device_only, f16, sealed::Sealed};

/// Numbers with [`min`] and [`max`]: integers, `f16`, `bf16`, `f32`, `f64`.
#[diagnostic::on_unimplemented(
    message = "kernels have no `min` and `max` of `{Self}`",
    label = "not an integer, f16, bf16, f32 or f64",
    note = "convert 8-bit floats first: `cast::<f32>(x)`"
)]
pub trait Ordered: Sealed + Copy {}

/// Numbers with an absolute value ([`abs`]): signed integers, `f16`, `bf16`, `f32`, `f64`.
#[diagnostic::on_unimplemented(
    message = "kernels have no `abs` of `{Self}`",
    label = "not a signed integer, f16, bf16, f32 or f64"
)]
pub trait Signed: Ordered {}

/// Floats that kernels compute with: `f16`, `bf16`, `f32`, `f64`.
#[diagnostic::on_unimplemented(
    message = "kernels do not compute with `{Self}` as a float",
    label = "not f16, bf16, f32 or f64",
    note = "convert it first: `cast::<f32>(x)`"
)]
pub trait Real: Signed {}

/// Floats with [`sqrt`] and [`recip`] of their own precision: `f32`, `f64`.
#[diagnostic::on_unimplemented(
    message = "kernels have this function of `f32` and `f64`, not of `{Self}`",
    label = "not f32 or f64",
    note = "convert it first: `cast::<f32>(x)`"
)]
pub trait Precise: Real {}

macro_rules! mark {
    ($marker:ident: $($scalar:ty),* $(,)?) => { $(impl $marker for $scalar {})* };
}

mark!(Ordered: i8, u8, i16, u16, i32, u32, i64, u64, usize, f16, bf16, f32, f64);
mark!(Signed: i8, i16, i32, i64, f16, bf16, f32, f64);
mark!(Real: f16, bf16, f32, f64);
mark!(Precise: f32, f64);

/// The minimum of two numbers; of a NaN and a number, the number.
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

/// The maximum of two numbers; of a NaN and a number, the number.
///
/// PTX: `max`.
#[must_use]
pub fn max<T: Ordered>(a: T, b: T) -> T {
    device_only()
}

/// The absolute value. That of a type's minimum integer wraps to itself, as in a release build of
/// Rust.
///
/// PTX: `abs`.
#[must_use]
pub fn abs<T: Signed>(x: T) -> T {
    device_only()
}

/// `a * b + c`, rounded once. Nothing else is fused: the expression `a * b + c` is rounded twice,
/// as in Rust.
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

/// The square root, correctly rounded.
///
/// PTX: `sqrt.rn`.
#[must_use]
pub fn sqrt<T: Precise>(x: T) -> T {
    device_only()
}

/// `1 / x`, correctly rounded.
///
/// PTX: `rcp.rn`.
#[must_use]
pub fn recip<T: Precise>(x: T) -> T {
    device_only()
}

/// `1 / sqrt(x)`, fast and approximate.
///
/// PTX: `rsqrt.approx.f32`, whose error the PTX ISA bounds ("Floating Point Instructions: rsqrt").
#[must_use]
pub fn rsqrt(x: f32) -> f32 {
    device_only()
}

/// 2 to the power `x`, fast and approximate. For `e` to the power `x`, multiply `x` by the base-2
/// logarithm of e first.
///
/// PTX: `ex2.approx.f32`, whose error the PTX ISA bounds ("Floating Point Instructions: ex2").
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

/// The base-2 logarithm, fast and approximate.
///
/// PTX: `lg2.approx.f32`, whose error the PTX ISA bounds ("Floating Point Instructions: lg2").
#[must_use]
pub fn log2(x: f32) -> f32 {
    device_only()
}
