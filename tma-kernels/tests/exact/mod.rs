//! Small integers, which every element type represents exactly, along with their sums.

use tma_runtime::Scalar;
use tma_runtime::prelude::*;

/// An element type of a test. Small integers and their sums are exact in each.
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

/// Returns reproducible pseudo-random integers from -2 to 2.
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
