//! The kernel with windows, soft caps, sinks, and any depth, which are parameters of a launch.

use tma_runtime::tma_module;

/// [`forward`](super::kernel::forward) with run-time masks. It is made from the instances with a
/// causal mask: the window of a query begins and ends one key after that of the query before it.
#[tma_module(from = crate::attention::kernel::forward, only = ["*_causal_*"])]
pub mod kernel {
    /// The factor from natural to base-2 logarithms: the nearest `f32`.
    const LOG2_E: f32 = 12_102_203.0 / 8_388_608.0;

    /// Lowers the registers of the warpgroup that loads. The bounds of windows need more than 24.
    #[tma_device]
    fn lower_registers() {
        setmaxnreg_dec::<40>();
    }

    /// Raises the registers of a warpgroup that multiplies.
    #[tma_device]
    fn raise_registers() {
        setmaxnreg_inc::<232>();
    }

    /// Returns whether a unit is two tiles.
    #[tma_device]
    fn pairs<const CAUSAL: bool>(of_tiles: bool) -> bool {
        of_tiles
    }

    /// Returns the keys that a query sees: `left` before its position, which is
    /// `row + keys - queries`, and `right` after it. Both are below 2^31. No difference overflows.
    #[tma_device]
    fn sight<const CAUSAL: bool>(row: u32, queries: u32, keys: u32, left: u32, right: u32) -> Sight {
        let position = (row + keys) as i32 - queries as i32;
        // If this is at most `-QUERIES`, all queries of the tile see the first key.
        let first = max(position, left as i32 - QUERIES as i32) - left as i32;
        let end = min(position, keys as i32 - 1 - right as i32) + right as i32 + 1;
        Sight { first, end }
    }

    /// Masks the scores of keys before those that a query sees, in a block of keys that begins at
    /// `first`. The first of the warpgroup's queries sees the keys from `start` on.
    #[tma_device]
    fn hide_before<const KEYS: u32>(scores: &mut Accumulator<f32, 64, KEYS>, first: u32, start: i32) {
        let own = scores.at(0)[1];
        let mut limit = [0; 2];
        for r in unroll(0..2usize) {
            limit[r] = start + scores.at(2 * r)[0] as i32 - (first + own) as i32;
        }
        for i in unroll(0..scores.len()) {
            if ((scores.at(i)[1] - own) as i32) < limit[scores.row(i)] {
                scores[i] = f32::NEG_INFINITY;
            }
        }
    }

    /// Replaces each score by the hyperbolic tangent of its product with `cap`, if that is above 0,
    /// and masks the scores of keys that a query does not see.
    #[tma_device]
    fn mask<const KEYS: u32, const CAUSAL: bool>(
        scores: &mut Accumulator<f32, 64, KEYS>,
        first: u32,
        seen: Sight,
        keys: u32,
        cap: f32,
    ) {
        if cap > 0.0 {
            for i in unroll(0..scores.len()) {
                scores[i] = tanh(scores[i] * cap);
            }
        }
        if seen.end < (first + KEYS) as i32 {
            hide::<KEYS, CAUSAL>(scores, first, seen.end, keys);
        }
        if seen.first + 63 > first as i32 {
            hide_before::<KEYS>(scores, first, seen.first);
        }
    }

    /// Stores rows of `depth` columns.
    #[tma_device]
    fn store_rows<T: TileElement, const DEPTH: u32>(
        out: &Accumulator<f32, 64, DEPTH>,
        rows: Global<T>,
        first: u64,
        count: u32,
        stride: u32,
        to: u32,
        depth: u32,
    ) where
        f32: StoreAs<T>,
    {
        // Not known before this point. Otherwise its product with a thread's row would take two
        // registers through the loop over keys, which has none left.
        let stride = if count > 0 { stride } else { 0 };
        out.store_to(rows.matrix(first, [count, depth], stride), [to, 0]);
    }

    /// Sums weights over the threads of a row, adds the weight of the head's sink, if there is one,
    /// and computes `share`, the factor of the row's results: 0 for rows that see no key.
    ///
    /// If the exponent of the sink is above that of the row, it replaces it, so that no sum
    /// overflows.
    #[tma_device]
    fn shares<const CAUSAL: bool, const SHIFT: u32>(
        softmax: &mut Softmax,
        share: &mut [f32; 2],
        seen: Sight,
        keys: u32,
        head: u32,
        scale: f32,
        sinks: Global<f32>,
    ) {
        // Compared here to avoid the trap of an access, for which ptxas spills accumulators.
        let has_sink = (head as u64) < sinks.len();
        let mut sink = f32::NEG_INFINITY;
        if has_sink {
            sink = sinks.get(head) * LOG2_E;
        }
        for r in unroll(0..2usize) {
            softmax.total[r] = row_total(softmax.total[r]);
            let more = (first_row() + 8 * r as u32) as i32;
            let sees_keys = min(seen.end + more, keys as i32) > 0;
            let mut factor = 1.0;
            if has_sink {
                let is_far = softmax.peak[r] > f32::NEG_INFINITY;
                let near = sink - softmax.top[r];
                let above = if is_far { fma(-softmax.peak[r], scale, sink) - SHIFT as f32 } else { near };
                if above > 0.0 {
                    factor = exp2_ftz(-above);
                    softmax.total[r] = fma(softmax.total[r], factor, 1.0);
                    softmax.top[r] = sink;
                    softmax.peak[r] = f32::NEG_INFINITY;
                } else {
                    softmax.total[r] += exp2_ftz(above);
                }
            }
            if sees_keys {
                softmax.total[r] = positive_or_nan(softmax.total[r]);
                share[r] = factor * recip(softmax.total[r]);
            }
        }
    }
}
