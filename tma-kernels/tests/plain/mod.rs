//! Attention in plain Rust, with the tolerated error of a result.

use tma_runtime::prelude::*;

/// The shape of a problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) batch: usize,
    pub(crate) heads: usize,
    /// Heads of keys and values.
    pub(crate) groups: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    pub(crate) depth: usize,
    pub(crate) causal: bool,
}

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

/// The elements of a query, and of the keys and values that it sees.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) q: &'a [f64],
    pub(crate) k: &'a [f64],
    pub(crate) v: &'a [f64],
}

impl Row<'_> {
    /// Checks the result and the logarithm of the sum of exponentials.
    #[track_caller]
    pub(crate) fn check<T: Element>(self, found: &[T], lse: f32, scale: f64) {
        let wanted = self.check_values(found, scale);
        let error = (f64::from(lse) - wanted).abs();
        // `lg2.approx` has an error of up to 2^-22, absolute or relative; those of a sum and of
        // `ex2.approx` are as small.
        let is_right = wanted == f64::from(lse) || error <= (wanted.abs() + 1.0) * 2f64.powi(-16);
        assert!(is_right, "a logarithm of {lse}, not {wanted}");
    }

    /// Checks the result. Returns the logarithm of the sum of exponentials.
    ///
    /// Weights are rounded to `T` before the second matmul, and so is the result. Each of these
    /// rounds by half a unit in the last place, relative to at most the greatest value. Other
    /// errors are smaller: `ex2.approx` has an error of up to 2^-22, and scores and sums, which are
    /// below 2^6, of some 2^-20 of their own size.
    #[track_caller]
    pub(crate) fn check_values<T: Element>(self, found: &[T], scale: f64) -> f64 {
        let depth = self.q.len();
        let dot = |key: &[f64]| self.q.iter().zip(key).map(|(a, b)| a * b).sum::<f64>();
        let scores: Vec<f64> = self.k.chunks(depth).map(|key| dot(key) * scale).collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        let greatest = self.v.iter().map(|v| v.abs()).fold(0.0, f64::max);
        let bound = greatest * (2.0 * T::ROUNDING + scores.len() as f64 * T::LEAST + 2f64.powi(-13));
        for (column, found) in found.iter().enumerate() {
            let values = self.v.iter().skip(column).step_by(depth);
            let sum: f64 = values.zip(&weights).map(|(value, weight)| value * weight).sum();
            let wanted = if scores.is_empty() { 0.0 } else { sum / total };
            let error = (found.value() - wanted).abs();
            assert!(
                error <= bound,
                "column {column} is {found:?}, not {wanted}: wrong by {error:.1e} of {bound:.1e}"
            );
        }
        top + total.ln()
    }
}
