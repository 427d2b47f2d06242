//! Polling loops: iterations that change nothing, in lanes that wait for a change by another
//! thread.
//!
//! If lanes come back to an instruction with all their registers and local memory unchanged, and
//! nothing in the cluster has changed meanwhile, they will repeat the iteration until something
//! does. From then on they wait as at a barrier. A cluster in which all lanes wait is deadlocked.
//! Loops that count, read the clock or write are not polling loops, since they may end by
//! themselves.

use super::alu::Lanes;
use super::executor::{Executor, Flow};
use super::warp::Warp;
use super::{Issue, lanes_of};
use crate::isa::{Effect, Inst, Memory, Pc, Site, Synchronization, Wait};
use crate::machine::{Phase, Pointer, WaitingFor};

/// The number of backward jumps without a change in the cluster before the loop is examined. The
/// state of the warp is saved at this number and at each later power of two (Brent's cycle
/// detection), so that a long loop costs little.
const FIRST_SAVE: u32 = 64;

/// The current loop of a warp.
#[derive(Debug, Default)]
pub(super) struct LoopTracker {
    /// The count of the cluster's changes when `count` was 0.
    changes: u64,
    /// Backward jumps since then.
    count: u32,
    saved: Option<SavedState>,
    /// The register that differed last, which is likely to differ again.
    differs: usize,
}

/// A saved state of lanes at an instruction.
#[derive(Debug)]
struct SavedState {
    pc: Pc,
    mask: u32,
    registers: Vec<Lanes>,
    local: Vec<u8>,
}

impl SavedState {
    fn has_same_local(&self, warp: &Warp) -> bool {
        let size = self.local.len() / 32;
        lanes_of(self.mask).all(|lane| {
            let range = lane as usize * size..(lane as usize + 1) * size;
            self.local.get(range.clone()) == warp.local.get(range)
        })
    }

    /// Returns the first register that differs, searching cyclically from `from`.
    fn differs(&self, warp: &Warp, from: usize) -> Option<usize> {
        let same = |row: &usize| match (self.registers.get(*row), warp.registers.get(*row)) {
            (Some(then), Some(now)) if self.mask == u32::MAX => then == now,
            (Some(then), Some(now)) => {
                lanes_of(self.mask).all(|lane| then[lane as usize] == now[lane as usize])
            }
            (then, now) => then.is_none() && now.is_none(),
        };
        (from..self.registers.len()).chain(0..from).find(|row| !same(row))
    }
}

/// Returns whether the lanes of `mask`, which jump back to `pc`, are in the same state as before,
/// with no change in between.
fn repeats_state(warp: &mut Warp, pc: Pc, mask: u32, changes: u64) -> bool {
    let mut loop_tracker = std::mem::take(&mut warp.loop_tracker);
    if loop_tracker.changes != changes {
        loop_tracker = LoopTracker { changes, ..LoopTracker::default() };
    }
    loop_tracker.count = loop_tracker.count.saturating_add(1);
    let mut repeats = false;
    if let Some(saved) = loop_tracker.saved.as_ref().filter(|saved| saved.pc == pc && saved.mask == mask) {
        match saved.differs(warp, loop_tracker.differs) {
            Some(row) => loop_tracker.differs = row,
            None => repeats = saved.has_same_local(warp),
        }
    }
    if loop_tracker.count >= FIRST_SAVE && loop_tracker.count.is_power_of_two() {
        let (registers, local) = (warp.registers.clone(), warp.local.clone());
        loop_tracker.saved = Some(SavedState { pc, mask, registers, local });
    }
    warp.loop_tracker = loop_tracker;
    repeats
}

impl Executor<'_, '_> {
    /// Decides the flow of lanes that jump backwards: on to `target` or, in a polling loop, to a
    /// wait there.
    pub(super) fn jump_back(&self, warp: &mut Warp, target: Pc, issue: Issue) -> Flow {
        if !repeats_state(warp, target, issue.active, *self.changes) {
            return Flow::Jump(target);
        }
        let code = self.context.program.code.get(target.index()..=issue.pc.index()).unwrap_or_default();
        let polled = code.iter().filter_map(|inst| self.polled_event(warp, inst, issue.first_lane().index));
        // The loop most often ends depending on its last read. A wait on an mbarrier is the most
        // informative.
        let polled = polled.max_by_key(|(event, _)| u32::from(matches!(event, WaitingFor::Mbarrier { .. })));
        let (event, site) = polled.unwrap_or((WaitingFor::Nothing, issue.site));
        Flow::Spin { target, event, site }
    }

    /// Returns the event that a lane polls with an instruction that reads what others write.
    fn polled_event(&self, warp: &Warp, inst: &Inst, lane: u32) -> Option<(WaitingFor, Site)> {
        let facts = inst.op.facts();
        if let Synchronization::Waits(Wait::Mbarrier { space, address, phase, parity, .. }) =
            facts.synchronization
        {
            let phase = Phase::of(self.lane(warp, phase, lane), parity);
            let pointer = Pointer::new(space, self.address(warp, address, lane));
            let event = WaitingFor::Mbarrier { pointer, phase };
            return Some((event, inst.site));
        }
        let read = facts.reads.lane()?;
        let Memory::Machine(space) = read.memory else { return None };
        let event = WaitingFor::Memory(Pointer::new(space, self.address(warp, read.address, lane)));
        Some((event, inst.site))
    }
}

/// Returns whether an executed instruction may have changed something that others see, or may
/// behave differently each time. Atomic operations report their changes themselves.
#[inline]
pub(super) fn changes(effect: Effect, flow: &Flow, active: u32) -> bool {
    match effect {
        Effect::Local | Effect::Reported => false,
        // Lanes that all keep waiting have changed nothing.
        Effect::Visible => !matches!(flow, Flow::Wait { blocked, .. } if *blocked == active),
    }
}
