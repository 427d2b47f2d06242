//! The running softmax, and the sums of its parts.

use tma_runtime::tma_module;

/// Weights, parts and quotients.
#[tma_module]
pub mod online {
    use tma_runtime::prelude::*;

    use crate::cached::schedule::work::{Problem, QueryRow, Sight, Strides, is_hidden, row_start};

    /// The base-2 logarithm of the greatest weight. A row's greatest score so far is kept while no
    /// score exceeds it by more, so that sums are rarely multiplied.
    const HEADROOM: f32 = 8.0;

    /// The factors between natural and base-2 logarithms: the nearest `f32` of each.
    const LOG2_E: f32 = 12_102_203.0 / 8_388_608.0;
    const LN_2: f32 = 11_629_080.0 / 16_777_216.0;

    /// The running softmax of a lane's two rows.
    #[derive(Clone, Copy)]
    pub struct Softmax {
        /// The score that is subtracted from others: within the headroom of the greatest so far, or
        /// -∞ before the first one.
        pub peaks: [f32; 2],
        /// The lane's sums of weights.
        pub totals: [f32; 2],
    }

    /// Returns the factor of sums for another peak, with differences of scores times `scale`.
    #[tma_device]
    pub fn rescaled(from: f32, to: f32, scale: f32) -> f32 {
        // Before the first score there are no sums, and -∞ - -∞ would be a NaN.
        if from == f32::NEG_INFINITY { 0.0 } else { exp2_ftz((from - to) * scale) }
    }

    /// Returns whether a score exceeds its row's peak by more than the headroom.
    #[tma_device]
    pub fn exceeds(softmax: &Softmax, greatest: [f32; 2], scale: f32) -> bool {
        (greatest[0] - softmax.peaks[0]) * scale > HEADROOM
            || (greatest[1] - softmax.peaks[1]) * scale > HEADROOM
    }

    /// Raises the peaks to the greatest scores. Returns the factors of earlier sums of both rows.
    #[tma_device]
    pub fn raise(softmax: &mut Softmax, greatest: [f32; 2], scale: f32) -> [f32; 2] {
        let mut shrink = [1.0; 2];
        for r in unroll(0..2usize) {
            let peak = max(softmax.peaks[r], greatest[r]);
            shrink[r] = rescaled(softmax.peaks[r], peak, scale);
            softmax.totals[r] *= shrink[r];
            softmax.peaks[r] = peak;
        }
        shrink
    }

    /// Returns the scores that are subtracted from those of both rows: 0 if a row has none yet.
    #[tma_device]
    pub fn bases(softmax: &Softmax) -> [f32; 2] {
        let mut bases = [0.0; 2];
        for r in unroll(0..2usize) {
            bases[r] = if softmax.peaks[r] == f32::NEG_INFINITY { 0.0 } else { softmax.peaks[r] };
        }
        bases
    }

    /// Returns the weight of a score, `exp2((score - base) * scale - SHIFT)`.
    ///
    /// The difference is exact where it matters, however large scores are. No weight is above
    /// 2^(`HEADROOM` - `SHIFT`), so that sums of weights times values do not overflow unless their
    /// mean does.
    #[tma_device]
    pub fn weight<const SHIFT: i32>(score: f32, base: f32, scale: f32) -> f32 {
        exp2_ftz(fma(score - base, scale, -(SHIFT as f32)))
    }

    /// Converts a warp's scores to weights, and multiplies its earlier sums if peaks rise.
    #[tma_device]
    pub fn weigh<const ROWS: u32, const KEYS: u32, const DEPTH: u32, const SHIFT: i32>(
        scores: &mut WarpAccumulator<f32, ROWS, KEYS>,
        sum: &mut WarpAccumulator<f32, ROWS, DEPTH>,
        softmax: &mut Softmax,
        scale: f32,
    ) {
        let greatest = scores.row_max();
        let greatest = [greatest[0], greatest[1]];
        if vote_any(exceeds(softmax, greatest, scale)) {
            let shrink = raise(softmax, greatest, scale);
            for i in unroll(0..sum.len()) {
                sum[i] *= shrink[sum.row(i)];
            }
        }
        let bases = bases(softmax);
        for i in unroll(0..scores.len()) {
            let r = scores.row(i);
            scores[i] = weight::<SHIFT>(scores[i], bases[r], scale);
            softmax.totals[r] += scores[i];
        }
    }

