//! What attention is refused for.

use tma_runtime::Error;

/// Why attention is not computed. Its message begins with a code that has a page in `docs/errors`.
#[derive(Debug)]
#[non_exhaustive]
pub enum AttentionError {
    /// Heads of a depth that no kernel is compiled for.
    Depth {
        /// The innermost extent of `q`.
        depth: usize,
    },

    /// A tensor whose shape differs from what the others ask for.
    Shape {
        /// The argument.
        tensor: &'static str,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that the others ask for.
        wanted: Vec<usize>,
    },

    /// Heads of queries that cannot be shared out among those of keys.
    Heads {
        /// Heads of `q`.
        queries: usize,
        /// Heads of `k`.
        keys: usize,
    },

    /// More than coordinates can count.
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
    Scale {
        /// What was given.
        scale: f32,
    },

    /// Cumulative lengths that do not go with the tensors.
    Lengths {
        /// The outermost extent of the tensors.
        batch: usize,
        /// Starts of queries and of keys.
        starts: [usize; 2],
    },

    /// The launch failed.
    Runtime(Error),
}

impl AttentionError {
    /// The error's code, such as `TMA0550`: the name of its page in `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Depth { .. } => "TMA0550",
            Self::Shape { .. } | Self::Heads { .. } | Self::TooLarge { .. } => "TMA0551",
            Self::Scale { .. } => "TMA0552",
            Self::Lengths { .. } => "TMA0553",
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
                        "pad the innermost dimension of all tensors with zeros, and give the scale of the \
                         unpadded one"
                    }
                    _ => "split the depth",
                };
                write!(
                    f,
                    "{code}: a head has 64, 128 or 256 elements, but those of `q` have {depth}: {instead}"
                )
            }
            Self::Shape { tensor, found, wanted } => write!(
                f,
                "{code}: tensors are batch x heads x sequence x depth, `o` as `q`, `v` as `k`, and `lse` \
                 batch x heads x queries, but `{tensor}` is {found:?}: pass a view of {wanted:?}"
            ),
            Self::Heads { queries, keys } => write!(
                f,
                "{code}: the heads of `k` and `v` are shared by equally many heads of `q` each, but {queries} \
                 is no multiple of {keys}: pass 1 head of keys and values, or a divisor of {queries}"
            ),
            Self::TooLarge { queries, keys, heads, sequences } => write!(
                f,
                "{code}: queries, keys, and tiles of 128 queries in all heads of all sequences are fewer than \
                 2^31, but these are {queries} queries and {keys} keys in {heads} heads, of {sequences} \
                 sequences: split the batch"
            ),
            Self::Scale { scale } => write!(
                f,
                "{code}: the scale of scores is a number above zero and below 2.3e38, but this is {scale}: \
                 negate `q` for a negative one, or pass `None` for 1 / sqrt(depth)"
            ),
            Self::Lengths { batch, starts: [of_queries, of_keys] } => write!(
                f,
                "{code}: sequences of several lengths lie in a batch of 1, with as many starts of queries as \
                 of keys, one more than there are sequences, but the batch is {batch}, and there are \
                 {of_queries} starts of queries and {of_keys} of keys: merge the batch into the sequence, and \
                 pass cumulative lengths of both"
            ),
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AttentionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Runtime(error) => error.source(), // the message is this one's already
            Self::Depth { .. }
            | Self::Shape { .. }
            | Self::Heads { .. }
            | Self::TooLarge { .. }
            | Self::Scale { .. }
            | Self::Lengths { .. } => None,
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
            AttentionError::Depth { depth: 96 },
            AttentionError::Depth { depth: 512 },
            AttentionError::Shape { tensor: "v", found: vec![1, 4, 7, 64], wanted: vec![1, 4, 8, 64] },
            AttentionError::Heads { queries: 6, keys: 4 },
            AttentionError::TooLarge { queries: 1 << 31, keys: 8, heads: 1, sequences: 1 },
            AttentionError::Scale { scale: -0.125 },
            AttentionError::Lengths { batch: 2, starts: [3, 4] },
        ];
        let text = errors.map(|error| format!("{error}\n")).join("\n");
        assert_eq!(text, include_str!("messages.txt"));
        let codes = errors_of(&text);
        assert_eq!(codes, ["TMA0550", "TMA0550", "TMA0551", "TMA0551", "TMA0551", "TMA0552", "TMA0553"]);
    }

    fn errors_of(text: &str) -> Vec<&str> {
        text.split("\n\n").filter_map(|message| Some(message.split_once(": ")?.0)).collect()
    }
}
