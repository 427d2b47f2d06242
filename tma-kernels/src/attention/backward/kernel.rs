//! The kernel that multiplies. `docs/attention.md` explains it step by step.

use tma_runtime::tma_module;

/// Gradients of keys and values, and sums of those of queries.
#[tma_module]
pub mod backward {
    use tma_runtime::prelude::*;

    use crate::attention::backward::steps::round::{
        Part, SUMS, clear_after, hand_over, hide, is_hidden, weigh,
    };

    /// Keys per block: 64 for each of the two warpgroups that multiply.
    const KEYS: u32 = 128;

    /// The named barrier at which both warpgroups have written their gradients of scores.
    const WRITTEN: u32 = 1;

    /// A sequence of the batch, or one of several that follow each other along the tensors.
    #[derive(Clone, Copy)]
    pub struct Sequence {
        /// Its coordinate in the batch.
        pub batch: u32,
        /// Its first query along the tensors.
        pub first_query: u32,
        /// The number of its queries.
        pub queries: u32,
        /// Its first key along the tensors.
        pub first_key: u32,
        /// The number of its keys.
        pub keys: u32,
        /// The row of exponents of the first head of queries that share the head of keys.
        pub row: u32,
        /// The number of blocks of queries in this row before its own.
        pub before: u32,
        /// The number of blocks of queries in a row.
        pub of_row: u32,
    }

    /// Returns the sequence of the batch that has the head of keys `head`, counted through the batch.
    #[tma_device]
    fn of_batch<const QUERIES: u32>(head: u32, heads: u32, group: u32, queries: u32, keys: u32) -> Sequence {
        Sequence {
            batch: head / heads,
            first_query: 0,
            queries,
            first_key: 0,
            keys,
            row: head * group,
            before: 0,
            of_row: queries.div_ceil(QUERIES),
        }
    }

    /// Returns the sequence that has the head of keys `head`, counted through all sequences.
    #[tma_device(open)]
    fn sequence<const QUERIES: u32>(head: u32, heads: u32, group: u32, queries: u32, keys: u32) -> Sequence {
        of_batch::<QUERIES>(head, heads, group, queries, keys)
    }

    /// Returns whether rows after the end of a sequence may be those of another one.
    #[tma_device(open)]
    fn is_packed() -> bool {
        false
    }

    /// Returns the number of columns of the tensors.
    #[tma_device(open)]
    fn columns<const DEPTH: u32>() -> u32 {
        DEPTH
    }

    /// The numbers of keys before and after a query's position that it sees. Instances with a mask
    /// that is known when they are compiled do not use it.
    #[derive(Clone, Copy)]
    pub struct Window {
        /// Keys before the position, below 2^31.
        pub left: u32,
        /// Keys after it, below 2^31.
        pub right: u32,
    }

    /// Returns the window.
    #[tma_device(open)]
    fn window() -> Window {
        Window { left: 0, right: 0 }
    }

    /// Blocks of queries, which follow each other.
    #[derive(Clone, Copy)]
    pub struct Blocks {
        /// The first one.
        pub first: u32,
        /// Their number.
        pub count: u32,
    }

    /// Returns the blocks of queries that see a key of the block that begins at `first_key`: with a
    /// causal mask, query `i` sees the keys up to `i + keys - queries`.
    #[tma_device(open)]
    fn seeing<const QUERIES: u32, const CAUSAL: bool>(
        first_key: u32,
        queries: u32,
        keys: u32,
        _window: Window,
    ) -> Blocks {
        let blocks = queries.div_ceil(QUERIES);
        let mut first = 0;
        if CAUSAL {
            first = min(max((first_key + queries) as i32 - keys as i32, 0) as u32 / QUERIES, blocks);
        }
        Blocks { first, count: blocks - first }
    }

    /// Returns how many blocks of keys add to the gradients of a block of queries before the block
    /// `of_keys` does, if their order is fixed: that in which they start. With a mask the last block
    /// that the queries see is the first one, otherwise the first block.
    #[tma_device(open)]
    fn turn<const QUERIES: u32, const CAUSAL: bool>(
        block: u32,
        of_keys: u32,
        queries: u32,
        keys: u32,
        _window: Window,
    ) -> u32 {
        if CAUSAL {
            let end = min((block + 1) * QUERIES, queries) + keys - queries; // of what the last query sees
            (end - 1) / KEYS - of_keys
        } else {
            of_keys
        }
    }

    /// Clears the weights of keys that a query does not see, of which there may be none.
    #[tma_device(open)]
    fn mask<const QUERIES: u32, const CAUSAL: bool>(
        weights: &mut Accumulator<f32, 64, QUERIES>,
        of: Part,
        _window: Window,
    ) {
        if is_hidden::<CAUSAL>(of) {
            hide::<QUERIES, CAUSAL>(weights, of);
        }
    }