    /// Limits a warpgroup's scores, if `soft_cap` is above 0.
    #[tma_device]
    pub fn cap_tile<const KEYS: u32>(scores: &mut Accumulator<f32, 64, KEYS>, soft_cap: f32) {
        if soft_cap > 0.0 {
            for i in unroll(0..scores.len()) {
                scores[i] = tanh(scores[i] * soft_cap);
            }
        }
    }

    /// Masks a warpgroup's scores of keys from `first` on that a query does not see.
    #[tma_device]
    pub fn hide_tile<const KEYS: u32>(scores: &mut Accumulator<f32, 64, KEYS>, first: u32, sight: &Sight) {
        if first < sight.of_all.first || first + KEYS > sight.of_all.end {
            for i in unroll(0..scores.len()) {
                let key = first + scores.at(i)[1];
                if is_hidden(sight, scores.row(i), key) {
                    scores[i] = f32::NEG_INFINITY;
                }
            }
        }
    }

    /// Converts a warpgroup's scores to weights. If peaks rise, the result is true, and earlier sums
    /// must be multiplied by `shrink`.
    #[tma_device]
    pub fn weigh_tile<const KEYS: u32, const SHIFT: i32>(
        scores: &mut Accumulator<f32, 64, KEYS>,
        softmax: &mut Softmax,
        shrink: &mut [f32; 2],
        scale: f32,
    ) -> bool {
        let greatest = scores.row_max();
        let greatest = [greatest[0], greatest[1]];
        let rises = vote_any(exceeds(softmax, greatest, scale));
        if rises {
            *shrink = raise(softmax, greatest, scale);
        }
        let bases = bases(softmax);
        for i in unroll(0..scores.len()) {
            let r = scores.row(i);
            scores[i] = weight::<SHIFT>(scores[i], bases[r], scale);
            softmax.totals[r] += scores[i];
        }
        rises
    }

    /// Adds up the sums of weights of the four lanes that share a row.
    #[tma_device]
    pub fn row_totals(softmax: &Softmax) -> [f32; 2] {
        let mut totals = softmax.totals;
        for r in unroll(0..2usize) {
            totals[r] += shuffle_xor(totals[r], 1);
            totals[r] += shuffle_xor(totals[r], 2);
        }
        totals
    }

    /// A part of a row's result: four of its columns, its peak and its sum of weights.
    #[derive(Clone, Copy)]
    pub struct RowPart {
        /// Sums of weights times values.
        pub sums: [f32; 4],
        /// The score that was subtracted from others.
        pub peak: f32,
        /// The sum of weights.
        pub total: f32,
    }

    /// Adds up two parts.
    #[tma_device]
    pub fn added(a: RowPart, b: RowPart, scale: f32) -> RowPart {
        let peak = max(a.peak, b.peak);
        let of_a = rescaled(a.peak, peak, scale);
        let of_b = rescaled(b.peak, peak, scale);
        let mut sums = [0.0; 4];
        for c in unroll(0..4usize) {
            sums[c] = fma(b.sums[c], of_b, a.sums[c] * of_a);
        }
        RowPart { sums, peak, total: fma(b.total, of_b, a.total * of_a) }
    }

    /// Returns the factor of a row's sums: the inverse of its sum of weights and of its sink's.
    ///
    /// If all weights are zero although the row sees keys, their scores are beyond an `f32`: a NaN.
    #[tma_device]
    pub fn share<const SHIFT: i32>(
        peak: f32,
        total: f32,
        row: QueryRow,
        sinks: Option<Global<f32>>,
        scale: f32,
    ) -> f32 {
        let total = with_sink::<SHIFT>(peak, total, row, sinks, scale);
        let share = if total == 0.0 { f32::NAN } else { recip(total) };
        if row.sees_keys { share } else { 0.0 }
    }

