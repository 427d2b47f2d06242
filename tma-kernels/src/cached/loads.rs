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

    /// Vectors of queries that a thread loads at most: those of 64 rows of 256 elements, divided
    /// among 128 threads.
    const VECTORS: usize = 16;

    /// The exponent of the greatest element of a row of queries that is multiplied by `e4m3`.
    const QUERY_EXPONENT: u32 = 14;

    /// The biased exponents of `f32` to which that of a row's greatest element is limited.
    const LEAST_EXPONENT: u32 = 15;
    const GREATEST_EXPONENT: u32 = 254;

    /// The places of the scales of keys and values.
    #[derive(Clone, Copy)]
    pub struct ScaleStrides {
        /// The last page or sequence that has scales.
        pub last_page: u32,
        /// The distance between the scales of pages or sequences, or 0 if they share them.
        pub page: u32,
        /// The distance between the scales of heads, or 0.
        pub head: u32,
    }

    /// Returns the scales of the keys and the values of a page, or a sequence, and head.
    #[tma_device]
    pub fn scales_of(
        of_keys: Option<Global<f32>>,
        of_values: Option<Global<f32>>,
        strides: ScaleStrides,
        page: u32,
        head: u32,
    ) -> [f32; 2] {
        let at = min(page, strides.last_page) as u64 * strides.page as u64 + (head * strides.head) as u64;
        let mut scales = [1.0; 2];
        if let Some(of_keys) = of_keys {
            scales[0] = of_keys.get(at);
        }
        if let Some(of_values) = of_values {
            scales[1] = of_values.get(at);
        }
        scales
    }

    /// Keys or values of a stage.
    pub type Rows<T, const KEYS: u32, const DEPTH: u32> = Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128>;

    /// Loads up to `ROWS` rows of queries from `first` on, and of each the columns from
    /// `first_column` on and before `end_column`: the rows of a group of heads are those of one
    /// matrix. They are converted to `M`. 128 threads call it, each with its index among them.
    #[tma_device]
    pub fn load_queries<
        T: TileElement + Number,
        M: TileElement + Number,
        const ROWS: u32,
        const DEPTH: u32,
    >(
        to: Tile<M, Shape2<ROWS, DEPTH>, Swizzle128>,
        q: Global<T>,
        strides: Strides,
        problem: Problem,
        work: WorkUnit,
        first: u32,
        first_column: u32,
        end_column: u32,
        thread: u32,
    ) {
        let rows = problem.queries * problem.group;
        let row = thread / (DEPTH / 8);
        let column = thread % (DEPTH / 8) * 8;
        // All loads are under way before the first value is needed.
        let mut values = [[cast::<T>(0.0f32); 8]; VECTORS];
        for i in unroll(0..ROWS * DEPTH / 1024) {
            let row = first + row + i * (1024 / DEPTH);
            if row < rows && first_column + column < end_column {
                let of_row = row_of(problem, work, row);
                let at = row_start(strides, of_row) + (first_column + column) as u64;
                values[i as usize] = q.get_vec::<8>(at);
            }
        }
        for i in unroll(0..ROWS * DEPTH / 1024) {
            let mut converted = [cast::<M>(0.0f32); 8];
            for j in unroll(0..8usize) {
                converted[j] = cast::<M>(values[i as usize][j]);
            }
            to.set_vec([row + i * (1024 / DEPTH), column], converted);
        }
    }

    /// Loads up to 16 rows of queries from `first` on, in the order of columns in which keys of 8 bits are
    /// [widened](WarpRight::widen). 128 threads call it.
    ///
    /// A row is multiplied by a power of two with which its greatest element is just within `f16`, so
    /// that elements of `bf16` keep their precision. `factors` receives its inverse.
    #[tma_device]
    pub fn load_widened_queries<
        T: TileElement + Number,
        M: TileElement + Number,
        const ROWS: u32,
        const DEPTH: u32,
    >(
        to: Tile<M, Shape2<ROWS, DEPTH>, Swizzle128>,
        factors: SharedArray<f32, 16>,
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
        for i in unroll(0..ROWS * DEPTH / 1024) {
            let place = row + i * (1024 / DEPTH);
            let mut values = [cast::<T>(0.0f32); 8];
            if first + place < rows && column < depth {
                let of_row = row_of(problem, work, first + place);
                values = q.get_vec::<8>(row_start(strides, of_row) + column as u64);
            }
            let mut greatest = 0.0f32;
            for j in unroll(0..8usize) {
                greatest = max(greatest, abs(cast::<f32>(values[j])));
            }
            for bit in unroll(0..5u32) {
                if 8 << bit < DEPTH {
                    greatest = max(greatest, shuffle_xor(greatest, 1 << bit));
                }
            }
            // 2^14 over the power of two below the greatest element. Exponents are limited so that
            // factor and inverse are normal.
            let exponent = clamp(greatest.to_bits() >> 23, LEAST_EXPONENT, GREATEST_EXPONENT);
            let factor = f32::from_bits((254 + QUERY_EXPONENT - exponent) << 23);
            let mut halves = [[cast::<M>(0.0f32); 4]; 2];
            for j in unroll(0..8usize) {
                halves[j / 2 % 2][j / 4 * 2 + j % 2] = cast::<M>(cast::<f32>(values[j]) * factor);
            }
            let at = column / 16 * 16 + column % 16 / 2;
            to.set_vec([place, at], halves[0]);
            to.set_vec([place, at + 8], halves[1]);
            if column == 0 {
                factors.set(place, f32::from_bits((exponent - QUERY_EXPONENT) << 23));
            }
        }
    }

    /// Takes one work unit after the other, announces it to the warps that multiply, and loads its
    /// keys and values. One thread of a block calls it.
    ///
    /// `ready[i]` completes when announcement `i` has been written, and `free[i]` when it has been
    /// read. `taken` counts the units that all blocks have taken.
    ///
    /// The previous kernel may still run. The last keys of a sequence, as many as it has queries,
    /// are loaded when it has ended.
    ///
    /// The pages of a sequence are in its row of `table`, of `table_stride` numbers, or follow each
    /// other in it from the sequence's entry of `page_starts` on.
    ///
    /// If the cache is scaled, `scales[i % SCALES]` are those of the block's stage number `i`. They are
    /// written before the stage is free, and so need twice as many places as there are stages.
    #[tma_device]
    pub fn load_units<
        T: TileElement,
        const KEYS: u32,
        const DEPTH: u32,
        const VALUE_DEPTH: u32,
        const STAGES: u32,
        const SCALES: u32,
        const IS_SCALED: bool,
    >(
        k: TensorMap<Rows<T, KEYS, DEPTH>>,
        v: TensorMap<Rows<T, KEYS, VALUE_DEPTH>>,
        cache: &mut Producer<(Rows<T, KEYS, DEPTH>, Rows<T, KEYS, VALUE_DEPTH>), STAGES>,
        announcements: Stages<UnitWords, 2>,
        ready: Stages<Barrier, 2>,
        free: Stages<Barrier, 2>,
        problem: Problem,
        table: Option<Global<u32>>,
        page_starts: Option<Global<u32>>,
        table_stride: u32,
        lengths: Option<Global<u32>>,
        starts: SharedArray<u32, { MOST_SEQUENCES }>,
        taken: Global<u32>,
        unit_keys: u32,
        units: u32,
        scales: Stages<SharedArray<f32, 2>, SCALES>,
        of_keys: Option<Global<f32>>,
        of_values: Option<Global<f32>>,
        scale_strides: ScaleStrides,
    ) {
        let news = problem.queries; // keys that the previous kernel may write
        let mut filled = 0u32; // stages
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
                let work = work_unit(problem, page_starts, lengths, starts, unit_keys, unit);
                announce(announcements[turn % 2], work);
                ready[turn % 2].arrive();
                if let Some(table) = table {
                    let page_shift = problem.page_shift;
                    let mut first_page = work.sequence * table_stride;
                    if let Some(page_starts) = page_starts {
                        first_page = page_starts.get(work.sequence);
                    }
                    for base in (work.span.first..work.span.end).step_by((PAGES * KEYS) as usize) {
                        let mut page = [0; PAGES as usize];
                        for j in unroll(0..PAGES) {
                            let key = min(base + j * KEYS, work.span.end - 1);
                            // Starts may have any values.
                            let last = table.len() as u32 - 1;
                            page[j as usize] = table.get(min(first_page + (key >> page_shift), last));
                        }
                        let mut scale = [[1.0; 2]; PAGES as usize];
                        if IS_SCALED {
                            for j in unroll(0..PAGES as usize) {
                                scale[j] = scales_of(of_keys, of_values, scale_strides, page[j], work.head);
                            }
                        }
                        for j in unroll(0..PAGES) {
                            let key = base + j * KEYS;
                            if key < work.span.end {
                                let row = key & ((1 << page_shift) - 1);
                                if IS_SCALED {
                                    scales[filled % SCALES].set_vec(0, scale[j as usize]);
                                    filled += 1;
                                }
                                if key + KEYS + news > work.keys {
                                    grid_dependency_wait();
                                }
                                let slot = cache.acquire();
                                k.load(slot.0, [page[j as usize], work.head, row, 0], slot.barrier());
                                v.load(slot.1, [page[j as usize], work.head, row, 0], slot.barrier());
                            }
                        }
                    }
                } else {
                    let mut scale = [1.0; 2];
                    if IS_SCALED {
                        scale = scales_of(of_keys, of_values, scale_strides, work.sequence, work.head);
                    }
                    for key in (work.span.first..work.span.end).step_by(KEYS as usize) {
                        if IS_SCALED {
                            scales[filled % SCALES].set_vec(0, scale);
                            filled += 1;
                        }
                        if key + KEYS + news > work.keys {
                            grid_dependency_wait();
                        }
                        let slot = cache.acquire();
                        k.load(slot.0, [work.sequence, work.head, key, 0], slot.barrier());
                        v.load(slot.1, [work.sequence, work.head, key, 0], slot.barrier());
                    }
                }
                // The first unit of each block follows from its index, the others from a counter.
                grid_dependency_wait(); // for a kernel that also counts
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
