//! The kernel that multiplies `e4m3` and promotes its sums.

use tma_runtime::tma_module;

/// C = A · Bᵀ, where A is M × K, B is N × K, and both have scales.
///
/// The tensor cores keep 13 bits of a sum of `e4m3` after the point. The sums of each 128 columns
/// of K are therefore added to others in `f32`, multiplied by the scales of their row of A and
/// their block of B. A warpgroup computes 64 × 128 elements with two such sums in flight: it
/// promotes one while the tensor cores compute the other.
///
/// In the warpgroup that does not multiply, one warp loads tiles. Two multiply scales, and store
/// the rows' factors in shared memory: threads that multiply would lose their uniform registers to
/// the branches of bounds checks (`docs/gemm-variants.md`, "Divergence and uniform registers").
#[tma_module]
pub mod scaled {
    use tma_runtime::prelude::*;

    use crate::gemm::device::schedule::{tile_of_matrix, tile_order};

    /// Steps of 128 columns of K whose factors are computed together, one step per lane of four.
    const BATCH: u32 = 4;

    /// 2^-24, the scale of factors, and of sums until they are stored to C. Without it, the product
    /// of two scales of up to 2^128 could overflow an `f32` where C does not.
    pub const SMALLER: f32 = 5.960_464_5e-8;

    /// Returns the product of two scales, times [`SMALLER`]. If it still overflows an `f32`, so
    /// does C wherever it is not 0, since the least sum above zero is 2^-18. The product is
    /// bounded, because 0 · ∞ would make NaNs of the zeros.
    #[tma_device]
    pub fn factor(of_a: f32, of_b: f32) -> f32 {
        // The greater one stays exact: if it were rounded to 0, the product would be 0.
        let is_greater = abs(of_a) > abs(of_b);
        let greater = if is_greater { of_a } else { of_b };
        let product = greater * SMALLER * (if is_greater { of_b } else { of_a });
        if abs(of_a) <= f32::MAX && abs(of_b) <= f32::MAX {
            max(min(product, f32::MAX), -f32::MAX)
        } else {
            product
        }
    }

    /// Returns the factors of this thread's two rows in a step. The first row is `row`.
    #[tma_device]
    fn factors_of(factors: SharedArray<f32, { 128 * BATCH }>, step: u32, row: u32) -> [f32; 2] {
        let at = step % BATCH * 128 + row;
        [factors.get(at), factors.get(at + 8)]
    }

    /// Adds the partial sums of a step to the sums.
    #[tma_device]
    fn promote(sum: &mut Accumulator<f32, 64, 128>, part: &Accumulator<f32, 64, 128>, factors: [f32; 2]) {
        for i in unroll(0..sum.len()) {
            sum[i] = fma(part[i], factors[sum.row(i)], sum[i]);
        }
    }

    /// If `scales_b` is empty, all scales are 1. `along_m` and `along_k` are the strides of A's.
    #[tma_kernel(threads = 384, cluster = [CLUSTER_N, CLUSTER_M], unchecked, instances(
        let SLICE_A = 128 / CLUSTER_N,
        let SLICE_B = 128 / CLUSTER_M,
        let EPILOGUE_COLUMNS = 128 / size_of::<C>() as u32; // a row of 128 bytes