    /// Returns the sum of a row's weights, with the weight of its sink.
    #[tma_device]
    pub fn with_sink<const SHIFT: i32>(
        peak: f32,
        weights: f32,
        row: QueryRow,
        sinks: Option<Global<f32>>,
        scale: f32,
    ) -> f32 {
        let mut total = weights;
        if let Some(sinks) = sinks {
            let sink = sinks.get(row.head) * LOG2_E;
            if row.sees_keys {
                total += exp2_ftz(sink - peak * scale - SHIFT as f32);
            }
        }
        total
    }

    /// The exponent of a sink above that of its row beyond which weights are not seen beside the
    /// sink's: fewer than 2^32 keys have a sum that an `f32` rounds away.
    const FAR_ABOVE: f32 = 64.0;

    /// Writes the natural logarithm of a row's sum of exponentials, with that of its sink. It is the
    /// sink for a row that sees no key, or -∞ without one.
    #[tma_device]
    pub fn store_log_sum<const SHIFT: i32>(
        lse: Global<f32>,
        problem: Problem,
        peak: f32,
        total: f32,
        row: QueryRow,
        sinks: Option<Global<f32>>,
        scale: f32,
    ) {
        let heads = problem.key_heads * problem.group;
        let at = (row.sequence * heads + row.head) * problem.queries + row.query;
        let exponent = log2(with_sink::<SHIFT>(peak, total, row, sinks, scale)) + SHIFT as f32;
        let mut sum = if row.sees_keys { fma(peak, scale, exponent) } else { f32::NEG_INFINITY };
        if let Some(sinks) = sinks {
            let sink = sinks.get(row.head) * LOG2_E;
            // The weight of such a sink may be beyond an `f32`.
            let is_far_above = sink - peak * scale - SHIFT as f32 > FAR_ABOVE;
            if is_far_above || !row.sees_keys {
                sum = sink;
            }
        }
        lse.set(at, sum * LN_2);
    }

    /// Writes four columns of a row's result, and with the first ones its logarithm, if it is wanted.
    #[tma_device]
    pub fn store_row<T: TileElement + Number, const SHIFT: i32>(
        problem: Problem,
        o: Global<T>,
        strides: Strides,
        lse: Option<Global<f32>>,
        sinks: Option<Global<f32>>,
        row: QueryRow,
        column: u32,
        part: RowPart,
        scale: f32,
    ) {
        let share = share::<SHIFT>(part.peak, part.total, row, sinks, scale);
        let mut values = [cast::<T>(0.0f32); 4];
        for c in unroll(0..4usize) {
            values[c] = cast::<T>(part.sums[c] * share);
        }
        o.set_vec(row_start(strides, row) + column as u64, values);
        if let Some(lse) = lse {
            let is_first = column == 0;
            if is_first {
                store_log_sum::<SHIFT>(lse, problem, part.peak, part.total, row, sinks, scale);
            }
        }
    }

    /// Returns the sum of a row's parts in global memory, in the order of the parts. The first one
    /// is at `first`.
    #[tma_device]
    pub fn merged<const DEPTH: u32, const BATCH: usize>(
        partials: Global<f32>,
        stats: Global<f32>,
        first: u32,
        parts: u32,
        rows: u32,
        column: u32,
        scale: f32,
    ) -> RowPart {
        let mut all = RowPart { sums: [0.0; 4], peak: f32::NEG_INFINITY, total: 0.0 };
        for base in (0..parts).step_by(BATCH) {
            let mut sums = [[0.0; 4]; BATCH];
            let mut stat = [[0.0; 2]; BATCH];
            for j in unroll(0..BATCH as u32) {
                let row = first + min(base + j, parts - 1) * rows;
                sums[j as usize] = partials.get_vec::<4>(row as u64 * DEPTH as u64 + column as u64);
                stat[j as usize] = stats.get_vec::<2>(row as u64 * 2);
            }
            for j in unroll(0..BATCH as u32) {
                if base + j < parts {
                    let [peak, total] = stat[j as usize];
                    all = added(all, RowPart { sums: sums[j as usize], peak, total }, scale);
                }
            }
        }
        all
    }
}
