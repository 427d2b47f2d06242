//! Every warp multiplies, and one thread loads ahead. The two stacked blocks of a cluster load half
//! of B each, for both. `LAG` and `OUTS` have the meaning of [`super::dense`].

use tma_runtime::tma_module;

/// Tiles of C: 128 × 128 by one warpgroup; 128 × 256 and 256 × 128 by two.
#[tma_module]
pub mod products {
    use tma_runtime::prelude::*;

    type Rows64 = Tile<f16, Shape2<64, 64>, Swizzle128>;
    type Rows128 = Tile<f16, Shape2<128, 64>, Swizzle128>;
    type Rows256 = Tile<f16, Shape2<256, 64>, Swizzle128>;

    /// Returns row and column of the `tile`-th tile, if tiles are taken in bands of `group` rows.
    #[tma_device]
    fn place(tile: u32, down: u32, across: u32, group: u32) -> [u32; 2] {
        let first = tile / (group * across) * group;
        let height = min(down - first, group);
        let rest = tile % (group * across);
        [first + rest % height, rest / height]
    }

    /// A tile of 128 × 128 by one warpgroup. With three stages, two blocks share a multiprocessor.
    #[tma_kernel(threads = 128, cluster = 2, instances(
        (STAGES, OUTS, LAG) in [(3, 1, 1), (3, 1, 2), (4, 2, 1), (4, 2, 2), (5, 2, 1), (5, 2, 2)], GROUP in [8], ELECTED in [thread = false, lane = true];
        (STAGES, OUTS, LAG) in [(3, 1, 1), (5, 2, 2)], GROUP in [16], ELECTED in [lane = true];
    ))]
    pub fn narrow_paired<
        const STAGES: u32,
        const OUTS: u32,
        const LAG: u32,
        const GROUP: u32,
        const ELECTED: bool,
    >(
        a: TensorMap<Rows128>,
        b: TensorMap<Rows64>,
        c: TensorMap<Rows128>,
        down: u32,
        across: u32,
        steps: u32,
    ) {
        assume(steps > 0);
        let ring: Pipeline<(Rows128, Rows128), STAGES> = shared();
        let outs: Stages<Rows128, OUTS> = shared();
        if thread_idx().x == 0 {
            ring.init(2 * 4); // one arrival per warp of both blocks
            fence_barrier_init();
        }
        sync_cluster();

        let at = place(cluster_idx().x, down, across, GROUP);
        let row = (2 * at[0] + cluster_rank()) * 128;
        let column = at[1] * 128;
        let ahead = STAGES + 1 - LAG;
        let loader = if ELECTED { warp_idx() == 0 && elect_one() } else { thread_idx().x == 0 };
        let mut producer = ring.producer();
        if loader {
            for k in 0..min(steps, ahead) {
                let slot = producer.acquire();
                a.load(slot.0, [row, k * 64], slot.barrier());
                b.load_sliced(slot.1, [column, k * 64], slot.barrier(), ClusterAxis::X);
            }
        }

        let mut consumer = ring.consumer();
        let mut sum = Accumulator::<f32, 128, 128>::zero();
        let slot = consumer.wait();
        let mut flight = sum.mma(slot.0, slot.1, slot);
        for k in 1..steps {
            let slot = consumer.wait();
            let done = flight.mma(slot.0, slot.1, slot);
            if elect_one() {
                done.release_cluster();
            }
            let next = k + ahead - 1;
            if loader && next < steps {
                let slot = producer.acquire();
                a.load(slot.0, [row, next * 64], slot.barrier());
                b.load_sliced(slot.1, [column, next * 64], slot.barrier(), ClusterAxis::X);
            }
        }
        let last = flight.wait();
        if elect_one() {
            last.release_cluster();
        }

        for j in unroll(0..2u32) {
            let out = outs[j % OUTS];
            if j >= OUTS {
                if loader {
                    // The last store from this buffer has read it.
                    if OUTS == 1 {
                        bulk_wait_group_read::<0>();
                    } else {
                        bulk_wait_group_read::<1>();
                    }
                }
                sync_threads();
            }
            sum.columns::<64>(j).store(out);
            fence_proxy_async();
            sync_threads();
            if loader {
                c.store([row, column + j * 64], out);
                bulk_commit_group();
            }
        }
        if loader {
            bulk_wait_group_read::<0>();
        }
        if loader {
            producer.drain(); // the other block has released every slot that was loaded from here
        }
    }

    /// A tile of 128 × 256 by two warpgroups, 64 × 256 each.
    #[tma_kernel(threads = 256, cluster = 2, instances(
        (STAGES, OUTS, LAG) in [(3, 4, 1), (3, 4, 2), (4, 4, 1), (4, 4, 2)], GROUP in [8], ELECTED in [thread = false, lane = true];
        (STAGES, OUTS, LAG) in [(4, 4, 1), (4, 4, 2)], GROUP in [16], ELECTED in [lane = true];
    ))]
    pub fn wide_paired<
        const STAGES: u32,
        const OUTS: u32,
        const LAG: u32,
        const GROUP: u32,
        const ELECTED: bool,
    >(
        a: TensorMap<Rows128>,
        b: TensorMap<Rows128>,
        c: TensorMap<Rows64>,
        down: u32,
        across: u32,
        steps: u32,
    ) {
        assume(steps > 0);
        let ring: Pipeline<(Rows128, Rows256), STAGES> = shared();
        let outs: Stages<Rows64, OUTS> = shared();
        if thread_idx().x == 0 {
            ring.init(2 * 8); // one arrival per warp of both blocks
            fence_barrier_init();
        }
        sync_cluster();

        let at = place(cluster_idx().x, down, across, GROUP);
        let row = (2 * at[0] + cluster_rank()) * 128;
        let column = at[1] * 256;
        let ahead = STAGES + 1 - LAG;
        let loader = if ELECTED { warp_idx() == 0 && elect_one() } else { thread_idx().x == 0 };
        let mut producer = ring.producer();
        if loader {
            for k in 0..min(steps, ahead) {
                let slot = producer.acquire();
                a.load(slot.0, [row, k * 64], slot.barrier());
                b.load_sliced(slot.1, [column, k * 64], slot.barrier(), ClusterAxis::X);
            }
        }

        let me = warpgroup_idx();
        let mut consumer = ring.consumer();
        let mut sum = Accumulator::<f32, 64, 256>::zero();
        let slot = consumer.wait();
        let mut flight = sum.mma(slot.0.band::<64>(me), slot.1, slot);
        for k in 1..steps {
            let slot = consumer.wait();
            let done = flight.mma(slot.0.band::<64>(me), slot.1, slot);
            if elect_one() {
                done.release_cluster();
            }
            let next = k + ahead - 1;
            if loader && next < steps {
                let slot = producer.acquire();
                a.load(slot.0, [row, next * 64], slot.barrier());
                b.load_sliced(slot.1, [column, next * 64], slot.barrier(), ClusterAxis::X);
            }
        }
        let last = flight.wait();
        if elect_one() {
            last.release_cluster();
        }

        let storer = thread_idx().x % 128 == 0;
        for j in unroll(0..4u32) {
            let out = outs[me * (OUTS / 2) + j % (OUTS / 2)];
            if j >= (OUTS / 2) {
                if storer {
                    // The last store from this buffer has read it.
                    if (OUTS / 2) == 1 {
                        bulk_wait_group_read::<0>();
                    } else {
                        bulk_wait_group_read::<1>();
                    }
                }
                sync_warpgroup();
            }
            sum.columns::<64>(j).store(out);
            fence_proxy_async();
            sync_warpgroup();
            if storer {
                c.store([row + me * 64, column + j * 64], out);
                bulk_commit_group();
            }
        }
        if storer {
            bulk_wait_group_read::<0>();
        }
        if loader {
            producer.drain(); // the other block has released every slot that was loaded from here
        }
    }

    /// A tile of 256 × 128 by two warpgroups, 128 × 128 each.
    #[tma_kernel(threads = 256, cluster = 2, instances(
        (STAGES, OUTS, LAG) in [(3, 4, 1), (4, 2, 1), (4, 2, 2)], GROUP in [8], ELECTED in [thread = false, lane = true];
        (STAGES, OUTS, LAG) in [(4, 2, 1)], GROUP in [16], ELECTED in [lane = true];
    ))]
    pub fn tall_paired<
        const STAGES: u32,
        const OUTS: u32,
        const LAG: u32,
        const GROUP: u32,
        const ELECTED: bool,
    >(
        a: TensorMap<Rows256>,
        b: TensorMap<Rows64>,
        c: TensorMap<Rows128>,
        down: u32,
        across: u32,
        steps: u32,
    ) {
        assume(steps > 0);
        let ring: Pipeline<(Rows256, Rows128), STAGES> = shared();
        let outs: Stages<Rows128, OUTS> = shared();
        if thread_idx().x == 0 {
            ring.init(2 * 8); // one arrival per warp of both blocks
            fence_barrier_init();
        }
        sync_cluster();

        let at = place(cluster_idx().x, down, across, GROUP);
        let row = (2 * at[0] + cluster_rank()) * 256;
        let column = at[1] * 128;
        let ahead = STAGES + 1 - LAG;
        let loader = if ELECTED { warp_idx() == 0 && elect_one() } else { thread_idx().x == 0 };
        let mut producer = ring.producer();
        if loader {
            for k in 0..min(steps, ahead) {
                let slot = producer.acquire();
                a.load(slot.0, [row, k * 64], slot.barrier());
                b.load_sliced(slot.1, [column, k * 64], slot.barrier(), ClusterAxis::X);
            }
        }

        let me = warpgroup_idx();
        let mut consumer = ring.consumer();
        let mut sum = Accumulator::<f32, 128, 128>::zero();
        let slot = consumer.wait();
        let mut flight = sum.mma(slot.0.band::<128>(me), slot.1, slot);
        for k in 1..steps {
            let slot = consumer.wait();
            let done = flight.mma(slot.0.band::<128>(me), slot.1, slot);
            if elect_one() {
                done.release_cluster();
            }
            let next = k + ahead - 1;
            if loader && next < steps {
                let slot = producer.acquire();
                a.load(slot.0, [row, next * 64], slot.barrier());
                b.load_sliced(slot.1, [column, next * 64], slot.barrier(), ClusterAxis::X);
            }
        }
        let last = flight.wait();
        if elect_one() {
            last.release_cluster();
        }

        let storer = thread_idx().x % 128 == 0;
        for j in unroll(0..2u32) {
            let out = outs[me * (OUTS / 2) + j % (OUTS / 2)];
            if j >= (OUTS / 2) {
                if storer {
                    // The last store from this buffer has read it.
                    if (OUTS / 2) == 1 {
                        bulk_wait_group_read::<0>();
                    } else {
                        bulk_wait_group_read::<1>();
                    }
                }
                sync_warpgroup();
            }
            sum.columns::<64>(j).store(out);
            fence_proxy_async();
            sync_warpgroup();
            if storer {
                c.store([row + me * 128, column + j * 64], out);
                bulk_commit_group();
            }
        }
        if storer {
            bulk_wait_group_read::<0>();
        }
        if loader {
            producer.drain(); // the other block has released every slot that was loaded from here
        }
    }
}
