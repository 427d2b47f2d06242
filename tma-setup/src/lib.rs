//! Finds and installs the tools that kernels are built and inspected with.
//!
//! ```
//! match tma_setup::llvm::find() {
//!     Ok(library) => assert!(library.is_file()),
//!     // It names the command that installs it.
//!     Err(missing) => eprintln!("{missing}"),
//! }
//! ```
//!
//! [`llvm`] looks for LLVM 22, for the compiler's build script and for `cargo tma doctor`. It uses
//! nothing but std. The rest needs the feature `install`: `ptxas` and `nvdisasm`, each a single
//! program from a pinned download, packages of the system, and a `libcuda` to link with; and what
//! ptxas says of PTX.

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
