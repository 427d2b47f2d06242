//! The kernel. `docs/attention.md` explains it step by step.

use tma_runtime::prelude::*;

/// Online softmax between the two matmuls.
#[tma_module]
pub mod forward {
    use tma_runtime::prelude::*;

    pub use crate::attention::softmax::online::first_row;
    use crate::attention::softmax::online::{Softmax, no_scores, note, positive_or_nan, row_total, softmax};

    /// Queries per block: 64 for each of the two warpgroups that multiply.
    const QUERIES: u32 = 128;

    /// The named barrier at which both warpgroups have cleared their half of a block of values.
    const CLEARED: u32 = 1;

    /// Returns the start of a sequence of the batch along its tensor, and its length.
    #[tma_device]
    fn sequence<const RAGGED: bool>(starts: Global<u32>, batch: u32, length: u32) -> [u32; 2] {
        if RAGGED {
            let first = starts.get(batch);
            [first, max(starts.get(batch + 1), first) - first]
        } else {
            [0, length]
        }
    }

    /// Lowers the registers of the warpgroup that loads, for `raise_registers`: all three begin with
    /// 168 per thread.
    #[tma_device(open)]
    fn lower_registers() {
        setmaxnreg_dec::<24>();
    }

    /// Raises the registers of a warpgroup that multiplies.
    #[tma_device(open)]
    fn raise_registers() {
        setmaxnreg_inc::<240>();
    }

    /// Returns whether a unit is the n-th tile of queries from the end and the n-th from the start:
    /// with a causal mask, they see together as many keys as those of any other unit. Otherwise a
    /// unit is one tile.
    #[tma_device(open)]
    fn pairs<const CAUSAL: bool>() -> bool {
        CAUSAL
    }

    /// Returns a block's next tile: twice its unit, plus one for a unit's second tile.
    #[tma_device]
    fn following<const CAUSAL: bool>(at: u32, tiles: u32) -> u32 {
        let short = at / 2 % tiles.div_ceil(2);
        if pairs::<CAUSAL>() && at % 2 == 0 && tiles - 1 - short != short {
            at + 1
        } else {
            (at / 2 + grid_dim().x) * 2
        }
    }

    /// Returns the head, counted through the batch, and the first query. Units of a head are
    /// adjacent, so that blocks that run at the same time read the same keys and values.
    #[tma_device]
    fn place<const CAUSAL: bool>(at: u32, tiles: u32) -> [u32; 2] {
        let units = if pairs::<CAUSAL>() { tiles.div_ceil(2) } else { tiles };
        let short = at / 2 % units;
        [at / 2 / units, QUERIES * if pairs::<CAUSAL>() && at % 2 == 0 { tiles - 1 - short } else { short }]
    }

    /// Returns the next tile from `from` on that has queries. Short sequences have fewer tiles.
    #[tma_device]
    fn settle<const CAUSAL: bool, const RAGGED: bool>(
        from: u32,
        tiles: u32,
        units: u32,
        heads: u32,
        starts: Global<u32>,
    ) -> u32 {
        let mut at = from;
        if RAGGED {
            let mut is_empty = at / 2 < units;
            while is_empty {
                let here = place::<CAUSAL>(at, tiles);
                let queries = sequence::<RAGGED>(starts, here[0] / heads, 0)[1];
                is_empty = here[1] >= queries;
                if is_empty {
                    at = following::<CAUSAL>(at, tiles);
                    is_empty = at / 2 < units;
                }
            }
        }
        at
    }

    /// The keys that a query sees: those of its sequence from `first` on and before `end`. Both may
    /// be negative.
    #[derive(Clone, Copy)]
    struct Sight {
        first: i32,
        end: i32,
    }

    /// Returns the keys that the query `row` sees. With a causal mask, query `i` sees the keys up to
    /// `i + keys - queries`. [`hide`] derives from them those of the 63 queries after it.
    #[tma_device(open)]
    fn sight<const CAUSAL: bool>(row: u32, queries: u32, keys: u32) -> Sight {
        let end =
            if CAUSAL { min((row + 1 + keys) as i32 - queries as i32, keys as i32) } else { keys as i32 };
        Sight { first: 0, end }
    }

