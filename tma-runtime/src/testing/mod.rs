//! Support for tests of kernels: runs a check under many orders of warps and arrivals of copies.
//!
//! The simulator makes its choices by a seed. A correct kernel computes the same result under every
//! seed. An incorrect one may happen to pass under some. `under_seeds` tries several, and reports
//! the seed under which the check failed. Like the simulator, it needs the feature `ptx-sim`.
//!
//! `replace_kernels` runs changed PTX at the launches of a process, on GPUs too.

mod kept;
#[cfg(feature = "ptx-sim")]
mod seeds;

pub use crate::launch::replace::replace_kernels;
pub use kept::ptx_is_kept;
#[cfg(feature = "ptx-sim")]
pub use seeds::{SeedFailure, under_seeds};
