//! The kernels with windows, soft caps, sequences of several lengths, and any depth, which are
//! parameters of a launch.

use tma_runtime::tma_module;

/// [`backward`](super::kernel::backward) with run-time masks. It is made from the instances with a
/// causal mask, whose blocks add to the gradients of queries in the order that suits masks.
#[tma_module(from = crate::attention::backward::kernel::backward, only = ["*_causal"])]
pub mod kernel {
    use crate::attention::softmax::online::first_row;

    /// Returns the sequence, of at most `longest` queries and `longest_keys` keys: the counters of no
    /// more queries were cleared, and no more keys have blocks. With `starts_q`, sequences follow each
    /// other along the tensors, from `starts_q` and `starts_k` on, and a row of exponents has `of_row`
    /// blocks of queries.
    #[tma_device]
    fn sequence<const QUERIES: u32>(
        head: u32,
        heads: u32,
        group: u32,
        queries: u32,
        keys: u32,
        starts_q: Global<u32>,
        starts_k: Global<u32>,
        longest: u32,
        longest_keys: u32,
        of_row: u32,
    ) -> Sequence {
        let mut here = of_batch::<QUERIES>(head, heads, group, queries, keys);
        if starts_q.len() > 0 {
            let index = head / heads;
            here.batch = 0;
            here.first_query = starts_q.get(index);
            here.queries = max(starts_q.get(index + 1), here.first_query) - here.first_query;
            here.first_key = starts_k.get(index);
            here.keys = max(starts_k.get(index + 1), here.first_key) - here.first_key;
            here.row = head % heads * group;
            here.before = here.first_query / QUERIES + index;
            here.of_row = of_row;
        }
        // Not within the condition: ptxas would then move 30 registers to local memory.
        here.queries = min(here.queries, longest);
        here.keys = min(here.keys, longest_keys);
        here
    }

    /// Returns whether sequences follow each other along the tensors.
    #[tma_device]
    fn is_packed(packed: bool) -> bool {
        packed
    }

    /// Returns the number of columns of the tensors.
    #[tma_device]
    fn columns<const DEPTH: u32>(depth: u32) -> u32 {
        depth
    }

    /// Replaces each score by the hyperbolic tangent of its product with `cap`, if that is above 0.
    #[tma_device]
    fn limit<const QUERIES: u32>(scores: &mut Accumulator<f32, 64, QUERIES>, cap: f32) {
        if cap > 0.0 {
            for i in unroll(0..scores.len()) {
                scores[i] = tanh(scores[i] * cap);
            }
        }
    }

    /// Computes the gradients of scores, before the limit, if they are `limited`. The derivative of
    /// the limit is 1 - t², where t is the hyperbolic tangent. The weight is
    /// `exp2(t * scale - exponent)`, so that t follows from it: keeping t would take twice as many
    /// registers.
    #[tma_device]
    fn differentiate<const QUERIES: u32>(
        weights: &Accumulator<f32, 64, QUERIES>,
        products: &Accumulator<f32, 64, QUERIES>,
        gradients: &mut Accumulator<f32, 64, QUERIES>,
        deltas: Tile<f32, Shape2<1, QUERIES>>,
        exponents: Tile<f32, Shape2<1, QUERIES>>,
        scale: f32,
        limited: bool,
    ) {
        let inverse = recip(scale);
        for j in unroll(0..products.len() / 4) {
            let column = products.at(4 * j)[1];
            let delta = deltas.get_vec::<2>([0, column]);
            for i in unroll(0..4usize) {
                let at = 4 * j + i;
                gradients[at] = weights[at] * (products[at] - delta[i % 2]);
            }
            if limited {
                let exponent = exponents.get_vec::<2>([0, column]);
                for i in unroll(0..4usize) {
                    let at = 4 * j + i;
                    let tangent = (log2(weights[at]) + exponent[i % 2]) * inverse;
                    // A weight of 0 has no logarithm, and its gradient is 0 as well.
                    gradients[at] *= if weights[at] > 0.0 { fma(-tangent, tangent, 1.0) } else { 0.0 };
                }
            }
        }
    }

    /// Returns the window.
    #[tma_device]
    fn window(left: u32, right: u32) -> Window {
        Window { left, right }
    }

