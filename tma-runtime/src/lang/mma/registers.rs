//! Registers that move from one warpgroup to another.

use crate::lang::device_only;

/// Raises the number of registers of each thread of this warpgroup to `R`. In a kernel whose
/// warpgroups have different roles, the warpgroups that multiply take the registers that those that
/// load [gave up](setmaxnreg_dec). The call waits until the block has them.
///
/// All warps of a warpgroup must call it together, with the same constant `R`: a multiple of 8 from
/// 24 to 256, not below their current number. A block of `threads` threads starts with 65536 /
/// `threads` registers per thread, rounded down to a multiple of 8. The sum over its warpgroups
/// must not exceed what it started with, or else the wait never ends:
///
/// | warpgroups | at the start | loads | multiply |
/// | --- | --- | --- | --- |
/// | 1 + 2 | 168 each | 40, or 24 | 232, or 240 |
/// | 1 + 3 | 128 each | 32 | 160 |
///
/// A warpgroup's threads must synchronise between two changes ([`sync_warpgroup`]).
///
/// PTX: `setmaxnreg.inc.sync.aligned.u32 R` (PTX ISA, "setmaxnreg").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel() {
/// if warpgroup_idx() == 0 {
///     setmaxnreg_dec::<40>(); // loads
/// } else {
///     setmaxnreg_inc::<232>(); // multiplies
/// }
/// # }
/// ```
///
/// [`sync_warpgroup`]: crate::lang::sync_warpgroup
#[doc(alias = "setmaxnreg")]
pub fn setmaxnreg_inc<const R: u32>() {
    device_only()
}

/// Lowers the number of registers of each thread of this warpgroup to `R`, for the
/// [`setmaxnreg_inc`] of others, whose rules apply here too. `R` must not be above the current
/// number, nor below the number that the code after it needs.
///
/// PTX: `setmaxnreg.dec.sync.aligned.u32 R` (PTX ISA, "setmaxnreg").
#[doc(alias = "setmaxnreg")]
pub fn setmaxnreg_dec<const R: u32>() {
    device_only()
}
