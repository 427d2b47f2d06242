//! The kernel whose warpgroups alternate: one uses the tensor cores while the other stores.

use tma_runtime::tma_module;

/// C = A · B, in batches. In each block two warpgroups take turns: each computes every second tile
/// of the block, of 128 × `BN` elements. The sums of one are converted and stored while the tensor
/// cores work on the next, as in the "ping-pong" kernels of CUTLASS. Clusters are two stacked
/// blocks, which share their loads of B.
///
/// A is M × K, B is N × K.
#[tma_module]
pub mod kernels {
    use tma_runtime::prelude::*;

    use crate::gemm::device::epilogue::store_rows;
    use crate::gemm::device::producer::{Operand, Steps, load_steps};
    use crate::gemm::device::schedule::{TileCoords, ring_stages, tile_coords, tile_order};

    /// Computes C = A · B. Tiles are numbered as in `plain`, and the warpgroups of a block take its
    /// tiles in turn.
    #[tma_kernel(threads = 384, cluster = [1, 2], unchecked, instances(
        (AB, C) in [bf16 = (bf16, bf16), f16 = (f16, f16), e4m3 = (e4m3, bf16), e5m2 = (e5m2, bf16)],
        // 176 columns are not a whole number of swizzled rows.
        (BN, W) in [ping_pong128x176_nt = (176, NoSwizzle), ping_pong128x128_nt = (128, Swizzle128)],
        let BK = 128 / size_of::<AB>() as u32, // a row of 128 bytes
        let EPILOGUE_COLUMNS = BN / 2,
        let IN_FLIGHT = if BN == 128 { 1 } else { 0 }, // a second buffer of 64 × 88 would cost a stage
        let SLICE_B = BN / 2,
        let BUFFERS = 2 * (IN_FLIGHT + 1),
        // A buffer of 64 × 88 is larger than `ring_stages` assumes, but fits in what it leaves.
        let STAGES = ring_stages(128, BN, BUFFERS),
    ))]
    pub fn ping_pong<
        AB,
        C,
        const BK: u32,
        const BN: u32,
        const SLICE_B: u32,
        const STAGES: u32,
        const EPILOGUE_COLUMNS: u32,
        W: MatrixSwizzle,
        const BUFFERS: u32,
        const IN_FLIGHT: u32,
    >(
        a: TensorMap<Operand<AB, 128, BK>>,
        b: TensorMap<Operand<AB, SLICE_B, BK>>,
        c: TensorMap<Tile<C, Shape3<1, 64, EPILOGUE_COLUMNS>, W>>,
        m: u32,
        n: u32,
        k: u32,
        k_shift: u32,
        band: u32,
        tiles: u32,
    ) where
        AB: Multiply<AB, f32>,
        C: TileElement,
        f32: StoreAs<C>,
        Tile<AB, Shape2<64, BK>, Swizzle128>: Left<64, BK, Element = AB>,
        Operand<AB, BN, BK>: Right<BN, BK, Element = AB>,
    {
        let ring: Pipeline<(Operand<AB, 128, BK>, Operand<AB, BN, BK>), STAGES> = shared();
        let buffers: Stages<Tile<C, Shape3<1, 64, EPILOGUE_COLUMNS>, W>, BUFFERS> = shared();
        let turn: Stages<Barrier, 2> = shared();
        if thread_idx().x == 0 {
            a.prefetch_descriptor();
            b.prefetch_descriptor();
            ring.init(8); // one arrival per warp of a warpgroup, in both blocks
            for i in 0..2 {
                turn[i].init(1); // one arrival, of a thread of the other warpgroup
            }
            fence_barrier_init();
        }
        sync_cluster();
        grid_dependency_wait();
        grid_dependency_launch(); // the next kernel may begin to prepare
        let order = tile_order::<2, 1, 128, BN>(m, n, band);
        let steps = k.div_ceil(BK);
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 && elect_one() {
                let mut producer = ring.producer();
                for tile in (cluster_idx().x..tiles).step_by(grid_dim().x as usize) {
                    let at = tile_coords::<2, 1, 128, BN>(order, tile);
                    let steps = Steps { first: 0, count: steps, start: cluster_idx().x * k_shift };
                    load_steps::<_, BK, false, false, _, _, _, _, _, _, _>(&mut producer, a, b, at, steps);
                }
                producer.drain(); // until then, the other block arrives at this block's barriers
            }
        } else {
            setmaxnreg_inc::<232>();
            let warpgroup = warpgroup_idx() - 1;
            let mut consumer = ring.consumer();
            consumer.skip(warpgroup * steps);
            let first = cluster_idx().x + warpgroup * grid_dim().x;
            let mut parity = warpgroup ^ 1; // a wait for parity 1 passes at once on a new barrier: warpgroup 0 begins
            for tile in (first..tiles).step_by((2 * grid_dim().x) as usize) {
                turn[warpgroup].wait(parity);
                parity ^= 1;
                let mut upper_sum = Accumulator::<f32, 64, BN>::zero();
                let mut lower_sum = Accumulator::<f32, 64, BN>::zero();
                let slot = consumer.wait();
                let mut upper = upper_sum.mma(slot.0.batch(0).band::<64>(0), slot.1, ()); // `lower` keeps the slot
                let mut lower = lower_sum.mma(slot.0.batch(0).band::<64>(1), slot.1, slot);
                for _ in 1..steps {
                    let slot = consumer.wait();
                    upper.mma(slot.0.batch(0).band::<64>(0), slot.1, ());
                    let done = lower.mma(slot.0.batch(0).band::<64>(1), slot.1, slot);
                    if elect_one() {
                        done.release_cluster();
                    }
                }
                sync_warpgroup(); // all threads have waited, so none can miss a phase
                if thread_idx().x % 128 == 0 {
                    turn[warpgroup ^ 1].arrive();
                }
                upper.wait();
                let last = lower.wait();
                if elect_one() {
                    last.release_cluster();
                }
                consumer.skip(steps);

                let upper_at = tile_coords::<2, 1, 128, BN>(order, tile);
                let lower_at = TileCoords { row: upper_at.row + 64, ..upper_at };
                store_rows::<f32, C, W, BN, EPILOGUE_COLUMNS, BUFFERS, IN_FLIGHT>(
                    &upper_sum, c, buffers, warpgroup, upper_at,
                );
                store_rows::<f32, C, W, BN, EPILOGUE_COLUMNS, BUFFERS, IN_FLIGHT>(
                    &lower_sum, c, buffers, warpgroup, lower_at,
                );
            }
            bulk_wait_group_read::<0>(); // returns at once in threads that stored nothing
        }
    }
}
