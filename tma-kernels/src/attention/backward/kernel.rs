//! The kernel that multiplies. `docs/attention.md` explains it step by step.

use tma_runtime::tma_module;

/// Gradients of keys and values, and sums of those of queries.
#[tma_module]
pub mod backward {
    use tma_runtime::prelude::*;

    use crate::attention::kernel::forward::first_row;

    /// Keys per block: 64 for each of the two warpgroups that multiply.
    const KEYS: u32 = 128;

    /// The named barrier at which both warpgroups have written their gradients of scores.
    const WRITTEN: u32 = 1;

    /// Returns the first block of queries in which a query sees the key `first_key` or one after it,
    /// of `blocks`: with a causal mask, query `i` sees the keys up to `i + keys - queries`.
    #[tma_device]
    fn first_block<const QUERIES: u32, const CAUSAL: bool>(
        first_key: u32,
        queries: u32,
        keys: u32,
        blocks: u32,
    ) -> u32 {
        if CAUSAL {
            min(max((first_key + queries) as i32 - keys as i32, 0) as u32 / QUERIES, blocks)
        } else {
            0
        }
    }

    /// Returns whether a query from `first_query` on does not see one of the 64 keys from `first_key`
    /// on.
    #[tma_device]
    fn is_hidden<const CAUSAL: bool>(first_key: u32, first_query: u32, queries: u32, keys: u32) -> bool {
        first_key + 64 > keys || CAUSAL && first_key + 63 + queries > first_query + keys
    }

    /// Clears the weights of keys that a query does not see.
    #[tma_device]
    fn hide<const QUERIES: u32, const CAUSAL: bool>(
        weights: &mut Accumulator<f32, 64, QUERIES>,
        first_key: u32,
        first_query: u32,
        queries: u32,
        keys: u32,
    ) {
        // Columns, which are queries, are compared as constants: offsets from the thread's first one.
        let own = weights.at(0)[1];
        let mut first_seeing = Rows::<i32, 64>::filled(0);
        for r in unroll(0..first_seeing.len()) {
            let key = first_key + first_row() + 8 * r as u32;
            if CAUSAL {
                first_seeing[r] = (key + queries) as i32 - (keys + first_query + own) as i32;
            }
            if key >= keys {
                first_seeing[r] = QUERIES as i32;
            }
        }
        for i in unroll(0..weights.len()) {
            if ((weights.at(i)[1] - own) as i32) < first_seeing[weights.row(i)] {
                weights[i] = 0.0;
            }
        }
    }

    /// Computes the weights of scores, whose rows are keys and whose columns are queries.
    #[tma_device]
    fn weigh<const QUERIES: u32>(
        scores: &Accumulator<f32, 64, QUERIES>,
        weights: &mut Accumulator<f32, 64, QUERIES>,
        exponents: Tile<f32, Shape2<1, QUERIES>>,
        scale: f32,
    ) {
        for j in unroll(0..scores.len() / 4) {
            let exponent = exponents.get_vec::<2>([0, scores.at(4 * j)[1]]);
            for i in unroll(0..4usize) {
                let at = 4 * j + i;
                weights[at] = exp2_ftz(fma(scores[at], scale, -exponent[i % 2]));
            }
        }
    }

    /// Computes the gradients of scores.
    #[tma_device]
    fn differentiate<const QUERIES: u32>(
        weights: &Accumulator<f32, 64, QUERIES>,
        products: &Accumulator<f32, 64, QUERIES>,
        gradients: &mut Accumulator<f32, 64, QUERIES>,
        deltas: Tile<f32, Shape2<1, QUERIES>>,
    ) {
        for j in unroll(0..products.len() / 4) {
            let delta = deltas.get_vec::<2>([0, products.at(4 * j)[1]]);
            for i in unroll(0..4usize) {
                let at = 4 * j + i;
                gradients[at] = weights[at] * (products[at] - delta[i % 2]);
            }
        }
    }

    /// Adds a warp's part of a sum to the 1024 elements of `all` from `at` on, through `part`.
    #[tma_device]
    fn add_up(sum: &Accumulator<f32, 64, 64>, part: SharedArray<f32, 1024>, all: Global<f32>, at: u64) {
        if lane_idx() == 0 {
            bulk_wait_group_read::<0>(); // the previous reduction has read the part
        }
        sync_warp();
        for j in unroll(0..8u32) {
            let i = 4 * j as usize;
            part.set_vec(j * 128 + lane_idx() * 4, [sum[i], sum[i + 1], sum[i + 2], sum[i + 3]]);
        }
        fence_proxy_async();
        sync_warp();
        if lane_idx() == 0 {
            all.bulk_reduce_add(at, part, 0, 1024);
            bulk_commit_group();
        }
    }

    /// Computes the gradients of 128 keys and values, and what these contribute to the gradients of
    /// queries. One warpgroup loads, and two multiply, with 64 keys each. Scores and what follows
    /// from them are transposed: a row is a key, so that they are left operands of the products
    /// with queries and results.
    ///
    /// Tensors are batch × heads × sequence × `DEPTH`; `group` heads of queries share one of keys
    /// and values, whose gradients add up over all of them. The sums of gradients of queries have
    /// the order that `queries::round` expects.
    ///
    /// With a causal mask the first keys of a head take the longest. So `together` heads of keys,
    /// whose blocks run at the same time, begin with all of their first keys.
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
        key_gradient: Global<T>,
        value_gradient: Global<T>,
        queries: u32,
        keys: u32,
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
        let parts: Stages<SharedArray<f32, 1024>, 8> = shared();
        if thread_idx().x == 0 {
            loaded.init(1);
            query_ring.init(8); // one arrival per multiplying warp
            result_ring.init(8);
            fence_barrier_init();
        }
        sync_threads();
        grid_dependency_wait();

