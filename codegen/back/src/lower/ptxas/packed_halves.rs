//! Permutes the bytes of sums whose halves are used separately, after the wait for them.
//!
//! * Cures: C7517, "warpgroup.wait is injected in around line .. by compiler to allow use of
//!   registers defined by GMMA".
//! * Seen with: ptxas 13.0.
//! * Test: `Workaround::PackedHalves` in `codegen/back/tests/flights/workarounds.rs`.
//!
//! ptxas combines operations on the two halves of a register, and moves the extraction of the
//! halves before the wait. It then inserts another wait there. The wait names no registers, but a
//! byte permutation that changes nothing makes the accumulators defined only after it. A move does
//! not have this effect.

use tma_front::ir::Scalar;

use super::{Workaround, fresh_registers};
use crate::lower::Cx;
use crate::lower::nvvm::AwaitedSums;

/// Whether halves of the registers of an accumulator with such elements are used separately.
pub(super) fn are_split(cx: &Cx<'_, '_>, element: Scalar) -> bool {
    cx.splits_packed_f16 && element == Scalar::F16
}

/// Returns the treatment of complete sums by the wait for them.
pub(super) fn after_wait(cx: &Cx<'_, '_>) -> AwaitedSums {
    match cx.workarounds.has(Workaround::PackedHalves) {
        true => AwaitedSums::Permuted,
        false => fresh_registers::after_wait(cx),
    }
}
