//! The steps of a round of the kernel that multiplies.

use tma_runtime::tma_module;

/// From scores to the gradients of queries.
#[tma_module]
pub mod round {
    use tma_runtime::prelude::*;

    use crate::attention::softmax::online::first_row;

    /// The elements of a block of sums: 128 queries of 64 columns, or 64 of 128.
    pub const SUMS: u32 = 64 * 128;

    /// The named barrier at which both warpgroups have cleared their half of a tile.
    const CLEARED: u32 = 2;

    /// The scores of a warpgroup in a round: those of 64 keys of a sequence and a block of queries.
    #[derive(Clone, Copy)]
    pub struct Part {
        /// The first of the keys.
        pub first_key: u32,
        /// The first of the queries.
        pub first_query: u32,
        /// The number of queries of the sequence.
        pub queries: u32,
        /// The number of its keys.
        pub keys: u32,
    }

    /// Returns whether one of the queries does not see one of the keys.
    #[tma_device]
    pub fn is_hidden<const CAUSAL: bool>(of: Part) -> bool {
        of.first_key + 64 > of.keys || CAUSAL && of.first_key + 63 + of.queries > of.first_query + of.keys
    }

    /// Clears the weights of keys that a query does not see.
    #[tma_device]
    pub fn hide<const QUERIES: u32, const CAUSAL: bool>(
        weights: &mut Accumulator<f32, 64, QUERIES>,
        of: Part,
    ) {
        // Columns, which are queries, are compared as constants: offsets from the thread's first one.
        let own = weights.at(0)[1];
        let mut first_seeing = Rows::<i32, 64>::filled(0);
        for r in unroll(0..first_seeing.len()) {
            let key = of.first_key + first_row() + 8 * r as u32;
            if CAUSAL {
                first_seeing[r] = (key + of.queries) as i32 - (of.keys + of.first_query + own) as i32;
            }
            if key >= of.keys {
                first_seeing[r] = QUERIES as i32;
            }
        }
        for i in unroll(0..weights.len()) {
            if ((weights.at(i)[1] - own) as i32) < first_seeing[weights.row(i)] {
                weights[i] = 0.0;
            }
        }
    }

    /// Computes the weights of scores, whose rows are keys and whose columns are queries.
    #[tma_device]
    pub fn weigh<const QUERIES: u32>(
        scores: &Accumulator<f32, 64, QUERIES>,
        weights: &mut Accumulator<f32, 64, QUERIES>,
        exponents: Tile<f32, Shape2<1, QUERIES>>,
        scale: f32,
    ) {
        for j in unroll(0..scores.len() / 4) {
            let exponent = exponents.get_vec::<2>([0, scores.at(4 * j)[1]]);
            for i in unroll(0..4usize) {
                let at = 4 * j + i;
                weights[at] = exp2_ftz(fma(scores[at], scale, -exponent[i % 2]));
            }
        }
    }

    /// Clears the rows of a tile from `end` on, which are not those of the sequence: what they hold
    /// may be infinite, whose products with weights of zero are not zero. Both warpgroups that
    /// multiply call it.
    #[tma_device]
    pub fn clear_after<T, const ROWS: u32, const DEPTH: u32>(
        tile: Tile<T, Shape4<1, 1, ROWS, DEPTH>, Swizzle128>,
        end: u32,
    ) where
        T: TileElement + Number,
    {
        if end < ROWS {
            let each = DEPTH / 8; // vectors of 8 elements
            let thread = thread_idx().x - 128;
            for row in (end + thread / each..ROWS).step_by((256 / each) as usize) {
                tile.set_vec([0, 0, row, thread % each * 8], [cast::<T>(0.0f32); 8]);
            }
            fence_proxy_async();
            named_barrier_sync(CLEARED, 256);
        }
    }

    /// Writes a warp's part of a sum to `sums`, which the previous reduction has read, and arrives at
    /// `written`.
    #[tma_device]
    pub fn hand_over(sum: &Accumulator<f32, 64, 64>, sums: SharedArray<f32, SUMS>, written: Barrier) {
        let first = (warp_idx() - 4) * 1024 + lane_idx() * 4;
        for j in unroll(0..8u32) {
            let i = 4 * j as usize;
            sums.set_vec(first + j * 128, [sum[i], sum[i + 1], sum[i + 2], sum[i + 3]]);
        }
        fence_proxy_async();
        sync_warp();
        if lane_idx() == 0 {
            written.arrive();
        }
    }
}
