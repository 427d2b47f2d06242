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

    /// Returns the index of the first element of a query. `head` counts through the batch.
    #[tma_device]
    fn start(strides: Strides, head: u32, heads: u32, query: u32) -> u64 {
        (head / heads) as u64 * strides.batch
            + (head % heads) as u64 * strides.head
            + query as u64 * strides.query
    }

    /// Prepares the numbers that a query has in common with all keys. In base 2 the weight of a key
    /// is `exp2(score * scale - exponent)`, where the exponent is the logarithm of the sum of
    /// exponentials, and the gradient of its score the weight times (product - delta), where the
    /// delta is the inner product of the query's result and its gradient. Also clears the sums of
    /// gradients.
    ///
    /// A head has `padded` rows in all three. A row without a query, or whose query sees no key, has
    /// an exponent of ∞: all of its weights are 0. `LANES` threads share a row, with 8 elements each.
    #[tma_kernel(threads = 256, unchecked, instances(T in [bf16, f16], LANES in [d64 = 8, d128 = 16]))]
    pub fn prepare<T, const LANES: u32>(
        result: Global<T>,
        gradient: Global<T>,
        lse: Global<f32>,
        exponents: Global<f32>,
        deltas: Global<f32>,
        sums: Global<f32>,
        queries: u32,
        padded: u32,
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
        grid_dependency_wait();
        let lane = thread_idx().x % LANES;
        let row = block_idx().x as u64 * (256 / LANES) as u64 + (thread_idx().x / LANES) as u64;
        if row >= exponents.len() {
            return; // all threads of a row
        }
        let column = (lane * 8) as u64;
        let cleared = row * (LANES * 8) as u64 + column;
        sums.set_vec(cleared, [0.0f32; 4]);
        sums.set_vec(cleared + 4, [0.0f32; 4]);
        let head = (row / padded as u64) as u32;
        let query = (row % padded as u64) as u32;
        let mut delta = 0.0f32;
        let mut exponent = f32::INFINITY;
        if query < queries {
            let strides = Strides { batch: result_batch, head: result_head, query: result_query };
            let x = result.get_vec::<8>(start(strides, head, heads, query) + column);
            let strides = Strides { batch: gradient_batch, head: gradient_head, query: gradient_query };
            let y = gradient.get_vec::<8>(start(strides, head, heads, query) + column);
            for i in unroll(0..8usize) {
                delta = fma(cast::<f32>(x[i]), cast::<f32>(y[i]), delta);
            }
            let strides = Strides { batch: lse_batch, head: lse_head, query: lse_query };
            let of_query = lse.get(start(strides, head, heads, query));
            if of_query != f32::NEG_INFINITY {
                exponent = of_query * LOG2_E;
            }
        }
        for step in unroll(0..LANES.trailing_zeros()) {
            delta += shuffle_xor(delta, 1u32 << step);
        }
        if lane == 0 {
            exponents.set(row, exponent);
            deltas.set(row, delta);
        }
    }

    /// Multiplies the sums of gradients by `scale`, and rounds them to `T`. They are in the order in
    /// which the threads of `backward` hold them: for each block of queries, `blocks` of a head,
    /// first the parts of 8 warps, then groups of 4 elements, then the 32 lanes of a warp.
    #[tma_kernel(threads = 256, unchecked, instances(
        T in [bf16, f16],
        (DEPTH, QUERIES) in [d64 = (64, 128), d128 = (128, 64)],
    ))]
    pub fn round<T, const DEPTH: u32, const QUERIES: u32>(
        sums: Global<f32>,
        to: Global<T>,
        queries: u32,
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
        grid_dependency_wait();
        let head = block_idx().x / blocks;
        let warp = thread_idx().x / 32;
        let lane = thread_idx().x % 32;
        // A warpgroup has 64 × 64 elements of a block: of the queries, or of the columns, one half.
        let half = warp / 4;
        let row = half % (QUERIES / 64) * 64 + warp % 4 * 16 + lane / 4;
        let query = block_idx().x % blocks * QUERIES + row;
        let column = half % (DEPTH / 64) * 64 + lane % 4 * 2;
        let from = (block_idx().x as u64 * 8 + warp as u64) * 1024 + (lane * 4) as u64;
        let mut all = [[0.0f32; 4]; 8];
        for j in unroll(0..8usize) {
            all[j] = sums.get_vec::<4>(from + (j * 128) as u64);
        }
        let strides = Strides { batch: to_batch, head: to_head, query: to_query };
        for part in unroll(0..2usize) {
            let query = query + 8 * part as u32;
            if query < queries {
                let first = start(strides, head, heads, query) + column as u64;
                for j in unroll(0..8usize) {
                    let [a, b] = [all[j][2 * part] * scale, all[j][2 * part + 1] * scale];
                    to.set_vec(first + (j * 8) as u64, [cast::<T>(a), cast::<T>(b)]);
                }
            }
        }
    }
}