        let of_set = together * key_blocks;
        let heads_before = block_idx().x / of_set * together;
        let in_set = min(together, grid_dim().x / key_blocks - heads_before); // the last set has fewer
        let head = heads_before + block_idx().x % of_set % in_set; // of keys, counted through the batch
        let first_key = block_idx().x % of_set / in_set * KEYS;
        let blocks = queries.div_ceil(QUERIES);
        let first = first_block::<QUERIES, CAUSAL>(first_key, queries, keys, blocks);
        let rounds = (blocks - first) * group;
        if warpgroup_idx() == 0 {
            setmaxnreg_dec::<24>();
            if warp_idx() == 0 && elect_one() && rounds > 0 {
                let mut next_query = query_ring.producer();
                let mut next_result = result_ring.producer();
                let batch = head / heads;
                loaded.arrive_expect_tx(key.bytes() + value.bytes());
                k.load(key, [batch, head % heads, first_key, 0], loaded);
                v.load(value, [batch, head % heads, first_key, 0], loaded);
                let mut of_group = 0u32;
                let mut block = first;
                for _ in 0..rounds {
                    let query_head = head % heads * group + of_group;
                    let row = head * group + of_group;
                    let slot = next_query.acquire();
                    q.load(slot.0, [batch, query_head, block * QUERIES, 0], slot.barrier());
                    exponents.load(slot.1, [row, block * QUERIES], slot.barrier());
                    let slot = next_result.acquire();
                    result_gradient.load(slot.0, [batch, query_head, block * QUERIES, 0], slot.barrier());
                    deltas.load(slot.1, [row, block * QUERIES], slot.barrier());
                    block += 1;
                    if block == blocks {
                        block = first;
                        of_group += 1;
                    }
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
                let warp = warp_idx() - 4;
                let mut round = 0u32;
                let mut block = first;
                let mut at = head * group * blocks + first; // the block, counted through all heads
                loaded.wait(0);
                let mut query = next_query.wait();
                let mut scores = Accumulator::<f32, 64, QUERIES>::zero();
                scores.mma(key.batch(0).band::<64>(me), query.0.batch(0), ()).wait();
                loop {
                    // V · dOᵀ, beside the weights, and Pᵀ · dO, beside the gradients of scores.
                    let result = next_result.wait();
                    let mut products = Accumulator::<f32, 64, QUERIES>::zero();
                    let product = products.mma(value.batch(0).band::<64>(me), result.0.batch(0), ());
                    let mut weights = Accumulator::<f32, 64, QUERIES>::zero();
                    weigh::<QUERIES>(&scores, &mut weights, query.1, scale_log2);
                    if is_hidden::<CAUSAL>(own_key, block * QUERIES, queries, keys) {
                        hide::<QUERIES, CAUSAL>(&mut weights, own_key, block * QUERIES, queries, keys);
                    }
                    let of_delta = result.1;
                    let packed = weights.pack::<T>();
                    let rounded = packed.unpack(); // half of the registers until they are used
                    let of_values = value_sums.mma(packed, result.0.batch(0).t(), result);
                    product.wait();
                    let mut gradients = Accumulator::<f32, 64, QUERIES>::zero();
                    differentiate::<QUERIES>(&rounded, &products, &mut gradients, of_delta);

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
                    let to = (at as u64 * 8 + warp as u64) * 1024;
                    at += 1;
                    block += 1;
                    if block == blocks {
                        block = first;
                        at += first;
                    }
                    round += 1;
                    if round == rounds {
                        let done = of_values.wait();
                        if elect_one() {
                            done.release();
                        }
                        of_queries.wait();
                        add_up(&sum, parts[warp], query_sums, to);
                        let done = of_keys.wait();
                        if elect_one() {
                            done.release();
                        }
                        break;
                    }
                    let done = of_values.wait();
                    if elect_one() {
                        done.release();
                    }
                    of_queries.wait();
                    add_up(&sum, parts[warp], query_sums, to);
                    // The next scores only start here, so that they can have the registers of the
                    // sum. The tensor cores are still busy with the keys' gradients.
                    let next = next_query.wait();
                    scores = Accumulator::zero();
                    let score = scores.mma(key.batch(0).band::<64>(me), next.0.batch(0), ());
                    let done = of_keys.wait();
                    if elect_one() {
                        done.release();
                    }
                    score.wait();
                    query = next;
                }
                grid_dependency_launch();
                if lane_idx() == 0 {
                    bulk_wait_group_read::<0>();
                }
            }
            for i in unroll(0..key_sums.len()) {
                key_sums[i] *= scale;
            }
            let (batch, of_batch) = (head / heads, head % heads);
            let at = batch as u64 * key_batch + of_batch as u64 * key_head;
            key_sums.store_to(key_gradient.matrix(at, [keys, DEPTH], key_row), [own_key, 0]);
            let at = batch as u64 * value_batch + of_batch as u64 * value_head;
            value_sums.store_to(value_gradient.matrix(at, [keys, DEPTH], value_row), [own_key, 0]);
        }
    }
}
