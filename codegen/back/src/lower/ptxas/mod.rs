//! Workarounds for ptxas, NVIDIA's assembler: forms of code that the PTX ISA does not ask for.
//!
//! Above all, ptxas makes multiplications of a warpgroup synchronous, or waits more often than the
//! PTX says, if it does not understand how registers are used. It says so in notes of C7510 to
//! C7519. Each of these files avoids one such case. In the order in which they apply:
//!
//! While a kernel is lowered to LLVM IR:
//!
//! 1. [`no_calls`]: failed assertions are reported without a call (C7510).
//! 2. [`waits_after_traps`]: all multiplications are waited for after a trap (C7517).
//! 3. [`conditional_traps`]: a trap in a loop with multiplications has a condition (C7517).
//! 4. [`loop_groups`]: a wait for a group of an earlier iteration waits for all groups (C7514).
//! 5. [`fresh_registers`]: sums are moved to fresh registers before a multiplication (C7511).
//! 6. [`packed_halves`]: halves of registers are used after a permutation (C7517).
//! 7. [`own_memory`]: loads into the block's own memory name it (a call on sm_120a).
//!
//! In the optimised module:
//!
//! 8. [`shared_sums`]: sums with other uses are copied before a multiplication (C7517).
//! 9. [`left_fences`]: fences separate multiplications with operands that live on (C7519).
//!
//! In the PTX that LLVM generates:
//!
//! 10. [`new_sums`]: if multiplications share registers in part, code is generated again, with new
//!     sums moved to other registers after the wait (C7511).
//! 11. [`skipped_traps`]: conditional branches skip traps (C7517).
//!
//! [`line`] is the model of PTX that they share, [`assembly`] reads inline assembly back from a
//! module, and [`liveness`] finds the uses of values. The tests turn off one workaround at a time,
//! and expect the message.
//!
//! Two choices that also matter to ptxas are part of the code that makes them: a multiplication is
//! a single text, so that LLVM schedules nothing into it (`nvvm/mma.rs`), and a proxy fence is for
//! the block's own memory where this suffices, which costs less (`sync.rs`).

mod assembly;
mod conditional_traps;
mod fresh_registers;
mod left_fences;
mod line;
mod liveness;
pub(super) mod loop_groups;
pub(crate) mod new_sums;
pub(super) mod no_calls;
pub(super) mod own_memory;
mod packed_halves;
mod shared_sums;
mod skipped_traps;
mod waits_after_traps;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::FunctionValue;
use tma_front::ir::{Awaited, Scalar, StmtId};

use self::assembly::Assembly;
use self::liveness::Later;
use super::nvvm::{AwaitedSums, PreviousValue};
use super::{Cx, Lower};

/// A workaround, named like its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workaround {
    /// Failed assertions are reported without a call.
    NoCalls,
    /// All multiplications are waited for after a trap.
    WaitsAfterTraps,
    /// A trap in a loop with multiplications has a condition.
    ConditionalTraps,
    /// A wait for a group of an earlier iteration waits for all groups.
    LoopGroups,
    /// Sums are moved to fresh registers before a multiplication.
    FreshRegisters,
    /// Halves of registers are used after a permutation.
    PackedHalves,
    /// Loads into the block's own memory name it.
    OwnMemory,
    /// Sums with other uses are copied before a multiplication.
    SharedSums,
    /// Fences separate multiplications with operands that live on.
    LeftFences,
    /// New sums are moved to other registers if multiplications share registers in part.
    NewSums,
    /// Conditional branches skip traps.
    SkippedTraps,
}

impl Workaround {
    /// All workarounds, in the order in which they apply.
    pub const ALL: [Self; 11] = [
        Self::NoCalls,
        Self::WaitsAfterTraps,
        Self::ConditionalTraps,
        Self::LoopGroups,
        Self::FreshRegisters,
        Self::PackedHalves,
        Self::OwnMemory,
        Self::SharedSums,
        Self::LeftFences,
        Self::NewSums,
        Self::SkippedTraps,
    ];
}

/// The workarounds that are applied: all, except in tests of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Workarounds {
    left_out: Option<Workaround>,
}

impl Workarounds {
    pub(crate) const ALL: Self = Self { left_out: None };

    /// Returns all workarounds but one.
    pub(crate) fn without(workaround: Workaround) -> Self {
        Self { left_out: Some(workaround) }
    }

    pub(crate) fn has(self, workaround: Workaround) -> bool {
        self.left_out != Some(workaround)
    }
}

/// The end of a thread of a kernel that multiplies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// The lines that compute the trap's condition, if it has one.
    pub(super) condition: &'static str,
    pub(super) trap: &'static str,
    /// The line after the trap.
    pub(super) wait: &'static str,
}

/// Returns how a thread stops at the current statement.
pub(super) fn stop(cx: &Cx<'_, '_>) -> Stop {
    let is_conditional = cx.is_in_flight && cx.workarounds.has(Workaround::ConditionalTraps);
    let waits = cx.workarounds.has(Workaround::WaitsAfterTraps);
    let wait = if waits { waits_after_traps::WAIT } else { "" };
    match is_conditional {
        true => Stop { condition: conditional_traps::CONDITION, trap: conditional_traps::TRAP, wait },
        false => Stop { condition: "", trap: "trap;", wait },
    }
}

/// Returns the treatment of the previous value of an accumulator by a multiplication.
pub(super) fn previous_value(cx: &Cx<'_, '_>, multiplication: StmtId) -> PreviousValue {
    let flights = cx.kernel.flights();
    match (flights.is_first(multiplication), flights.is_continued(multiplication)) {
        (true, _) => PreviousValue::Discarded,
        (false, true) => PreviousValue::Tied,
        (false, false) => fresh_registers::before_multiplication(cx),
    }
}

/// Returns the treatment of the sums of an accumulator by a wait for them.
pub(super) fn awaited_sums(cx: &Cx<'_, '_>, wait: StmtId, awaited: Awaited, element: Scalar) -> AwaitedSums {
    match awaited {
        Awaited::Older => AwaitedSums::InPlace,
        Awaited::All if packed_halves::are_split(cx, element) => packed_halves::after_wait(cx),
        Awaited::All if cx.kernel.flights().is_of_new_sum(wait) => AwaitedSums::New,
        Awaited::All => fresh_registers::after_wait(cx),
    }
}

/// Applies the workarounds for optimised modules.
pub(crate) fn adapt_module<'c>(
    context: &'c Context,
    module: &Module<'c>,
    workarounds: Workarounds,
) -> Lower<()> {
    let builder = context.create_builder();
    let mut copies = 0;
    for block in module.get_functions().flat_map(FunctionValue::get_basic_block_iter) {
        let mut instructions: Vec<_> = block.get_instructions().collect();
        let mut after = Later::new();
        while let Some(call) = instructions.pop() {
            after.insert(call);
            let Some(assembly) = Assembly::of(call).filter(|assembly| assembly.multiplies()) else {
                continue;
            };
            if workarounds.has(Workaround::SharedSums) {
                shared_sums::copy_shared(context, &builder, call, assembly, &mut after, &mut copies)?;
            }
            if workarounds.has(Workaround::LeftFences) {
                left_fences::fence(context, call, assembly, &after)?;
            }
        }
    }
    Ok(())
}

/// Applies the workarounds for PTX.
pub(crate) fn adapt_ptx(ptx: String, workarounds: Workarounds) -> String {
    let multiplies = ptx.contains("wgmma.");
    match multiplies && workarounds.has(Workaround::SkippedTraps) {
        true => skipped_traps::skip_traps(&ptx),
        false => ptx,
    }
}
