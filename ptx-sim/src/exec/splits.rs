//! The splits of a warp (its lanes, grouped by the instruction that they are at) and the choice of
//! the next one to run.

use crate::isa::{Pc, Site};
use crate::machine::WaitingFor;

/// The number of time slices for which a split may be passed over before it goes first. A low
/// number makes polling cheap. A high number lets lanes of a long loop reconverge after it.
const PATIENCE: u32 = 24;

/// Lanes at the same instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    pub(crate) pc: Pc,
    pub(crate) mask: u32,
    /// The event that the lanes wait for, if they do.
    pub(crate) waits: Option<(WaitingFor, Site)>,
    /// For lanes in a polling loop, the count of the cluster's changes at that time. They wait
    /// until it increases.
    pub(crate) spins_since: Option<u64>,
    passed_over: u32,
}

/// The splits of all lanes of a warp that have not exited.
#[derive(Debug)]
pub(crate) struct Splits {
    list: Vec<Split>,
}

impl Splits {
    pub(crate) fn new(pc: Pc, mask: u32) -> Splits {
        Splits { list: vec![Split { pc, mask, waits: None, spins_since: None, passed_over: 0 }] }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Split> {
        self.list.iter()
    }

    /// Adds lanes at `pc` to the split there, if any.
    pub(crate) fn add(&mut self, pc: Pc, mask: u32, waits: Option<(WaitingFor, Site)>) {
        if mask == 0 {
            return;
        }
        match self.list.iter_mut().find(|split| split.pc == pc) {
            Some(split) => {
                split.mask |= mask;
                // The newly arrived lanes have not tried yet, so the whole split tries.
                (split.waits, split.spins_since) = (split.waits.and(waits), None);
            }
            None => self.list.push(Split { pc, mask, waits, spins_since: None, passed_over: 0 }),
        }
    }

    /// Adds lanes that wait at `pc`, the start of a polling loop, until the cluster's changes
    /// exceed `changes`.
    pub(crate) fn add_spinning(&mut self, pc: Pc, mask: u32, waits: (WaitingFor, Site), changes: u64) {
        let is_new = !self.any_at(pc);
        self.add(pc, mask, Some(waits));
        if let Some(split) = self.list.iter_mut().find(|split| split.pc == pc && is_new) {
            split.spins_since = Some(changes);
        }
    }

    /// Starts a time slice: every split that could run counts as passed over once more, until it is
    /// chosen.
    pub(crate) fn age(&mut self) {
        for split in &mut self.list {
            split.passed_over += u32::from(split.waits.is_none());
        }
    }

    /// Removes the split that runs next, and returns whether it may run past the others. Returns
    /// `None` if all splits wait.
    pub(crate) fn next(&mut self) -> Option<(Split, bool)> {
        let runs = |split: &&Split| split.waits.is_none();
        let lowest = self.list.iter().filter(runs).min_by_key(|split| split.pc)?.pc;
        let starved = self.list.iter().filter(runs).max_by_key(|split| split.passed_over);
        let starved = starved.filter(|split| split.passed_over > PATIENCE).map(|split| split.pc);
        let chosen = starved.unwrap_or(lowest);
        self.take(chosen).map(|split| (split, starved.is_some()))
    }

    fn take(&mut self, pc: Pc) -> Option<Split> {
        let index = self.list.iter().position(|split| split.pc == pc)?;
        let mut split = self.list.swap_remove(index);
        split.passed_over = 0;
        Some(split)
    }

    /// Removes the lanes at `pc`, whether they wait or not.
    pub(crate) fn join(&mut self, pc: Pc) -> u32 {
        match self.list.iter().position(|split| split.pc == pc) {
            Some(index) => self.list.swap_remove(index).mask,
            None => 0,
        }
    }

    /// Returns the lowest pc of a split that does not wait.
    pub(crate) fn lowest_running(&self) -> Pc {
        let running = self.list.iter().filter(|split| split.waits.is_none());
        running.map(|split| split.pc).min().unwrap_or(Pc(u32::MAX))
    }

    /// Returns whether lanes are at `pc`.
    pub(crate) fn any_at(&self, pc: Pc) -> bool {
        self.list.iter().any(|split| split.pc == pc)
    }

    /// Lets waiting splits try again if `may_end` holds for one of their lanes, and polling splits
    /// only if they have not seen all `changes` yet. Returns whether any split can run.
    pub(crate) fn wake(&mut self, changes: u64, may_end: impl Fn(u32, WaitingFor) -> bool) -> bool {
        for split in self.list.iter_mut().filter(|split| split.spins_since != Some(changes)) {
            let lane = split.mask.trailing_zeros();
            if split.waits.is_none_or(|(event, _)| may_end(lane, event)) {
                (split.waits, split.spins_since) = (None, None);
            }
        }
        self.list.iter().any(|split| split.waits.is_none())
    }
}
