//! Errors of attention.

use tma_runtime::Error;

use crate::workspace::write_too_small;

/// The reason why attention cannot be computed. The message begins with a code that has a page in
/// `docs/errors`.
#[derive(Debug)]
#[non_exhaustive]
pub enum AttentionError {
    /// Heads of a depth for which no kernel is compiled.
    Depth {
        /// The innermost extent of `q`.
        depth: usize,
    },

    /// Heads of a depth for which no kernel of the gradients is compiled.
    BackwardDepth {
        /// The innermost extent of `q`.
        depth: usize,
    },

    /// Values that have more elements than keys, or not a multiple of eight.
    ValueDepth {
        /// The innermost extent of `v`.
        depth: usize,
        /// The depth of keys.
        most: usize,
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
        /// Heads of `k`.
        keys: usize,
    },

    /// Extents that exceed the range of coordinates.
    TooLarge {
        /// Queries per head along the tensor.
        queries: usize,
        /// Keys per head along the tensor.
        keys: usize,
        /// Heads of `q`.
        heads: usize,
        /// Sequences, or the extent of the batch.
        sequences: usize,
    },

    /// A factor of scores that is not a positive, finite number.
    Factor {
        /// The name of the option.
        option: &'static str,
        /// The number.
        number: f32,
    },

    /// Cumulative lengths that do not match the tensors.
    Lengths {
        /// The outermost extent of the tensors.
        batch: usize,
        /// The numbers of starts of queries and of keys.
        starts: [usize; 2],
    },

    /// A tensor whose rows are not contiguous, or do not begin where threads can access them.
    Rows {
        /// The name of the argument.
        tensor: &'static str,
        /// The distances between sequences, heads, rows and elements.
        strides: Vec<usize>,
        /// The number of elements of which all but the last must be a multiple.
        multiple: usize,
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

impl AttentionError {
    /// Returns the error's code, such as `TMA0550`, which is also the name of its page in
    /// `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Depth { .. } | Self::BackwardDepth { .. } | Self::ValueDepth { .. } => "TMA0550",
            Self::Shape { .. } | Self::Heads { .. } | Self::TooLarge { .. } => "TMA0551",
            Self::Factor { .. } => "TMA0552",
            Self::Lengths { .. } => "TMA0553",
            Self::Rows { .. } => "TMA0569",
            Self::Workspace { .. } => "TMA0570",
            Self::Runtime(error) => error.code(),
        }
    }
}