    /// Limits scores.
    #[tma_device(open)]
    fn limit<const QUERIES: u32>(_scores: &mut Accumulator<f32, 64, QUERIES>) {}

    /// Computes the weights of scores, which it limits.
    #[tma_device]
    fn weights_of<const QUERIES: u32, const CAUSAL: bool>(
        scores: &mut Accumulator<f32, 64, QUERIES>,
        weights: &mut Accumulator<f32, 64, QUERIES>,
        of: Part,
        exponents: Tile<f32, Shape2<1, QUERIES>>,
        window: Window,
        scale: f32,
    ) {
        limit::<QUERIES>(scores);
        weigh::<QUERIES>(scores, weights, exponents, scale);
        mask::<QUERIES, CAUSAL>(weights, of, window);
    }

    /// Computes the gradients of scores, before the limit.
    #[tma_device(open)]
    fn differentiate<const QUERIES: u32>(
        weights: &Accumulator<f32, 64, QUERIES>,
        products: &Accumulator<f32, 64, QUERIES>,
        gradients: &mut Accumulator<f32, 64, QUERIES>,
        deltas: Tile<f32, Shape2<1, QUERIES>>,
        _exponents: Tile<f32, Shape2<1, QUERIES>>,
        _scale: f32,
    ) {
        for j in unroll(0..products.len() / 4) {
            let delta = deltas.get_vec::<2>([0, products.at(4 * j)[1]]);
            for i in unroll(0..4usize) {
                let at = 4 * j + i;
                gradients[at] = weights[at] * (products[at] - delta[i % 2]);
            }
        }
    }

