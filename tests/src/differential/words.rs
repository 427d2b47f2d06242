//! The words of kernels as plain Rust, for the generated kernels, according to their documentation.
//! This file is also a module of the program that rustc compiles from them, next to `memory` and
//! `rounding`.

use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use crate::rounding::{Format, integer_to_odd, sum_to_odd};

pub use super::memory::{Body, Global, SharedArray, reuse, run_all, shared, sync_threads, thread_idx};

/// A loop that the compiler unrolls; here it is an ordinary one.
pub fn unroll<R>(range: R) -> R {
    range
}

/// The exact value of a number.
#[derive(Clone, Copy)]
pub enum Exact {
    Integer(i128),
    Float(f64),
}

impl Exact {
    /// Returns the value as a float that can be rounded once more, to a narrower one.
    fn odd(self) -> f64 {
        match self {
            Self::Integer(n) => integer_to_odd(n),
            Self::Float(x) => x,
        }
    }
}

/// Types that `cast` converts from and to.
pub trait Number: Copy + 'static {
    fn exact(self) -> Exact;
    fn round(exact: Exact) -> Self;
}

macro_rules! primitives {
    ($($variant:ident: $($ty:ident)+;)+) => { $($(
        impl Number for $ty {
            fn exact(self) -> Exact {
                Exact::$variant(self.into_exact())
            }

            fn round(exact: Exact) -> Self {
                match exact {
                    Exact::Integer(n) => n as $ty,
                    Exact::Float(x) => x as $ty,
                }
            }
        }
    )+)+ };
}

primitives! {
    Integer: i8 u8 i16 u16 i32 u32 i64 u64 usize;
    Float: f32 f64;
}

/// The exact value of a primitive, in the type that [`Exact`] uses for its kind.
trait IntoExact<T> {
    fn into_exact(self) -> T;
}

macro_rules! into_exact {
    ($($to:ident: $($ty:ident)+;)+) => { $($(
        impl IntoExact<$to> for $ty {
            fn into_exact(self) -> $to {
                self as $to
            }
        }
    )+)+ };
}

into_exact! {
    i128: i8 u8 i16 u16 i32 u32 i64 u64 usize;
    f64: f32 f64;
}

/// Converts by value, rounding once. A conversion to the same type changes nothing.
pub fn cast<To: Number>(value: impl Number) -> To {
    let any: &dyn std::any::Any = &value;
    any.downcast_ref::<To>().copied().unwrap_or_else(|| To::round(value.exact()))
}

/// Defines a float of 16 or 8 bits: its [`Format`], the type of its bits, and those of infinity.
macro_rules! narrow {
    ($name:ident, $bits:ident, $format:ident, $infinity:expr) => {
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name($bits);

        impl $name {
            pub fn from_bits(bits: $bits) -> Self {
                Self(bits)
            }

            pub fn to_bits(self) -> $bits {
                self.0
            }

            pub fn from_f64(x: f64) -> Self {
                Self(Format::$format.round(x) as $bits)
            }

            pub fn from_f32(x: f32) -> Self {
                Self::from_f64(f64::from(x))
            }

            pub fn to_f64(self) -> f64 {
                let sign = 1 << ($bits::BITS - 1);
                let magnitude = self.0 & !sign;
                let canonical = Format::$format.canonical(u64::from(magnitude));
                let value = if canonical == Format::$format.round(f64::NAN) {
                    f64::NAN
                } else if Some(magnitude) == $infinity {
                    f64::INFINITY
                } else {
                    Format::$format.value(u64::from(magnitude))
                };
                if self.0 & sign == 0 { value } else { -value }
            }

            pub fn to_f32(self) -> f32 {
                self.to_f64() as f32
            }
        }

        impl Number for $name {
            fn exact(self) -> Exact {
                Exact::Float(self.to_f64())
            }

            fn round(exact: Exact) -> Self {
                Self::from_f64(exact.odd())
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.to_f64() == other.to_f64()
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                self.to_f64().partial_cmp(&other.to_f64())
            }
        }
    };
}