impl std::fmt::Display for AttentionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code();
        match self {
            Self::Depth { depth } => {
                let instead = match depth {
                    0..=256 => {
                        "pad the innermost dimension of all tensors with zeros to such a multiple, and pass the \
                         scale of the unpadded depth"
                    }
                    _ => "reduce the depth to at most 256",
                };
                write!(
                    f,
                    "{code}: heads must have at most 256 elements, a multiple of 8: those of `q` have {depth}; \
                     {instead}"
                )
            }
            Self::ValueDepth { depth, most } => write!(
                f,
                "{code}: values must have at most as many elements as keys, {most}, and a multiple of 8: those \
                 of `v` have {depth}; pad `v` with zeros to such a multiple, or `q` and `k` if it has more, and \
                 pass the scale of the unpadded depth"
            ),
            Self::BackwardDepth { depth } => {
                let instead = match depth {
                    0..=128 => {
                        "pad the innermost dimension of all tensors with zeros to such a multiple, and pass the \
                         scale of the unpadded depth"
                    }
                    _ => "reduce the depth to at most 128",
                };
                write!(
                    f,
                    "{code}: heads must have at most 128 elements, a multiple of 8, to compute gradients: those \
                     of `q` have {depth}; {instead}"
                )
            }
            Self::Shape { tensor, found, wanted } => write!(
                f,
                "{code}: tensors must be batch x heads x sequence x depth, with `o` like `q` and `v` like \
                 `k`, but for the depth of `v` that `o` has, and each gradient like its tensor, `lse` batch x heads x queries, and `sinks` one number per head of \
                 `q`: `{tensor}` is {found:?}, but must be {wanted:?}; pass a \
                 view of that shape"
            ),
            Self::Heads { queries, keys } => write!(
                f,
                "{code}: the heads of `q` must be a multiple of those of `k` and `v`: {queries} is not a \
                 multiple of {keys}; pass 1 head of keys and values, or a divisor of {queries}"
            ),
            Self::TooLarge { queries, keys, heads, sequences } => write!(
                f,
                "{code}: queries, keys, and tiles of 128 queries in all heads of all sequences must be fewer \
                 than 2^31, and so must the queries of all heads to compute gradients: there are {queries} \
                 queries and {keys} keys, with {heads} heads and {sequences} sequences; split the batch"
            ),
            Self::Factor { option, number } => write!(
                f,
                "{code}: `{option}` must be above 0 and below 2.3e38: it is {number}; negate `q` for a negative \
                 scale, or pass `None` for 1 / sqrt(depth) and no cap"
            ),
            Self::Lengths { batch, starts: [of_queries, of_keys] } => write!(
                f,
                "{code}: sequences of different lengths need a batch of 1, and cumulative lengths of queries and \
                 of keys with one element more than there are sequences: the batch is {batch}, and the lengths \
                 have {of_queries} and {of_keys} elements; merge the batch into the sequence, and pass \
                 cumulative lengths of both"
            ),
            Self::Rows { tensor, strides, multiple: 1 } => write!(
                f,
                "{code}: rows must be contiguous, and less than 2^32 elements apart: `{tensor}` has the strides \
                 {strides:?}, in elements; copy it to a tensor of its own"
            ),
            Self::Rows { tensor, strides, multiple } => write!(
                f,
                "{code}: rows must be contiguous and begin at multiples of {} bytes: `{tensor}` has the strides \
                 {strides:?}, in elements; copy it to a tensor of its own, or pad its rows to a multiple of \
                 {multiple} elements",
                2 * multiple
            ),
            &Self::Workspace { found, wanted } => write_too_small(f, code, found, wanted),
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AttentionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Runtime(error) => error.source(), // the message already shows this one
            Self::Depth { .. }
            | Self::BackwardDepth { .. }
            | Self::ValueDepth { .. }
            | Self::Shape { .. }
            | Self::Heads { .. }
            | Self::TooLarge { .. }
            | Self::Factor { .. }
            | Self::Lengths { .. }
            | Self::Rows { .. }
            | Self::Workspace { .. } => None,
        }
    }
}

impl From<Error> for AttentionError {
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
            AttentionError::Depth { depth: 100 },
            AttentionError::Depth { depth: 512 },
            AttentionError::Shape { tensor: "v", found: vec![1, 4, 7, 64], wanted: vec![1, 4, 8, 64] },
            AttentionError::Heads { queries: 6, keys: 4 },
            AttentionError::TooLarge { queries: 1 << 31, keys: 8, heads: 1, sequences: 1 },
            AttentionError::Factor { option: "scale", number: -0.125 },
            AttentionError::Lengths { batch: 2, starts: [3, 4] },
            AttentionError::ValueDepth { depth: 128, most: 64 },
            AttentionError::BackwardDepth { depth: 100 },
            AttentionError::BackwardDepth { depth: 256 },
            AttentionError::Rows { tensor: "o", strides: vec![640, 80, 20, 1], multiple: 8 },
            AttentionError::Rows { tensor: "dk", strides: vec![2560, 1280, 1, 20], multiple: 1 },
            AttentionError::Workspace { found: 4096, wanted: 33_792 },
        ];
        let text = errors.map(|error| format!("{error}\n")).join("\n");
        assert_eq!(text, include_str!("messages.txt"));
        let codes = errors_of(&text);
        let expected = ["TMA0550", "TMA0550", "TMA0551", "TMA0551", "TMA0551", "TMA0552", "TMA0553"];
        assert_eq!(
            codes,
            [&expected[..], &["TMA0550", "TMA0550", "TMA0550", "TMA0569", "TMA0569", "TMA0570"]].concat()
        );
    }

    fn errors_of(text: &str) -> Vec<&str> {
        text.split("\n\n").filter_map(|message| Some(message.split_once(": ")?.0)).collect()
    }
}
