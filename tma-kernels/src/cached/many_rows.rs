//! The kernel for more than 16 rows. `docs/cached-attention.md` explains it.

use tma_runtime::tma_module;

/// Any number of rows of queries per head of keys, 64 per warpgroup.
#[tma_module]
pub mod warpgroups {
    use tma_runtime::prelude::*;

    use crate::cached::bias::additions::{Positions, Slopes, Starts, addition, store_additions};
    use crate::cached::loads::stream::{Rows, ScaleStrides, load_queries, load_units};
    use crate::cached::schedule::work::{
        MOST_SEQUENCES, Problem, Sight, Strides, UnitWords, announced, plan, row_of, row_start, sight,
        store_plan,
    };
    use crate::cached::softmax::online::{
        Softmax, cap_tile, hide_tile, row_totals, share, store_log_sum, weigh_tile,
    };

    /// Rows of a warpgroup.
    const ROWS: u32 = 64;

    /// The named barrier of the warpgroups that multiply.
    const MULTIPLIERS: u32 = 1;

    /// Returns how many stages of keys and values fit in shared memory beside the queries. With one
    /// warpgroup that multiplies up to 128 columns, two blocks share a multiprocessor.
    pub const fn stages(warpgroups: u32, keys: u32, depth: u32) -> u32 {
        (if warpgroups == 1 && depth <= 128 { 64 } else { 128 }) * 1024 / (4 * keys * depth)
    }

    /// Limits the scores of keys from `first` on, adds what is added to them, and masks those of keys that a query does not see.
    #[tma_device]
    fn score<T: TileElement + Number, const KEYS: u32>(
        scores: &mut Accumulator<f32, ROWS, KEYS>,
        first: u32,
        sight: &Sight,
        soft_cap: f32,
        own_row: u32,
        keys: u32,
        has_additions: bool,
        slopes: Slopes,
        positions: Positions,
        starts: Starts,
        bias: Option<Global<T>>,
        bias_key: u64,
        bias_factor: f32,
    ) {
        cap_tile::<KEYS>(scores, soft_cap);
        if has_additions {
            for i in unroll(0..scores.len()) {
                let key = first + scores.at(i)[1];
                let row = own_row + 8 * scores.row(i) as u32;
                scores[i] += addition(slopes, positions, starts, row, key, keys, bias, bias_key, bias_factor);
            }
        }
        hide_tile::<KEYS>(scores, first, sight);
    }

