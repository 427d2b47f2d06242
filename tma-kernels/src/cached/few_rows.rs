//! The kernel for up to 16 rows. `docs/cached-attention.md` explains it.

use tma_runtime::tma_module;

/// Up to 16 rows of queries per head of keys.
#[tma_module]
pub mod warps {
    use tma_runtime::prelude::*;

    use crate::cached::bias::additions::{Positions, Slopes, Starts, addition, store_additions};
    use crate::cached::loads::stream::{Rows, ScaleStrides, load_queries, load_units, load_widened_queries};
    use crate::cached::schedule::work::{
        MOST_SEQUENCES, Problem, Strides, UnitWords, announced, is_hidden, plan, row_of, sight, store_plan,
    };
    use crate::cached::softmax::online::{RowPart, Softmax, added, merged, row_totals, store_row, weigh};

    /// Rows of a multiplication: the queries of the heads that share a head of keys, and padding.
    const ROWS: u32 = 16;

    /// Keys that a warp multiplies at a time: the rows of the smallest page.
    const SLICE: u32 = 16;

    /// Columns of keys or values that are multiplied at a time, if registers do not suffice for a
    /// row.
    const COLUMNS: u32 = 32;

    /// The named barrier of the warps that multiply.
    const MULTIPLIERS: u32 = 1;

    /// Returns how many stages have 64 KB of keys and values, but at least two. With more in
    /// flight, the memory of an H200 is slower (`docs/cached-attention.md`, "The kernels").
    ///
    /// The number is a multiple of the groups of warps, so that each stage is always read by the
    /// same warps: they wait for every phase of its barrier.
    pub const fn stages(keys: u32, depth: u32, bytes: u32) -> u32 {
        let stages = 64 * 1024 / (2 * bytes * keys * depth);
        if stages < 2 { 2 } else { stages }
    }

    /// Returns the column of the values to which column `c` of a sum belongs, if values are
    /// [widened](WarpRight::widen).
    #[tma_device]
    fn widened_column(c: u32) -> u32 {
        c / 16 * 16 + c % 8 * 2 + c / 8 % 2
    }

