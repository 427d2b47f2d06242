//! The kernel for up to 16 rows. `docs/cached-attention.md` explains it.

use tma_runtime::tma_module;

/// Up to 16 rows of queries per head of keys.
#[tma_module]
pub mod warps {
    use tma_runtime::prelude::*;

    use crate::cached::loads::stream::{Rows, load_queries, load_units};
    use crate::cached::schedule::work::{
        MOST_SEQUENCES, Problem, Strides, UnitWords, announced, is_hidden, plan, row_of, sight, store_plan,
    };
    use crate::cached::softmax::online::{RowPart, Softmax, added, merged, row_totals, store_row, weigh};

    /// Rows of a multiplication: the queries of the heads that share a head of keys, and padding.
    const ROWS: u32 = 16;

    /// Keys that a warp multiplies at a time: the rows of the smallest page.
    const SLICE: u32 = 16;

    /// Warps of a block that multiply. Of 64 keys, each takes a slice.
    const WARPS: u32 = 4;

    /// Parts that a thread adds up at a time.
    const BATCH: usize = 16;

    /// The named barrier of the warps that multiply.
    const MULTIPLIERS: u32 = 1;

    /// Returns how many stages have 64 KB of keys and values. With more in flight, the memory of an
    /// H200 is slower (`docs/cached-attention.md`, "The kernels").
    ///
    /// The number is a multiple of the groups of warps, so that each stage is always read by the
    /// same warps: they wait for every phase of its barrier.
    pub const fn stages(keys: u32, depth: u32) -> u32 {
        64 * 1024 / (4 * keys * depth)
    }