    /// Computes what [`few_rows`](crate::cached::few_rows) does, for up to 64 rows of queries per
    /// warpgroup. The parts of a head are left to [`merge`](crate::cached::merge), for which
    /// `to_merge` is written.
    ///
    /// One warp loads. Each iteration multiplies queries by the next keys, and at the same time
    /// weights by the last values. `KEYS` is at most the number of rows of a page.
    #[tma_kernel(threads = 128 * (WARPGROUPS + 1), max_registers = if DEPTH > 128 { 168 } else if WARPGROUPS == 1 { 128 } else { 144 }, unchecked, instances(
        (T, SHIFT) in [bf16 = (bf16, 32), f16 = (f16, -7)],
        (DEPTH, KEYS) in [
            d64_k16 = (64, 16),
            d64_k64 = (64, 64),
            d128_k16 = (128, 16),
            d128_k64 = (128, 64),
            d256_k32 = (256, 32),
        ],
        WARPGROUPS in [m64 = 1, m128 = 2],
        let STAGES = stages(WARPGROUPS, KEYS, DEPTH),
        let LOADER = if DEPTH > 128 { if WARPGROUPS == 1 { 96 } else { 72 } } else if WARPGROUPS == 1 { 56 } else { 64 }, // registers
        let HAS_ADDITIONS = KEYS == 16, // for which registers do not suffice beside more keys
        let READS_AGAIN = DEPTH > 128, // the work unit: registers do not suffice for it beside the sums
        let REGISTERS = if DEPTH > 128 { if WARPGROUPS == 1 { 240 } else { 216 } } else if WARPGROUPS == 1 { 200 } else { 184 }, // those that the loading warpgroup leaves
    ))]
    pub fn attend<
        T,
        const SHIFT: i32,
        const DEPTH: u32,
        const KEYS: u32,
        const WARPGROUPS: u32,
        const STAGES: u32,
        const LOADER: u32,
        const HAS_ADDITIONS: bool,
        const READS_AGAIN: bool,
        const REGISTERS: u32,
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
        value_depth: u32,
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
        slopes: Option<Global<f32>>,
        bias: Option<Global<T>>,
        bias_sequence: u64,
        bias_head: u64,
        bias_query: u64,
        bias_key: u64,
        bias_factor: f32,
        page_starts: Option<Global<u32>>,
        has_additions: bool,
    ) where
        T: TransposedElement + Multiply<T, f32> + Number,
        f32: PackAs<T>,
    {
        let ring: Pipeline<(Rows<T, KEYS, DEPTH>, Rows<T, KEYS, DEPTH>), STAGES> = shared();
        let rows_of_q: Stages<Tile<T, Shape2<ROWS, DEPTH>, Swizzle128>, WARPGROUPS> = shared();
        let starts: SharedArray<u32, { MOST_SEQUENCES }> = shared();
        let announcements: Stages<UnitWords, 2> = shared();
        let ready: Stages<Barrier, 2> = shared();
        let free: Stages<Barrier, 2> = shared();
        let slopes_of_rows: Stages<Slopes, WARPGROUPS> = shared();
        let positions_of_rows: Stages<Positions, WARPGROUPS> = shared();
        let starts_of_rows: Stages<Starts, WARPGROUPS> = shared();
        let _scales: Stages<SharedArray<f32, 2>, 1> = shared(); // there are none
        if thread_idx().x == 0 {
            ring.init(4 * WARPGROUPS);
            for i in 0..2 {
                ready[i].init(1);
                free[i].init(4 * WARPGROUPS);
            }
            fence_barrier_init();
        }
        sync_threads();

        let tile_rows = WARPGROUPS * ROWS;
        let problem =
            Problem { sequences, key_heads, group, queries, keys, left, right, tile_rows, page_shift };
        let of_q = Strides { sequence: q_sequence, head: q_head, query: q_query };
        let of_o = Strides { sequence: o_sequence, head: o_head, query: o_query };
        let of_bias = Strides { sequence: bias_sequence, head: bias_head, query: bias_query };
        let rows = queries * group;
        if warpgroup_idx() == WARPGROUPS {
            setmaxnreg_dec::<LOADER>();
            if warp_idx() == 4 * WARPGROUPS {
                if elect_one() {
                    k.prefetch_descriptor();
                    v.prefetch_descriptor();
                }
                // Of what a plan follows from, only lengths can be results of the previous kernel.
                if lengths.is_some() {
                    grid_dependency_wait();
                }
                let [unit_keys, units] = plan(problem, page_starts, lengths, starts, target, least);
                grid_dependency_wait();
                grid_dependency_launch();
                if let Some(to_merge) = to_merge {
                    store_plan(to_merge, starts, sequences, unit_keys);
                }
                if elect_one() {
                    let mut producer = ring.producer();
                    load_units::<T, KEYS, DEPTH, DEPTH, STAGES, 1, false>(
                        k,
                        v,
                        &mut producer,
                        announcements,
                        ready,
                        free,
                        problem,
                        table,
                        page_starts,
                        table_stride,
                        lengths,
                        starts,
                        taken,
                        unit_keys,
                        units,
                        _scales,
                        sinks,
                        sinks,
                        ScaleStrides { last_page: 0, page: 0, head: 0 },
                    );
                }
            }
        } else {
            setmaxnreg_inc::<REGISTERS>();
            grid_dependency_wait();
            let mut consumer = ring.consumer();
            let query = rows_of_q[warpgroup_idx()];
            let row_slopes = slopes_of_rows[warpgroup_idx()];
            let positions = positions_of_rows[warpgroup_idx()];
            let starts_of_bias = starts_of_rows[warpgroup_idx()];
            let thread = thread_idx().x % 128;
            let mut turn = 0u32;
            let mut is_over = false;
            while !is_over {
                ready[turn % 2].wait(turn / 2 % 2);
                let work = announced(announcements[turn % 2]);
                is_over = work.parts == 0;
                if !is_over {
                    sync_warp();
                    if !READS_AGAIN && elect_one() {
                        free[turn % 2].arrive();
                    }
                    turn += 1;

                    let first_row = work.row + ROWS * warpgroup_idx();
                    sync_warpgroup(); // all warps have multiplied the queries of the unit before
                    load_queries(query, q, of_q, problem, work, first_row, 0, depth, thread);
                    // Units without keys need none. With one warpgroup that test takes a register
                    // too many, and with two its absence does.
                    let has_scores = WARPGROUPS == 1 || work.span.first < work.span.end;
                    if HAS_ADDITIONS && has_additions && has_scores {
                        store_additions(
                            row_slopes,
                            positions,
                            starts_of_bias,
                            problem,
                            work,
                            first_row,
                            slopes,
                            of_bias,
                            thread,
                        );
                    }
                    fence_proxy_async();
                    sync_warpgroup();

                    let own_row = warp_idx() % 4 * 16 + lane_idx() / 4;
                    let sight = sight(problem, work.keys, first_row, ROWS, own_row);

                    let mut softmax = Softmax { peaks: [f32::NEG_INFINITY; 2], totals: [0.0; 2] };
                    let mut shrink = [1.0; 2];
                    let mut sum = Accumulator::<f32, ROWS, DEPTH>::zero();
                    for i in unroll(0..sum.len()) {
                        sum[i] = 0.0;
                    }
                    if work.span.first < work.span.end {
                        // The first scores. Each iteration computes the next ones beside a sum.
                        let mut scores = Accumulator::<f32, ROWS, KEYS>::zero();
                        let mut slot = consumer.wait();
                        scores.mma(query, slot.0.batch(0), ()).wait();
                        score::<T, KEYS>(
                            &mut scores,
                            work.span.first,
                            &sight,
                            soft_cap,
                            own_row,
                            work.keys,
                            HAS_ADDITIONS && has_additions,
                            row_slopes,
                            positions,
                            starts_of_bias,
                            bias,
                            bias_key,
                            bias_factor,
                        );
                        weigh_tile::<KEYS, SHIFT>(&mut scores, &mut softmax, &mut shrink, scale);
                        let mut weights = scores.pack::<T>();
                        let mut last = work.span.first;
                        for first in (work.span.first + KEYS..work.span.end).step_by(KEYS as usize) {
                            let next = consumer.wait();
                            scores = Accumulator::zero();
                            let product = scores.mma(query, next.0.batch(0), ());
                            let flight = sum.mma(weights, slot.1.batch(0).t(), slot);
                            product.wait();
                            score::<T, KEYS>(
                                &mut scores,
                                first,
                                &sight,
                                soft_cap,
                                own_row,
                                work.keys,
                                HAS_ADDITIONS && has_additions,
                                row_slopes,
                                positions,
                                starts_of_bias,
                                bias,
                                bias_key,
                                bias_factor,
                            );
                            let rises =
                                weigh_tile::<KEYS, SHIFT>(&mut scores, &mut softmax, &mut shrink, scale);
                            let done = flight.wait();
                            if elect_one() {
                                done.release();
                            }
                            if rises {
                                for i in unroll(0..sum.len()) {
                                    sum[i] *= shrink[sum.row(i)];
                                }
                            }
                            weights = scores.pack::<T>();
                            slot = next;
                            last = first;
                        }
                        // Rows of values beyond the sequence may hold anything. Their weights are zero,
                        // but zero times infinity is not.
                        if last + KEYS > work.keys {
                            for vector in (thread_idx().x..(last + KEYS - work.keys) * (DEPTH / 8))
                                .step_by((128 * WARPGROUPS) as usize)
                            {
                                let row = work.keys - last + vector / (DEPTH / 8);
                                let column = vector % (DEPTH / 8) * 8;
                                slot.1.set_vec([0, 0, row, column], [cast::<T>(0.0f32); 8]);
                            }
                            fence_proxy_async();
                            named_barrier_sync(MULTIPLIERS, 128 * WARPGROUPS);
                        }
                        let done = sum.mma(weights, slot.1.batch(0).t(), slot).wait();
                        if elect_one() {
                            done.release();
                        }
                    }

                    let work = if READS_AGAIN { announced(announcements[(turn - 1) % 2]) } else { work };
                    if READS_AGAIN {
                        sync_warp();
                        if elect_one() {
                            free[(turn - 1) % 2].arrive();
                        }
                    }
                    let first_row = work.row + ROWS * warpgroup_idx();
                    let totals = row_totals(&softmax);
                    for r in unroll(0..2usize) {
                        let row = first_row + own_row + 8 * r as u32;
                        if row < rows {
                            if work.parts == 1 {
                                let of_row = row_of(problem, work, row);
                                let share = share::<SHIFT>(softmax.peaks[r], totals[r], of_row, sinks, scale);
                                let at = row_start(of_o, of_row);
                                for i in unroll(0..sum.len() / 2) {
                                    let column = sum.at(2 * i)[1];
                                    if sum.row(2 * i) == r && column < value_depth {
                                        let pair = [
                                            cast::<T>(sum[2 * i] * share),
                                            cast::<T>(sum[2 * i + 1] * share),
                                        ];
                                        o.set_vec(at + column as u64, pair);
                                    }
                                }
                                if let Some(lse) = lse {
                                    let is_first = lane_idx() % 4 == 0;
                                    if is_first {
                                        store_log_sum::<SHIFT>(
                                            lse,
                                            problem,
                                            softmax.peaks[r],
                                            totals[r],
                                            of_row,
                                            sinks,
                                            scale,
                                        );
                                    }
                                }
                            } else {
                                let to = work.unit * min(rows, tile_rows) + row - work.row;
                                for i in unroll(0..sum.len() / 2) {
                                    if sum.row(2 * i) == r {
                                        let at = to as u64 * DEPTH as u64 + sum.at(2 * i)[1] as u64;
                                        partials.set_vec(at, [sum[2 * i], sum[2 * i + 1]]);
                                    }
                                }
                                if lane_idx() % 4 == 0 {
                                    stats.set_vec(to as u64 * 2, [softmax.peaks[r], totals[r]]);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
