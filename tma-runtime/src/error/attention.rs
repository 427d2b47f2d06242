//! Rules for the tensors and options of attention, as `tma-kernels` computes it.

/// Why attention cannot be computed of some tensors. Displays the rule; [`Error`](super::Error)
/// adds the code.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AttentionError {
    /// Heads of a depth that no kernel is compiled for.
    #[error(
        "a head has 64, 128 or 256 elements, but those of `q` have {depth}: {}",
        match *.depth {
            0..=256 => "pad the innermost dimension of all tensors with zeros, and give the scale of the unpadded one",
            _ => "split the depth",
        }
    )]
    Depth {
        /// The innermost extent of `q`.
        depth: usize,
    },

    /// A tensor whose shape differs from what the others ask for.
    #[error(
        "tensors are batch x heads x sequence x depth, `o` as `q`, `v` as `k`, and `lse` batch x \
         heads x queries, but `{tensor}` is {found:?}: pass a view of {wanted:?}"
    )]
    Shape {
        /// The argument.
        tensor: &'static str,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that the others ask for.
        wanted: Vec<usize>,
    },

    /// Heads of queries that cannot be shared out among those of keys.
    #[error(
        "the heads of `k` and `v` are shared by equally many heads of `q` each, but {queries} is no \
         multiple of {keys}: pass 1 head of keys and values, or a divisor of {queries}"
    )]
    Heads {
        /// Heads of `q`.
        queries: usize,
        /// Heads of `k`.
        keys: usize,
    },

    /// More than coordinates can count.
    #[error(
        "queries, keys, and tiles of 128 queries in all heads of all sequences are fewer than 2^31, \
         but these are {queries} queries and {keys} keys in {heads} heads, of {sequences} \
         sequences: split the batch"
    )]
    TooLarge {
        /// Queries of a tensor's row.
        queries: usize,
        /// Keys of a tensor's row.
        keys: usize,
        /// Heads of `q`.
        heads: usize,
        /// Sequences, or the batch.
        sequences: usize,
    },

    /// A scale by which a softmax is not scaled.
    #[error(
        "the scale of scores is a number above zero, but this is {scale}: negate `q` for a negative \
         one, or pass `None` for 1 / sqrt(depth)"
    )]
    Scale {
        /// What was given.
        scale: f32,
    },

    /// Cumulative lengths that do not go with the tensors.
    #[error(
        "sequences of several lengths lie in a batch of 1, with as many starts of queries as of \
         keys, one more than there are sequences, and the longest has no more than all {queries} \
         queries, but the batch is {batch}, there are {} and {} starts, and the longest has \
         {longest}", .starts[0], .starts[1]
    )]
    Lengths {
        /// The outermost extent of the tensors.
        batch: usize,
        /// Starts of queries and of keys.
        starts: [usize; 2],
        /// Queries of the longest sequence, as given.
        longest: usize,
        /// Queries of all sequences.
        queries: usize,
    },
}
