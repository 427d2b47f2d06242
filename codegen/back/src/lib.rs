//! The compiler of TMA kernels written in Rust.
//!
//! There are three entry points:
//!
//! * [`expand`]: expands the attributes of `tma-macros`;
//! * [`build()`]: called in `build.rs`, compiles every kernel of a package to PTX;
//! * `compile`, with the feature `llvm`: compiles source text to PTX, for tests and tools.
//!
//! ```
//! let kernel = "
//!     #[tma_kernel(threads = 32)]
//!     fn k(out: Global<u32>) {
//!         let row: SharedArray<u32, 32> = shared();
//!         row.set(thread_idx().x, 7);
//!         sync_threads();
//!         out.set(thread_idx().x, row.get(31 - thread_idx().x));
//!     }";
//! let accepted = tma_codegen::check_protocol("kernel.rs", kernel)?;
//! assert_eq!(accepted.kernels.len(), 1);
//!
//! // Each thread reads what another one writes.
//! let racy = kernel.replace("sync_threads();", "");
//! let refused = tma_codegen::check_protocol("kernel.rs", &racy).unwrap_err();
//! assert!(refused.to_string().starts_with("error[TMA0704]"));
//! # Ok::<(), tma_codegen::Failure>(())
//! ```
//!
//! All three parse the same tokens. The macro checks only kernels without PTX: the others were
//! checked when they were compiled. Without the feature `llvm`, kernels are checked and launchers
//! are generated, but there is no PTX.

#[cfg(feature = "llvm")]
mod backend;
mod build;
mod compile;
mod dump;
#[cfg(feature = "llvm")]
mod emit;
pub mod expand;
mod hash;
mod host;
mod imports;
#[cfg(feature = "llvm")]
mod lower;
mod note;
mod pipeline;
mod position;
mod templates;

#[cfg(feature = "llvm")]
pub use backend::BackendError;
pub use build::{Build, BuildError, Report, StaleKeptPtx, StaleReason, build, sources};
pub use compile::{Accepted, Checked, Failure, check, check_for, check_in, check_protocol};
#[cfg(feature = "llvm")]
pub use compile::{Ptx, compile, compile_kernel, compile_with};
pub use tma_front::target::{Feature, Target, UnknownTarget};
pub use tma_front::{Checks, abi, check, diag, ir, limits};
pub use tma_protocol as protocol;
#[cfg(feature = "llvm")]
#[doc(hidden)]
pub use {compile::compile_without, lower::ptxas::Workaround};
