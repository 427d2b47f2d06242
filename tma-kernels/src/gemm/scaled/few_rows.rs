//! The kernel that multiplies few rows of `e4m3` by many, and promotes its sums.

use tma_runtime::tma_module;

/// C = A · Bᵀ for few rows of A, computed as B · Aᵀ: the rows of B fill those of the tensor cores'
/// instructions, and the rows of A are their columns, of which there may be as few as 8.
///
/// Memory limits such a GEMM: it reads B once. The blocks of a cluster divide the sums of a tile
/// along K, so that all multiprocessors read B, however few tiles it has.
#[tma_module]
pub mod exchanged {
    use tma_runtime::prelude::*;

    use crate::gemm::device::producer::Operand;
    use crate::gemm::scaled::exchange::shares::{received, send_sums, total};
    use crate::gemm::scaled::kernel::scaled::{SMALLER, factor};

    /// Steps of 128 columns of K whose factors are computed together.
    const BATCH: u32 = 4;

    /// Warps that compute factors.
    const FACTOR_WARPS: u32 = 2;

    /// The bytes of B that a multiprocessor of an H200 should have in flight: it needs some 30 KB,
    /// and with 192 KB it is slower (`docs/cached-attention.md`, "The kernels").
    const IN_FLIGHT: u32 = 64 * 1024;

    /// Returns the blocks that share a multiprocessor: two of one warpgroup that multiplies, or one
    /// of two.
    pub const fn blocks_each(warpgroups: u32) -> u32 {
        2 / warpgroups
    }

    /// Returns the stages of a block with which its multiprocessor has `IN_FLIGHT` bytes in
    /// flight.
    pub const fn stages(warpgroups: u32) -> u32 {
        IN_FLIGHT / (blocks_each(warpgroups) * warpgroups * 64 * 128)
    }

    /// Adds the partial sums of a step, multiplied by the factors of their rows of A, which begin at
    /// `first`.
    #[tma_device]
    fn promote<const BM: u32, const FACTORS: u32>(
        sum: &mut Accumulator<f32, 64, BM>,
        part: &Accumulator<f32, 64, BM>,
        factors: SharedArray<f32, FACTORS>,
        first: u32,
    ) {
        for i in unroll((0..sum.len()).step_by(4)) {
            // Two adjacent rows of A, of each of a thread's two rows of B.
            let of_rows = factors.get_vec::<2>(first + sum.at(i)[1]);
            sum[i] = fma(part[i], of_rows[0], sum[i]);
            sum[i + 1] = fma(part[i + 1], of_rows[1], sum[i + 1]);
            sum[i + 2] = fma(part[i + 2], of_rows[0], sum[i + 2]);
            sum[i + 3] = fma(part[i + 3], of_rows[1], sum[i + 3]);
        }
    }

    /// Stores this block's share of a tile of `rows` × `BN` elements of C, whose sums all blocks of
    /// the cluster have sent, multiplied by `scale`. The tile begins at row and column `at` of its
    /// group. The strides of `c` are those of groups and rows.
    #[tma_device]
    pub fn store_share<
        C: TileElement + Number,
        const BM: u32,
        const BN: u32,
        const WARPGROUPS: u32,
        const RECEIVED: u32,
    >(
        sums: SharedArray<f32, RECEIVED>,
        c: Global<C>,
        rows: u32,
        at: [u32; 2],
        n: u32,
        scale: f32,
        strides: [u64; 2],
    ) {
        let share = BN / cluster_dim().x;
        let first = block_idx().z as u64 * strides[0];
        for item in (thread_idx().x..rows * share).step_by((128 * (1 + WARPGROUPS)) as usize) {
            let within = [item / share, item % share];
            let column = at[1] + cluster_rank() * share + within[1];
            if column < n {
                let row = (at[0] + within[0]) as u64;
                let sum = total::<BM, BN, RECEIVED>(sums, within);
                c.set(first + row * strides[1] + column as u64, cast::<C>(sum * scale));
            }
        }
    }

    /// Multiplies groups of matrices, one for each block along z. Along y are tiles of the rows of
    /// A, along x those of B, each a cluster.
    ///
    /// Without scales, all of them are 1. With `counts`, a group has only as many rows, which are
    /// read on the device: no others are stored. The strides of `scales_a` are those of groups, rows
    /// and steps; the strides of `c` are those of groups and rows.
    #[tma_kernel(threads = 128 * (1 + WARPGROUPS), cluster = launch, unchecked, instances(
        let BN = 64 * WARPGROUPS,
        let STAGES = stages(WARPGROUPS),
        let FACTORS = BM * BATCH,
        let RECEIVED = received(BM, BN),