    /// Computes `o = softmax(q · kᵀ · scale / log2(e)) · v` of few queries for each of many keys.
    ///
    /// Keys and values are batch × heads × sequence × depth or, with a `table` of the pages of each
    /// sequence, pages × heads × rows × depth with 2^`page_shift` rows; `DEPTH` is the depth or
    /// more. The strides of `q` and `o`, in elements, are those of sequences, heads and queries.
    ///
    /// A block takes one work unit after the other: a part of the keys of a head, with up to 16
    /// rows of queries. One warp loads, and four multiply. If a head has several parts, the block that
    /// ends last adds them up, for which `arrived` counts; without it, [`merge`](crate::cached::merge)
    /// does, for which `to_merge` is written. `arrived` and `taken` are zeros before and after the
    /// launch.
    #[tma_kernel(threads = 32 * (WARPS + 1), unchecked, instances(
        (T, SHIFT) in [bf16 = (bf16, 32), f16 = (f16, -7)],
        DEPTH in [d64 = 64, d128 = 128],
        KEYS in [k16 = 16, k64 = 64],
        let STAGES = stages(KEYS, DEPTH),
        let PITCH = DEPTH + 8, // floats: a row, its peak and its sum of weights, in other banks than the next
    ))]
    pub fn attend<
        T,
        const SHIFT: i32,
        const DEPTH: u32,
        const KEYS: u32,
        const STAGES: u32,
        const PITCH: u32,
    >(
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
        arrived: Option<Global<u32>>,
        to_merge: Option<Global<u32>>,
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
        let starts: SharedArray<u32, { MOST_SEQUENCES }> = shared();
        let announcements: Stages<UnitWords, 2> = shared();
        let ready: Stages<Barrier, 2> = shared();
        let free: Stages<Barrier, 2> = shared();
        let is_last: SharedArray<bool, 1> = shared();
        if thread_idx().x == 0 {
            ring.init(KEYS / SLICE);
            for i in 0..2 {
                ready[i].init(1);
                free[i].init(WARPS);
            }
            fence_barrier_init();
        }
        sync_threads();
        grid_dependency_launch();

        let problem = Problem { sequences, key_heads, group, queries, keys, left, right, tile_rows: ROWS };
        let of_q = Strides { sequence: q_sequence, head: q_head, query: q_query };
        let of_o = Strides { sequence: o_sequence, head: o_head, query: o_query };
        let rows = queries * group;
        if warp_idx() == WARPS {
            if elect_one() {
                k.prefetch_descriptor();
                v.prefetch_descriptor();
            }
            // Of what a plan follows from, only lengths can be results of the previous kernel.
            if lengths.is_some() {
                grid_dependency_wait();
            }
            let [unit_keys, units] = plan(problem, lengths, starts, target, least);
            grid_dependency_wait();
            if let Some(to_merge) = to_merge {
                store_plan(to_merge, starts, sequences, unit_keys);
            }
            if elect_one() {
                let mut producer = ring.producer();
                load_units(
                    k,
                    v,
                    &mut producer,
                    announcements,
                    ready,
                    free,
                    problem,
                    table,
                    table_stride,
                    page_shift,
                    lengths,
                    starts,
                    taken,
                    unit_keys,
                    units,
                );
            }
        } else {
            grid_dependency_wait();
            let mut consumer = ring.consumer();
            let warp = warp_idx();
            let thread = thread_idx().x;
            let slices = KEYS / SLICE; // of a stage, each for a warp of a group
            let groups = WARPS / slices;
            let slice = warp % slices * SLICE;
            let mut turn = 0u32;
            let mut first_group = 0; // which reads the unit's first stage
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

                    load_queries(rows_of_q, q, of_q, problem, work, work.row, depth, thread);
                    named_barrier_sync(MULTIPLIERS, 32 * WARPS);
                    let query = WarpLeft::<T, ROWS, DEPTH>::load(rows_of_q, [0, 0]);

                    let tile_rows = min(ROWS, rows - work.row);
                    let sight = sight(problem, work.keys, work.row, ROWS, lane_idx() / 4);
                    let mut softmax = Softmax { peaks: [f32::NEG_INFINITY; 2], totals: [0.0; 2] };
                    let mut sum = WarpAccumulator::<f32, ROWS, DEPTH>::zero();
                    let stages = (work.span.end - work.span.first).div_ceil(KEYS);
                    let own_first = (warp / slices + groups - first_group) % groups;
                    consumer.skip(min(own_first, stages));
                    for stage in (own_first..stages).step_by(groups as usize) {
                        let first = work.span.first + stage * KEYS + slice;
                        let slot = consumer.wait();
                        let mut scores = WarpAccumulator::<f32, ROWS, SLICE>::zero();
                        scores
                            .mma_sync(query, WarpRight::<T, SLICE, DEPTH>::load(slot.0.batch(0), [slice, 0]));
                        if soft_cap > 0.0 {
                            for i in unroll(0..scores.len()) {
                                scores[i] = tanh(scores[i] * soft_cap);
                            }
                        }
                        if first < sight.of_all.first || first + SLICE > sight.of_all.end {
                            for i in unroll(0..scores.len()) {
                                let key = first + scores.at(i)[1];
                                if is_hidden(&sight, scores.row(i), key) {
                                    scores[i] = f32::NEG_INFINITY;
                                }
                            }
                            // Rows of values beyond the sequence may hold anything. Their weights are
                            // zero, but zero times infinity is not.
                            if first + SLICE > work.keys {
                                for row in work.keys - min(first, work.keys)..SLICE {
                                    for column in (lane_idx() * 8..DEPTH).step_by(256) {
                                        slot.1.set_vec([0, 0, slice + row, column], [cast::<T>(0.0f32); 8]);
                                    }
                                }
                                fence_proxy_async();
                                sync_warp();
                            }
                        }
                        weigh::<ROWS, SLICE, DEPTH, SHIFT>(&mut scores, &mut sum, &mut softmax, scale);
                        let weights = scores.pack::<T>();
                        sum.mma_sync(
                            weights,
                            WarpRight::<T, DEPTH, SLICE>::load(slot.1.batch(0).t(), [0, slice]),
                        );
                        sync_warp();
                        if elect_one() {
                            slot.release();
                        }
                        consumer.skip(min(groups - 1, stages - stage - 1));
                    }

                    // The sums of the warps, eight rows at a time, in the order of the keys: it does not
                    // depend on the units before.
                    let totals = row_totals(&softmax);
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
                                        let of_warp = sums[((first_group + w / slices) % groups * slices
                                            + w % slices)
                                            * 8
                                            + item / (DEPTH / 4)];
                                        let [peak, total] = of_warp.get_vec::<2>(DEPTH);
                                        let part =
                                            RowPart { sums: of_warp.get_vec::<4>(column), peak, total };
                                        all = added(all, part, scale);
                                    }
                                    if work.parts == 1 {
                                        let row = row_of(problem, work, work.row + row);
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

                    first_group = (first_group + stages) % groups;

                    if let Some(arrived) = arrived {
                        let is_divided = work.parts > 1;
                        if is_divided {
                            if thread == 0 {
                                // Releases this block's part, and acquires those that were counted before.
                                let before =
                                    arrived.fetch_add(work.first_unit, 1, Order::AcqRel, Scope::Device);
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
                                        let all = merged::<DEPTH, BATCH>(
                                            partials,
                                            stats,
                                            work.first_unit * each + row,
                                            work.parts,
                                            each,
                                            column,
                                            scale,
                                        );
                                        let row = row_of(problem, work, work.row + row);
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
}
