//! Loops that go round and change nothing: lanes that ask again and again for what somebody else
//! has to change.
//!
//! Lanes that come back to a place with all their registers and local memory as they were, while
//! nothing changed in the cluster, will do so for ever, until something changes. From then on they
//! wait, as at a barrier, and a cluster in which all wait is at a deadlock. Loops that count, look
//! at the clock or write are not taken for waiting: they may end by themselves.

use super::alu::Lanes;
use super::step::{Flow, Turn};
use super::warp::Warp;
use super::{Issue, lanes_of};
use crate::isa::{Effect, Inst, Memory, Pc, Site, Synchronization, Wait};
use crate::machine::{Phase, Pointer, WaitingFor};

/// Rounds without a change in the cluster, after which they are looked at. A warp's state is kept
/// at this number and at each power of two after it (Brent's search for cycles), so that a loop
/// that goes on for long costs little.
const FEW: u32 = 64;

/// The loops of a warp.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// The cluster's changes when `count` was 0.
    changes: u64,
    /// Jumps backwards since then.
    count: u32,
    kept: Option<Kept>,
    /// The row that differed last, which mostly does again.
    differs: usize,
}

/// Lanes as they once were at a place.
#[derive(Debug)]
struct Kept {
    pc: Pc,
    mask: u32,
    registers: Vec<Lanes>,
    local: Vec<u8>,
}

impl Kept {
    fn has_same_local(&self, warp: &Warp) -> bool {
        let size = self.local.len() / 32;
        lanes_of(self.mask).all(|lane| {
            let range = lane as usize * size..(lane as usize + 1) * size;
            self.local.get(range.clone()) == warp.local.get(range)
        })
    }

    /// The first row from `from` on that differs, and then the first of all.
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

/// Whether the lanes of `mask`, which jump back to `pc`, are as they were there before, with
/// nothing changed in between.
fn goes_round(warp: &mut Warp, pc: Pc, mask: u32, changes: u64) -> bool {
    let mut rounds = std::mem::take(&mut warp.rounds);
    if rounds.changes != changes {
        rounds = Rounds { changes, ..Rounds::default() };
    }
    rounds.count = rounds.count.saturating_add(1);
    let mut again = false;
    if let Some(kept) = rounds.kept.as_ref().filter(|kept| kept.pc == pc && kept.mask == mask) {
        match kept.differs(warp, rounds.differs) {
            Some(row) => rounds.differs = row,
            None => again = kept.has_same_local(warp),
        }
    }
    if rounds.count >= FEW && rounds.count.is_power_of_two() {
        let (registers, local) = (warp.registers.clone(), warp.local.clone());
        rounds.kept = Some(Kept { pc, mask, registers, local });
    }
    warp.rounds = rounds;
    again
}

impl Turn<'_, '_> {
    /// Where lanes go that jump backwards: to `target`, and if nothing changes any more, to wait
    /// there.
    pub(super) fn jump_back(&self, warp: &mut Warp, target: Pc, issue: Issue) -> Flow {
        if !goes_round(warp, target, issue.active, *self.changes) {
            return Flow::Jump(target);
        }
        let code = self.context.program.code.get(target.index()..=issue.pc.index()).unwrap_or_default();
        let asked = code.iter().filter_map(|inst| self.asks(warp, inst, issue.first_lane().index));
        // What is last in the loop is mostly what its end depends on; an mbarrier says most.
        let asked = asked.max_by_key(|(what, _)| u32::from(matches!(what, WaitingFor::Mbarrier { .. })));
        let (what, site) = asked.unwrap_or((WaitingFor::Nothing, issue.site));
        Flow::Spin { target, what, site }
    }

    /// What a lane asks for with an instruction that reads what others write.
    fn asks(&self, warp: &Warp, inst: &Inst, lane: u32) -> Option<(WaitingFor, Site)> {
        let facts = inst.op.facts();
        if let Synchronization::Waits(Wait::Mbarrier { space, address, phase, parity, .. }) =
            facts.synchronization
        {
            let phase = Phase::of(self.lane(warp, phase, lane), parity);
            let pointer = Pointer::new(space, self.address(warp, address, lane));
            let what = WaitingFor::Mbarrier { pointer, phase };
            return Some((what, inst.site));
        }
        let read = facts.reads.lane()?;
        let Memory::Machine(space) = read.memory else { return None };
        let what = WaitingFor::Memory(Pointer::new(space, self.address(warp, read.address, lane)));
        Some((what, inst.site))
    }
}

/// Whether an instruction that was run may have changed what others see, or is not the same each
/// time. Atomic operations say so themselves.
#[inline]
pub(super) fn changes(effect: Effect, flow: &Flow, active: u32) -> bool {
    match effect {
        Effect::Local | Effect::Reported => false,
        // Who waits on has changed nothing.
        Effect::Visible => !matches!(flow, Flow::Wait { stay, .. } if *stay == active),
    }
}
