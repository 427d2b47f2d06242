//! The kernel that adds up the parts of rows.

use tma_runtime::tma_module;

/// Rows whose keys were divided among blocks.
#[tma_module]
pub mod rows {
    use tma_runtime::prelude::*;

    use crate::cached::schedule::work::{Problem, Strides, length, parts, query_row, seen, tiles};
    use crate::cached::softmax::online::{merged, store_row};

    /// Parts that a thread adds up at a time.
    const BATCH: usize = 8;

    /// Threads of a block.
    pub const THREADS: u32 = 128;

    /// Adds up the parts of each row, in their order, and writes the results. Rows with one part
    /// have theirs.
    ///
    /// `partials` is units × rows × `DEPTH`, with as many rows as a tile or a head has; `stats` has
    /// a peak and a sum of weights for each row. `starts` has the first unit of each sequence, and
    /// after them about how many keys a unit has.
    #[tma_kernel(threads = THREADS, unchecked, instances(
        (T, SHIFT) in [bf16 = (bf16, 32), f16 = (f16, -7), bf16_as_f16 = (bf16, -7)],
        DEPTH in [d64 = 64, d128 = 128, d256 = 256, d512 = 512],
    ))]
    pub fn merge<T, const SHIFT: i32, const DEPTH: u32>(
        o: Global<T>,
        page_starts: Option<Global<u32>>,
        lengths: Option<Global<u32>>,
        sinks: Option<Global<f32>>,
        lse: Option<Global<f32>>,
        partials: Global<f32>,
        stats: Global<f32>,
        starts: Global<u32>,
        sequences: u32,
        key_heads: u32,
        group: u32,
        queries: u32,
        keys: u32,
        left: u32,
        right: u32,
        tile_rows: u32,
        depth: u32,
        page_shift: u32,
        o_sequence: u64,
        o_head: u64,
        o_query: u64,
        scale: f32,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        grid_dependency_wait();
        let problem =
            Problem { sequences, key_heads, group, queries, keys, left, right, tile_rows, page_shift };
        let of_o = Strides { sequence: o_sequence, head: o_head, query: o_query };
        let rows = queries * group;
        let unit_rows = min(rows, tile_rows);
        let unit_keys = starts.get(sequences);
        let vectors = DEPTH / 4; // of a row
        let all = sequences as u64 * (key_heads * rows * vectors) as u64;
        let first = (block_idx().x * THREADS + thread_idx().x) as u64;
        for item in (first..all).step_by((THREADS * grid_dim().x) as usize) {
            let column = (item % vectors as u64) as u32 * 4;
            let index = (item / vectors as u64) as u32;
            let row = index % rows;
            let head = index / rows % key_heads;
            let sequence = index / rows / key_heads;
            let keys = length(problem, page_starts, lengths, sequence);
            let parts = parts(seen(problem, keys), unit_keys);
            let tile = head * tiles(problem) + row / tile_rows;
            let first_unit = starts.get(sequence) as u64 + tile as u64 * parts as u64;
            // Beyond the memory only if lengths have changed, or another call has used it meanwhile.
            let end = (first_unit + parts as u64) * (unit_rows * DEPTH) as u64;
            if parts > 1 && column < depth && end <= partials.len() {
                let first = first_unit as u32 * unit_rows + row % tile_rows;
                let all = merged::<DEPTH, BATCH>(partials, stats, first, parts, unit_rows, column, scale);
                let row = query_row(problem, sequence, head, keys, row);
                store_row::<T, SHIFT>(problem, o, of_o, lse, sinks, row, column, all, scale);
            }
        }
    }
}
