//! Errors of attention over a cache.

use tma_runtime::Error;

use crate::workspace::write_too_small;

/// The reason why attention over a cache cannot be computed. The message begins with a code that
/// has a page in `docs/errors`.
#[derive(Debug)]
#[non_exhaustive]
pub enum CachedAttentionError {
    /// Heads of a depth for which no kernel is compiled.
    Depth {
        /// The innermost extent of `q`.
        depth: usize,
        /// The number of which it must be a multiple.
        multiple: usize,
    },

    /// Values that have more elements than keys, or for which no kernel is compiled.
    ValueDepth {
        /// The innermost extent of the values.
        depth: usize,
        /// The depth of keys.
        most: usize,
        /// The number of which it must be a multiple.
        multiple: usize,
    },

    /// A tensor whose shape does not match the others.
    Shape {
        /// The name of the argument.
        tensor: &'static str,
        /// The tensor's shape.
        found: Vec<usize>,
        /// The shape that matches the others.
        wanted: Vec<usize>,
    },

    /// The heads of queries are not a multiple of the heads of keys.
    Heads {
        /// Heads of `q`.
        queries: usize,
        /// Heads of the cache.
        keys: usize,
    },

    /// Extents that exceed the range of coordinates.
    TooLarge {
        /// The shape of `q`.
        shape: [usize; 4],
        /// The greatest number of keys of a sequence.
        keys: usize,
    },

    /// A factor of scores that is not a positive, finite number.
    Factor {
        /// The name of the option.
        option: &'static str,
        /// The number.
        number: f32,
    },

    /// Pages of a number of rows for which there is no kernel.
    Page {
        /// The rows of a page.
        rows: usize,
        /// The least rows that a page can have: 32 of latents, and 16 of other keys.
        least: usize,
    },

    /// New heads of a depth that the kernel cannot write.
    NewDepth {
        /// The innermost extent of `k`.
        depth: usize,
    },

    /// A tensor of [`append`](super::append()) whose shape does not match the others.
    NewShape {
        /// The name of the argument.
        tensor: &'static str,
        /// The tensor's shape.
        found: Vec<usize>,
        /// The shape that matches the others.
        wanted: Vec<usize>,
    },

    /// New keys and values, or a cache, that exceed the range of indices.
    TooManyNew {
        /// The shape of `k`.
        shape: [usize; 4],
        /// The shape of the cache.
        cache: [usize; 4],
    },

    /// A number of rotated columns that the kernel cannot rotate.
    Rotated {
        /// The rotated columns: twice the innermost extent of `cos`.
        columns: usize,
        /// The depth of the heads.
        depth: usize,
        /// The number of which the columns must be a multiple.
        multiple: usize,
    },

    /// Rows that do not begin at multiples of 16 bytes, or whose elements are not adjacent.
    Rows {
        /// The name of the argument.
        tensor: &'static str,
        /// The distances between sequences, heads, queries and elements, or between positions and
        /// elements.
        strides: Vec<usize>,
    },

    /// A workspace in the caller's memory is too small.
    Workspace {
        /// The bytes that it has.
        found: usize,
        /// The bytes that the call needs.
        wanted: usize,
    },

    /// The launch failed.
    Runtime(Error),
}

impl CachedAttentionError {
    /// Returns the error's code, such as `TMA0568`, which is also the name of its page in
    /// `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Depth { .. } | Self::ValueDepth { .. } | Self::NewDepth { .. } => "TMA0550",
            Self::Shape { .. }
            | Self::Heads { .. }
            | Self::TooLarge { .. }
            | Self::NewShape { .. }
            | Self::TooManyNew { .. }
            | Self::Rotated { .. } => "TMA0551",
            Self::Factor { .. } => "TMA0552",
            Self::Page { .. } => "TMA0568",
            Self::Rows { .. } => "TMA0569",
            Self::Workspace { .. } => "TMA0570",
            Self::Runtime(error) => error.code(),
        }
    }
}

