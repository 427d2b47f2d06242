//! A persistent GEMM of 16-bit floats: in each block one warpgroup loads and two multiply; clusters
//! of two stacked blocks share their loads of B.

use tma_runtime::tma_module;

/// Tiles of C of 128 × 256 per block.
#[tma_module]
pub mod products {
    use tma_runtime::prelude::*;

    type OfA = Shape2<128, 64>;
    type OfB = Shape2<256, 64>;
    type HalfOfB = Shape2<128, 64>;
    type OfC = Shape2<64, 64>;

    /// Returns row and column of the `tile`-th tile, if tiles are taken in bands of `group` rows.
    #[tma_device]
    fn place(tile: u32, down: u32, across: u32, group: u32) -> [u32; 2] {
        let first = tile / (group * across) * group;
        let height = min(down - first, group);
        let rest = tile % (group * across);
        [first + rest % height, rest / height]
    }

    /// `down` and `across` count tiles of 256 × 256, which are those of a cluster.
    #[tma_kernel(threads = 384, cluster = 2, instances(T in [f16, bf16], GROUP in [8, 16]))]
    pub fn persistent<T, const GROUP: u32>(
        a: TensorMap<Tile<T, OfA, Swizzle128>>,
        b: TensorMap<Tile<T, HalfOfB, Swizzle128>>,
        c: TensorMap<Tile<T, OfC, Swizzle128>>,
        down: u32,
        across: u32,
        steps: u32,
    ) where
        T: Multiply<T, f32>,
        f32: StoreAs<T>,
    {
        assume(steps > 0);
        let ring: Pipeline<(Tile<T, OfA, Swizzle128>, Tile<T, OfB, Swizzle128>), 4> = shared();
        let outs: Stages<Tile<T, OfC, Swizzle128>, 4> = shared();
        if thread_idx().x == 0 {
            ring.init(2 * 2 * 4); // one arrival per multiplying warp of both blocks
            fence_barrier_init();
        }
        sync_cluster();

        let clusters = grid_dim().x / 2;
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<40>();
            if warp_idx() == 0 && elect_one() {
                let mut producer = ring.producer();
                for tile in (cluster_idx().x..down * across).step_by(clusters as usize) {
                    let at = place(tile, down, across, GROUP);
                    for k in 0..steps {
                        let slot = producer.acquire();
                        a.load(slot.0, [(2 * at[0] + cluster_rank()) * 128, k * 64], slot.barrier());
                        b.load_sliced(slot.1, [at[1] * 256, k * 64], slot.barrier(), ClusterAxis::X);
                    }
                }
                producer.drain();
            }
        } else {
            setmaxnreg_inc::<232>();
            let me = warpgroup_idx() - 1;
            let leader = thread_idx().x % 128 == 0;
            let mut consumer = ring.consumer();
            for tile in (cluster_idx().x..down * across).step_by(clusters as usize) {
                let at = place(tile, down, across, GROUP);

                let mut sum = Accumulator::<f32, 64, 256>::zero();
                let slot = consumer.wait();
                let mut flight = sum.mma(slot.0.band::<64>(me), slot.1, slot);
                for _ in 1..steps {
                    let slot = consumer.wait();
                    let done = flight.mma(slot.0.band::<64>(me), slot.1, slot);
                    if elect_one() {
                        done.release_cluster();
                    }
                }
                let last = flight.wait();
                if elect_one() {
                    last.release_cluster();
                }

                let row = (2 * at[0] + cluster_rank()) * 128 + me * 64;
                for j in unroll(0..4u32) {
                    let out = outs[me * 2 + j % 2];
                    if leader {
                        bulk_wait_group_read::<1>(); // the store before the last has read this buffer
                    }
                    sync_warpgroup();
                    sum.columns::<64>(j).store(out);
                    fence_proxy_async();
                    sync_warpgroup();
                    if leader {
                        c.store([row, at[1] * 256 + j * 64], out);
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