    /// Returns the first key that a tile of queries from `row` on processes.
    #[tma_device]
    fn first_key<const CAUSAL: bool>(row: u32, queries: u32, keys: u32) -> u32 {
        max(sight::<CAUSAL>(row, queries, keys).first, 0) as u32
    }

    /// Returns how many blocks of keys a tile of queries from `row` on processes: at least one, so
    /// that each tile has a softmax.
    #[tma_device]
    fn blocks<const KEYS: u32, const CAUSAL: bool>(row: u32, queries: u32, keys: u32) -> u32 {
        let end = sight::<CAUSAL>(row + QUERIES - 1, queries, keys).end;
        (max(end - first_key::<CAUSAL>(row, queries, keys) as i32, 1) as u32).div_ceil(KEYS)
    }

    /// Masks the scores of keys after those that a query sees, in a block of keys that begins at
    /// `first`. The first of the warpgroup's queries sees the keys before `end`. With a causal mask,
    /// each query after it sees one more, up to all `keys`.
    #[tma_device]
    fn hide<const KEYS: u32, const CAUSAL: bool>(
        scores: &mut Accumulator<f32, 64, KEYS>,
        first: u32,
        end: i32,
        keys: u32,
    ) {
        // Columns are compared as constants: offsets from the thread's first one.
        let own = scores.at(0)[1];
        let mut limit = Rows::<i32, 64>::filled(0);
        for r in unroll(0..limit.len()) {
            let more = if CAUSAL { scores.at(2 * r)[0] as i32 } else { 0 };
            limit[r] = min(end + more, keys as i32) - (first + own) as i32;
        }
        for i in unroll(0..scores.len()) {
            if (scores.at(i)[1] - own) as i32 >= limit[scores.row(i)] {
                scores[i] = f32::NEG_INFINITY;
            }
        }
    }

    /// Masks the scores of keys that a query does not see, in a block of keys that begins at
    /// `first`. `seen` are those of the first of the warpgroup's queries.
    #[tma_device(open)]
    fn mask<const KEYS: u32, const CAUSAL: bool>(
        scores: &mut Accumulator<f32, 64, KEYS>,
        first: u32,
        seen: Sight,
        keys: u32,
    ) {
        if seen.end < (first + KEYS) as i32 {
            hide::<KEYS, CAUSAL>(scores, first, seen.end, keys);
        }
    }

    /// Stores the rows of a warpgroup's result that are in its sequence: those from `to` on, of the
    /// `count` rows that begin at element `first` of `rows`.
    #[tma_device(open)]
    fn store_rows<T: TileElement, const DEPTH: u32>(
        out: &Accumulator<f32, 64, DEPTH>,
        rows: Global<T>,
        first: u64,
        count: u32,
        stride: u32,
        to: u32,
    ) where
        f32: StoreAs<T>,
    {
        out.store_to(rows.matrix(first, [count, DEPTH], stride), [to, 0]);
    }

    /// Sums weights over the threads of a row, and computes `share`, the inverse of that sum. It
    /// stays unchanged for rows that see no key. `seen` are the keys that the first of the
    /// warpgroup's queries sees, of all `_keys`.
    #[tma_device(open)]
    fn shares<const CAUSAL: bool, const SHIFT: u32>(
        softmax: &mut Softmax,
        share: &mut [f32; 2],
        seen: Sight,
        _keys: u32,
        _head: u32,
        _scale: f32,
    ) {
        for r in unroll(0..2usize) {
            softmax.total[r] = row_total(softmax.total[r]);
            let more = if CAUSAL { (first_row() + 8 * r as u32) as i32 } else { 0 };
            if seen.end + more > 0 {
                softmax.total[r] = positive_or_nan(softmax.total[r]);
                share[r] = recip(softmax.total[r]);
            }
        }
    }

