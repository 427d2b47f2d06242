//! Errors of collectives.

use tma_runtime::Error;

/// The reason why a collective cannot be queued. The message begins with a code that has a page in
/// `docs/errors`.
#[derive(Debug)]
#[non_exhaustive]
pub enum CollectiveError {
    /// A tensor that does not fit the number of ranks, or the tensors of other ranks.
    Shape {
        /// The name of the argument.
        tensor: &'static str,
        /// The rank whose tensor it is.
        rank: usize,
        /// The tensor's shape.
        found: Vec<usize>,
        /// The elements that it must have, and why.
        wanted: String,
    },

    /// A workspace that is too small.
    Workspace {
        /// The bytes that it has on each rank.
        found: usize,
        /// The bytes that the call needs.
        wanted: usize,
    },

    /// The launch failed.
    Runtime(Error),
}

impl CollectiveError {
    /// Returns the error's code, such as `TMA0579`, which is also the name of its page in
    /// `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Shape { .. } => "TMA0579",
            Self::Workspace { .. } => "TMA0570",
            Self::Runtime(error) => error.code(),
        }
    }
}

impl std::fmt::Display for CollectiveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code();
        match self {
            Self::Shape { tensor, rank, found, wanted } => write!(
                f,
                "{code}: the tensors of a collective must match: `{tensor}` of rank {rank} is {found:?}, but must \
                 have {wanted}; pass a view of that shape"
            ),
            Self::Workspace { found, wanted } => write!(
                f,
                "{code}: the workspace of a collective does not grow: it has {found} bytes on each rank, but this \
                 call needs {wanted}; pass at least that many to `from_raw`, or leave the method to the call"
            ),
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CollectiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Runtime(error) => error.source(), // the message already shows this one
            Self::Shape { .. } | Self::Workspace { .. } => None,
        }
    }
}

impl From<Error> for CollectiveError {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_names_code_rule_finding_and_remedy() {
        let wanted = "12 elements: those of all 3 ranks' `part`".to_owned();
        let shape = CollectiveError::Shape { tensor: "all", rank: 1, found: vec![2, 4], wanted };
        assert_eq!(
            shape.to_string(),
            "TMA0579: the tensors of a collective must match: `all` of rank 1 is [2, 4], but must have 12 \
             elements: those of all 3 ranks' `part`; pass a view of that shape"
        );
        assert_eq!(
            CollectiveError::Workspace { found: 4096, wanted: 9216 }.to_string(),
            "TMA0570: the workspace of a collective does not grow: it has 4096 bytes on each rank, but this call \
             needs 9216; pass at least that many to `from_raw`, or leave the method to the call"
        );
    }
}