narrow!(f16, u16, F16, Some(0x7c00));
narrow!(bf16, u16, BF16, Some(0x7f80));
narrow!(e4m3, u8, E4M3, None);
narrow!(e5m2, u8, E5M2, Some(0x7c));

/// Defines the arithmetic of 16-bit floats. Sums are rounded to odd before they are rounded;
/// products are exact in `f64`, and quotients are too far from a tie to be moved across it.
macro_rules! arithmetic {
    ($($name:ident)+) => { $(
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self::from_f64(sum_to_odd(self.to_f64(), other.to_f64()))
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                self + -other
            }
        }

        impl Mul for $name {
            type Output = Self;
            fn mul(self, other: Self) -> Self {
                Self::from_f64(self.to_f64() * other.to_f64())
            }
        }

        impl Div for $name {
            type Output = Self;
            fn div(self, other: Self) -> Self {
                Self::from_f64(self.to_f64() / other.to_f64())
            }
        }

        impl Neg for $name {
            type Output = Self;
            fn neg(self) -> Self {
                Self(self.0 ^ 0x8000)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl MulAssign for $name {
            fn mul_assign(&mut self, other: Self) {
                *self = *self * other;
            }
        }

        impl DivAssign for $name {
            fn div_assign(&mut self, other: Self) {
                *self = *self / other;
            }
        }

        impl Ordered for $name {
            fn lesser(self, other: Self) -> Self {
                if float_is_less(self.to_f64(), other.to_f64()) { self } else { other }
            }

            fn greater(self, other: Self) -> Self {
                if float_is_less(-self.to_f64(), -other.to_f64()) { self } else { other }
            }
        }

        impl Magnitude for $name {
            fn magnitude(self) -> Self {
                Self(self.0 & 0x7fff)
            }
        }

        impl Fused for $name {
            fn fused(self, b: Self, c: Self) -> Self {
                Self::from_f64(sum_to_odd(self.to_f64() * b.to_f64(), c.to_f64()))
            }
        }
    )+ };
}

arithmetic!(f16 bf16);

/// The bits of an `f32`. The last 13 are 0 unless they were specified.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
pub struct tf32(u32);

impl tf32 {
    pub fn from_f64(x: f64) -> Self {
        Self((Format::TF32.round(x) as u32) << 13)
    }

    pub fn from_f32(x: f32) -> Self {
        Self::from_f64(f64::from(x))
    }

    pub fn to_f32(self) -> f32 {
        f32::from_bits(self.0)
    }
}

impl Number for tf32 {
    fn exact(self) -> Exact {
        Exact::Float(f64::from(self.to_f32()))
    }

    fn round(exact: Exact) -> Self {
        Self::from_f64(exact.odd())
    }
}

/// Types that `min` and `max` take.
pub trait Ordered: Copy {
    fn lesser(self, other: Self) -> Self;
    fn greater(self, other: Self) -> Self;
}

/// Types that `abs` takes.
pub trait Magnitude: Copy {
    fn magnitude(self) -> Self;
}

/// Types that `fma` takes.
pub trait Fused: Copy {
    fn fused(self, b: Self, c: Self) -> Self;
}

/// Types that `sqrt` and `recip` take.
pub trait Precise: Copy {
    fn root(self) -> Self;
    fn reciprocal(self) -> Self;
}

/// Orders a number below a NaN, and -0 below 0.
fn float_is_less(a: f64, b: f64) -> bool {
    b.is_nan() || a < b || (a == b && a.is_sign_negative())
}

macro_rules! integers {
    ($($ty:ident)+) => { $(
        impl Ordered for $ty {
            fn lesser(self, other: Self) -> Self {
                Ord::min(self, other)
            }

            fn greater(self, other: Self) -> Self {
                Ord::max(self, other)
            }
        }
    )+ };
}

