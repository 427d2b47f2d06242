//! The kernel whose warpgroups alternate: one uses the tensor cores while the other stores.

use tma_runtime::tma_module;

/// C = A · B, in batches. In each block two warpgroups compute 128 × `N` elements each, every other
/// tile of the block. The sums of one are converted and stored while the tensor cores work on the
/// next, as in the "ping-pong" kernels of CUTLASS. Clusters are two stacked blocks, which share
/// their loads of B.
///
/// A is M × K, B is N × K.
#[tma_module]
pub mod alternating {
    use tma_runtime::prelude::*;

    /// Returns the batch, first row and first column of this block's tile. Clusters take tiles in
    /// bands of `group` rows, so that blocks that run at the same time read the same parts of A and
    /// B, which the L2 cache then holds.
    #[tma_device]
    fn place<const N: u32>(unit: u32, down: u32, across: u32, group: u32) -> [u32; 3] {
        let tile = unit % (down * across);
        let first = tile / (group * across) * group;
        let height = min(down - first, group);
        let inside = tile % (group * across);
        let row = (2 * (first + inside % height) + block_in_cluster().y) * 128;
        [unit / (down * across), row, inside / height * N]
    }

    /// Computes the plain GEMM.
    #[tma_kernel(threads = 384, cluster = [1, 2], unchecked, instances(
        (AB, C, K) in [bf16 = (bf16, bf16, 64), f16 = (f16, f16, 64), e4m3 = (e4m3, bf16, 128), e5m2 = (e5m2, bf16, 128)],
        (N, SLICE_B, STAGES, COLS, W, OUTS, LEFT) in [
            turns176_nt = (176, 88, 5, 88, NoSwizzle, 2, 0),
            turns128_nt = (128, 64, 6, 64, Swizzle128, 4, 1),
        ];
    ))]
    pub fn turns<
        AB,
        C,
        const K: u32,
        const N: u32,
        const SLICE_B: u32,
        const STAGES: u32,
        const COLS: u32,
        W: MatrixSwizzle,
        const OUTS: u32,
        const LEFT: u32,
    >(
        a: TensorMap<Tile<AB, Shape3<1, 128, K>, Swizzle128>>,
        b: TensorMap<Tile<AB, Shape3<1, SLICE_B, K>, Swizzle128>>,
        c: TensorMap<Tile<C, Shape3<1, 64, COLS>, W>>,
        m: u32,
        n: u32,
        k: u32,
        stagger: u32,
        group: u32,
        units: u32,
    ) where
        AB: Multiply<AB, f32>,
        C: TileElement,
        f32: StoreAs<C>,
        Tile<AB, Shape2<64, K>, Swizzle128>: Left<64, K, Element = AB>,
        Tile<AB, Shape3<1, N, K>, Swizzle128>: Right<N, K, Element = AB>,
    {
        let ring: Pipeline<
            (Tile<AB, Shape3<1, 128, K>, Swizzle128>, Tile<AB, Shape3<1, N, K>, Swizzle128>),
            STAGES,
        > = shared();
        let outs: Stages<Tile<C, Shape3<1, 64, COLS>, W>, OUTS> = shared();
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
        grid_dependency_launch(); // the next kernel may begin to prepare
        grid_dependency_wait();
        let down = m.div_ceil(256);
        let across = n.div_ceil(N);
        let steps = k.div_ceil(K);
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 && elect_one() {
                let mut producer = ring.producer();
                for unit in (cluster_idx().x..units).step_by(grid_dim().x as usize) {
                    let at = place::<N>(unit, down, across, group);
                    for i in 0..steps {
                        let step = (cluster_idx().x * stagger + i) % steps;
                        let slot = producer.acquire();
                        a.load(slot.0, [at[0], at[1], step * K], slot.barrier());
                        b.load_sliced(slot.1, [at[0], at[2], step * K], slot.barrier(), ClusterAxis::Y);
                    }
                }
                producer.drain();
            }
        } else {
            setmaxnreg_inc::<232>();
            let me = warpgroup_idx() - 1;
            let leader = thread_idx().x % 128 == 0;
            let mut consumer = ring.consumer();
            consumer.skip(me * steps);
            let first = cluster_idx().x + me * grid_dim().x;
            let mut parity = me ^ 1; // the first warpgroup begins
            for unit in (first..units).step_by((2 * grid_dim().x) as usize) {
                let at = place::<N>(unit, down, across, group);
                turn[me].wait(parity);
                parity ^= 1;
                let mut top = Accumulator::<f32, 64, N>::zero();
                let mut bottom = Accumulator::<f32, 64, N>::zero();
                let slot = consumer.wait();
                let mut upper = top.mma(slot.0.batch(0).band::<64>(0), slot.1, ());
                let mut lower = bottom.mma(slot.0.batch(0).band::<64>(1), slot.1, slot);
                for _ in 1..steps {
                    let slot = consumer.wait();
                    upper.mma(slot.0.batch(0).band::<64>(0), slot.1, ());
                    let done = lower.mma(slot.0.batch(0).band::<64>(1), slot.1, slot);
                    if elect_one() {
                        done.release_cluster();
                    }
                }
                sync_warpgroup(); // all threads have waited for their turn
                if leader {
                    turn[me ^ 1].arrive();
                }
                upper.wait();
                let last = lower.wait();
                if elect_one() {
                    last.release_cluster();
                }
                consumer.skip(steps);

                for j in unroll(0..N / COLS) {
                    let out = outs[me * (LEFT + 1) + j % (LEFT + 1)];
                    if leader {
                        bulk_wait_group_read::<LEFT>(); // the last store from this buffer has read it
                    }
                    sync_warpgroup();
                    top.columns::<COLS>(j).store(out);
                    fence_proxy_async();
                    sync_warpgroup();
                    if leader {
                        c.store([at[0], at[1], at[2] + j * COLS], out);
                        bulk_commit_group();
                    }
                }
                for j in unroll(0..N / COLS) {
                    let out = outs[me * (LEFT + 1) + j % (LEFT + 1)];
                    if leader {
                        bulk_wait_group_read::<LEFT>();
                    }
                    sync_warpgroup();
                    bottom.columns::<COLS>(j).store(out);
                    fence_proxy_async();
                    sync_warpgroup();
                    if leader {
                        c.store([at[0], at[1] + 64, at[2] + j * COLS], out);
                        bulk_commit_group();
                    }
                }
            }
            if leader {
                bulk_wait_group_read::<0>();
            }
        }
    }
}