    /// Returns the blocks of queries that see a key of the block that begins at `first_key`.
    #[tma_device]
    fn seeing<const QUERIES: u32, const CAUSAL: bool>(
        first_key: u32,
        queries: u32,
        keys: u32,
        window: Window,
    ) -> Blocks {
        // A query's position is its index and this.
        let position = keys as i64 - queries as i64;
        let last_key = min(first_key + KEYS, keys) as i64 - 1;
        let first = max(first_key as i64 - window.right as i64 - position, 0);
        let end = min(last_key + window.left as i64 - position + 1, queries as i64);
        let mut blocks = Blocks { first: 0, count: 0 };
        if first_key < keys && first < end {
            blocks.first = first as u32 / QUERIES;
            blocks.count = (end as u32).div_ceil(QUERIES) - blocks.first;
        }
        blocks
    }

    /// Returns how many blocks of keys add before the block `of_keys` does: those after it that one
    /// of the queries sees.
    #[tma_device]
    fn turn<const QUERIES: u32, const CAUSAL: bool>(
        block: u32,
        of_keys: u32,
        queries: u32,
        keys: u32,
        window: Window,
    ) -> u32 {
        let last_query = min((block + 1) * QUERIES, queries) as i64 - 1;
        let position = last_query + keys as i64 - queries as i64;
        let last_key = min(position + window.right as i64, keys as i64 - 1);
        last_key as u32 / KEYS - of_keys
    }

    /// Clears the weights of keys that a query does not see, of which there may be none.
    #[tma_device]
    fn mask<const QUERIES: u32, const CAUSAL: bool>(
        weights: &mut Accumulator<f32, 64, QUERIES>,
        of: Part,
        window: Window,
    ) {
        let own = weights.at(0)[1];
        // The position of the first query.
        let position = (of.first_query + of.keys) as i64 - of.queries as i64;
        let sees_first = position + QUERIES as i64 - 1 - window.left as i64 <= of.first_key as i64;
        let sees_last = position + window.right as i64 >= (of.first_key + 63) as i64;
        if of.first_key + 64 > of.keys || !sees_first || !sees_last {
            // Columns, which are queries, are compared as constants: offsets from the thread's first.
            let mut first_seeing = [0; 2];
            let mut end_seeing = [0; 2];
            for r in unroll(0..2usize) {
                let key = of.first_key + first_row() + 8 * r as u32;
                let ahead = key as i64 - position - own as i64;
                let first = clamp(ahead - window.right as i64, 0, QUERIES as i64) as i32;
                first_seeing[r] = if key < of.keys { first } else { QUERIES as i32 };
                end_seeing[r] = clamp(ahead + window.left as i64 + 1, 0, QUERIES as i64) as i32;
            }
            for i in unroll(0..weights.len()) {
                let column = (weights.at(i)[1] - own) as i32;
                if column < first_seeing[weights.row(i)] || column >= end_seeing[weights.row(i)] {
                    weights[i] = 0.0;
                }
            }
        }
    }
}

/// The kernels over rows of queries of [`queries`](super::rows::queries).
#[tma_module(from = crate::attention::backward::rows::queries)]
pub mod rows {
    /// Returns the rows of a head of a sequence. With `starts`, sequences follow each other along the
    /// tensors from there on, and each begins a block of queries of its own.
    #[tma_device]
    fn of_head<const QUERIES: u32>(
        index: u32,
        heads: u32,
        queries: u32,
        padded: u32,
        starts: Global<u32>,
    ) -> OfHead {
        let mut here = of_batch(index, heads, queries, padded);
        if starts.len() > 0 {
            let sequence = index / heads;
            here.batch = 0;
            here.first_query = starts.get(sequence);
            here.queries = max(starts.get(sequence + 1), here.first_query) - here.first_query;
            let block = here.first_query / QUERIES + sequence;
            here.first_row = here.head as u64 * padded as u64 + (block * QUERIES) as u64;
        }
        here
    }

    /// Returns the number of columns of the tensors.
    #[tma_device]
    fn columns<const DEPTH: u32>(depth: u32) -> u32 {
        depth
    }
}