        C in [bf16, f32],
        (CLUSTER_M, CLUSTER_N) in [t128x128_cluster2x1 = (2, 1), t128x128_cluster1x2 = (1, 2)];
    ))]
    pub fn promoted<
        C,
        const EPILOGUE_COLUMNS: u32,
        const CLUSTER_N: u32,
        const CLUSTER_M: u32,
        const SLICE_A: u32,
        const SLICE_B: u32,
    >(
        a: TensorMap<Tile<e4m3, Shape2<SLICE_A, 128>, Swizzle128>>,
        b: TensorMap<Tile<e4m3, Shape2<SLICE_B, 128>, Swizzle128>>,
        c: TensorMap<Tile<C, Shape2<64, EPILOGUE_COLUMNS>, Swizzle128>>,
        scales_a: Global<f32>,
        scales_b: Global<f32>,
        m: u32,
        n: u32,
        k: u32,
        along_m: u32,
        along_k: u32,
        band: u32,
    ) where
        C: TileElement,
        f32: StoreAs<C>,
    {
        let ring: Pipeline<
            (Tile<e4m3, Shape2<128, 128>, Swizzle128>, Tile<e4m3, Shape2<128, 128>, Swizzle128>),
            5,
        > = shared();
        let buffers: Stages<Tile<C, Shape2<64, EPILOGUE_COLUMNS>, Swizzle128>, 4> = shared();
        let factors: Stages<SharedArray<f32, { 128 * BATCH }>, 2> = shared();
        let ready: Stages<Barrier, 2> = shared();
        let taken: Stages<Barrier, 2> = shared();
        if thread_idx().x == 0 {
            a.prefetch_descriptor();
            b.prefetch_descriptor();
            ring.init(CLUSTER_N * CLUSTER_M * 8); // one arrival per multiplying warp of both blocks
            for i in 0..2 {
                ready[i].init(2); // one arrival per warp that computes factors
                taken[i].init(8); // one arrival per multiplying warp
            }
            fence_barrier_init();
        }
        sync_cluster();

        let order = tile_order::<CLUSTER_M, CLUSTER_N, 128, 128>(m, n, band);
        let units = order.tiles_down * order.tiles_across;
        let steps = k.div_ceil(128);
        let clusters = (grid_dim().x / CLUSTER_N) as usize;
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<56>();
            if warp_idx() == 0 {
                if elect_one() {
                    let mut producer = ring.producer();
                    for unit in (cluster_idx().x..units).step_by(clusters) {
                        let at = tile_of_matrix::<CLUSTER_M, CLUSTER_N, 128, 128>(order, unit);
                        // With `load_steps` and `store_rows` of the other kernels, this one is 3 % slower (H200).
                        for step in 0..steps {
                            let slot = producer.acquire();
                            a.load_sliced(slot.0, [at.row, step * 128], slot.barrier(), ClusterAxis::X);
                            b.load_sliced(slot.1, [at.column, step * 128], slot.barrier(), ClusterAxis::Y);
                        }
                    }
                    producer.drain();
                }
            } else if warp_idx() < 3 {
                // A lane has one step of four, and every 16th row.
                let lane = thread_idx().x - 32;
                let mut batch = 0u32;
                for unit in (cluster_idx().x..units).step_by(clusters) {
                    let at = tile_of_matrix::<CLUSTER_M, CLUSTER_N, 128, 128>(order, unit);
                    let row = at.row + lane / 4;
                    for first in (0..steps).step_by(BATCH as usize) {
                        let step = min(first + lane % 4, steps - 1);
                        // Loaded before the buffer is free, while the previous factors are used.
                        let mut products = [SMALLER; 8];
                        if scales_b.len() > 0 {
                            let of_b = scales_b.get(min(at.column, n - 1) / 128 * steps + step);
                            for i in unroll(0..8u32) {
                                let row = min(row + i * 16, m - 1);
                                let of_a = scales_a.get(row * along_m + step * along_k);
                                products[i as usize] = factor(of_a, of_b);
                            }
                        }
                        taken[batch % 2].wait(((batch / 2) & 1) ^ 1);
                        for i in unroll(0..8u32) {
                            factors[batch % 2].set(lane % 4 * 128 + i * 16 + lane / 4, products[i as usize]);
                        }
                        sync_warp();
                        if elect_one() {
                            ready[batch % 2].arrive();
                        }
                        batch += 1;
                    }
                }
            }
        } else {
            setmaxnreg_inc::<224>();
            let warpgroup = warpgroup_idx() - 1;
            let leader = thread_idx().x % 128 == 0;
            let mut consumer = ring.consumer();
            let mut batch = 0u32;
            for unit in (cluster_idx().x..units).step_by(clusters) {
                let at = tile_of_matrix::<CLUSTER_M, CLUSTER_N, 128, 128>(order, unit);
                let row = at.row + warpgroup * 64;
                let mut sum = Accumulator::<f32, 64, 128>::zero();
                let mine = warpgroup * 64 + sum.at(0)[0];
                for first in (0..steps).step_by(BATCH as usize) {
                    let now = factors[batch % 2];
                    ready[batch % 2].wait((batch / 2) & 1);
                    let end = min(first + BATCH, steps);
                    for step in (first..end).step_by(2) {
                        let slot = consumer.wait();
                        let mut part = Accumulator::<f32, 64, 128>::zero();
                        let flight = part.mma(slot.0.band::<64>(warpgroup), slot.1, slot);
                        let of_part = factors_of(now, step, mine);
                        if step + 1 < end {
                            let slot = consumer.wait();
                            let mut next = Accumulator::<f32, 64, 128>::zero();
                            let second = next.mma(slot.0.band::<64>(warpgroup), slot.1, slot);
                            let of_next = factors_of(now, step + 1, mine);
                            let done = flight.wait();
                            if elect_one() {
                                done.release_cluster();
                            }
                            promote(&mut sum, &part, of_part);
                            let done = second.wait();
                            if elect_one() {
                                done.release_cluster();
                            }
                            promote(&mut sum, &next, of_next);
                        } else {
                            let done = flight.wait();
                            if elect_one() {
                                done.release_cluster();
                            }
                            promote(&mut sum, &part, of_part);
                        }
                    }
                    sync_warp();
                    if elect_one() {
                        taken[batch % 2].arrive();
                    }
                    batch += 1;
                }

                for j in unroll(0..128 / EPILOGUE_COLUMNS) {
                    let buffer = buffers[warpgroup * 2 + j % 2];
                    if leader {
                        bulk_wait_group_read::<1>(); // the last store from this buffer has read it
                    }
                    sync_warpgroup();
                    for e in unroll(0..EPILOGUE_COLUMNS as usize / 2) {
                        sum[(j * EPILOGUE_COLUMNS / 2) as usize + e] *= 1.0 / SMALLER;
                    }
                    sum.columns::<EPILOGUE_COLUMNS>(j).store(buffer);
                    fence_proxy_async();
                    sync_warpgroup();
                    if leader {
                        c.store([row, at.column + j * EPILOGUE_COLUMNS], buffer);
                        bulk_commit_group();
                    }
                }
            }
            if leader {
                bulk_wait_group::<0>();
            }
        }
    }
}
