//! Kernels that exercise the whole language, each with its expected results, and the examples.
//!
//! [`kernels::cases`] lists the checks of the kernels as data, so that every backend can run the
//! same list.

pub mod case;
mod column;
pub mod compare;
pub mod conformance;
#[cfg(feature = "llvm")]
pub mod differential;
pub mod examples;
pub mod gpu;
pub mod kernels;
pub mod library;
pub mod mutation;
pub mod outline;
pub mod page;
pub mod parallel;
pub mod random;
#[cfg(feature = "llvm")]
pub mod replay;
pub mod rng;
pub mod rounding;
pub mod snapshots;
pub mod sources;

/// Returns whether tests that use a sample on every commit should run everything: `TMA_TESTS=all`.
pub fn is_all() -> bool {
    std::env::var_os("TMA_TESTS").is_some_and(|which| which == "all")
}
