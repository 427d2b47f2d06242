//! What lowering and emission share: where a kernel comes from, and how LLVM can fail.

use inkwell::builder::BuilderError;

use crate::target::Target;

/// Where a kernel comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// The file, as line information and the header name it.
    pub(crate) path: &'a str,
}

/// LLVM failed on a kernel that was checked: an installation or a compiler at fault, not a kernel.
/// Its text is shown behind [`Code::Backend`](crate::diag::Code::Backend).
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The LLVM that was linked does not make code for the target.
    #[error("this LLVM makes no PTX {version} for {target}: {message}")]
    Target {
        /// What was asked for.
        target: Target,
        /// Its version, as major × 10 + minor.
        version: u32,
        /// What LLVM says.
        message: String,
    },
    /// An instruction could not be built.
    #[error("LLVM's builder refused an instruction: {0}")]
    Build(#[from] BuilderError),
    /// A step of LLVM's failed.
    #[error("LLVM failed to {step} `{kernel}`: {message}")]
    Llvm {
        /// The kernel.
        kernel: String,
        /// What it should have done.
        step: &'static str,
        /// What it says.
        message: String,
    },
    /// The kernel holds what no checked kernel should.
    #[error("a checked kernel has {0}; please report this mistake of the compiler")]
    Unchecked(String),
}