impl std::fmt::Display for CachedAttentionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code();
        match self {
            Self::Depth { depth, multiple } => write!(
                f,
                "{code}: heads of a cache must have at most 256 elements, a multiple of {multiple}: those of `q` \
                 have {depth}; pad the innermost dimension of all tensors with zeros to such a multiple, and pass \
                 the scale of the unpadded depth"
            ),
            Self::ValueDepth { depth, most, multiple } => write!(
                f,
                "{code}: values must have at most as many elements as keys, {most}, and a multiple of \
                 {multiple}: those of `v` have {depth}; pad `v` with zeros to such a multiple, or `q` and `k` if \
                 it has more, and pass the scale of the unpadded depth"
            ),
            Self::Shape { tensor, found, wanted } => write!(
                f,
                "{code}: `q` and `o` must be batch x heads x queries x depth, and the cache batch x heads x keys \
                 x depth, or pages x heads x rows x depth with a `table` of batch x pages: `{tensor}` is \
                 {found:?}, but must be {wanted:?}; pass a view of that shape"
            ),
            Self::Heads { queries, keys } => write!(
                f,
                "{code}: the heads of `q` must be a multiple of those of the cache: {queries} is not a multiple \
                 of {keys}; pass 1 head of keys and values, or a divisor of {queries}"
            ),
            Self::TooLarge { shape, keys } => write!(
                f,
                "{code}: there must be at most 4096 sequences, or 2048 with page indices, of fewer than 2^31 keys and queries together, with \
                 fewer than 2^30 rows of `o` in all: `q` is {shape:?}, and a sequence has up to {keys} keys; \
                 split the batch"
            ),
            Self::Factor { option, number } => write!(
                f,
                "{code}: `{option}` must be above 0 and below 2.3e38: it is {number}; negate `q` for a negative \
                 scale, or pass `None` for 1 / sqrt(depth) and no cap"
            ),
            Self::Page { rows, least } => write!(
                f,
                "{code}: pages must have {}32, 64, 128 or 256 rows: these have {rows}; allocate the cache in \
                 pages of such a size, or view pages that follow each other as one",
                if *least < 32 { "16, " } else { "" }
            ),
            Self::NewDepth { depth } => write!(
                f,
                "{code}: new heads must have at most 256 elements, a multiple of 8: those of `k` have {depth}; pad \
                 the innermost dimension of all tensors with zeros to such a multiple"
            ),
            Self::NewShape { tensor, found, wanted } => write!(
                f,
                "{code}: `k` and `v` must be batch x heads x tokens x depth, and the cache batch x heads x keys x \
                 depth, or pages x heads x rows x depth with a `table` of batch x pages: `{tensor}` is {found:?}, \
                 but must be {wanted:?}; pass a view of that shape"
            ),
            Self::TooManyNew { shape, cache } => write!(
                f,
                "{code}: extents, the keys of a sequence, and the new elements of keys, values and queries divided \
                 by 8 must be below 2^31: `k` is {shape:?}, and the cache is {cache:?}; split the batch or the tokens"
            ),
            Self::Rotated { columns, depth, multiple } => write!(
                f,
                "{code}: the rotated columns must be a multiple of {multiple}, and at most the depth, which is \
                 {depth}: `cos` has half of {columns} columns; pass cosines of positions x half of such a number"
            ),
            Self::Rows { tensor, strides } => write!(
                f,
                "{code}: rows must be contiguous and begin at multiples of 16 bytes: `{tensor}` has the strides \
                 {strides:?}, in elements; copy it to a tensor of its own, or pad its rows to a multiple of 8 \
                 elements"
            ),
            &Self::Workspace { found, wanted } => write_too_small(f, code, found, wanted),
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CachedAttentionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Runtime(error) => error.source(), // the message already shows this one
            Self::Depth { .. }
            | Self::ValueDepth { .. }
            | Self::Shape { .. }
            | Self::Heads { .. }
            | Self::TooLarge { .. }
            | Self::Factor { .. }
            | Self::Page { .. }
            | Self::NewDepth { .. }
            | Self::NewShape { .. }
            | Self::TooManyNew { .. }
            | Self::Rotated { .. }
            | Self::Rows { .. }
            | Self::Workspace { .. } => None,
        }
    }
}

impl From<Error> for CachedAttentionError {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_names_code_rule_finding_and_remedy() {
        let errors = [
            CachedAttentionError::Depth { depth: 100, multiple: 8 },
            CachedAttentionError::ValueDepth { depth: 128, most: 64, multiple: 8 },
            CachedAttentionError::Shape { tensor: "table", found: vec![3, 4], wanted: vec![2, 4] },
            CachedAttentionError::Heads { queries: 6, keys: 4 },
            CachedAttentionError::TooLarge { shape: [1, 1, 1, 64], keys: 1 << 31 },
            CachedAttentionError::Factor { option: "scale", number: -0.125 },
            CachedAttentionError::Page { rows: 48, least: 16 },
            CachedAttentionError::Page { rows: 16, least: 32 },
            CachedAttentionError::NewDepth { depth: 100 },
            CachedAttentionError::NewShape { tensor: "counts", found: vec![3], wanted: vec![2] },
            CachedAttentionError::TooManyNew { shape: [1, 1, 1 << 31, 64], cache: [1, 1, 16, 64] },
            CachedAttentionError::Rotated { columns: 24, depth: 96, multiple: 16 },
            CachedAttentionError::Rows { tensor: "q", strides: vec![640, 80, 20, 1] },
            CachedAttentionError::Workspace { found: 4096, wanted: 25_216 },
        ];
        let text = errors.map(|error| format!("{error}\n")).join("\n");
        assert_eq!(text, include_str!("messages.txt"));
    }
}
