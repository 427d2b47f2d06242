//! The kernel for up to 16 rows. `docs/cached-attention.md` explains it.

use tma_runtime::tma_module;

/// Up to 16 rows of queries per head of keys.
#[tma_module]
pub mod warps {
    use tma_runtime::prelude::*;

    use crate::cached::loads::stream::{Rows, load_units};
    use crate::cached::schedule::work::{
        Problem, Span, Strides, UnitWords, announced, plan, query_row, row_start, visible,
    };
    use crate::cached::softmax::online::{RowPart, Softmax, added, merged, row_totals, store_row, weigh};

    /// Rows of a multiplication: the queries of the heads that share a head of keys, and padding.
    const ROWS: u32 = 16;

    /// Keys of a stage: the rows of the smallest page.
    const KEYS: u32 = 16;

    /// Warps of a block that multiply. Each takes the keys of every fourth stage.
    const WARPS: u32 = 4;

    /// The named barrier of the warps that multiply.
    const MULTIPLIERS: u32 = 1;

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
        k: TensorMap<Rows<T, KEYS, DEPTH>>,
        v: TensorMap<Rows<T, KEYS, DEPTH>>,
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
        let ring: Pipeline<(Rows<T, KEYS, DEPTH>, Rows<T, KEYS, DEPTH>), STAGES> = shared();
        let rows_of_q: Tile<T, Shape2<ROWS, DEPTH>, Swizzle128> = shared();
        let sums: Stages<SharedArray<f32, PITCH>, { WARPS * 8 }> = shared();
        let announcements: Stages<UnitWords, 2> = shared();
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

        let problem = Problem { sequences, key_heads, group, queries, keys, left, right, tile_rows: ROWS };
        let of_q = Strides { sequence: q_sequence, head: q_head, query: q_query };
        let of_o = Strides { sequence: o_sequence, head: o_head, query: o_query };
        let rows = queries * group;
        if warp_idx() == WARPS {
            let plan = plan(problem, lengths, target, least);
            let mut producer = ring.producer();
            load_units(
                k,
                v,
                &mut producer,
                announcements,
                ready,
                free,
                problem,
                plan,
                table,
                table_stride,
                page_shift,
                lengths,
                taken,
            );
        } else {
            let mut consumer = ring.consumer();
            let warp = warp_idx();
            let thread = thread_idx().x;
            let mut turn = 0u32;
            let mut first_warp = 0; // which reads the unit's first stage
            let mut is_over = false;
            while !is_over {
                ready[turn % 2].wait(turn / 2 % 2);
                let work = announced(announcements[turn % 2]);
                is_over = work.parts == 0;
                if !is_over {
                    sync_warp();
                    if elect_one() {
                        free[turn % 2].arrive();
                    }
                    turn += 1;

                    // Queries of a group of heads are the rows of one matrix.
                    for vector in (thread..ROWS * DEPTH / 8).step_by((32 * WARPS) as usize) {
                        let row = work.row + vector / (DEPTH / 8);
                        let column = vector % (DEPTH / 8) * 8;
                        let mut values = [cast::<T>(0.0f32); 8];
                        if row < rows && column < depth {
                            let at =
                                row_start(of_q, query_row(problem, work.sequence, work.head, work.keys, row));
                            values = q.get_vec::<8>(at + column as u64);
                        }
                        rows_of_q.set_vec([row - work.row, column], values);
                    }
                    named_barrier_sync(MULTIPLIERS, 32 * WARPS);
                    let query = WarpLeft::<T, ROWS, DEPTH>::load(rows_of_q, [0, 0]);

                    // Rows beyond the last one are computed like it.
                    let last_row = min(work.row + ROWS, rows) - 1;
                    let mut first_keys = [0; 2];
                    let mut end_keys = [0; 2];
                    for r in unroll(0..2usize) {
                        let row = min(work.row + lane_idx() / 4 + 8 * r as u32, last_row);
                        let seen = visible(problem, work.keys, row / group);
                        first_keys[r] = seen.first;
                        end_keys[r] = seen.end;
                    }
                    let to_all = Span {
                        first: visible(problem, work.keys, last_row / group).first,
                        end: visible(problem, work.keys, work.row / group).end,
                    };
                    let mut softmax = Softmax { peaks: [f32::NEG_INFINITY; 2], totals: [0.0; 2] };
                    let mut sum = WarpAccumulator::<f32, ROWS, DEPTH>::zero();
                    let stages = (work.span.end - work.span.first).div_ceil(KEYS);
                    let own_first = (warp + WARPS - first_warp) % WARPS;
                    consumer.skip(min(own_first, stages));
                    for stage in (own_first..stages).step_by(WARPS as usize) {
                        let first = work.span.first + stage * KEYS;
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
                            if first + KEYS > work.keys {
                                for row in work.keys - first..KEYS {
                                    for column in (lane_idx() * 8..DEPTH).step_by(256) {
                                        slot.1.set_vec([0, 0, row, column], [cast::<T>(0.0f32); 8]);
                                    }
                                }
                                fence_proxy_async();
                                sync_warp();
                            }
                        }
                        weigh::<ROWS, KEYS, DEPTH, SHIFT>(&mut scores, &mut sum, &mut softmax, scale);
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
                    let totals = row_totals(&softmax);
                    let tile_rows = last_row + 1 - work.row;
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
                                    if work.parts == 1 {
                                        let row = query_row(
                                            problem,
                                            work.sequence,
                                            work.head,
                                            work.keys,
                                            work.row + row,
                                        );
                                        store_row::<T, SHIFT>(
                                            problem, o, of_o, lse, sinks, row, column, all, scale,
                                        );
                                    } else {
                                        let to = work.unit * min(rows, ROWS) + row;
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

                    if work.parts > 1 {
                        if thread == 0 {
                            // Releases this block's part, and acquires those that were counted before.
                            let before = arrived.fetch_add(work.first_unit, 1, Order::AcqRel, Scope::Device);
                            is_last.set(0, before == work.parts - 1);
                            if before == work.parts - 1 {
                                arrived.set(work.first_unit, 0);
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
                                        work.first_unit * each + row,
                                        work.parts,
                                        each,
                                        column,
                                        scale,
                                    );
                                    let row = query_row(
                                        problem,
                                        work.sequence,
                                        work.head,
                                        work.keys,
                                        work.row + row,
                                    );
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
