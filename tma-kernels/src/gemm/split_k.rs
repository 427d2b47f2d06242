//! The kernel for few tiles: the two blocks of a cluster split the sums of a tile along K.

use tma_runtime::tma_module;

/// C = A · B, in batches: `BM` × 128 elements per cluster, each of whose blocks sums half of K.
/// Each block then sends half of its sums to the other one, through distributed shared memory, and
/// stores the other half of C.
///
/// A is M × K; B is N × K or, if `MN_B`, K × N.
#[tma_module]
pub mod kernels {
    use tma_runtime::prelude::*;

    use crate::gemm::device::consumer::multiply_steps;
    use crate::gemm::device::producer::{Operand, Steps, nth_step};
    use crate::gemm::device::schedule::operand_coords;

    /// Columns of a cluster's tile, half of which each block stores.
    const BN: u32 = 128;
    /// The sums that a thread has of one half: 64 × `BN` / 2, among 128 threads.
    const HALF: u32 = BN / 4;

    /// Sends the other block its half of the columns, and adds the half received from it. `MINE`
    /// and `OTHER` are 0 and 1, or 1 and 0.
    #[tma_device]
    fn exchange<const MINE: u32, const OTHER: u32>(
        sum: &mut Accumulator<f32, 64, BN>,
        inbox: SharedArray<f32, { HALF * 128 }>,
        arrived: Barrier,
    ) {
        let thread = thread_idx().x % 128;
        for i in unroll(0..HALF) {
            remote(inbox, OTHER).set(i * 128 + thread, sum[(OTHER * HALF + i) as usize]);
        }
        remote(arrived, OTHER).arrive();
        arrived.wait(0);
        for i in unroll(0..HALF) {
            sum[(MINE * HALF + i) as usize] += inbox.get(i * 128 + thread);
        }
    }

    /// Computes one tile per cluster.
    #[tma_kernel(threads = 128 * (1 + WARPGROUPS), cluster = [1, 2], unchecked, instances(
        let BM = 64 * WARPGROUPS,
        let BK = 128 / size_of::<AB>() as u32, // a row of 128 bytes
        let ROWS_B = if MN_B { BK } else { BN },
        let COLUMNS_B = if MN_B { BN } else { BK },
        // Eight would fit with one warpgroup: 1.8 % faster at 16 × 4096 × 14336, 1.3 % slower at 128 × 4096 × 4096.
        let STAGES = if WARPGROUPS == 1 { 7 } else { 5 };

        (AB, C) in [bf16 = (bf16, bf16), f16 = (f16, f16)],
        WARPGROUPS in [split_k128x128 = 2, split_k64x128 = 1],
        MN_B in [nt = false, nn = true];

        (AB, C) in [e4m3 = (e4m3, bf16), e5m2 = (e5m2, bf16)],
        WARPGROUPS in [split_k128x128 = 2, split_k64x128 = 1],
        MN_B in [nt = false];
    ))]
    pub fn split_k<
        AB,
        C,
        const BK: u32,
        const BM: u32,
        const WARPGROUPS: u32,
        const STAGES: u32,
        const MN_B: bool,
        const ROWS_B: u32,
        const COLUMNS_B: u32,
    >(
        a: TensorMap<Operand<AB, BM, BK>>,
        b: TensorMap<Operand<AB, ROWS_B, COLUMNS_B>>,
        c: TensorMap<Tile<C, Shape3<1, 64, 64>, Swizzle128>>,
        m: u32,
        n: u32,
        k: u32,
        k_shift: u32,
    ) where
        AB: Multiply<AB, f32>,
        C: TileElement,
        f32: StoreAs<C>,
        Transposed<Tile<AB, Shape2<64, BK>, Swizzle128>, false>: Left<64, BK, Element = AB>,
        Transposed<Operand<AB, ROWS_B, COLUMNS_B>, MN_B>: Right<BN, BK, Element = AB>,
    {
        assume(k > 0);
        let ring: Pipeline<(Operand<AB, BM, BK>, Operand<AB, ROWS_B, COLUMNS_B>), STAGES> = shared();
        let buffers: Stages<Tile<C, Shape3<1, 64, 64>, Swizzle128>, WARPGROUPS> = shared();
        let inbox: Stages<SharedArray<f32, { HALF * 128 }>, WARPGROUPS> = shared();
        let arrived: Stages<Barrier, WARPGROUPS> = shared();
        if thread_idx().x == 0 {
            a.prefetch_descriptor();
            b.prefetch_descriptor();
            ring.init(WARPGROUPS * 4); // one arrival per multiplying warp
            for i in 0..WARPGROUPS {
                arrived[i].init(128); // one arrival per thread of the other block's warpgroup
            }
            fence_barrier_init();
        }
        sync_cluster();
        grid_dependency_wait();
        grid_dependency_launch(); // the next kernel may begin to prepare

        let down = m.div_ceil(BM);
        let across = n.div_ceil(BN);
        let tile = cluster_idx().x;
        let row = tile % down * BM;
        let column = tile / down % across * BN;
        let batch = tile / (down * across);
        let rank = block_in_cluster().y;
        let steps = k.div_ceil(BK).div_ceil(2); // past the end of K are zeros
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 && elect_one() {
                let mut producer = ring.producer();
                let part = Steps { first: rank * steps, count: steps, start: tile * k_shift };
                for i in 0..steps {
                    let k = nth_step(part, i) * BK;
                    let slot = producer.acquire();
                    a.load(slot.0, [batch, row, k], slot.barrier());
                    b.load(slot.1, operand_coords::<MN_B>(batch, column, k), slot.barrier());
                }
            }
        } else {
            setmaxnreg_inc::<232>();
            let warpgroup = warpgroup_idx() - 1;
            let mut consumer = ring.consumer();
            let mut sum = Accumulator::<f32, 64, BN>::zero();
            // The last generic: slots are released in this block only.
            multiply_steps::<_, _, _, BK, false, MN_B, _, _, _, _, _, false>(
                &mut sum,
                &mut consumer,
                warpgroup,
                steps,
                false,
            );

            let buffer = buffers[warpgroup];
            // Twice, because the indices of sums are constants.
            if rank == 0 {
                exchange::<0, 1>(&mut sum, inbox[warpgroup], arrived[warpgroup]);
                sum.columns::<64>(0).store(buffer);
            } else {
                exchange::<1, 0>(&mut sum, inbox[warpgroup], arrived[warpgroup]);
                sum.columns::<64>(1).store(buffer);
            }
            fence_proxy_async();
            sync_warpgroup();
            if thread_idx().x % 128 == 0 {
                c.store([batch, row + warpgroup * 64, column + rank * 64], buffer);
                bulk_commit_group();
                bulk_wait_group_read::<0>();
            }
        }
    }
}
