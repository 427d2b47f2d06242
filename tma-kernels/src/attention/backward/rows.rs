//! The kernels before and after the one that multiplies: over rows of queries.

use tma_runtime::tma_module;

/// Statistics of each query, before; gradients of queries, after.
#[tma_module]
pub mod queries {
    use tma_runtime::prelude::*;

    /// log2(e), as an f32.
    const LOG2_E: f32 = 12_102_203.0 / 8_388_608.0;

    /// The distances between the rows of a tensor of batch × heads × queries, in elements.
    #[derive(Clone, Copy)]
    pub struct Strides {
        /// The distance between elements of the batch.
        pub batch: u64,
        /// The distance between heads.
        pub head: u64,
        /// The distance between queries.
        pub query: u64,
    }

    /// Returns the index of the first element of a query.
    #[tma_device]
    fn start(strides: Strides, batch: u32, head: u32, query: u32) -> u64 {
        batch as u64 * strides.batch + head as u64 * strides.head + query as u64 * strides.query
    }

    /// The rows of a head of a sequence, in the tensors, and in exponents, deltas and sums.
    #[derive(Clone, Copy)]
    pub struct OfHead {
        /// The sequence's coordinate in the batch.
        pub batch: u32,
        /// The head within it.
        pub head: u32,
        /// The first query along the tensors.
        pub first_query: u32,
        /// The number of queries.
        pub queries: u32,
        /// The first row of exponents, at which a block of queries begins.
        pub first_row: u64,
    }

    /// Returns the rows of a head, counted through the batch. Each head has `padded` rows of
    /// exponents.
    #[tma_device]
    fn of_batch(index: u32, heads: u32, queries: u32, padded: u32) -> OfHead {
        OfHead {
            batch: index / heads,
            head: index % heads,
            first_query: 0,
            queries,
            first_row: index as u64 * padded as u64,
        }
    }

    /// Returns the rows of a head, counted through all sequences.
    #[tma_device(open)]
    fn of_head<const QUERIES: u32>(index: u32, heads: u32, queries: u32, padded: u32) -> OfHead {
        of_batch(index, heads, queries, padded)
    }

    /// Returns the number of columns of the tensors.
    #[tma_device(open)]
    fn columns<const DEPTH: u32>() -> u32 {
        DEPTH
    }

