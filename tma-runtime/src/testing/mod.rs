//! Support for tests of kernels: runs a check under many orders of warps and arrivals of copies.
//!
//! The simulator makes its choices by a seed. A correct kernel computes the same under each of
//! them; an incorrect one may be lucky under some. `under_seeds` tries several and reports the seed
//! under which the check failed. It needs the feature `ptx-sim`, as the simulator does.

mod kept;
#[cfg(feature = "ptx-sim")]
mod seeds;

pub use kept::ptx_is_kept;
#[cfg(feature = "ptx-sim")]
pub use seeds::{SeedFailure, under_seeds};
