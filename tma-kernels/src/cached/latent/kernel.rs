//! The kernel for latents. `docs/cached-attention.md` explains it.

use tma_runtime::tma_module;

/// Up to 64 rows of queries over latents, whose columns are keys and values.
#[tma_module]
pub mod warpgroups {
    use tma_runtime::prelude::*;

    use crate::cached::loads::stream::{Rows, ScaleStrides, load_queries, load_units};
    use crate::cached::schedule::work::{
        MOST_SEQUENCES, Problem, Sight, Strides, UnitWords, WorkUnit, announced, plan, row_of, row_start,
        sight, store_plan,
    };
    use crate::cached::softmax::online::{
        Softmax, cap_tile, hide_tile, row_totals, share, store_log_sum, weigh_tile,
    };

    /// Rows of a tile: all heads of queries share one of keys.
    const ROWS: u32 = 64;

    /// Columns of latents, which are keys and values.
    pub const LATENTS: u32 = 512;

    /// Columns of latents that each of two warpgroups multiplies by weights.
    const HALF: u32 = 256;

    /// Columns of keys that are rotated by their positions, and not values.
    pub const ROTATED: u32 = 64;

    /// Keys of a stage. Shared memory has room for three stages beside the queries.
    pub const KEYS: u32 = 32;

    /// The named barrier of the warpgroups that multiply.
    const MULTIPLIERS: u32 = 1;

    /// Weights of a stage, or the factors of a unit's sums: the warpgroup that computes them sends
    /// them to the other one.
    type Weights<T> = Tile<T, Shape2<ROWS, KEYS>, Panels16>;

    /// A factor of each row's sums.
    type Factors = SharedArray<f32, { ROWS }>;

    /// Multiplies the sums of a lane's two rows.
    #[tma_device]
    fn multiply(sum: &mut Accumulator<f32, ROWS, HALF>, factors: [f32; 2]) {
        for i in unroll(0..sum.len()) {
            sum[i] *= factors[sum.row(i)];
        }
    }

    /// Returns the factors of a lane's two rows.
    #[tma_device]
    fn received_factors(from: Factors, own_row: u32) -> [f32; 2] {
        [from.get(own_row), from.get(own_row + 8)]
    }

    /// Writes weights, and the factors of a lane's two rows, for the other warpgroup and for
    /// matmuls.
    #[tma_device]
    fn send<T: TileElement>(
        weights: &Accumulator<f32, ROWS, KEYS>,
        factors: [f32; 2],
        weights_to: Weights<T>,
        factors_to: Factors,
        own_row: u32,
    ) where
        f32: PackAs<T> + StoreAs<T>,
    {
        weights.store(weights_to);
        if lane_idx() % 4 == 0 {
            factors_to.set(own_row, factors[0]);
            factors_to.set(own_row + 8, factors[1]);
        }
        fence_proxy_async();
        sync_warpgroup();
    }

    /// Converts scores of keys from `first` on to weights, of a sequence of `keys` keys. If peaks
    /// rise, the result is true, and earlier sums must be multiplied by `shrink`. Rows of `latents`
    /// beyond the sequence may hold anything: they become zeros.
    #[tma_device]
    fn weigh<T: TileElement + Number, const SHIFT: i32>(
        scores: &mut Accumulator<f32, ROWS, KEYS>,
        softmax: &mut Softmax,
        shrink: &mut [f32; 2],
        latents: Rows<T, KEYS, LATENTS>,
        first: u32,
        keys: u32,
        sight: &Sight,
        soft_cap: f32,
        scale: f32,
        thread: u32,
    ) -> bool {
        cap_tile::<KEYS>(scores, soft_cap);
        hide_tile::<KEYS>(scores, first, sight);
        let rises = weigh_tile::<KEYS, SHIFT>(scores, softmax, shrink, scale);
        // The weights of these rows are zero, but zero times infinity is not.
        if first + KEYS > keys {
            sync_warpgroup(); // all warps have multiplied these keys
            let vectors = LATENTS / 8;
            for vector in (thread..(first + KEYS - keys) * vectors).step_by(128) {
                let at = [0, 0, keys - first + vector / vectors, vector % vectors * 8];
                latents.set_vec(at, [cast::<T>(0.0f32); 8]);
            }
        }
        rises
    }

