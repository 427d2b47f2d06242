//! Rules for tuning.

/// Why nothing can be chosen. Displays the rule; [`Error`](super::Error) adds the code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// There is nothing to choose from.
    #[error("tuning chooses among candidates, but there are none for `{task}`: pass at least one")]
    NoCandidates {
        /// What is tuned.
        task: String,
    },

    /// Two candidates cannot be told apart.
    #[error(
        "the table and the cache tell candidates by kernel and options, but two of those for `{task}` \
         are `{name}`: leave one out, or let the debug output of the options differ"
    )]
    SameName {
        /// What is tuned.
        task: String,
        /// The name of both.
        name: String,
    },

    /// No candidate can be launched.
    #[error("none of the candidates for `{task}` can be launched; the first cannot because of {why}")]
    NoneRuns {
        /// What is tuned.
        task: String,
        /// The first candidate's error.
        why: String,
    },
}
