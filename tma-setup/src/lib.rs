//! Finds and installs the tools that build and inspect kernels.
//!
//! ```
//! match tma_setup::llvm::find() {
//!     Ok(library) => assert!(library.is_file()),
//!     // The error names the command that installs it.
//!     Err(missing) => eprintln!("{missing}"),
//! }
//! ```
//!
//! [`llvm`] searches for LLVM 22, for the compiler's build script and for `cargo tma doctor`. It
//! uses nothing but std. Everything else needs the feature `install`: `ptxas` and `nvdisasm`, each
//! a single program from a pinned download; packages of the system; a `libcuda` to link with; and
//! the messages of ptxas about PTX.

pub mod llvm;
pub mod system;

#[cfg(feature = "install")]
pub mod download;
#[cfg(feature = "install")]
pub mod files;
#[cfg(feature = "install")]
pub mod packages;
#[cfg(feature = "install")]
pub mod process;
#[cfg(feature = "install")]
pub mod program;
#[cfg(feature = "install")]
pub mod ptxas;
#[cfg(feature = "install")]
pub mod stub_cuda;
