//! Loads into the block's own shared memory by the instruction for it, where the target has one.
//!
//! * Cures: a call with a stack frame, to which ptxas compiles a load into the shared memory of the
//!   cluster for sm_120a. There is no message.
//! * Seen with: ptxas 13.0.
//! * Test: `Workaround::OwnMemory` in `codegen/back/tests/flights/workarounds.rs`.
//!
//! A block's own shared memory is part of its cluster's, so either instruction loads into it.
//! Source: PTX ISA, "cp.async.bulk", "cp.async.bulk.tensor", `.shared::cta` as the destination.

use super::Workaround;
use crate::lower::Cx;

/// Whether loads name the block's own shared memory.
pub(in crate::lower) fn is_named(cx: &Cx<'_, '_>) -> bool {
    cx.target.ptx_version() >= 86 && cx.workarounds.has(Workaround::OwnMemory)
}
