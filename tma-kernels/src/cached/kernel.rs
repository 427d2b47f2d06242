//! The kernel. `docs/cached-attention.md` explains it.

use tma_runtime::tma_module;

/// Few queries over many keys.
#[tma_module]
pub mod few_queries {
    use tma_runtime::prelude::*;

    use crate::cached::schedule::work::{
        KEYS, MOST_SEQUENCES, Problem, ROWS, Span, Strides, WARPS, plan, query_row, row_start, visible,
        work_unit,
    };
    use crate::cached::softmax::online::{RowPart, Softmax, added, merged, store_row, weigh};

    /// The named barrier of the warps that multiply.
    const MULTIPLIERS: u32 = 1;

    /// Page numbers that the producer reads at a time, so that their latencies overlap.
    const PAGES: u32 = 8;

    /// Returns how many stages of 16 keys and values fit in shared memory beside the sums of the
    /// warps: a multiple of `WARPS`, so that each stage is always read by the same warp. It then
    /// waits for every phase of its barrier.
    pub const fn stages(depth: u32) -> u32 {
        if depth > 64 { 24 } else { 48 }
    }

    /// Computes `o = softmax(q · kᵀ · scale / log2(e)) · v` of few queries for each of many keys.
    ///
    /// Keys and values are batch × heads × sequence × depth or, with a `table` of the pages of each
    /// sequence, pages × heads × rows × depth with 2^`page_shift` rows; `DEPTH` is the depth or
    /// more. The strides of `q` and `o`, in elements, are those of sequences, heads and queries.
    ///
    /// A block takes one work unit after the other: a part of the keys of a head, with up to 16
    /// rows of queries. If a head has several parts, the block that ends last adds them up. One
    /// warp loads, and four multiply. `arrived` and `taken` are zeros before and after the launch.
    #[tma_kernel(threads = 32 * (WARPS + 1), unchecked, instances(
        (T, SHIFT) in [bf16 = (bf16, 32), f16 = (f16, -7)],
        DEPTH in [d64 = 64, d128 = 128],
        let STAGES = stages(DEPTH),
        let PITCH = DEPTH + 8, // floats: a row, its peak and its sum of weights, in other banks than the next
    ))]
    pub fn attend<T, const SHIFT: i32, const DEPTH: u32, const STAGES: u32, const PITCH: u32>(
        k: TensorMap<Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128>>,
        v: TensorMap<Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128>>,
        q: Global<T>,
        o: Global<T>,
        table: Option<Global<u32>>,
        lengths: Option<Global<u32>>,
        sinks: Option<Global<f32>>,
        lse: Option<Global<f32>>,
        partials: Global<f32>,
        stats: Global<f32>,
        arrived: Global<u32>,
        taken: Global<u32>,
        sequences: u32,
        key_heads: u32,
        group: u32,
        queries: u32,
        keys: u32,
        left: u32,
        right: u32,
        depth: u32,
        page_shift: u32,
        table_stride: u32,
        target: u32,
        least: u32,
        q_sequence: u64,
        q_head: u64,
        q_query: u64,
        o_sequence: u64,
        o_head: u64,
        o_query: u64,
        scale: f32,
        soft_cap: f32,
    ) where
        T: TransposedElement + WarpMultiply<T, f32> + Number,
        f32: PackAs<T>,
    {
        let ring: Pipeline<
            (Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128>, Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128>),
            STAGES,
        > = shared();
        let rows_of_q: Tile<T, Shape2<ROWS, DEPTH>, Swizzle128> = shared();
        let sums: Stages<SharedArray<f32, PITCH>, { WARPS * 8 }> = shared();
        let starts: SharedArray<u32, { MOST_SEQUENCES }> = shared();
        let announced: Stages<SharedArray<u32, 9>, 2> = shared();
        let ready: Stages<Barrier, 2> = shared();
        let free: Stages<Barrier, 2> = shared();
        let is_last: SharedArray<bool, 1> = shared();
        if thread_idx().x == 0 {
            ring.init(1);
            for i in 0..2 {
                ready[i].init(1);
                free[i].init(WARPS);
            }
            fence_barrier_init();
        }
        sync_threads();
        grid_dependency_launch();
        grid_dependency_wait();

        let problem = Problem { sequences, key_heads, group, queries, keys, left, right };
        let of_q = Strides { sequence: q_sequence, head: q_head, query: q_query };
        let of_o = Strides { sequence: o_sequence, head: o_head, query: o_query };
        let rows = queries * group;
        if warp_idx() == WARPS {
            let [unit_keys, units] = plan(problem, lengths, starts, target, least);
            if elect_one() {
                let mut producer = ring.producer();
                let mut unit = block_idx().x;
                let mut turn = 0u32;
                let mut is_over = false;
                while !is_over {
                    is_over = unit >= units;
                    free[turn % 2].wait((turn / 2 % 2) ^ 1);
                    let to = announced[turn % 2];
                    if is_over {
                        to.set(6, 0);
                        ready[turn % 2].arrive();
                    } else {
                        let work = work_unit(problem, lengths, starts, unit_keys, unit);
                        to.set(0, work.sequence);
                        to.set(1, work.head);
                        to.set(2, work.row);
                        to.set(3, work.keys);
                        to.set(4, work.span.first);
                        to.set(5, work.span.end);
                        to.set(6, work.parts);
                        to.set(7, work.first_unit);
                        to.set(8, unit);
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
                                        let at =
                                            [page[j as usize], work.head, key & ((1 << page_shift) - 1), 0];
                                        let slot = producer.acquire();
                                        k.load(slot.0, at, slot.barrier());
                                        v.load(slot.1, at, slot.barrier());
                                    }
                                }
                            }
                        } else {
                            for key in (work.span.first..work.span.end).step_by(KEYS as usize) {
                                let at = [work.sequence, work.head, key, 0];
                                let slot = producer.acquire();
                                k.load(slot.0, at, slot.barrier());
                                v.load(slot.1, at, slot.barrier());
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
        } else {
            let mut consumer = ring.consumer();
            let warp = warp_idx();
            let thread = thread_idx().x;
            let mut turn = 0u32;
            let mut first_warp = 0; // which reads the unit's first stage
            let mut is_over = false;
            while !is_over {
                ready[turn % 2].wait(turn / 2 % 2);
                let from = announced[turn % 2];
                let parts = from.get(6);
                is_over = parts == 0;
                if !is_over {
                    let sequence = from.get(0);
                    let head = from.get(1);
                    let first_row = from.get(2);
                    let all_keys = from.get(3);
                    let span = Span { first: from.get(4), end: from.get(5) };
                    let first_unit = from.get(7);
                    let unit = from.get(8);
                    sync_warp();
                    if elect_one() {
                        free[turn % 2].arrive();
                    }
                    turn += 1;

                    // Queries of a group of heads are the rows of one matrix.
                    for vector in (thread..ROWS * DEPTH / 8).step_by((32 * WARPS) as usize) {
                        let row = first_row + vector / (DEPTH / 8);
                        let column = vector % (DEPTH / 8) * 8;
                        let mut values = [cast::<T>(0.0f32); 8];
                        if row < rows && column < depth {
                            let at = row_start(of_q, query_row(problem, sequence, head, all_keys, row));
                            values = q.get_vec::<8>(at + column as u64);
                        }
                        rows_of_q.set_vec([row - first_row, column], values);
                    }
                    named_barrier_sync(MULTIPLIERS, 32 * WARPS);
                    let query = WarpLeft::<T, ROWS, DEPTH>::load(rows_of_q, [0, 0]);

                    // Rows beyond the last one are computed like it.
                    let last_row = min(first_row + ROWS, rows) - 1;
                    let mut first_keys = [0; 2];
                    let mut end_keys = [0; 2];
                    for r in unroll(0..2usize) {
                        let row = min(first_row + lane_idx() / 4 + 8 * r as u32, last_row);
                        let seen = visible(problem, all_keys, row / group);
                        first_keys[r] = seen.first;
                        end_keys[r] = seen.end;
                    }
                    let to_all = Span {
                        first: visible(problem, all_keys, last_row / group).first,
                        end: visible(problem, all_keys, first_row / group).end,
                    };
                    let mut softmax = Softmax { peaks: [f32::NEG_INFINITY; 2], totals: [0.0; 2] };
                    let mut sum = WarpAccumulator::<f32, ROWS, DEPTH>::zero();
                    let stages = (span.end - span.first).div_ceil(KEYS);
                    let own_first = (warp + WARPS - first_warp) % WARPS;
                    consumer.skip(min(own_first, stages));
                    for stage in (own_first..stages).step_by(WARPS as usize) {
                        let first = span.first + stage * KEYS;
                        let slot = consumer.wait();
                        let mut scores = WarpAccumulator::<f32, ROWS, KEYS>::zero();
                        scores.mma_sync(query, WarpRight::<T, KEYS, DEPTH>::load(slot.0.batch(0), [0, 0]));
                        if soft_cap > 0.0 {
                            for i in unroll(0..scores.len()) {
                                scores[i] = tanh(scores[i] * soft_cap);
                            }
                        }
                        if first < to_all.first || first + KEYS > to_all.end {
                            for i in unroll(0..scores.len()) {
                                let key = first + scores.at(i)[1];
                                let r = scores.row(i);
                                if key < first_keys[r] || key >= end_keys[r] {
                                    scores[i] = f32::NEG_INFINITY;
                                }
                            }
                            // Rows of values beyond the sequence may hold anything. Their weights are
                            // zero, but zero times infinity is not.
                            if first + KEYS > all_keys {
                                for row in all_keys - first..KEYS {
                                    for column in (lane_idx() * 8..DEPTH).step_by(256) {
                                        slot.1.set_vec([0, 0, row, column], [cast::<T>(0.0f32); 8]);
                                    }
                                }
                                fence_proxy_async();
                                sync_warp();
                            }
                        }
                        weigh::<DEPTH, SHIFT>(&mut scores, &mut sum, &mut softmax, scale);
                        let weights = scores.pack::<T>();
                        sum.mma_sync(weights, WarpRight::<T, DEPTH, KEYS>::load(slot.1.batch(0).t(), [0, 0]));
                        sync_warp();
                        if elect_one() {
                            slot.release();
                        }
                        consumer.skip(min(WARPS - 1, stages - stage - 1));
                    }

                    // The sums of the warps, eight rows at a time, in the order of the keys: it does not
                    // depend on the units before.
                    let mut totals = softmax.totals;
                    for r in unroll(0..2usize) {
                        totals[r] += shuffle_xor(totals[r], 1);
                        totals[r] += shuffle_xor(totals[r], 2);
                    }
                    let tile_rows = last_row + 1 - first_row;
                    for half in 0..2 {
                        if half * 8 < tile_rows {
                            let own = sums[warp * 8 + lane_idx() / 4];
                            if lane_idx() % 4 == 0 {
                                let peak = if half == 0 { softmax.peaks[0] } else { softmax.peaks[1] };
                                own.set_vec(DEPTH, [peak, if half == 0 { totals[0] } else { totals[1] }]);
                            }
                            for i in unroll(0..sum.len() / 2) {
                                if sum.row(2 * i) as u32 == half {
                                    own.set_vec(sum.at(2 * i)[1], [sum[2 * i], sum[2 * i + 1]]);
                                }
                            }
                            named_barrier_sync(MULTIPLIERS, 32 * WARPS);
                            for item in (thread..8 * (DEPTH / 4)).step_by((32 * WARPS) as usize) {
                                let row = half * 8 + item / (DEPTH / 4);
                                let column = item % (DEPTH / 4) * 4;
                                if row < tile_rows && column < depth {
                                    let mut all =
                                        RowPart { sums: [0.0; 4], peak: f32::NEG_INFINITY, total: 0.0 };
                                    for w in unroll(0..WARPS) {
                                        let of_warp = sums[(first_warp + w) % WARPS * 8 + item / (DEPTH / 4)];
                                        let [peak, total] = of_warp.get_vec::<2>(DEPTH);
                                        let part =
                                            RowPart { sums: of_warp.get_vec::<4>(column), peak, total };
                                        all = added(all, part, scale);
                                    }
                                    if parts == 1 {
                                        let row =
                                            query_row(problem, sequence, head, all_keys, first_row + row);
                                        store_row::<T, SHIFT>(
                                            problem, o, of_o, lse, sinks, row, column, all, scale,
                                        );
                                    } else {
                                        let to = unit * min(rows, ROWS) + row;
                                        partials.set_vec(to as u64 * DEPTH as u64 + column as u64, all.sums);
                                        if column == 0 {
                                            stats.set_vec(to as u64 * 2, [all.peak, all.total]);
                                        }
                                    }
                                }
                            }
                            named_barrier_sync(MULTIPLIERS, 32 * WARPS);
                        }
                    }

                    first_warp = (first_warp + stages) % WARPS;

                    if parts > 1 {
                        if thread == 0 {
                            // Releases this block's part, and acquires those that were counted before.
                            let before = arrived.fetch_add(first_unit, 1, Order::AcqRel, Scope::Device);
                            is_last.set(0, before == parts - 1);
                            if before == parts - 1 {
                                arrived.set(first_unit, 0);
                            }
                        }
                        named_barrier_sync(MULTIPLIERS, 32 * WARPS);
                        if is_last.get(0) {
                            for item in (thread..tile_rows * (DEPTH / 4)).step_by((32 * WARPS) as usize) {
                                let row = item / (DEPTH / 4);
                                let column = item % (DEPTH / 4) * 4;
                                if column < depth {
                                    let each = min(rows, ROWS);
                                    let all = merged::<DEPTH>(
                                        partials,
                                        stats,
                                        first_unit * each + row,
                                        parts,
                                        each,
                                        column,
                                        scale,
                                    );
                                    let row = query_row(problem, sequence, head, all_keys, first_row + row);
                                    store_row::<T, SHIFT>(
                                        problem, o, of_o, lse, sinks, row, column, all, scale,
                                    );
                                }
                            }
                        }
                        named_barrier_sync(MULTIPLIERS, 32 * WARPS);
                    }
                }
            }
        }
    }
}
