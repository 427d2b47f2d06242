//! Rules for tuning.

/// The reason why no candidate can be picked. Displays the rule; [`Error`](super::Error) adds the
/// code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// There are no candidates.
    #[error("tuning needs at least one candidate: `{task}` has none; pass a kernel with its options")]
    NoCandidates {
        /// The name of the tuning task.
        task: String,
    },

    /// Two candidates have the same name.
    #[error(
        "tuning candidates need distinct names, which are kernel and options: two candidates for `{task}` \
         are `{name}`; remove one, or make the debug output of their options differ"
    )]
    SameName {
        /// The name of the tuning task.
        task: String,
        /// The name of both candidates.
        name: String,
    },

    /// No candidate can be launched.
    #[error("no candidate for `{task}` can be launched: the first one fails with {why}")]
    NoneRuns {
        /// The name of the tuning task.
        task: String,
        /// The first candidate's error.
        why: String,
    },
}
