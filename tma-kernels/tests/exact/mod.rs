//! Small integers, which each element type holds exactly, as it does their sums.

use tma_runtime::Scalar;
use tma_runtime::prelude::*;

/// An element of a test: small integers are exact in each type, as are their sums.
pub(crate) trait Element: Scalar + PartialEq + std::fmt::Debug {
    fn of(x: f32) -> Self;
    fn value(self) -> f32;
}

macro_rules! elements {
    ($($ty:ty: $of:expr, $value:expr;)+) => { $(
        impl Element for $ty {
            fn of(x: f32) -> Self {
                $of(x)
            }

            fn value(self) -> f32 {
                $value(self)
            }
        }
    )+ };
}

elements! {
    bf16: bf16::from_f32, bf16::to_f32;
    f16: f16::from_f32, f16::to_f32;
    f32: |x| x, |x| x;
    tf32: tf32::from_f32, tf32::to_f32;
    e4m3: e4m3::from_f32, |x: e4m3| x.to_f32();
    e5m2: e5m2::from_f32, |x: e5m2| x.to_f32();
    i8: |x| x as i8, |x| x as f32;
    i32: |x| x as i32, |x| x as f32;
}

/// -2 to 2, in an order that looks random, and is the same each time.
pub(crate) fn integers<T: Element>(seed: u32, count: usize) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        T::of((state % 5) as f32 - 2.0)
    };
    (0..count).map(|_| next()).collect()
}
