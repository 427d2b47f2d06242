//! The online softmax between the two matmuls. `docs/attention.md` explains it.

use tma_runtime::tma_module;

/// Weights, their sums, and the logarithms of these.
#[tma_module]
pub mod online {
    use tma_runtime::prelude::*;

    /// The largest sum of a thread's weights of one row and block, times 2^`SHIFT`, for which the
    /// row's maximum is kept. No weight is greater than that sum, so each of them fits in an `f16`.
    const MOST: f32 = 1024.0;

    /// The largest exponent that `top` holds. Adjacent `f32` values are 1/8 apart there: rounding a
    /// larger exponent could scale weights by 2^(1/16).
    const FAR: f32 = 1_048_576.0;

    /// The running softmax of a thread's two rows.
    #[derive(Clone, Copy)]
    pub struct Softmax {
        /// The exponent that is subtracted from others: at first the least number.
        pub top: [f32; 2],
        /// The greatest score of a far row, -∞ of another one.
        pub peak: [f32; 2],
        /// Whether a row of the warp is far.
        pub is_far: bool,
        /// The thread's sums of weights.
        pub total: [f32; 2],
    }

    /// Returns the softmax of rows that have seen no key.
    #[tma_device]
    pub fn no_scores() -> Softmax {
        Softmax { top: [f32::MIN; 2], peak: [f32::NEG_INFINITY; 2], is_far: false, total: [0.0; 2] }
    }

    /// Computes the weights of scores, `exp2(score * scale - top)`, and adds up a thread's own.
    #[tma_device]
    fn weigh<const KEYS: u32>(
        scores: &Accumulator<f32, 64, KEYS>,
        weights: &mut Accumulator<f32, 64, KEYS>,
        sums: &mut [f32; 2],
        top: [f32; 2],
        scale: f32,
    ) {
        for i in unroll(0..scores.len()) {
            weights[i] = exp2_ftz(fma(scores[i], scale, -top[scores.row(i)]));
            sums[scores.row(i)] += weights[i];
        }
    }

    /// Converts scores to weights, `exp2(score * scale - top)`, and adds this thread's to `total`.
    ///
    /// At first `top` is the value from before this block. The block's maximum is only computed if
    /// a thread's weights of a row then add up to more than `MOST`, and in the `FIRST` block of a
    /// row. `top` rises to that maximum, and the weights are computed again with it. In this case
    /// the result is true, and sums of earlier blocks must be multiplied by `shrink`.
    ///
    /// If the maximum is computed, the greatest weight is 2^-`SHIFT`, and later ones are at most
    /// `MOST` times that: sums of weights times values do not overflow unless their mean does.
    ///
    /// A row whose maximum is beyond `FAR` is *far*: rounding of score times scale is too coarse
    /// there. From then on its greatest score, `peak`, is subtracted first: its weights are
    /// `exp2((score - peak) * scale - SHIFT)`. While a row of the warp `is_far`, weights are
    /// computed in this longer way in every block. The `peak` of other rows is -∞. A row that has
    /// seen no key has the least number as its `top`: with it, the weight of a score of -∞ is 0,
    /// and that of any other score infinite.
    #[tma_device]
    pub fn softmax<const KEYS: u32, const FIRST: bool, const SHIFT: u32>(
        scores: &mut Accumulator<f32, 64, KEYS>,
        state: &mut Softmax,
        shrink: &mut [f32; 2],
        scale: f32,
    ) -> bool {
        trace_span!("softmax");
        let mut weights = Accumulator::<f32, 64, KEYS>::zero();
        let mut sums = [0.0; 2];
        let mut rises = FIRST;
        if !FIRST {
            weigh::<KEYS>(scores, &mut weights, &mut sums, state.top, scale);
            let most = MOST / (1u64 << SHIFT) as f32;
            rises = vote_any(max(sums[0], sums[1]) > most) || state.is_far;
        }
        if rises {
            let greatest = scores.row_max();
            // The amounts subtracted from scores, and from exponents.
            let mut of_scores = [0.0; 2];
            let mut of_exponents = [SHIFT as f32; 2];
            let mut is_any_far = false;
            for r in unroll(0..2usize) {
                let exponent = max(state.top[r], fma(greatest[r], scale, SHIFT as f32));
                let was_far = state.peak[r] > f32::NEG_INFINITY;
                let is_beyond = was_far || abs(exponent) > FAR && greatest[r] > f32::NEG_INFINITY;
                let exponent_before = if state.top[r] > f32::MIN { state.top[r] } else { f32::NEG_INFINITY };
                let before = [
                    if was_far { state.peak[r] } else { 0.0 },
                    if was_far { SHIFT as f32 } else { exponent_before },
                ];
                if is_beyond {
                    state.peak[r] = max(state.peak[r], greatest[r]);
                    state.top[r] = f32::MAX;
                    of_scores[r] = state.peak[r];
                } else {
                    state.top[r] = exponent;
                    of_exponents[r] = exponent;
                }
                is_any_far |= is_beyond;
                shrink[r] = exp2_ftz(fma(before[0] - of_scores[r], scale, before[1] - of_exponents[r]));
                state.total[r] *= shrink[r];
                sums[r] = 0.0;
            }
            state.is_far = vote_any(is_any_far);
            if state.is_far {
                for i in unroll(0..scores.len()) {
                    scores[i] -= of_scores[scores.row(i)];
                }
            }
            weigh::<KEYS>(scores, &mut weights, &mut sums, of_exponents, scale);
        }
        for r in unroll(0..2usize) {
            state.total[r] += sums[r];
        }
        for i in unroll(0..scores.len()) {
            scores[i] = weights[i];
        }
        rises
    }

    /// Returns the first of this thread's two rows of a warpgroup's 64. The other is 8 further.
    #[tma_device]
    pub fn first_row() -> u32 {
        warp_idx() % 4 * 16 + lane_idx() / 4
    }

    /// Returns the sum of the weights of the four threads that share a row.
    #[tma_device]
    pub fn row_total(total: f32) -> f32 {
        let of_two = total + shuffle_xor(total, 1);
        of_two + shuffle_xor(of_two, 2)
    }

    /// Returns a row's sum of weights, or a NaN if all weights are zero: the scores of all keys that
    /// the row sees are then beyond an `f32`.
    #[tma_device]
    pub fn positive_or_nan(total: f32) -> f32 {
        if total == 0.0 { f32::NAN } else { total }
    }

    /// Writes the logarithm of each row's sum of exponentials, for the `rows` rows from `first` on.
    #[tma_device]
    pub fn note<const SHIFT: u32>(lse: Global<f32>, first: u64, rows: u32, softmax: Softmax, scale: f32) {
        let r = lane_idx() % 4;
        let row = first_row() + 8 * r;
        // Compared here to avoid the trap of an access, for which ptxas spills accumulators.
        let index = first + row as u64;
        if r < 2 && row < rows && index < lse.len() {
            let of_row =
                log2((if r == 0 { softmax.total[0] } else { softmax.total[1] }) * (1u64 << SHIFT) as f32);
            let peak = if r == 0 { softmax.peak[0] } else { softmax.peak[1] };
            let top = (if r == 0 { softmax.top[0] } else { softmax.top[1] }) - SHIFT as f32;
            let is_far = peak > f32::NEG_INFINITY;
            lse.set(
                index,
                if is_far {
                    fma(peak, scale * log(2.0), of_row * log(2.0))
                } else {
                    (top + of_row) * log(2.0)
                },
            );
        }
    }
}