    /// Stores the half number `half` of the columns of a unit's rows: results, which are sums times
    /// factors, or parts of them.
    #[tma_device]
    fn store_half<T: TileElement + Number>(
        sum: &Accumulator<f32, ROWS, HALF>,
        half: u32,
        factors: [f32; 2],
        problem: Problem,
        work: WorkUnit,
        own_row: u32,
        o: Global<T>,
        of_o: Strides,
        partials: Global<f32>,
    ) {
        let rows = problem.queries * problem.group;
        for r in unroll(0..2usize) {
            let row = work.row + own_row + 8 * r as u32;
            if row < rows {
                if work.parts == 1 {
                    let at = row_start(of_o, row_of(problem, work, row)) + (half * HALF) as u64;
                    for i in unroll(0..sum.len() / 2) {
                        if sum.row(2 * i) == r {
                            let pair =
                                [cast::<T>(sum[2 * i] * factors[r]), cast::<T>(sum[2 * i + 1] * factors[r])];
                            o.set_vec(at + sum.at(2 * i)[1] as u64, pair);
                        }
                    }
                } else {
                    let to = work.unit * min(rows, ROWS) + row - work.row;
                    let at = to as u64 * LATENTS as u64 + (half * HALF) as u64;
                    for i in unroll(0..sum.len() / 2) {
                        if sum.row(2 * i) == r {
                            partials.set_vec(at + sum.at(2 * i)[1] as u64, [sum[2 * i], sum[2 * i + 1]]);
                        }
                    }
                }
            }
        }
    }

