//! One matrix added to another in memory: by the copy engine's reduction, and by threads.
//!
//! Both kernels are persistent, as the example `tma_copy_pipelined`: one block per multiprocessor,
//! and tiles from a counter. Both read the source and the destination and write the destination;
//! they differ in where the addition happens.

use tma_runtime::tma_module;

/// Tiles of `ROWS` × 128, with rows of the same length as those of `tma_copy_pipelined`.
#[tma_module]
pub mod add {
    use tma_runtime::prelude::*;

    /// The number of columns of a tile.
    pub const COLS: u32 = 128;

    /// Counts this block out; the last block resets the counters for the next launch.
    #[tma_device]
    fn leave(work: Global<u32>) {
        if work.fetch_add(1, 1, Order::AcqRel, Scope::Device) == grid_dim().x - 1 {
            work.store(0, 0, Order::Relaxed, Scope::Device);
            work.store(1, 0, Order::Relaxed, Scope::Device);
        }
    }

    /// Adds each tile of `src` to that of `sum` in the L2 cache. If `AHEAD`, a tile of `sum` is
    /// prefetched into the cache when that of `src` is loaded, with the hint to evict it last:
    /// `docs/benchmarks.md` has the gain.
    #[tma_kernel(threads = 64, instances(four = <32, 4, false>, six = <32, 6, false>, ahead = <32, 4, true>, low = <16, 4, true>))]
    pub fn add_by_reduction<const ROWS: u32, const STAGES: u32, const AHEAD: bool>(
        src: TensorMap<Tile<f32, Shape2<ROWS, COLS>>>,
        sum: TensorMap<Tile<f32, Shape2<ROWS, COLS>>>,
        work: Global<u32>,
        across: u32,
        tiles: u32,
    ) {
        let ring: Pipeline<(Tile<f32, Shape2<ROWS, COLS>>,), STAGES> = shared();
        let numbers: SharedArray<u32, STAGES> = shared();
        if thread_idx().x == 0 {
            ring.init(1);
            fence_barrier_init();
        }
        sync_threads();

        if thread_idx().x == 0 {
            let mut producer = ring.producer();
            loop {
                let tile = work.atomic_add(0, 1);
                let at = [tile / across * ROWS, tile % across * COLS];
                let empty = producer.wait();
                numbers.set(empty.stage(), tile);
                let slot = empty.announce();
                // A number past the end stops the consumer; its load reads nothing.
                src.load(slot.0, at, slot.barrier());
                if tile >= tiles {
                    break;
                }
                if AHEAD {
                    sum.hint(l2_evict_last(1.0)).prefetch(at);
                }
            }
            leave(work);
        }
        if thread_idx().x == 32 {
            let mut consumer = ring.consumer();
            loop {
                let slot = consumer.wait();
                let tile = numbers.get(slot.stage());
                if tile >= tiles {
                    break;
                }
                sum.reduce_add([tile / across * ROWS, tile % across * COLS], slot.0);
                bulk_commit_group();
                bulk_wait_group_read::<0>();
                slot.release();
            }
        }
    }

    /// Loads each tile of `src` and of `sum`, adds them in eight warps, and stores the result. A
    /// thread adds `EACH` elements of a tile.
    #[tma_kernel(threads = 288, instances(three = <32, 16, 3>, four = <32, 16, 4>, low_four = <16, 8, 4>, low_six = <16, 8, 6>))]
    pub fn add_in_threads<const ROWS: u32, const EACH: usize, const STAGES: u32>(
        src: TensorMap<Tile<f32, Shape2<ROWS, COLS>>>,
        sum: TensorMap<Tile<f32, Shape2<ROWS, COLS>>>,
        work: Global<u32>,
        across: u32,
        tiles: u32,
    ) {
        let ring: Pipeline<(Tile<f32, Shape2<ROWS, COLS>>, Tile<f32, Shape2<ROWS, COLS>>), STAGES> = shared();
        let numbers: SharedArray<u32, STAGES> = shared();
        if thread_idx().x == 0 {
            ring.init(1);
            fence_barrier_init();
        }
        sync_threads();

        if warp_idx() == 8 {
            if elect_one() {
                let mut producer = ring.producer();
                loop {
                    let tile = work.atomic_add(0, 1);
                    let at = [tile / across * ROWS, tile % across * COLS];
                    let empty = producer.wait();
                    numbers.set(empty.stage(), tile);
                    let slot = empty.announce();
                    src.load(slot.0, at, slot.barrier());
                    sum.load(slot.1, at, slot.barrier());
                    if tile >= tiles {
                        break;
                    }
                }
                leave(work);
            }
        } else {
            let first = thread_idx().x / COLS;
            let column = thread_idx().x % COLS;
            let mut consumer = ring.consumer();
            let mut slot = consumer.wait();
            let mut tile = numbers.get(slot.stage());
            while tile < tiles {
                // All reads come before any write, so that no read waits for a write.
                let mut sums = [0.0; EACH];
                for k in unroll(0..EACH) {
                    let at = [first + 2 * k as u32, column];
                    sums[k] = slot.0.get(at) + slot.1.get(at);
                }
                for k in unroll(0..EACH) {
                    slot.1.set([first + 2 * k as u32, column], sums[k]);
                }
                fence_proxy_async();
                named_barrier_sync(1, 256);
                if thread_idx().x == 0 {
                    sum.store([tile / across * ROWS, tile % across * COLS], slot.1);
                    bulk_commit_group();
                }
                // The store reads this buffer while the next tiles arrive.
                let next = consumer.wait();
                tile = numbers.get(next.stage());
                if thread_idx().x == 0 {
                    bulk_wait_group_read::<0>();
                    slot.release();
                }
                slot = next;
            }
        }
    }
}