macro_rules! signed {
    ($($ty:ident)+) => { $(
        impl Magnitude for $ty {
            fn magnitude(self) -> Self {
                self.wrapping_abs()
            }
        }
    )+ };
}

macro_rules! floats {
    ($($ty:ident)+) => { $(
        impl Ordered for $ty {
            fn lesser(self, other: Self) -> Self {
                if float_is_less(self.into_exact(), other.into_exact()) { self } else { other }
            }

            fn greater(self, other: Self) -> Self {
                if float_is_less((-self).into_exact(), (-other).into_exact()) { self } else { other }
            }
        }

        impl Magnitude for $ty {
            fn magnitude(self) -> Self {
                self.abs()
            }
        }

        impl Fused for $ty {
            fn fused(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
        }

        impl Precise for $ty {
            fn root(self) -> Self {
                self.sqrt()
            }

            fn reciprocal(self) -> Self {
                1.0 / self
            }
        }
    )+ };
}

integers!(i8 u8 i16 u16 i32 u32 i64 u64 usize);
signed!(i8 i16 i32 i64);
floats!(f32 f64);

pub fn min<T: Ordered>(a: T, b: T) -> T {
    a.lesser(b)
}

pub fn max<T: Ordered>(a: T, b: T) -> T {
    a.greater(b)
}

pub fn abs<T: Magnitude>(x: T) -> T {
    x.magnitude()
}

pub fn fma<T: Fused>(a: T, b: T, c: T) -> T {
    a.fused(b, c)
}

/// Integers that have the upper half of a product.
pub trait Wide: Sized {
    fn upper(self, other: Self) -> Self;
}

macro_rules! wide {
    ($($ty:ident)+) => { $(
        impl Wide for $ty {
            fn upper(self, other: Self) -> Self {
                (i128::from(self).wrapping_mul(i128::from(other)) >> $ty::BITS) as $ty
            }
        }
    )+ };
}

wide!(i32 u32 i64 u64);

pub fn mul_hi<T: Wide>(a: T, b: T) -> T {
    a.upper(b)
}

pub fn sqrt<T: Precise>(x: T) -> T {
    x.root()
}

pub fn recip<T: Precise>(x: T) -> T {
    x.reciprocal()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma_runtime::prelude as real;

    #[test]
    fn narrow_floats_are_those_of_the_runtime() {
        for bits in 0..=u16::MAX {
            let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
            assert!(same(f16::from_bits(bits).to_f64(), real::f16::from_bits(bits).to_f64()), "{bits:#x}");
            assert!(same(bf16::from_bits(bits).to_f64(), real::bf16::from_bits(bits).to_f64()), "{bits:#x}");
            let byte = bits as u8;
            assert!(same(e4m3::from_bits(byte).to_f64(), real::e4m3::from_bits(byte).to_f64()), "{byte:#x}");
            assert!(same(e5m2::from_bits(byte).to_f64(), real::e5m2::from_bits(byte).to_f64()), "{byte:#x}");
        }
    }

    #[test]
    fn the_lesser_of_a_nan_and_a_number_is_the_number() {
        assert_eq!((min(f32::NAN, 1.0), min(1.0, f32::NAN), max(f64::NAN, -1.0)), (1.0, 1.0, -1.0));
        assert!(min(0.0, -0.0_f32).is_sign_negative() && max(-0.0, 0.0_f32).is_sign_positive());
        assert_eq!((min(2u8, 3), max(-2i64, -3), abs(i8::MIN)), (2, -2, i8::MIN));
    }

    #[test]
    fn a_fused_product_is_rounded_once() {
        let x = f16::from_f32(1.0 + 1.0 / 1024.0);
        let y = fma(x, x, f16::from_f32(-1.0 - 1.0 / 512.0));
        assert_eq!(y.to_f64(), 2f64.powi(-20));
    }
}