    /// Computes `o = softmax(q · kᵀ · scale / log2(e)) · v` of queries of [`LATENTS`] +
    /// [`ROTATED`] columns. The first columns of keys are `latents`, which are also the values, and
    /// the others are `rotated`. There is one head of keys. Parameters are those of
    /// [`many_rows`](crate::cached::many_rows).
    ///
    /// One warp loads. The first of two warpgroups computes scores and weights, and sends weights
    /// to the second one through shared memory. Each multiplies them by half of the columns of
    /// values, because the sums of all columns are more than the registers of one warpgroup.
    #[tma_kernel(threads = 384, max_registers = 168, unchecked, instances(
        (T, SHIFT) in [bf16 = (bf16, 32), f16 = (f16, -7)],
        let STAGES = 3,
    ))]
    pub fn attend_latents<T, const SHIFT: i32, const STAGES: u32>(
        rotated: TensorMap<Rows<T, KEYS, ROTATED>>,
        latents: TensorMap<Rows<T, KEYS, LATENTS>>,
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
        page_starts: Option<Global<u32>>,
    ) where
        T: TransposedElement + Multiply<T, f32> + Number,
        f32: PackAs<T> + StoreAs<T>,
    {
        let ring: Pipeline<(Rows<T, KEYS, ROTATED>, Rows<T, KEYS, LATENTS>), STAGES> = shared();
        let latent_queries: Tile<T, Shape2<ROWS, LATENTS>, Swizzle128> = shared();
        let rotated_queries: Tile<T, Shape2<ROWS, ROTATED>, Swizzle128> = shared();
        let weights_of_stages: Stages<Weights<T>, 2> = shared();
        let factors_of_stages: Stages<Factors, 2> = shared();
        let stats_of_rows: SharedArray<f32, { 2 * ROWS }> = shared(); // a peak and a sum of weights each
        let sent: Stages<Barrier, 2> = shared();
        let received: Stages<Barrier, 2> = shared();
        let starts: SharedArray<u32, { MOST_SEQUENCES }> = shared();
        let announcements: Stages<UnitWords, 2> = shared();
        let ready: Stages<Barrier, 2> = shared();
        let free: Stages<Barrier, 2> = shared();
        let _scales: Stages<SharedArray<f32, 2>, 1> = shared(); // there are none
        if thread_idx().x == 0 {
            ring.init(8);
            for i in 0..2 {
                sent[i].init(4);
                received[i].init(8);
                ready[i].init(1);
                free[i].init(8);
            }
            fence_barrier_init();
        }
        sync_threads();

        let problem =
            Problem { sequences, key_heads, group, queries, keys, left, right, tile_rows: ROWS, page_shift };
        let of_q = Strides { sequence: q_sequence, head: q_head, query: q_query };
        let of_o = Strides { sequence: o_sequence, head: o_head, query: o_query };
        if warpgroup_idx() == 2 {
            setmaxnreg_dec::<72>();
            if warp_idx() == 8 {
                if elect_one() {
                    rotated.prefetch_descriptor();
                    latents.prefetch_descriptor();
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
                    load_units::<T, KEYS, ROTATED, LATENTS, STAGES, 1, false>(
                        rotated,
                        latents,
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
            setmaxnreg_inc::<216>();
            grid_dependency_wait();
            let mut consumer = ring.consumer();
            let thread = thread_idx().x % 128;
            let own_row = warp_idx() % 4 * 16 + lane_idx() / 4;
            let mut taken_units = 0u32;
            let mut count = 0u32; // of what has been sent
            let mut is_over = false;
            if warpgroup_idx() == 0 {
                while !is_over {
                    ready[taken_units % 2].wait(taken_units / 2 % 2);
                    let work = announced(announcements[taken_units % 2]);
                    is_over = work.parts == 0;
                    if !is_over {
                        sync_warpgroup(); // all warps have multiplied the queries of the unit before
                        let own = latent_queries.columns::<HALF>(0);
                        load_queries(own, q, of_q, problem, work, work.row, 0, LATENTS, thread);
                        load_queries(
                            rotated_queries,
                            q,
                            of_q,
                            problem,
                            work,
                            work.row,
                            LATENTS,
                            LATENTS + ROTATED,
                            thread,
                        );
                        fence_proxy_async();
                        named_barrier_sync(MULTIPLIERS, 256);

                        let sight = sight(problem, work.keys, work.row, ROWS, own_row);
                        let mut softmax = Softmax { peaks: [f32::NEG_INFINITY; 2], totals: [0.0; 2] };
                        let mut sum = Accumulator::<f32, ROWS, HALF>::zero();
                        for i in unroll(0..sum.len()) {
                            sum[i] = 0.0;
                        }
                        if work.span.first < work.span.end {
                            // The first scores. Each iteration computes the next ones beside a sum.
                            let mut scores = Accumulator::<f32, ROWS, KEYS>::zero();
                            let mut slot = consumer.wait();
                            let mut flight = scores.mma(rotated_queries, slot.0.batch(0), ());
                            flight.mma(latent_queries, slot.1.batch(0), ());
                            flight.wait();
                            let mut shrink = [1.0; 2];
                            let _rises = weigh::<T, SHIFT>(
                                &mut scores,
                                &mut softmax,
                                &mut shrink,
                                slot.1,
                                work.span.first,
                                work.keys,
                                &sight,
                                soft_cap,
                                scale,
                                thread,
                            );
                            received[count % 2].wait((count / 2 % 2) ^ 1);
                            send(
                                &scores,
                                shrink,
                                weights_of_stages[count % 2],
                                factors_of_stages[count % 2],
                                own_row,
                            );
                            if elect_one() {
                                sent[count % 2].arrive();
                            }
                            count += 1;
                            for first in (work.span.first + KEYS..work.span.end).step_by(KEYS as usize) {
                                let next = consumer.wait();
                                scores = Accumulator::zero();
                                let mut product = scores.mma(rotated_queries, next.0.batch(0), ());
                                product.mma(latent_queries, next.1.batch(0), ());
                                let values = slot.1.batch(0).columns::<HALF>(0).t();
                                let flight = sum.mma(weights_of_stages[(count - 1) % 2], values, slot);
                                product.wait();
                                shrink = [1.0; 2];
                                let rises = weigh::<T, SHIFT>(
                                    &mut scores,
                                    &mut softmax,
                                    &mut shrink,
                                    next.1,
                                    first,
                                    work.keys,
                                    &sight,
                                    soft_cap,
                                    scale,
                                    thread,
                                );
                                received[count % 2].wait((count / 2 % 2) ^ 1);
                                send(
                                    &scores,
                                    shrink,
                                    weights_of_stages[count % 2],
                                    factors_of_stages[count % 2],
                                    own_row,
                                );
                                if elect_one() {
                                    sent[count % 2].arrive();
                                }
                                count += 1;
                                let done = flight.wait();
                                if elect_one() {
                                    done.release();
                                    received[count % 2].arrive(); // the weights before the last ones
                                }
                                if rises {
                                    multiply(&mut sum, shrink);
                                }
                                slot = next;
                            }
                            let values = slot.1.batch(0).columns::<HALF>(0).t();
                            let done = sum.mma(weights_of_stages[(count - 1) % 2], values, slot).wait();
                            if elect_one() {
                                done.release();
                                received[(count - 1) % 2].arrive();
                            }
                        }

                        let work = announced(announcements[taken_units % 2]); // again: registers are scarce
                        let totals = row_totals(&softmax);
                        if lane_idx() % 4 == 0 {
                            for r in unroll(0..2usize) {
                                let at = 2 * (own_row + 8 * r as u32);
                                stats_of_rows.set_vec(at, [softmax.peaks[r], totals[r]]);
                            }
                        }
                        received[count % 2].wait((count / 2 % 2) ^ 1);
                        sync_warpgroup();
                        if thread < ROWS {
                            let [peak, total] = stats_of_rows.get_vec::<2>(2 * thread);
                            let rows = queries * group;
                            let row = work.row + thread;
                            let mut factor = 1.0;
                            if row < rows {
                                let of_row = row_of(problem, work, row);
                                if work.parts == 1 {
                                    factor = share::<SHIFT>(peak, total, of_row, sinks, scale);
                                    if let Some(lse) = lse {
                                        store_log_sum::<SHIFT>(
                                            lse, problem, peak, total, of_row, sinks, scale,
                                        );
                                    }
                                } else {
                                    let to = work.unit * min(rows, ROWS) + thread;
                                    stats.set_vec(to as u64 * 2, [peak, total]);
                                }
                            }
                            factors_of_stages[count % 2].set(thread, factor);
                        }
                        sync_warpgroup();
                        let factors = received_factors(factors_of_stages[count % 2], own_row);
                        sync_warp();
                        if elect_one() {
                            sent[count % 2].arrive();
                            received[count % 2].arrive();
                        }
                        count += 1;
                        let work = announced(announcements[taken_units % 2]);
                        sync_warp();
                        if elect_one() {
                            free[taken_units % 2].arrive();
                        }
                        taken_units += 1;
                        store_half(&sum, 0, factors, problem, work, own_row, o, of_o, partials);
                    }
                }
            } else {
                while !is_over {
                    ready[taken_units % 2].wait(taken_units / 2 % 2);
                    let work = announced(announcements[taken_units % 2]);
                    is_over = work.parts == 0;
                    if !is_over {
                        // The other warpgroup has multiplied the queries of the unit before,
                        // because it has sent its factors.
                        let own = latent_queries.columns::<HALF>(1);
                        load_queries(own, q, of_q, problem, work, work.row, HALF, LATENTS, thread);
                        fence_proxy_async();
                        named_barrier_sync(MULTIPLIERS, 256);

                        let mut sum = Accumulator::<f32, ROWS, HALF>::zero();
                        for i in unroll(0..sum.len()) {
                            sum[i] = 0.0;
                        }
                        for _ in (work.span.first..work.span.end).step_by(KEYS as usize) {
                            let slot = consumer.wait();
                            sent[count % 2].wait(count / 2 % 2);
                            let shrink = received_factors(factors_of_stages[count % 2], own_row);
                            if vote_any(shrink[0] != 1.0 || shrink[1] != 1.0) {
                                multiply(&mut sum, shrink);
                            }
                            let values = slot.1.batch(0).columns::<HALF>(1).t();
                            let done = sum.mma(weights_of_stages[count % 2], values, slot).wait();
                            sync_warp(); // all lanes have read their factors
                            if elect_one() {
                                done.release();
                                received[count % 2].arrive();
                            }
                            count += 1;
                        }

                        let work = announced(announcements[taken_units % 2]); // again: registers are scarce
                        sent[count % 2].wait(count / 2 % 2);
                        let factors = received_factors(factors_of_stages[count % 2], own_row);
                        sync_warp();
                        if elect_one() {
                            free[taken_units % 2].arrive();
                            received[count % 2].arrive();
                        }
                        taken_units += 1;
                        count += 1;
                        store_half(&sum, 1, factors, problem, work, own_row, o, of_o, partials);
                    }
                }
            }
        }
    }
}
