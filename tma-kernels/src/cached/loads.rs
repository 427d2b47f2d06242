//! The warp that loads keys and values.

use tma_runtime::tma_module;

/// Work units and their loads.
#[tma_module]
pub mod stream {
    use tma_runtime::prelude::*;

    use crate::cached::schedule::work::{Plan, Problem, UnitWords, announce, no_unit, work_unit};

    /// Page numbers that are read at a time, so that their latencies overlap.
    const PAGES: u32 = 8;

    /// Keys or values of a stage.
    pub type Rows<T, const KEYS: u32, const DEPTH: u32> = Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128>;

    /// Takes one work unit after the other, announces it to the warps that multiply, and loads its
    /// keys and values. One warp of a block calls it.
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
        plan: Plan,
        table: Option<Global<u32>>,
        table_stride: u32,
        page_shift: u32,
        lengths: Option<Global<u32>>,
        taken: Global<u32>,
    ) {
        let mut unit = block_idx().x;
        let mut turn = 0u32;
        let mut is_over = false;
        while !is_over {
            is_over = unit >= plan.units;
            let work = if is_over { no_unit() } else { work_unit(problem, lengths, plan.unit_keys, unit) };
            let mut number = 0;
            if elect_one() {
                free[turn % 2].wait((turn / 2 % 2) ^ 1);
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
                if !is_over {
                    // The first unit of each block follows from its index, the others from a counter.
                    number = taken.fetch_add(0, 1, Order::Relaxed, Scope::Device);
                    if number == plan.units - 1 {
                        taken.set(0, 0); // by then all units have been taken
                    }
                }
            }
            unit = warp_reduce_max(number) + grid_dim().x;
            turn += 1;
        }
    }
}