    /// Prepares the numbers that a query has in common with all keys. In base 2 the weight of a key
    /// is `exp2(score * scale - exponent)`, where the exponent is the logarithm of the sum of
    /// exponentials, and the gradient of its score the weight times (product - delta), where the
    /// delta is the inner product of the query's result and its gradient. Also clears the sums of
    /// gradients, and the count of blocks of keys that have added to each block of `QUERIES` queries.
    ///
    /// `blocks` blocks have the rows of a head, up to the end of its last block of queries. A row
    /// without a query, or whose query sees no key, has an exponent of ∞: all of its weights are 0.
    /// `LANES` threads share a row, with 8 elements each, and have two rows, whose loads are under
    /// way at the same time.
    #[tma_kernel(threads = 256, unchecked, instances(
        T in [bf16, f16],
        (DEPTH, QUERIES) in [d64 = (64, 128), d128 = (128, 64)],
        let LANES = DEPTH / 8,
    ))]
    pub fn prepare<T, const DEPTH: u32, const QUERIES: u32, const LANES: u32>(
        result: Global<T>,
        gradient: Global<T>,
        lse: Global<f32>,
        exponents: Global<f32>,
        deltas: Global<f32>,
        sums: Global<f32>,
        turns: Global<u32>,
        all_queries: u32,
        padded: u32,
        blocks: u32,
        heads: u32,
        result_batch: u64,
        result_head: u64,
        result_query: u64,
        gradient_batch: u64,
        gradient_head: u64,
        gradient_query: u64,
        lse_batch: u64,
        lse_head: u64,
        lse_query: u64,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        let lane = thread_idx().x % LANES;
        let here = of_head::<QUERIES>(block_idx().x / blocks, heads, all_queries, padded);
        let (batch, head) = (here.batch, here.head);
        let queries = here.queries;
        let end = queries.div_ceil(QUERIES) * QUERIES;
        let column = lane * 8;
        let first = block_idx().x % blocks * (2 * 256 / LANES) + thread_idx().x / LANES;
        let of_result = Strides { batch: result_batch, head: result_head, query: result_query };
        let of_gradient = Strides { batch: gradient_batch, head: gradient_head, query: gradient_query };
        let of_lse = Strides { batch: lse_batch, head: lse_head, query: lse_query };
        grid_dependency_wait();
        let mut x = [[cast::<T>(0.0f32); 8]; 2];
        let mut y = [[cast::<T>(0.0f32); 8]; 2];
        let mut logarithms = [f32::NEG_INFINITY; 2];
        for i in unroll(0..2u32) {
            let query = first + i * (256 / LANES);
            let row = here.first_query + query; // along the tensors
            if query < queries && column < columns::<DEPTH>() {
                x[i as usize] = result.get_vec::<8>(start(of_result, batch, head, row) + column as u64);
                y[i as usize] = gradient.get_vec::<8>(start(of_gradient, batch, head, row) + column as u64);
                logarithms[i as usize] = lse.get(start(of_lse, batch, head, row));
            }
        }
        for i in unroll(0..2u32) {
            let query = first + i * (256 / LANES);
            // All threads of a row.
            if query < end {
                let row = here.first_row + query as u64;
                let cleared = row * DEPTH as u64 + (lane * 4) as u64;
                sums.set_vec(cleared, [0.0f32; 4]);
                sums.set_vec(cleared + (LANES * 4) as u64, [0.0f32; 4]);
                let mut delta = 0.0f32;
                for e in unroll(0..8usize) {
                    delta = fma(cast::<f32>(x[i as usize][e]), cast::<f32>(y[i as usize][e]), delta);
                }
                for step in unroll(0..LANES.trailing_zeros()) {
                    delta += shuffle_xor(delta, 1u32 << step);
                }
                if lane == 0 {
                    let logarithm = logarithms[i as usize];
                    let sees_none = logarithm == f32::NEG_INFINITY;
                    exponents.set(row, if sees_none { f32::INFINITY } else { logarithm * LOG2_E });
                    deltas.set(row, delta);
                    if query % QUERIES == 0 {
                        turns.set(row / QUERIES as u64, 0);
                    }
                }
            }
        }
    }

    /// Multiplies the sums of gradients by `scale`, and rounds them to `T`. They are in the order in
    /// which the threads of `backward` hold them: for each block of queries, `blocks` of a head,
    /// first the parts of 8 warps, then groups of 4 elements, then the 32 lanes of a warp. A group
    /// has two adjacent columns of a row, and the same of the eighth row after it.
    #[tma_kernel(threads = 256, unchecked, instances(
        T in [bf16, f16],
        (DEPTH, QUERIES) in [d64 = (64, 128), d128 = (128, 64)],
    ))]
    pub fn round<T, const DEPTH: u32, const QUERIES: u32>(
        sums: Global<f32>,
        to: Global<T>,
        all_queries: u32,
        padded: u32,
        blocks: u32,
        heads: u32,
        to_batch: u64,
        to_head: u64,
        to_query: u64,
        scale: f32,
    ) where
        T: TileElement + Number,
    {
        grid_dependency_launch();
        let here = of_head::<QUERIES>(block_idx().x / blocks, heads, all_queries, padded);
        let warp = thread_idx().x / 32;
        let lane = thread_idx().x % 32;
        // A warpgroup has 64 × 64 elements of a block: of the queries, or of the columns, one half.
        let half = warp / 4;
        let row = half % (QUERIES / 64) * 64 + warp % 4 * 16 + lane / 4;
        let query = block_idx().x % blocks * QUERIES + row;
        // A thread collects vectors of 8 columns, each from four lanes: two groups, of two rows each.
        let column = half % (DEPTH / 64) * 64 + lane % 4 * 8;
        let block = here.first_row / QUERIES as u64 + (block_idx().x % blocks) as u64;
        let from = (block * 8 + warp as u64) * 1024 + (lane % 4 * 128 + lane / 4 * 16) as u64;
        let strides = Strides { batch: to_batch, head: to_head, query: to_query };
        let first = start(strides, here.batch, here.head, here.first_query + query) + column as u64;
        grid_dependency_wait();
        let mut all = [[0.0f32; 2]; 16];
        // A short sequence has fewer blocks.
        if block_idx().x % blocks * QUERIES < here.queries {
            for i in unroll(0..16usize) {
                let (vector, pair) = (i / 4, i % 4);
                all[i] = sums.get_vec::<2>(from + (vector / 2 * 512 + vector % 2 * 2 + pair * 4) as u64);
            }
        }
        for vector in unroll(0..4usize) {
            let mut rounded = [cast::<T>(0.0f32); 8];
            for pair in unroll(0..4usize) {
                let [a, b] = all[vector * 4 + pair];
                rounded[2 * pair] = cast::<T>(a * scale);
                rounded[2 * pair + 1] = cast::<T>(b * scale);
            }
            let further = (vector % 2 * 8) as u32;
            let to_column = column + (vector / 2 * 32) as u32;
            if query + further < here.queries && to_column < columns::<DEPTH>() {
                to.set_vec(first + further as u64 * to_query + (vector / 2 * 32) as u64, rounded);
            }
        }
    }
    /// Computes the gradients of sinks, one block for each head. A sink takes part in the softmax of
    /// each row, but has no value: its gradient is the sum of its weights, each times minus the delta
    /// of the row.
    #[tma_kernel(threads = 256, unchecked, instances(QUERIES in [d64 = 128, d128 = 64]))]
    pub fn sinks<const QUERIES: u32>(
        exponents: Global<f32>,
        deltas: Global<f32>,
        sinks: Global<f32>,
        to: Global<f32>,
        all_queries: u32,
        padded: u32,
        heads: u32,
        sequences: u32,
    ) {
        let parts: SharedArray<f32, 8> = shared();
        grid_dependency_launch();
        let head = block_idx().x;
        let exponent = sinks.get(head) * LOG2_E;
        grid_dependency_wait();
        let mut sum = 0.0f32;
        for sequence in 0..sequences {
            let here = of_head::<QUERIES>(sequence * heads + head, heads, all_queries, padded);
            for query in (thread_idx().x..here.queries).step_by(256) {
                let row = here.first_row + query as u64;
                sum = fma(-exp2_ftz(exponent - exponents.get(row)), deltas.get(row), sum);
            }
        }
        for step in unroll(0..5u32) {
            sum += shuffle_xor(sum, 1u32 << step);
        }
        if lane_idx() == 0 {
            parts.set(warp_idx(), sum);
        }
        sync_threads();
        if thread_idx().x == 0 {
            let mut all = 0.0f32;
            for warp in unroll(0..8u32) {
                all += parts.get(warp);
            }
            to.set(head, all);
        }
    }
}
