//! The kernel that multiplies few rows of `bf16` by many of `e4m3`.

use tma_runtime::tma_module;

/// C = A · Bᵀ, where A is of `bf16`, and B, of `e4m3`, has scales. As in
/// [`few_rows`](super::few_rows), the rows of B are those of the instructions, and the blocks of a
/// cluster divide the sums of a tile along K.
///
/// The left operand of an instruction may be in registers. A warpgroup converts its 64 × 128
/// elements of B to `bf16`, which is exact, and multiplies them there.
#[tma_module]
pub mod widened {
    use tma_runtime::prelude::*;

    use crate::gemm::device::producer::Operand;
    use crate::gemm::scaled::exchange::shares::{received, send_sums};
    use crate::gemm::scaled::few_rows::exchanged::{stages, store_share};

    /// Returns 64 × 128 elements of B, which begin at row `first` of the tile, as numbers.
    #[tma_device]
    fn load_numbers<const BN: u32>(
        numbers: &mut Accumulator<f32, 64, 128>,
        tile: Operand<e4m3, BN, 128>,
        first: u32,
    ) {
        for i in unroll((0..numbers.len()).step_by(2)) {
            let at = numbers.at(i);
            let two = tile.get_vec::<2>([0, first + at[0], at[1]]);
            numbers[i] = two[0].to_f32();
            numbers[i + 1] = two[1].to_f32();
        }
    }

    /// Along y are tiles of the rows of A, along x those of B, each a cluster.
    ///
    /// Without scales, all of them are 1. The stride of `c` is that of its rows.
    #[tma_kernel(threads = 128 * (1 + WARPGROUPS), cluster = launch, unchecked, instances(
        let BN = 64 * WARPGROUPS,
        let STAGES = stages(WARPGROUPS),
        let RECEIVED = received(BM, BN),

        C in [bf16, f32],
        (BM, WARPGROUPS) in
            [t8x64 = (8, 1), t16x64 = (16, 1), t32x64 = (32, 1), t64x128 = (64, 2)];
    ))]
    pub fn multiply<
        C,
        const BM: u32,
        const WARPGROUPS: u32,
        const BN: u32,
        const STAGES: u32,
        const RECEIVED: u32,
    >(
        a: TensorMap<Operand<bf16, BM, 128>>,
        b: TensorMap<Operand<e4m3, BN, 128>>,
        c: Global<C>,
        scales_b: Option<Global<f32>>,
        m: u32,
        n: u32,
        k: u32,
        c_row: u64,
    ) where
        C: TileElement + Number,
    {
        let ring: Pipeline<(Operand<bf16, BM, 128>, Operand<e4m3, BN, 128>), STAGES> = shared();
        let sums: SharedArray<f32, RECEIVED> = shared();
        let scales: Stages<SharedArray<f32, 32>, 2> = shared();
        let ready: Stages<Barrier, 2> = shared();
        let taken: Stages<Barrier, 2> = shared();
        if thread_idx().x == 0 {
            a.prefetch_descriptor();
            b.prefetch_descriptor();
            ring.init(WARPGROUPS * 4); // one arrival per multiplying warp
            for i in 0..2 {
                ready[i].init(1);
                taken[i].init(WARPGROUPS * 4);
            }
            fence_barrier_init();
        }
        sync_cluster(); // also because blocks send each other sums
        grid_dependency_wait();
        grid_dependency_launch(); // the next kernel may begin to prepare

        let row = block_idx().y * BM;
        let column = cluster_idx().x * BN;
        let rank = cluster_rank();
        let parts = cluster_dim().x;
        let tile_rows = min(m - row, BM);
        let steps = k.div_ceil(128);
        let first = rank * steps / parts;
        let end = (rank + 1) * steps / parts;

        if warpgroup_idx() == 0 {
            if warp_idx() == 0 {
                if elect_one() {
                    let mut producer = ring.producer();
                    for step in first..end {
                        let slot = producer.acquire();
                        a.load(slot.0, [0, row, step * 128], slot.barrier());
                        b.load(slot.1, [0, column, step * 128], slot.barrier());
                    }
                }
            } else if warp_idx() == 1 {
                // The scales of 32 steps at a time, one a lane.
                for start in (first..end).step_by(32) {
                    let batch = (start - first) / 32;
                    let mut scale = 1.0;
                    if let Some(scales_b) = scales_b {
                        scale = scales_b.get(column / 128 * steps + min(start + lane_idx(), end - 1));
                    }
                    taken[batch % 2].wait(((batch / 2) & 1) ^ 1);
                    scales[batch % 2].set(lane_idx(), scale);
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
            for start in (first..end).step_by(32) {
                let batch = (start - first) / 32;
                ready[batch % 2].wait((batch / 2) & 1);
                for step in start..min(start + 32, end) {
                    let slot = consumer.wait();
                    let mut numbers = Accumulator::<f32, 64, 128>::zero();
                    load_numbers::<BN>(&mut numbers, slot.1, warpgroup * 64);
                    let mut part = Accumulator::<f32, 64, BM>::zero();
                    let done = part.mma(numbers.pack::<bf16>(), slot.0, slot).wait();
                    sync_warp(); // all lanes have read B
                    if elect_one() {
                        done.release();
                    }
                    let scale = scales[batch % 2].get(step - start);
                    for i in unroll(0..sum.len()) {
                        sum[i] = fma(part[i], scale, sum[i]);
                    }
                }
                sync_warp();
                if elect_one() {
                    taken[batch % 2].arrive();
                }
            }
            send_sums::<BM, BN, RECEIVED>(&sum, sums, warpgroup, tile_rows);
        }
        sync_cluster(); // the sums of all blocks have arrived

        let at = [row, column];
        store_share::<C, BM, BN, WARPGROUPS, RECEIVED>(sums, c, tile_rows, at, n, 1.0, [0, c_row]);
    }
}
