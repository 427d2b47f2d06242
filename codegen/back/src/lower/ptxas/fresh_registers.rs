//! Moves sums to fresh registers before a multiplication, and out of its registers after the wait.
//!
//! * Cures: C7511, "Potential Performance Loss: wgmma.mma_async instructions are serialized due to
//!   insufficient register resources for the wgmma pipeline".
//! * Seen with: ptxas 13.0.
//! * Test: `Workaround::FreshRegisters` in `codegen/back/tests/flights/workarounds.rs`.
//!
//! ptxas expects that all multiplications that name a register work on the same set of registers in
//! the same order. If only some elements of an accumulator were written since the last
//! multiplication, LLVM assigns other registers to those and keeps the rest, and ptxas serialises.
//! Moving all of them costs nothing: ptxas coalesces the moves where it can.
//!
//! A sum that a multiplication began stays in its registers: see [`new_sums`](super::new_sums).

use super::Workaround;
use crate::lower::Cx;
use crate::lower::nvvm::{AwaitedSums, PreviousValue};

/// Returns the treatment of the previous sums by a multiplication that does not continue a flight.
pub(super) fn before_multiplication(cx: &Cx<'_, '_>) -> PreviousValue {
    if cx.workarounds.has(Workaround::FreshRegisters) { PreviousValue::Copied } else { PreviousValue::Tied }
}

/// Returns the treatment of complete sums by the wait for them.
pub(super) fn after_wait(cx: &Cx<'_, '_>) -> AwaitedSums {
    if cx.workarounds.has(Workaround::FreshRegisters) { AwaitedSums::Moved } else { AwaitedSums::InPlace }
}
