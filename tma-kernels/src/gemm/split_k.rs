//! The kernel for few tiles: the two blocks of a cluster split the sums of a tile along K.

use tma_runtime::tma_module;

/// C = A · B, in batches: `ROWS` × 128 elements per cluster, each of whose blocks sums half of K.
/// Each block then sends half of its sums to the other one, through distributed shared memory, and
/// stores the other half of C.
///
/// A is M × K; B is N × K or, if `MN_B`, K × N.
#[tma_module]
pub mod kernels {
    use tma_runtime::prelude::*;

    /// Columns of a cluster's tile, half of which each block stores.
    const N: u32 = 128;
    /// The number of a thread's sums in one half.
    const HALF: u32 = N / 4;

    /// Sends the other block its half of the columns, and adds the half received from it. `MINE`
    /// and `OTHER` are 0 and 1, or 1 and 0.
    #[tma_device]
    fn exchange<const MINE: u32, const OTHER: u32>(
        sum: &mut Accumulator<f32, 64, N>,
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
        (AB, C, K) in [bf16 = (bf16, bf16, 64), f16 = (f16, f16, 64)],
        (ROWS, WARPGROUPS, STAGES, MN_B, ROWS_B, COLS_B) in [
            split_k128x128_nt = (128, 2, 5, false, 128, 64),
            split_k128x128_nn = (128, 2, 5, true, 64, 128),
            split_k64x128_nt = (64, 1, 7, false, 128, 64),
            split_k64x128_nn = (64, 1, 7, true, 64, 128),
        ];

        (AB, C, K) in [e4m3 = (e4m3, bf16, 128), e5m2 = (e5m2, bf16, 128)],
        (ROWS, WARPGROUPS, STAGES, MN_B, ROWS_B, COLS_B) in [
            split_k128x128_nt = (128, 2, 5, false, 128, 128),
            split_k64x128_nt = (64, 1, 7, false, 128, 128),
        ];
    ))]
    pub fn split_k<
        AB,
        C,
        const K: u32,
        const ROWS: u32,
        const WARPGROUPS: u32,
        const STAGES: u32,
        const MN_B: bool,
        const ROWS_B: u32,
        const COLS_B: u32,
    >(
        a: TensorMap<Tile<AB, Shape3<1, ROWS, K>, Swizzle128>>,
        b: TensorMap<Tile<AB, Shape3<1, ROWS_B, COLS_B>, Swizzle128>>,
        c: TensorMap<Tile<C, Shape3<1, 64, 64>, Swizzle128>>,
        m: u32,
        n: u32,
        k: u32,
        stagger: u32,
    ) where
        AB: Multiply<AB, f32>,
        C: TileElement,
        f32: StoreAs<C>,
        Tile<AB, Shape2<64, K>, Swizzle128>: Left<64, K, Element = AB>,
        Transposed<Tile<AB, Shape3<1, ROWS_B, COLS_B>, Swizzle128>, MN_B>: Right<N, K, Element = AB>,
    {
        assume(k > 0);
        let ring: Pipeline<
            (Tile<AB, Shape3<1, ROWS, K>, Swizzle128>, Tile<AB, Shape3<1, ROWS_B, COLS_B>, Swizzle128>),
            STAGES,
        > = shared();
        let outs: Stages<Tile<C, Shape3<1, 64, 64>, Swizzle128>, WARPGROUPS> = shared();
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
        grid_dependency_launch(); // the next kernel may begin to prepare
        grid_dependency_wait();

        let down = m.div_ceil(ROWS);
        let across = n.div_ceil(N);
        let tile = cluster_idx().x;
        let row = tile % down * ROWS;
        let column = tile / down % across * N;
        let batch = tile / (down * across);
        let rank = block_in_cluster().y;
        let steps = k.div_ceil(K).div_ceil(2); // past the end of K are zeros
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 && elect_one() {
                let mut producer = ring.producer();
                for turn in 0..steps {
                    let slot = producer.acquire();
                    let at = (rank * steps + (tile * stagger + turn) % steps) * K;
                    a.load(slot.0, [batch, row, at], slot.barrier());
                    let of_b = if MN_B { [batch, at, column] } else { [batch, column, at] };
                    b.load(slot.1, of_b, slot.barrier());
                }
            }
        } else {
            setmaxnreg_inc::<232>();
            let me = warpgroup_idx() - 1;
            let mut consumer = ring.consumer();
            let mut sum = Accumulator::<f32, 64, N>::zero();
            let slot = consumer.wait();
            let mut flight = sum.mma(slot.0.batch(0).band::<64>(me), slot.1.t_if::<MN_B>(), slot);
            for _ in 1..steps {
                let slot = consumer.wait();
                let done = flight.mma(slot.0.batch(0).band::<64>(me), slot.1.t_if::<MN_B>(), slot);
                if elect_one() {
                    done.release();
                }
            }
            let _last = flight.wait();

            let out = outs[me];
            if rank == 0 {
                exchange::<0, 1>(&mut sum, inbox[me], arrived[me]);
                sum.columns::<64>(0).store(out);
            } else {
                exchange::<1, 0>(&mut sum, inbox[me], arrived[me]);
                sum.columns::<64>(1).store(out);
            }
            fence_proxy_async();
            sync_warpgroup();
            if thread_idx().x % 128 == 0 {
                c.store([batch, row + me * 64, column + rank * 64], out);
                bulk_commit_group();
                bulk_wait_group_read::<0>();
            }
        }
    }
}
