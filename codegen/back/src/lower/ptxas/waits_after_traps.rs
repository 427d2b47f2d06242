//! Places a wait for all multiplications after each trap of a kernel that multiplies.
//!
//! * Cures: C7517, "warpgroup.wait is injected in around line .. by compiler to allow use of
//!   registers defined by GMMA".
//! * Seen with: ptxas 13.0.
//! * Test: `Workaround::WaitsAfterTraps` in `codegen/back/tests/flights/workarounds.rs`.
//!
//! ptxas waits for all multiplications before a kernel ends, with a warning if the kernel has not
//! done so itself, even if none is in flight on the path that stops. A wait must be executed by all
//! threads of a warp, but only some may stop. The wait is therefore placed after the trap, where
//! ptxas sees it but no thread reaches it. An H200 hangs on a wait before the trap. Source: PTX
//! ISA, "wgmma.wait_group".

/// The line after a trap.
pub(super) const WAIT: &str = "\twgmma.wait_group.sync.aligned 0;\n";
