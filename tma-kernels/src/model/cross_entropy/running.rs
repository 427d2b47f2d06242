//! Sums of exponentials whose greatest element is not known yet.

use tma_runtime::tma_module;

/// Running sums of a thread.
#[tma_module]
pub mod sums {
    use tma_runtime::prelude::*;

    use crate::model::cross_entropy::kernel::rows::{LOG2_E, base_of, distance_below, power};

    /// Elements of less than this size have their exponents from one instruction.
    const MODERATE: f32 = 32768.0;

    /// Sums of a thread, relative to its greatest element.
    #[derive(Clone, Copy)]
    pub struct Running {
        /// The greatest element.
        pub most: f32,
        /// The sum of powers.
        pub sum: f32,
        /// The number that distances are relative to.
        pub origin: f32,
        /// The sum of distances.
        pub distance: f32,
        /// The number of elements.
        pub elements: f32,
    }

    /// Returns the exponent that powers are relative to: the rounded one of a moderate base, of which
    /// `excess` returns the rest.
    #[tma_device]
    pub fn exponent(base: f32) -> f32 {
        base * LOG2_E
    }

    /// Returns the factor that makes powers relative to a base, instead of to its exponent.
    #[tma_device]
    pub fn excess(base: f32) -> f32 {
        let mut factor = 1.0f32;
        if abs(base) < MODERATE {
            factor = exp2_ftz(-fma(base, LOG2_E, -exponent(base)));
        }
        factor
    }

    /// Returns the powers of vectors: relative to the base's exponent if that is moderate, and
    /// otherwise to the base, from whose distance the exponent is computed.
    #[tma_device]
    pub fn powers<const N: usize, const K: usize>(x: [[f32; N]; K], base: f32) -> [[f32; N]; K] {
        let mut y = x;
        if abs(base) < MODERATE {
            let offset = -exponent(base);
            for k in unroll(0..K) {
                for i in unroll(0..N) {
                    y[k][i] = exp2_ftz(fma(x[k][i], LOG2_E, offset));
                }
            }
        } else {
            for k in unroll(0..K) {
                for i in unroll(0..N) {
                    y[k][i] = power(x[k][i], base);
                }
            }
        }
        y
    }

    /// Adds elements to sums. Those of vectors from `end` on do not exist, and are -∞, unless `WHOLE`
    /// is 1.
    #[tma_device]
    pub fn add<const N: usize, const K: usize, const WHOLE: u32>(
        to: Running,
        x: [[f32; N]; K],
        vector: u32,
        threads: u32,
        end: u32,
        share: f32,
        has_distances: bool,
    ) -> Running {
        let mut all = to;
        for k in unroll(0..K) {
            // Vectors do not wait for each other.
            let mut greatest = x[k][0];
            for i in unroll(1..N) {
                greatest = max(greatest, x[k][i]);
            }
            all.most = max(all.most, greatest);
        }
        let base = base_of(all.most);
        if all.most > to.most {
            all.sum *= powers::<1, 1>([[to.most; 1]; 1], base)[0][0];
        }
        if has_distances {
            if to.elements == 0.0 {
                all.origin = base;
            }
            for k in unroll(0..K) {
                if WHOLE == 1 || vector + k as u32 * threads < end {
                    for i in unroll(0..N) {
                        all.distance += distance_below(x[k][i], all.origin, share);
                    }
                    all.elements += N as f32;
                }
            }
        }
        // The powers of elements that do not exist are 0.
        let all_powers = powers::<N, K>(x, base);
        for k in unroll(0..K) {
            let mut sum = 0.0f32;
            for i in unroll(0..N) {
                sum += all_powers[k][i];
            }
            all.sum += sum;
        }
        all
    }
}
