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

    /// Prepares the numbers that a query has in common with all keys. In base 2 the weight of a key
    /// is `exp2(score * scale - exponent)`, where the exponent is the logarithm of the sum of
    /// exponentials, and the gradient of its score the weight times (product - delta), where the
    /// delta is the inner product of the query's result and its gradient. Also clears the sums of
    /// gradients.
    ///
    /// A head has `padded` rows in all three, and `blocks` blocks. A row without a query, or whose
    /// query sees no key, has an exponent of ∞: all of its weights are 0. `LANES` threads share a
    /// row, with 8 elements each, and have two rows, whose loads are under way at the same time.
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
        let of_all = block_idx().x / blocks;
        let (batch, head) = (of_all / heads, of_all % heads);
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
            if query < queries {
                let column = (lane * 8) as u64;
                x[i as usize] = result.get_vec::<8>(start(of_result, batch, head, query) + column);
                y[i as usize] = gradient.get_vec::<8>(start(of_gradient, batch, head, query) + column);
                logarithms[i as usize] = lse.get(start(of_lse, batch, head, query));
            }
        }
        for i in unroll(0..2u32) {
            let query = first + i * (256 / LANES);
            // All threads of a row.
            if query < padded {
                let row = of_all as u64 * padded as u64 + query as u64;
                let cleared = row * (LANES * 8) as u64 + (lane * 4) as u64;
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
        let of_all = block_idx().x / blocks;
        let warp = thread_idx().x / 32;
        let lane = thread_idx().x % 32;
        // A warpgroup has 64 × 64 elements of a block: of the queries, or of the columns, one half.
        let half = warp / 4;
        let row = half % (QUERIES / 64) * 64 + warp % 4 * 16 + lane / 4;
        let query = block_idx().x % blocks * QUERIES + row;
        // A thread collects vectors of 8 columns, each from four lanes: two groups, of two rows each.
        let column = half % (DEPTH / 64) * 64 + lane % 4 * 8;
        let from = (block_idx().x as u64 * 8 + warp as u64) * 1024 + (lane % 4 * 128 + lane / 4 * 16) as u64;
        let strides = Strides { batch: to_batch, head: to_head, query: to_query };
        let first = start(strides, of_all / heads, of_all % heads, query) + column as u64;
        grid_dependency_wait();
        let mut all = [[0.0f32; 2]; 16];
        for i in unroll(0..16usize) {
            let (vector, pair) = (i / 4, i % 4);
            all[i] = sums.get_vec::<2>(from + (vector / 2 * 512 + vector % 2 * 2 + pair * 4) as u64);
        }
        for vector in unroll(0..4usize) {
            let mut rounded = [cast::<T>(0.0f32); 8];
            for pair in unroll(0..4usize) {
                let [a, b] = all[vector * 4 + pair];
                rounded[2 * pair] = cast::<T>(a * scale);
                rounded[2 * pair + 1] = cast::<T>(b * scale);
            }
            let further = (vector % 2 * 8) as u32;
            if query + further < queries {
                to.set_vec(first + further as u64 * to_query + (vector / 2 * 32) as u64, rounded);
            }
        }
    }
}
