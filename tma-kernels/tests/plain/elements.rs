//! Element types as numbers, and pseudo-random elements.

use tma_runtime::prelude::*;

/// An element type as numbers.
pub(crate) trait Element: Copy + std::fmt::Debug {
    /// Half of a unit in the last place of 1.
    const ROUNDING: f64;
    /// Half of the least number above zero.
    const LEAST: f64;

    fn of(value: f64) -> Self;
    fn value(self) -> f64;
}

impl Element for bf16 {
    const ROUNDING: f64 = 1.0 / 256.0;
    const LEAST: f64 = 0.0;

    fn of(value: f64) -> Self {
        Self::from_f32(value as f32)
    }

    fn value(self) -> f64 {
        self.to_f64()
    }
}

impl Element for f16 {
    const ROUNDING: f64 = 1.0 / 2048.0;
    const LEAST: f64 = 1.0 / (1_u64 << 25) as f64;

    fn of(value: f64) -> Self {
        Self::from_f32(value as f32)
    }

    fn value(self) -> f64 {
        self.to_f64()
    }
}

impl Element for e4m3 {
    const ROUNDING: f64 = 1.0 / 16.0;
    const LEAST: f64 = 1.0 / 1024.0;

    fn of(value: f64) -> Self {
        Self::from_f32(value as f32)
    }

    fn value(self) -> f64 {
        f64::from(self.to_f32())
    }
}

/// Returns reproducible pseudo-random numbers of up to this size (the finaliser of MurmurHash3).
pub(crate) fn numbers<T: Element>(seed: u64, len: usize, size: f64) -> Vec<T> {
    let number = |i: usize| {
        let mut x = (i as u64).wrapping_add(seed << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        T::of(((x >> 11) as f64 / (1_u64 << 52) as f64 - 1.0) * size)
    };
    (0..len).map(number).collect()
}

pub(crate) fn values<T: Element>(all: &[T]) -> Vec<f64> {
    all.iter().map(|x| x.value()).collect()
}