    /// Computes `o = softmax(q · kᵀ · scale / log2(e)) · v` of few queries for each of many keys.
    ///
    /// Keys and values are batch × heads × sequence × depth or, with a `table` of the pages of each
    /// sequence, pages × heads × rows × depth with 2^`page_shift` rows; `DEPTH` is the depth or
    /// more. With `page_starts`, the pages of sequences follow each other in the table, and
    /// `lengths` are those of last pages. The strides of `q` and `o`, in elements, are those of
    /// sequences, heads and queries.
    ///
    /// A block takes one work unit after the other: a part of the keys of a head, with up to 16
    /// rows of queries. One warp loads, and four multiply. If a head has several parts, the block that
    /// ends last adds them up, for which `arrived` counts; without it, [`merge`](crate::cached::merge)
    /// does, for which `to_merge` is written. `arrived` and `taken` are zeros before and after the
    /// launch.
    ///
    /// Queries and results are `T`, keys and values `C` of so many `BYTES`. They are multiplied as `M`.
    /// Those of one byte are multiplied by their scales, whose places are `last_scale`, `page_scale`
    /// and `head_scale` ([`ScaleStrides`]).
    ///
    /// If `is_constant`, all but the last keys of each sequence are loaded while the previous
    /// kernel still runs.
    ///
    /// Of 64 keys, each of four warps takes a slice. Conversions take time, in which four others multiply
    /// the next keys or, if there are more than 128 columns, the same keys and the other half of
    /// the columns of values: registers do not suffice for more sums.
    #[tma_kernel(threads = 32 * (WARPS + LOADERS), max_registers = if WARPS == 8 { 168 } else { 255 }, unchecked, instances(
        (T, M, C, BYTES, SHIFT, DEPTH) in [
            bf16_d64 = (bf16, bf16, bf16, 2, 32, 64),
            bf16_d128 = (bf16, bf16, bf16, 2, 32, 128),
            bf16_d256 = (bf16, bf16, bf16, 2, 32, 256),
            f16_d64 = (f16, f16, f16, 2, -7, 64),
            f16_d128 = (f16, f16, f16, 2, -7, 128),
            f16_d256 = (f16, f16, f16, 2, -7, 256),
            bf16_e4m3_d128 = (bf16, f16, e4m3, 1, -7, 128),
            f16_e4m3_d128 = (f16, f16, e4m3, 1, -7, 128),
            bf16_e4m3_d256 = (bf16, f16, e4m3, 1, -7, 256),
            f16_e4m3_d256 = (f16, f16, e4m3, 1, -7, 256),
        ],
        KEYS in [k16 = 16, k64 = 64],
        let STAGES = stages(KEYS, DEPTH, BYTES),
        let SCALES = 2 * STAGES,
        let IS_SCALED = BYTES == 1,
        let IS_SPLIT = BYTES == 1 || DEPTH > 128, // registers do not suffice for a whole row of queries
        let WARPS = if BYTES == 1 { 8 } else { 4 }, // that multiply
        let HALVES = if BYTES == 1 && DEPTH > 128 { 2 } else { 1 }, // of the columns of values, each for a warp
        let WIDTH = DEPTH / HALVES,
        let LOADERS = if WARPS == 8 { 4 } else { 1 }, // of which one loads, and others leave registers
        let SUMS = 8 * WARPS,
        let BATCH = if WARPS == 8 { 8 } else { 16 }, // parts that a thread adds up at a time
        let HAS_ADDITIONS = KEYS == 16, // for which registers do not suffice beside 64 keys
        let PITCH = WIDTH + 8, // floats: a row, its peak and its sum of weights, in other banks than the next
    ))]
    pub fn attend<
        T,
        M,
        C,
        const BYTES: u32,
        const SHIFT: i32,
        const DEPTH: u32,
        const KEYS: u32,
        const STAGES: u32,
        const SCALES: u32,
        const IS_SCALED: bool,
        const IS_SPLIT: bool,
        const WARPS: u32,
        const HALVES: u32,
        const WIDTH: u32,
        const LOADERS: u32,
        const SUMS: u32,
        const BATCH: usize,
        const HAS_ADDITIONS: bool,
        const PITCH: u32,
    >(
        k: TensorMap<Rows<C, KEYS, DEPTH>>,
        v: TensorMap<Rows<C, KEYS, DEPTH>>,
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
        of_keys: Option<Global<f32>>,
        of_values: Option<Global<f32>>,
        is_constant: bool,
        last_scale: u32,
        page_scale: u32,
        head_scale: u32,
    ) where
        T: TileElement + Number,
        M: TransposedElement + WarpMultiply<M, f32> + Number,
        C: Widen<M> + Number,
        f32: PackAs<M>,
    {
        let ring: Pipeline<(Rows<C, KEYS, DEPTH>, Rows<C, KEYS, DEPTH>), STAGES> = shared();
        let scales: Stages<SharedArray<f32, 2>, SCALES> = shared();
        let factors: SharedArray<f32, 16> = shared();
        let rows_of_q: Tile<M, Shape2<ROWS, DEPTH>, Swizzle128> = shared();
        let sums: Stages<SharedArray<f32, PITCH>, SUMS> = shared();
        let starts: SharedArray<u32, { MOST_SEQUENCES }> = shared();
        let announcements: Stages<UnitWords, 2> = shared();
        let ready: Stages<Barrier, 2> = shared();
        let free: Stages<Barrier, 2> = shared();
        let is_last: SharedArray<bool, 1> = shared();
        let slopes_of_rows: Slopes = shared();
        let positions: Positions = shared();
        let starts_of_bias: Starts = shared();
        if thread_idx().x == 0 {
            ring.init(KEYS / SLICE * HALVES);
            for i in 0..2 {
                ready[i].init(1);
                free[i].init(WARPS);
            }
            fence_barrier_init();
        }
        sync_threads();

        let problem =
            Problem { sequences, key_heads, group, queries, keys, left, right, tile_rows: ROWS, page_shift };
        let of_q = Strides { sequence: q_sequence, head: q_head, query: q_query };
        let of_o = Strides { sequence: o_sequence, head: o_head, query: o_query };
        let of_bias = Strides { sequence: bias_sequence, head: bias_head, query: bias_query };
        let rows = queries * group;
        if warp_idx() >= WARPS {
            if WARPS == 8 {
                setmaxnreg_dec::<72>();
            }
            if warp_idx() == WARPS {
                if elect_one() {
                    k.prefetch_descriptor();
                    v.prefetch_descriptor();
                }
                if !is_constant {
                    grid_dependency_wait();
                }
                let [unit_keys, units] = plan(problem, page_starts, lengths, starts, target, least);
                if elect_one() {
                    let mut producer = ring.producer();
                    load_units::<C, KEYS, DEPTH, DEPTH, STAGES, SCALES, IS_SCALED>(
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
                        scales,
                        of_keys,
                        of_values,
                        ScaleStrides { last_page: last_scale, page: page_scale, head: head_scale },
                    );
                }
                if let Some(to_merge) = to_merge {
                    grid_dependency_wait();
                    store_plan(to_merge, starts, sequences, unit_keys);
                }
            }
        } else {
            if WARPS == 8 {
                setmaxnreg_inc::<216>(); // those that the loading warpgroup leaves
            }
            grid_dependency_wait();
            grid_dependency_launch();
            let mut consumer = ring.consumer();
            let warp = warp_idx();
            let thread = thread_idx().x;
            let slices = KEYS / SLICE; // of a stage, each for a warp of a group
            let groups = WARPS / slices / HALVES;
            let slice = warp % slices * SLICE;
            let first_column = warp / slices % HALVES * WIDTH; // of values
            let mut turn = 0u32;
            let mut position = 0u32; // of the unit's first stage, among all of the block
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

                    if HAS_ADDITIONS && (slopes.is_some() || bias.is_some()) {
                        store_additions(
                            slopes_of_rows,
                            positions,
                            starts_of_bias,
                            problem,
                            work,
                            work.row,
                            slopes,
                            of_bias,
                            thread,
                        );
                    }
                    let mut row_scales = [1.0; 2];
                    if IS_SCALED {
                        if thread < 128 {
                            load_widened_queries(
                                rows_of_q, factors, q, of_q, problem, work, work.row, depth, thread,
                            );
                        }
                        named_barrier_sync(MULTIPLIERS, 32 * WARPS);
                        row_scales = [factors.get(lane_idx() / 4), factors.get(lane_idx() / 4 + 8)];
                    } else {
                        load_queries(rows_of_q, q, of_q, problem, work, work.row, 0, depth, thread);
                        named_barrier_sync(MULTIPLIERS, 32 * WARPS);
                    }
                    let query = WarpLeft::<M, ROWS, DEPTH>::load(rows_of_q, [0, 0]);

                    let tile_rows = min(ROWS, rows - work.row);
                    let sight = sight(problem, work.keys, work.row, ROWS, lane_idx() / 4);
                    let mut softmax = Softmax { peaks: [f32::NEG_INFINITY; 2], totals: [0.0; 2] };
                    let mut sum = WarpAccumulator::<f32, ROWS, WIDTH>::zero();
                    let stages = (work.span.end - work.span.first).div_ceil(KEYS);
                    let own_first = (warp / slices / HALVES + groups - first_group) % groups;
                    consumer.skip(min(own_first, stages));
                    for stage in (own_first..stages).step_by(groups as usize) {
                        let first = work.span.first + stage * KEYS + slice;
                        let slot = consumer.wait();
                        let mut scores = WarpAccumulator::<f32, ROWS, SLICE>::zero();
                        let mut scale_of_values = 1.0;
                        if IS_SPLIT {
                            for first in unroll((0..DEPTH).step_by(COLUMNS as usize)) {
                                let query = WarpLeft::<M, ROWS, COLUMNS>::load(rows_of_q, [0, first]);
                                let keys =
                                    WarpRight::<M, SLICE, COLUMNS>::widen(slot.0.batch(0), [slice, first]);
                                scores.mma_sync(query, keys);
                            }
                        } else {
                            let keys = WarpRight::<M, SLICE, DEPTH>::widen(slot.0.batch(0), [slice, 0]);
                            scores.mma_sync(query, keys);
                        }
                        if IS_SCALED {
                            let [of_keys, of_values] = scales[(position + stage) % SCALES].get_vec::<2>(0);
                            scale_of_values = of_values;
                            for i in unroll(0..scores.len()) {
                                scores[i] *= row_scales[scores.row(i)] * of_keys;
                            }
                        }
                        if soft_cap > 0.0 {
                            for i in unroll(0..scores.len()) {
                                scores[i] = tanh(scores[i] * soft_cap);
                            }
                        }
                        if HAS_ADDITIONS && (slopes.is_some() || bias.is_some()) {
                            for i in unroll(0..scores.len()) {
                                let key = first + scores.at(i)[1];
                                let row = lane_idx() / 4 + 8 * scores.row(i) as u32;
                                scores[i] += addition(
                                    slopes_of_rows,
                                    positions,
                                    starts_of_bias,
                                    row,
                                    key,
                                    work.keys,
                                    bias,
                                    bias_key,
                                    bias_factor,
                                );
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
                                    for column in (lane_idx() * 8..WIDTH).step_by(256) {
                                        let at = [0, 0, slice + row, first_column + column];
                                        slot.1.set_vec(at, [cast::<C>(0.0f32); 8]);
                                    }
                                }
                                fence_proxy_async();
                                sync_warp();
                            }
                        }
                        weigh::<ROWS, SLICE, WIDTH, SHIFT>(&mut scores, &mut sum, &mut softmax, scale);
                        let weights = scores.pack::<M>();
                        let values = slot.1.batch(0).t_if::<true>();
                        if IS_SCALED {
                            for first in unroll((0..WIDTH).step_by(COLUMNS as usize)) {
                                let mut part = WarpAccumulator::<f32, ROWS, COLUMNS>::zero();
                                let at = [first_column + first, slice];
                                let values = WarpRight::<M, COLUMNS, SLICE>::widen(values, at);
                                part.mma_sync(weights, values);
                                for i in unroll(0..part.len()) {
                                    let of_sum = (first / COLUMNS) as usize * part.len() + i;
                                    sum[of_sum] = fma(part[i], scale_of_values, sum[of_sum]);
                                }
                            }
                        } else {
                            let values = WarpRight::<M, WIDTH, SLICE>::widen(values, [first_column, slice]);
                            sum.mma_sync(weights, values);
                        }
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
                                own.set_vec(WIDTH, [peak, if half == 0 { totals[0] } else { totals[1] }]);
                            }
                            for i in unroll(0..sum.len() / 2) {
                                if sum.row(2 * i) as u32 == half {
                                    let column = sum.at(2 * i)[1];
                                    if IS_SCALED {
                                        own.set(widened_column(column), sum[2 * i]);
                                        own.set(widened_column(column + 1), sum[2 * i + 1]);
                                    } else {
                                        own.set_vec(column, [sum[2 * i], sum[2 * i + 1]]);
                                    }
                                }
                            }
                            named_barrier_sync(MULTIPLIERS, 32 * WARPS);
                            for item in (thread..8 * (DEPTH / 4)).step_by((32 * WARPS) as usize) {
                                let row = half * 8 + item / (DEPTH / 4);
                                let column = item % (DEPTH / 4) * 4;
                                if row < tile_rows && column < value_depth {
                                    let mut all =
                                        RowPart { sums: [0.0; 4], peak: f32::NEG_INFINITY, total: 0.0 };
                                    for w in unroll(0..WARPS / HALVES) {
                                        let group = (first_group + w / slices) % groups;
                                        let of_half = (group * HALVES + column / WIDTH) * slices;
                                        let of_warp = sums[(of_half + w % slices) * 8 + item / (DEPTH / 4)];
                                        let [peak, total] = of_warp.get_vec::<2>(WIDTH);
                                        let sums = of_warp.get_vec::<4>(column % WIDTH);
                                        let part = RowPart { sums, peak, total };
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
                    position += stages;

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
                                    if column < value_depth {
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
