//! Types shared by lowering and emission: the source of a kernel, and the failures of LLVM.

use inkwell::builder::BuilderError;
use tma_front::target::Target;

/// The source of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    /// The file, as line information and the header name it.
    pub(crate) path: &'a str,
}

/// A failure of LLVM on a checked kernel. The fault lies with the installation or the compiler, not
/// with the kernel. Its text is shown after [`Code::Backend`](tma_front::diag::Code::Backend).
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The linked LLVM cannot generate code for the target.
    #[error("this LLVM makes no PTX {version} for {target}: {message}")]
    Target {
        /// The requested target.
        target: Target,
        /// The requested PTX version, as major × 10 + minor.
        version: u32,
        /// The message of LLVM.
        message: String,
    },
    /// The builder rejected an instruction.
    #[error("LLVM's builder refused an instruction: {0}")]
    Build(#[from] BuilderError),
    /// A step of LLVM failed.
    #[error("LLVM failed to {step} `{kernel}`: {message}")]
    Llvm {
        /// The kernel.
        kernel: String,
        /// The step, as a verb.
        step: &'static str,
        /// The message of LLVM.
        message: String,
    },
    /// The kernel contains a construct that checked kernels never have.
    #[error("a checked kernel has {0}; please report this mistake of the compiler")]
    Unchecked(String),
}