    /// Computes `o = softmax(q · kᵀ · scale / log2(e)) · v`, in tiles of 128 queries, `tiles` for
    /// each head of a sequence. One warpgroup loads, and two multiply 64 queries each.
    ///
    /// Tensors are batch × heads × sequence × `DEPTH`; `group` heads of queries share one of keys
    /// and values. With `RAGGED`, sequences of several lengths are packed in one batch, beginning
    /// at `starts_q` and `starts_k`, and `rows` is the memory of `o`. A warpgroup's part of `o` is
    /// written through shared memory in pieces of `PIECE` columns.
    #[tma_kernel(threads = 384, unchecked, instances(
        (T, SHIFT) in [bf16 = (bf16, 32), f16 = (f16, 0)],
        DEPTH in [d64 = 64, d128 = 128, d256 = 256],
        let KEYS = if DEPTH > 128 { 64 } else { 128 },
        let STAGES = if DEPTH > 128 { 1 } else { 2 },
        let PIECE = if DEPTH > 128 { 128 } else { DEPTH },
        CAUSAL in [full = false, causal = true],
        RAGGED in [even = false, ragged = true],
    ))]
    pub fn attention<
        T,
        const SHIFT: u32,
        const DEPTH: u32,
        const KEYS: u32,
        const STAGES: u32,
        const PIECE: u32,
        const CAUSAL: bool,
        const RAGGED: bool,
    >(
        q: TensorMap<Tile<T, Shape4<1, 1, QUERIES, DEPTH>, Swizzle128>>,
        k: TensorMap<Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128>>,
        v: TensorMap<Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128>>,
        o: TensorMap<Tile<T, Shape4<1, 1, 64, PIECE>, Swizzle128>>,
        rows: Global<T>,
        lse: Global<f32>,
        starts_q: Global<u32>,
        starts_k: Global<u32>,
        all_queries: u32,
        all_keys: u32,
        heads: u32,
        group: u32,
        tiles: u32,
        units: u32,
        row_stride: u32,
        head_stride: u64,
        scale: f32,
    ) where
        T: TransposedElement + Multiply<T, f32> + Number,
        f32: PackAs<T> + StoreAs<T>,
    {
        let queries: Stages<Tile<T, Shape4<1, 1, QUERIES, DEPTH>, Swizzle128>, STAGES> = shared();
        let loaded: Stages<Barrier, STAGES> = shared();
        let free: Stages<Barrier, STAGES> = shared();
        let key_ring: Pipeline<(Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128>,), 2> = shared();
        let value_ring: Pipeline<(Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128>,), 2> = shared();
        let outs: Stages<Tile<T, Shape4<1, 1, 64, PIECE>, Swizzle128>, 2> = shared();
        if thread_idx().x == 0 {
            for stage in 0..STAGES {
                loaded[stage].init(1);
                free[stage].init(8); // one arrival per multiplying warp
            }
            key_ring.init(8);
            value_ring.init(8);
            fence_barrier_init();
        }
        sync_threads();

        let mut at = settle::<CAUSAL, RAGGED>(2 * block_idx().x, tiles, units, heads, starts_q);
        let mut turn = 0;
        if warpgroup_idx() == 0 {
            lower_registers();
            if warp_idx() == 0 && elect_one() {
                let mut next_keys = key_ring.producer();
                let mut next_values = value_ring.producer();
                while at / 2 < units {
                    let stage = turn % STAGES;
                    free[stage].wait((turn / STAGES + 1) & 1);
                    loaded[stage].arrive_expect_tx(queries[stage].bytes());
                    let here = place::<CAUSAL>(at, tiles);
                    let of_q = sequence::<RAGGED>(starts_q, here[0] / heads, all_queries);
                    let of_k = sequence::<RAGGED>(starts_k, here[0] / heads, all_keys);
                    let start = of_k[0] + first_key::<CAUSAL>(here[1], of_q[1], of_k[1]);
                    let end = start + KEYS * blocks::<KEYS, CAUSAL>(here[1], of_q[1], of_k[1]);
                    let batch = if RAGGED { 0 } else { here[0] / heads };
                    let head = here[0] % heads;
                    q.load(queries[stage], [batch, head, of_q[0] + here[1], 0], loaded[stage]);
                    for first in (start..end).step_by(KEYS as usize) {
                        let slot = next_keys.acquire();
                        k.load(slot.0, [batch, head / group, first, 0], slot.barrier());
                        let slot = next_values.acquire();
                        v.load(slot.0, [batch, head / group, first, 0], slot.barrier());
                    }
                    turn += 1;
                    at = settle::<CAUSAL, RAGGED>(
                        following::<CAUSAL>(at, tiles),
                        tiles,
                        units,
                        heads,
                        starts_q,
                    );
                }
            }
        } else {
            raise_registers();
            // Inside, because ptxas else takes the register count before it for the whole kernel.
            if at / 2 < units {
                let me = warpgroup_idx() - 1;
                let thread = thread_idx().x % 128;
                let mut next_key = key_ring.consumer();
                let mut next_value = value_ring.consumer();

                let mut state = no_scores();
                let mut shrink = [1.0; 2];
                let mut here = place::<CAUSAL>(at, tiles);
                let mut of_q = sequence::<RAGGED>(starts_q, here[0] / heads, all_queries);
                let mut of_k = sequence::<RAGGED>(starts_k, here[0] / heads, all_keys);
                let mut row = here[1] + 64 * me;
                let mut seen = sight::<CAUSAL>(row, of_q[1], of_k[1]);
                let mut start = first_key::<CAUSAL>(here[1], of_q[1], of_k[1]);
                let mut last = blocks::<KEYS, CAUSAL>(here[1], of_q[1], of_k[1]);

                // The first scores. Each iteration computes the next ones beside a sum.
                loaded[0].wait(0);
                let mut scores = Accumulator::<f32, 64, KEYS>::zero();
                let key = next_key.wait();
                let done = scores.mma(queries[0].batch(0).band::<64>(me), key.0, key).wait();
                if elect_one() {
                    done.release();
                }
                mask::<KEYS, CAUSAL>(&mut scores, start, seen, of_k[1]);
                softmax::<KEYS, true, SHIFT>(&mut scores, &mut state, &mut shrink, scale);
                let mut weights = scores.pack::<T>();
                let mut out = Accumulator::<f32, 64, DEPTH>::zero();
                for i in unroll(0..out.len()) {
                    out[i] = 0.0;
                }
                let mut is_over = false;
                while !is_over {
                    for block in 1..last {
                        scores = Accumulator::zero();
                        let key = next_key.wait();
                        let value = next_value.wait();
                        let query = queries[turn % STAGES].batch(0).band::<64>(me);
                        let product = scores.mma(query, key.0, key); // Q · Kᵀ of this block ..
                        let sum = out.mma(weights, value.0.t(), value); // .. and P · V of the previous one
                        let done = product.wait();
                        if elect_one() {
                            done.release();
                        }
                        mask::<KEYS, CAUSAL>(&mut scores, start + block * KEYS, seen, of_k[1]);
                        let done = sum.wait();
                        if elect_one() {
                            done.release();
                        }
                        let rises =
                            softmax::<KEYS, false, SHIFT>(&mut scores, &mut state, &mut shrink, scale);
                        weights = scores.pack::<T>();
                        if rises {
                            for i in unroll(0..out.len()) {
                                out[i] *= shrink[out.row(i)];
                            }
                        }
                    }

                    // The tile's last sum, beside the first scores of the next tile, if any.
                    if elect_one() {
                        free[turn % STAGES].arrive();
                    }
                    let batch = if RAGGED { 0 } else { here[0] / heads };
                    let head = here[0] % heads;
                    let to = row;
                    // Computed again with a mask, since too few registers are left to keep it
                    // through the loop.
                    let of_o = if CAUSAL {
                        sequence::<RAGGED>(starts_q, here[0] / heads, all_queries)
                    } else {
                        of_q
                    };
                    let valid = of_k[1] - min(start + last * KEYS - KEYS, of_k[1]);
                    let mut share = [0.0; 2];
                    shares::<CAUSAL, SHIFT>(&mut state, &mut share, seen, of_k[1], head, scale);
                    if lse.len() > 0 {
                        let first =
                            (batch * heads + head) as u64 * all_queries as u64 + (of_o[0] + to) as u64;
                        note::<SHIFT>(lse, first, of_o[1] - min(to, of_o[1]), state, scale);
                    }
                    state = Softmax { is_far: state.is_far, ..no_scores() };
                    at = settle::<CAUSAL, RAGGED>(
                        following::<CAUSAL>(at, tiles),
                        tiles,
                        units,
                        heads,
                        starts_q,
                    );
                    is_over = at / 2 >= units;
                    let value = next_value.wait();
                    if RAGGED && valid < KEYS {
                        // Rows beyond belong to another sequence. Their weights are zero, but zero
                        // times infinity is not. Each warpgroup clears half of each row.
                        let each = DEPTH / 16; // vectors of 8 elements
                        for key in (valid + thread / each..KEYS).step_by((128 / each) as usize) {
                            let column = me * (DEPTH / 2) + thread % each * 8;
                            value.0.set_vec([0, 0, key, column], [cast::<T>(0.0f32); 8]);
                        }
                        fence_proxy_async();
                        named_barrier_sync(CLEARED, 256);
                    }
                    if is_over {
                        let done = out.mma(weights, value.0.t(), value).wait();
                        if elect_one() {
                            done.release();
                        }
                        // The loop ends here, but rustc cannot see that, and requires weights.
                        scores = Accumulator::zero();
                        weights = scores.pack::<T>();
                    } else {
                        here = place::<CAUSAL>(at, tiles);
                        of_q = sequence::<RAGGED>(starts_q, here[0] / heads, all_queries);
                        of_k = sequence::<RAGGED>(starts_k, here[0] / heads, all_keys);
                        row = here[1] + 64 * me;
                        seen = sight::<CAUSAL>(row, of_q[1], of_k[1]);
                        start = first_key::<CAUSAL>(here[1], of_q[1], of_k[1]);
                        last = blocks::<KEYS, CAUSAL>(here[1], of_q[1], of_k[1]);
                        turn += 1;
                        loaded[turn % STAGES].wait((turn / STAGES) & 1);
                        scores = Accumulator::zero();
                        let key = next_key.wait();
                        let query = queries[turn % STAGES].batch(0).band::<64>(me);
                        let product = scores.mma(query, key.0, key);
                        let sum = out.mma(weights, value.0.t(), value);
                        let done = product.wait();
                        if elect_one() {
                            done.release();
                        }
                        mask::<KEYS, CAUSAL>(&mut scores, start, seen, of_k[1]);
                        let done = sum.wait();
                        if elect_one() {
                            done.release();
                        }
                        softmax::<KEYS, true, SHIFT>(&mut scores, &mut state, &mut shrink, scale);
                        weights = scores.pack::<T>();
                    }

                    for i in unroll(0..out.len()) {
                        out[i] *= share[out.row(i)];
                    }
                    if RAGGED && to + 64 > of_o[1] {
                        let first = head as u64 * head_stride + of_o[0] as u64 * row_stride as u64;
                        store_rows::<T, DEPTH>(&out, rows, first, of_o[1], row_stride, to);
                    } else if to < of_o[1] {
                        for j in unroll(0..DEPTH / PIECE) {
                            if thread == 0 {
                                bulk_wait_group_read::<0>(); // the previous store has read the buffer
                            }
                            sync_warpgroup();
                            out.columns::<PIECE>(j).store(outs[me]);
                            fence_proxy_async();
                            sync_warpgroup();
                            if thread == 0 {
                                o.store([batch, head, of_o[0] + to, j * PIECE], outs[me]);
                                bulk_commit_group();
                            }
                        }
                    }
                    for i in unroll(0..out.len()) {
                        out[i] = 0.0;
                    }
                }
                if thread == 0 {
                    bulk_wait_group_read::<0>();
                }
            }
        }
    }
}