    /// Computes the gradients of 128 keys and values, and what these contribute to the gradients of
    /// queries. Two warpgroups multiply, with 64 keys each. Scores and what follows from them are
    /// transposed: a row is a key, so that they are left operands of the products with queries and
    /// results. In the third warpgroup one warp loads, and two take turns in adding to the gradients
    /// of queries.
    ///
    /// Tensors are batch × heads × sequence × `DEPTH`; `group` heads of queries share one of keys
    /// and values, whose gradients add up over all of them. The sums of gradients of queries have
    /// the order that `queries::round` expects. With `turns`, which counts the blocks of keys that
    /// have added to each block of sums, they add in the order of `turn`.
    ///
    /// `together` heads of keys, whose blocks run at the same time, begin with all of their first
    /// keys, which take the longest with a causal mask, or with their last ones, if these are the
    /// first to add.
    #[tma_kernel(threads = 384, unchecked, instances(
        T in [bf16, f16],
        (DEPTH, QUERIES) in [d64 = (64, 128), d128 = (128, 64)],
        let PANELS = 2 * (QUERIES / 64),
        CAUSAL in [full = false, causal = true],
    ))]
    pub fn gradients<T, const DEPTH: u32, const QUERIES: u32, const PANELS: u32, const CAUSAL: bool>(
        q: TensorMap<Tile<T, Shape4<1, 1, QUERIES, DEPTH>, Swizzle128>>,
        result_gradient: TensorMap<Tile<T, Shape4<1, 1, QUERIES, DEPTH>, Swizzle128>>,
        k: TensorMap<Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128>>,
        v: TensorMap<Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128>>,
        exponents: TensorMap<Tile<f32, Shape2<1, QUERIES>>>,
        deltas: TensorMap<Tile<f32, Shape2<1, QUERIES>>>,
        query_sums: Global<f32>,
        turns: Option<Global<u32>>,
        key_gradient: Global<T>,
        value_gradient: Global<T>,
        all_queries: u32,
        all_keys: u32,
        heads: u32,
        group: u32,
        key_blocks: u32,
        key_batch: u64,
        key_head: u64,
        key_row: u32,
        value_batch: u64,
        value_head: u64,
        value_row: u32,
        together: u32,
        scale: f32,
        scale_log2: f32,
    ) where
        T: TransposedElement + Multiply<T, f32> + Number,
        f32: PackAs<T> + StoreAs<T>,
    {
        let key: Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128> = shared();
        let value: Tile<T, Shape4<1, 1, KEYS, DEPTH>, Swizzle128> = shared();
        let loaded: Barrier = shared();
        let query_ring: Pipeline<
            (Tile<T, Shape4<1, 1, QUERIES, DEPTH>, Swizzle128>, Tile<f32, Shape2<1, QUERIES>>),
            2,
        > = shared();
        let result_ring: Pipeline<
            (Tile<T, Shape4<1, 1, QUERIES, DEPTH>, Swizzle128>, Tile<f32, Shape2<1, QUERIES>>),
            2,
        > = shared();
        let panels: Stages<Tile<T, Shape2<KEYS, 64>, Swizzle128>, PANELS> = shared();
        let sums: SharedArray<f32, SUMS> = shared();
        let written: Stages<Barrier, 2> = shared(); // in even and in odd rounds
        let added: Barrier = shared();
        if thread_idx().x == 0 {
            loaded.init(1);
            query_ring.init(8); // one arrival per multiplying warp
            result_ring.init(8);
            written[0].init(8);
            written[1].init(8);
            added.init(1);
            fence_barrier_init();
        }
        sync_threads();
        grid_dependency_wait();

        let of_set = together * key_blocks;
        let heads_before = block_idx().x / of_set * together;
        let in_set = min(together, grid_dim().x / key_blocks - heads_before); // the last set has fewer
        let head = heads_before + block_idx().x % of_set % in_set; // of keys, counted through the batch
        let ascending = block_idx().x % of_set / in_set;
        let of_keys = if CAUSAL && turns.is_some() { key_blocks - 1 - ascending } else { ascending };
        let first_key = of_keys * KEYS;
        let here = sequence::<QUERIES>(head, heads, group, all_queries, all_keys);
        let window = window();
        let blocks = seeing::<QUERIES, CAUSAL>(first_key, here.queries, here.keys, window);
        let end = blocks.first + blocks.count;
        let rounds = blocks.count * group;
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<24>();
            if warp_idx() == 0 && elect_one() && rounds > 0 {
                let mut next_query = query_ring.producer();
                let mut next_result = result_ring.producer();
                loaded.arrive_expect_tx(key.bytes() + value.bytes());
                k.load(key, [here.batch, head % heads, here.first_key + first_key, 0], loaded);
                v.load(value, [here.batch, head % heads, here.first_key + first_key, 0], loaded);
                for round in 0..rounds {
                    let block = blocks.first + round % blocks.count;
                    let query_head = head % heads * group + round / blocks.count;
                    let at = [here.batch, query_head, here.first_query + block * QUERIES, 0];
                    let of_rows = [here.row + round / blocks.count, (here.before + block) * QUERIES];
                    let slot = next_query.acquire();
                    q.load(slot.0, at, slot.barrier());
                    exponents.load(slot.1, of_rows, slot.barrier());
                    let slot = next_result.acquire();
                    result_gradient.load(slot.0, at, slot.barrier());
                    deltas.load(slot.1, of_rows, slot.barrier());
                }
            }
            if (warp_idx() == 1 || warp_idx() == 2) && elect_one() {
                // One warp waits until its reduction has ended while the other one starts the next.
                let mut round = warp_idx() - 1;
                while round < rounds {
                    let block = blocks.first + round % blocks.count;
                    let at = (here.row + round / blocks.count) * here.of_row + here.before + block;
                    if let Some(turns) = turns {
                        let own = turn::<QUERIES, CAUSAL>(block, of_keys, here.queries, here.keys, window);
                        while turns.load(at, Order::Acquire, Scope::Device) != own {}
                        fence_proxy_async_global();
                    }
                    written[round % 2].wait((round / 2) & 1);
                    query_sums.bulk_reduce_add(at as u64 * SUMS as u64, sums, 0, SUMS);
                    bulk_commit_group();
                    bulk_wait_group_read::<0>();
                    added.arrive();
                    if let Some(turns) = turns {
                        bulk_wait_group::<0>();
                        turns.fetch_add(at, 1, Order::Release, Scope::Device);
                    }
                    round += 2;
                }
            }
        } else {
            setmaxnreg_inc::<240>();
            let me = warpgroup_idx() - 1;
            let own_key = first_key + 64 * me;
            let mut key_sums = Accumulator::<f32, 64, DEPTH>::zero();
            let mut value_sums = Accumulator::<f32, 64, DEPTH>::zero();
            for i in unroll(0..key_sums.len()) {
                key_sums[i] = 0.0;
                value_sums[i] = 0.0;
            }
            if rounds > 0 {
                let mut next_query = query_ring.consumer();
                let mut next_result = result_ring.consumer();
                let mut round = 0u32;
                let mut block = blocks.first;
                loaded.wait(0);
                if is_packed() {
                    clear_after::<T, KEYS, DEPTH>(key, here.keys - first_key);
                    clear_after::<T, KEYS, DEPTH>(value, here.keys - first_key);
                }
                let mut query = next_query.wait();
                if is_packed() {
                    clear_after::<T, QUERIES, DEPTH>(query.0, here.queries - block * QUERIES);
                }
                let mut scores = Accumulator::<f32, 64, QUERIES>::zero();
                scores.mma(key.batch(0).band::<64>(me), query.0.batch(0), ()).wait();
                // The last round has a loop of its own: if the loop is left in its middle, ptxas
                // serialises all multiplications (C7514).
                'rounds: for of_rounds in unroll(0..2u32) {
                    let is_last = of_rounds == 1;
                    for _ in 0..if is_last { 1 } else { rounds - 1 } {
                        // V · dOᵀ, beside the weights, and Pᵀ · dO, beside the gradients of scores.
                        let result = next_result.wait();
                        if is_packed() {
                            clear_after::<T, QUERIES, DEPTH>(result.0, here.queries - block * QUERIES);
                        }
                        let part = Part {
                            first_key: own_key,
                            first_query: block * QUERIES,
                            queries: here.queries,
                            keys: here.keys,
                        };
                        let mut weights = Accumulator::<f32, 64, QUERIES>::zero();
                        if is_last {
                            // Beside the product, ptxas would move 30 registers to local memory.
                            weights_of::<QUERIES, CAUSAL>(
                                &mut scores,
                                &mut weights,
                                part,
                                query.1,
                                window,
                                scale_log2,
                            );
                        }
                        let mut products = Accumulator::<f32, 64, QUERIES>::zero();
                        let product = products.mma(value.batch(0).band::<64>(me), result.0.batch(0), ());
                        if !is_last {
                            weights_of::<QUERIES, CAUSAL>(
                                &mut scores,
                                &mut weights,
                                part,
                                query.1,
                                window,
                                scale_log2,
                            );
                        }
                        let of_delta = result.1;
                        let packed = weights.pack::<T>();
                        let rounded = packed.unpack(); // half of the registers until it is used
                        let of_values = value_sums.mma(packed, result.0.batch(0).t(), result);
                        product.wait();
                        let mut gradients = Accumulator::<f32, 64, QUERIES>::zero();
                        differentiate::<QUERIES>(
                            &rounded,
                            &products,
                            &mut gradients,
                            of_delta,
                            query.1,
                            scale_log2,
                        );

                        // Two sets of panels: the other warpgroup may still multiply those of the
                        // previous round.
                        let set = round % 2 * (QUERIES / 64);
                        for j in unroll(0..QUERIES / 64) {
                            gradients.columns::<64>(j).store(panels[set + j].band::<64>(me));
                        }
                        let packed = gradients.pack::<T>();
                        fence_proxy_async();
                        named_barrier_sync(WRITTEN, 256);

                        // dS · K of a half of the queries or columns, and dSᵀ · Q of the own keys.
                        let mut sum = Accumulator::<f32, 64, 64>::zero();
                        let of_queries = sum.mma(
                            panels[set + me % (QUERIES / 64)].t(),
                            key.batch(0).columns::<64>(me % (DEPTH / 64)).t(),
                            (),
                        );
                        let of_keys = key_sums.mma(packed, query.0.batch(0).t(), query);
                        let done = of_values.wait();
                        if elect_one() {
                            done.release();
                        }
                        of_queries.wait();
                        added.wait((round + 1) & 1);
                        hand_over(&sum, sums, written[round % 2]);
                        if is_last {
                            let done = of_keys.wait();
                            if elect_one() {
                                done.release();
                            }
                            break 'rounds;
                        } else {
                            // The next scores only start here, so that they can have the registers
                            // of the sum. The tensor cores are still busy with the keys' gradients.
                            round += 1;
                            block = if block + 1 < end { block + 1 } else { blocks.first };
                            let next = next_query.wait();
                            if is_packed() {
                                clear_after::<T, QUERIES, DEPTH>(next.0, here.queries - block * QUERIES);
                            }
                            scores = Accumulator::zero();
                            let score = scores.mma(key.batch(0).band::<64>(me), next.0.batch(0), ());
                            let done = of_keys.wait();
                            if elect_one() {
                                done.release();
                            }
                            score.wait();
                            query = next;
                        }
                    }
                }
                grid_dependency_launch();
            }
            for i in unroll(0..key_sums.len()) {
                key_sums[i] *= scale;
            }
            let (batch, of_batch) = (here.batch as u64, (head % heads) as u64);
            let bounds = [here.keys, columns::<DEPTH>()];
            let at = batch * key_batch + of_batch * key_head + here.first_key as u64 * key_row as u64;
            key_sums.store_to(key_gradient.matrix(at, bounds, key_row), [own_key, 0]);
            let at = batch * value_batch + of_batch * value_head + here.first_key as u64 * value_row as u64;
            value_sums.store_to(value_gradient.matrix(at, bounds, value_row), [own_key, 0]);
        }
    }
}
