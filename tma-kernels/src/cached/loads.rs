//! The warp that loads keys and values.

use tma_runtime::tma_module;

/// Work units and their loads.
#[tma_module]
pub mod stream {
    use tma_runtime::prelude::*;

    use crate::cached::schedule::work::{
        MOST_SEQUENCES, Problem, Strides, UnitWords, WorkUnit, announce, no_unit, row_of, row_start,
        work_unit,
    };

    /// Page numbers that are read at a time, so that their latencies overlap.
    const PAGES: u32 = 8;

    /// Vectors of queries that a thread loads at most: those of 64 rows of 128 elements, divided
    /// among 128 threads.
    const VECTORS: usize = 8;

    /// Keys or values of a stage.
    pub type Rows<T, const KEYS: u32, const DEPTH: u32> = Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128>;

    /// Loads up to `ROWS` rows of queries from `first` on: those of a group of heads are the rows of
    /// one matrix. 128 threads call it, each with its index among them.
    #[tma_device]
    pub fn load_queries<T: TileElement + Number, const ROWS: u32, const DEPTH: u32>(
        to: Tile<T, Shape2<ROWS, DEPTH>, Swizzle128>,
        q: Global<T>,
        strides: Strides,
        problem: Problem,
        work: WorkUnit,
        first: u32,
        depth: u32,
        thread: u32,
    ) {
        let rows = problem.queries * problem.group;
        let row = thread / (DEPTH / 8);
        let column = thread % (DEPTH / 8) * 8;
        // All loads are under way before the first value is needed.
        let mut values = [[cast::<T>(0.0f32); 8]; VECTORS];
        for i in unroll(0..ROWS * DEPTH / 1024) {
            let row = first + row + i * (1024 / DEPTH);
            if row < rows && column < depth {
                let of_row = row_of(problem, work, row);
                values[i as usize] = q.get_vec::<8>(row_start(strides, of_row) + column as u64);
            }
        }
        for i in unroll(0..ROWS * DEPTH / 1024) {
            to.set_vec([row + i * (1024 / DEPTH), column], values[i as usize]);
        }
    }

    /// Takes one work unit after the other, announces it to the warps that multiply, and loads its
    /// keys and values. One thread of a block calls it.
    ///
    /// `ready[i]` completes when announcement `i` has been written, and `free[i]` when it has been
    /// read. `taken` counts the units that all blocks have taken.
    #[tma_device]
    pub fn load_units<T: TileElement, const KEYS: u32, const DEPTH: u32, const STAGES: u32>(
        k: TensorMap<Rows<T, KEYS, DEPTH>>,
        v: TensorMap<Rows<T, KEYS, DEPTH>>,
        cache: &mut Producer<(Rows<T, KEYS, DEPTH>, Rows<T, KEYS, DEPTH>), STAGES>,
        announcements: Stages<UnitWords, 2>,
        ready: Stages<Barrier, 2>,
        free: Stages<Barrier, 2>,
        problem: Problem,
        table: Option<Global<u32>>,
        table_stride: u32,
        page_shift: u32,
        lengths: Option<Global<u32>>,
        starts: SharedArray<u32, { MOST_SEQUENCES }>,
        taken: Global<u32>,
        unit_keys: u32,
        units: u32,
    ) {
        let mut unit = block_idx().x;
        let mut turn = 0u32;
        let mut is_over = false;
        while !is_over {
            is_over = unit >= units;
            free[turn % 2].wait((turn / 2 % 2) ^ 1);
            if is_over {
                announce(announcements[turn % 2], no_unit());
                ready[turn % 2].arrive();
            } else {
                let work = work_unit(problem, lengths, starts, unit_keys, unit);
                announce(announcements[turn % 2], work);
                ready[turn % 2].arrive();
                if let Some(table) = table {
                    let pages = work.sequence * table_stride;
                    for base in (work.span.first..work.span.end).step_by((PAGES * KEYS) as usize) {
                        let mut page = [0; PAGES as usize];
                        for j in unroll(0..PAGES) {
                            let key = min(base + j * KEYS, work.span.end - 1);
                            page[j as usize] = table.get(pages + (key >> page_shift));
                        }
                        for j in unroll(0..PAGES) {
                            let key = base + j * KEYS;
                            if key < work.span.end {
                                let row = key & ((1 << page_shift) - 1);
                                let slot = cache.acquire();
                                k.load(slot.0, [page[j as usize], work.head, row, 0], slot.barrier());
                                v.load(slot.1, [page[j as usize], work.head, row, 0], slot.barrier());
                            }
                        }
                    }
                } else {
                    for key in (work.span.first..work.span.end).step_by(KEYS as usize) {
                        let slot = cache.acquire();
                        k.load(slot.0, [work.sequence, work.head, key, 0], slot.barrier());
                        v.load(slot.1, [work.sequence, work.head, key, 0], slot.barrier());
                    }
                }
                // The first unit of each block follows from its index, the others from a counter.
                let number = taken.fetch_add(0, 1, Order::Relaxed, Scope::Device);
                if number == units - 1 {
                    taken.set(0, 0); // by then all units have been taken
                }
                unit = number + grid_dim().x;
                turn += 1;
            }
        }
    }
}