        C in [bf16, f32],
        (BM, WARPGROUPS) in
            [t8x64 = (8, 1), t16x64 = (16, 1), t32x64 = (32, 1), t64x128 = (64, 2), t128x128 = (128, 2)];
    ))]
    pub fn promoted<
        C,
        const BM: u32,
        const WARPGROUPS: u32,
        const BN: u32,
        const STAGES: u32,
        const FACTORS: u32,
        const RECEIVED: u32,
    >(
        a: TensorMap<Operand<e4m3, BM, 128>>,
        b: TensorMap<Operand<e4m3, BN, 128>>,
        c: Global<C>,
        scales_a: Option<Global<f32>>,
        scales_b: Option<Global<f32>>,
        counts: Option<Global<u32>>,
        m: u32,
        n: u32,
        k: u32,
        a_group: u32,
        a_row: u32,
        a_step: u32,
        c_group: u64,
        c_row: u64,
    ) where
        C: TileElement + Number,
    {
        let ring: Pipeline<(Operand<e4m3, BM, 128>, Operand<e4m3, BN, 128>), STAGES> = shared();
        let factors: Stages<SharedArray<f32, FACTORS>, 2> = shared();
        let sums: SharedArray<f32, RECEIVED> = shared();
        let valid: SharedArray<u32, 1> = shared();
        let ready: Stages<Barrier, 2> = shared();
        let taken: Stages<Barrier, 2> = shared();
        if thread_idx().x == 0 {
            a.prefetch_descriptor();
            b.prefetch_descriptor();
            ring.init(WARPGROUPS * 4); // one arrival per multiplying warp
            for i in 0..2 {
                ready[i].init(FACTOR_WARPS);
                taken[i].init(WARPGROUPS * 4);
            }
            fence_barrier_init();
        }
        sync_cluster(); // also because blocks send each other sums
        grid_dependency_wait();
        grid_dependency_launch(); // the next kernel may begin to prepare

        let group = block_idx().z;
        let row = block_idx().y * BM;
        let column = cluster_idx().x * BN;
        let rank = cluster_rank();
        let parts = cluster_dim().x;
        let mut rows = m;
        if let Some(counts) = counts {
            if thread_idx().x == 0 {
                valid.set(0, min(counts.get(group), m));
            }
            sync_threads();
            rows = warp_reduce_max(valid.get(0)); // in a uniform register
        }
        let tile_rows = if rows > row { min(rows - row, BM) } else { 0 };
        let blocks_of_k = k.div_ceil(128);
        let steps = if tile_rows > 0 { blocks_of_k } else { 0 };
        let first = rank * steps / parts;
        let end = (rank + 1) * steps / parts;

        if warpgroup_idx() == 0 {
            if warp_idx() == 0 {
                if elect_one() {
                    let mut producer = ring.producer();
                    for step in first..end {
                        let slot = producer.acquire();
                        a.load(slot.0, [group, row, step * 128], slot.barrier());
                        b.load(slot.1, [group, column, step * 128], slot.barrier());
                    }
                }
            } else if warp_idx() <= FACTOR_WARPS {
                let thread = thread_idx().x - 32;
                for start in (first..end).step_by(BATCH as usize) {
                    let batch = (start - first) / BATCH;
                    // Loaded before the buffer is free, while the previous factors are used.
                    let mut products = [SMALLER; 8];
                    if let Some(scales_a) = scales_a {
                        let step = min(start + thread % BATCH, end - 1);
                        if let Some(scales_b) = scales_b {
                            let blocks = n.div_ceil(128);
                            let of_b = scales_b.get(
                                (group * blocks + column / 128) as u64 * blocks_of_k as u64 + step as u64,
                            );
                            for i in unroll(0..FACTORS.div_ceil(32 * FACTOR_WARPS)) {
                                let at = min(row + i * 16 + thread / BATCH, m - 1);
                                let of_a = scales_a.get(
                                    group as u64 * a_group as u64
                                        + at as u64 * a_row as u64
                                        + step as u64 * a_step as u64,
                                );
                                products[i as usize] = factor(of_a, of_b);
                            }
                        }
                    }
                    taken[batch % 2].wait(((batch / 2) & 1) ^ 1);
                    for i in unroll(0..FACTORS.div_ceil(32 * FACTOR_WARPS)) {
                        let of_row = i * 16 + thread / BATCH;
                        if of_row < BM {
                            factors[batch % 2].set(thread % BATCH * BM + of_row, products[i as usize]);
                        }
                    }
                    sync_warp();
                    if elect_one() {
                        ready[batch % 2].arrive();
                    }
                }
            }
        } else {
            let warpgroup = warpgroup_idx() - 1;
            let mut consumer = ring.consumer();
            let mut sum = Accumulator::<f32, 64, BM>::zero();
            for start in (first..end).step_by(BATCH as usize) {
                let batch = (start - first) / BATCH;
                ready[batch % 2].wait((batch / 2) & 1);
                for step in start..min(start + BATCH, end) {
                    let slot = consumer.wait();
                    let mut part = Accumulator::<f32, 64, BM>::zero();
                    let of_b = slot.1.batch(0).band::<64>(warpgroup);
                    let done = part.mma(of_b, slot.0, slot).wait();
                    if elect_one() {
                        done.release();
                    }
                    promote(&mut sum, &part, factors[batch % 2], (step - start) * BM);
                }
                sync_warp();
                if elect_one() {
                    taken[batch % 2].arrive();
                }
            }
            send_sums::<BM, BN, RECEIVED>(&sum, sums, warpgroup, tile_rows);
        }
        sync_cluster(); // the sums of all blocks have arrived

        let scale = 1.0 / SMALLER;
        store_share::<C, BM, BN, WARPGROUPS, RECEIVED>(
            sums,
            c,
            tile_rows,
            [row, column],
            n,
            scale,
            [c_group, c_row],
        );
    }
}
