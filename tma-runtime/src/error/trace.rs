//! Reasons why a launch cannot be traced.

use std::path::PathBuf;

/// The reason why a launch cannot be traced. Displays the reason; [`Error`](super::Error) adds the
/// kernel and the code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The launch is recorded, not run.
    #[error("a capture records the launch and does not run it; trace a launch on a stream")]
    Capture,

    /// The launch also limits its waits.
    #[error("its waits are limited as well; ask for one of the two")]
    Limited,

    /// The probes need more shared memory than a block has left. The text has the sizes.
    #[error("{0}")]
    SharedMemory(String),

    /// The PTX has no place for probes.
    #[error("{0}; compile the kernel with this project's build script")]
    Ptx(String),

    /// The file cannot be written.
    #[error("`{}` cannot be written: {why}; set `TMA_TRACE_FILE`", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        why: String,
    },
}
