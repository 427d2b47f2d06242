//! The running softmax, and the sums of its parts.

use tma_runtime::tma_module;

/// Weights, parts and quotients.
#[tma_module]
pub mod online {
    use tma_runtime::prelude::*;

    use crate::cached::schedule::work::{KEYS, Problem, QueryRow, ROWS, Strides, row_start};

    /// The base-2 logarithm of the greatest weight. A row's greatest score so far is kept while no
    /// score exceeds it by more, so that sums are rarely multiplied.
    const HEADROOM: f32 = 8.0;

    /// The partial results that a thread reads at a time.
    const BATCH: u32 = 8;

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

    /// Converts the scores of a stage to weights, `exp2((score - peak) * scale - SHIFT)`.
    ///
    /// The difference is exact where it matters, however large scores are. No weight is above
    /// 2^(`HEADROOM` - `SHIFT`), so that sums of weights times values do not overflow unless their
    /// mean does.
    #[tma_device]
    pub fn weigh<const DEPTH: u32, const SHIFT: i32>(
        scores: &mut WarpAccumulator<f32, ROWS, KEYS>,
        sum: &mut WarpAccumulator<f32, ROWS, DEPTH>,
        softmax: &mut Softmax,
        scale: f32,
    ) {
        let greatest = scores.row_max();
        let rises = [
            (greatest[0] - softmax.peaks[0]) * scale > HEADROOM,
            (greatest[1] - softmax.peaks[1]) * scale > HEADROOM,
        ];
        if vote_any(rises[0] || rises[1]) {
            let mut shrink = WarpRows::<f32, ROWS>::filled(1.0);
            for r in unroll(0..2usize) {
                let peak = max(softmax.peaks[r], greatest[r]);
                shrink[r] = rescaled(softmax.peaks[r], peak, scale);
                softmax.totals[r] *= shrink[r];
                softmax.peaks[r] = peak;
            }
            for i in unroll(0..sum.len()) {
                sum[i] *= shrink[sum.row(i)];
            }
        }
        let mut bases = [0.0; 2];
        for r in unroll(0..2usize) {
            bases[r] = if softmax.peaks[r] == f32::NEG_INFINITY { 0.0 } else { softmax.peaks[r] };
        }
        for i in unroll(0..scores.len()) {
            scores[i] = exp2_ftz(fma(scores[i] - bases[scores.row(i)], scale, -(SHIFT as f32)));
            softmax.totals[scores.row(i)] += scores[i];
        }
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

    /// Divides four columns of a row by the sum of weights, to which the row's sink is added.
    ///
    /// If all weights are zero although the row sees keys, their scores are beyond an `f32`: a NaN.
    #[tma_device]
    pub fn quotient<T: Number, const SHIFT: i32>(
        part: RowPart,
        row: QueryRow,
        sinks: Option<Global<f32>>,
        scale: f32,
    ) -> [T; 4] {
        let total = total_of::<SHIFT>(part, row, sinks, scale);
        let mut share = if total == 0.0 { f32::NAN } else { recip(total) };
        if !row.sees_keys {
            share = 0.0;
        }
        let mut values = [cast::<T>(0.0f32); 4];
        for c in unroll(0..4usize) {
            values[c] = cast::<T>(part.sums[c] * share);
        }
        values
    }

    /// Returns the sum of a row's weights, with the weight of its sink.
    #[tma_device]
    pub fn total_of<const SHIFT: i32>(
        part: RowPart,
        row: QueryRow,
        sinks: Option<Global<f32>>,
        scale: f32,
    ) -> f32 {
        let mut total = part.total;
        if let Some(sinks) = sinks {
            let sink = sinks.get(row.head) * LOG2_E;
            if row.sees_keys {
                total += exp2_ftz(sink - part.peak * scale - SHIFT as f32);
            }
        }
        total
    }

    /// Returns the natural logarithm of a row's sum of exponentials, with that of its sink.
    #[tma_device]
    pub fn log_sum<const SHIFT: i32>(
        part: RowPart,
        row: QueryRow,
        sinks: Option<Global<f32>>,
        scale: f32,
    ) -> f32 {
        let exponent = log2(total_of::<SHIFT>(part, row, sinks, scale)) + SHIFT as f32;
        if row.sees_keys { fma(part.peak, scale, exponent) * LN_2 } else { f32::NEG_INFINITY }
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
        let values = quotient::<T, SHIFT>(part, row, sinks, scale);
        o.set_vec(row_start(strides, row) + column as u64, values);
        if let Some(lse) = lse {
            let heads = problem.key_heads * problem.group;
            let at = (row.sequence * heads + row.head) * problem.queries + row.query;
            if column == 0 {
                lse.set(at, log_sum::<SHIFT>(part, row, sinks, scale));
            }
        }
    }

    /// Returns the sum of a row's parts in global memory, in the order of the parts. The first one
    /// is at `first`.
    #[tma_device]
    pub fn merged<const DEPTH: u32>(
        partials: Global<f32>,
        stats: Global<f32>,
        first: u32,
        parts: u32,
        rows: u32,
        column: u32,
        scale: f32,
    ) -> RowPart {
        let mut all = RowPart { sums: [0.0; 4], peak: f32::NEG_INFINITY, total: 0.0 };
        for base in (0..parts).step_by(BATCH as usize) {
            let mut sums = [[0.0; 4]; BATCH as usize];
            let mut stat = [[0.0; 2]; BATCH as usize];
            for j in unroll(0..BATCH) {
                let row = first + min(base + j, parts - 1) * rows;
                sums[j as usize] = partials.get_vec::<4>(row as u64 * DEPTH as u64 + column as u64);
                stat[j as usize] = stats.get_vec::<2>(row as u64 * 2);
            }
            for j in unroll(0..BATCH) {
                if base + j < parts {
                    let [peak, total] = stat[j as usize];
                    all = added(all, RowPart { sums: sums[j as usize], peak, total }, scale);
                }
            }
        }
        all
    }
}
