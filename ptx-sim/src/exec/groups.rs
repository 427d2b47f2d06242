//! Which lanes of a warp run next.

use crate::machine::{Site, WaitingFor};

/// Turns of the warp that a group may be passed over before it goes first. Few make spinning cheap; many let lanes of a
/// long loop meet again behind it.
const PATIENCE: u32 = 24;

/// Lanes at the same instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) pc: u32,
    pub(crate) mask: u32,
    /// What the lanes wait for, if they do.
    pub(crate) waits: Option<(WaitingFor, Site)>,
    /// Of lanes that wait in a loop: the cluster's changes when they were found to. Until there is one more, they wait.
    pub(crate) spins_since: Option<u64>,
    passed_over: u32,
}

/// All lanes of a warp that have not exited.
#[derive(Debug)]
pub(crate) struct Groups {
    list: Vec<Group>,
}

impl Groups {
    pub(crate) fn new(pc: u32, mask: u32) -> Groups {
        Groups { list: vec![Group { pc, mask, waits: None, spins_since: None, passed_over: 0 }] }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Group> {
        self.list.iter()
    }

    /// Adds lanes at `pc`, to those that are there already.
    pub(crate) fn add(&mut self, pc: u32, mask: u32, waits: Option<(WaitingFor, Site)>) {
        if mask == 0 {
            return;
        }
        match self.list.iter_mut().find(|group| group.pc == pc) {
            Some(group) => {
                group.mask |= mask;
                // Whoever has come anew has not yet tried: so all of them do.
                (group.waits, group.spins_since) = (group.waits.and(waits), None);
            }
            None => self.list.push(Group { pc, mask, waits, spins_since: None, passed_over: 0 }),
        }
    }

    /// Adds lanes that wait at `pc`, the start of a loop, for another change than the first `changes`.
    pub(crate) fn add_spinning(&mut self, pc: u32, mask: u32, waits: (WaitingFor, Site), changes: u64) {
        let anew = !self.any_at(pc);
        self.add(pc, mask, Some(waits));
        if let Some(group) = self.list.iter_mut().find(|group| group.pc == pc && anew) {
            group.spins_since = Some(changes);
        }
    }

    /// A turn begins: all that could run, and are not chosen for it, have been passed over once more.
    pub(crate) fn age(&mut self) {
        for group in &mut self.list {
            group.passed_over += u32::from(group.waits.is_none());
        }
    }

    /// Takes out the group that runs next, and says whether it may run past the others: none if all wait.
    pub(crate) fn next(&mut self) -> Option<(Group, bool)> {
        let runs = |group: &&Group| group.waits.is_none();
        let patient = self.list.iter().filter(runs).min_by_key(|group| group.pc)?.pc;
        let starved = self.list.iter().filter(runs).max_by_key(|group| group.passed_over);
        let starved = starved.filter(|group| group.passed_over > PATIENCE).map(|group| group.pc);
        let chosen = starved.unwrap_or(patient);
        self.take(chosen).map(|group| (group, starved.is_some()))
    }

    fn take(&mut self, pc: u32) -> Option<Group> {
        let index = self.list.iter().position(|group| group.pc == pc)?;
        let mut group = self.list.swap_remove(index);
        group.passed_over = 0;
        Some(group)
    }

    /// Takes out the lanes at `pc`, whether they wait or not.
    pub(crate) fn join(&mut self, pc: u32) -> u32 {
        match self.list.iter().position(|group| group.pc == pc) {
            Some(index) => self.list.swap_remove(index).mask,
            None => 0,
        }
    }

    /// The lowest pc of a group that does not wait, and all pcs at which lanes would join.
    pub(crate) fn lowest_running(&self) -> u32 {
        self.list.iter().filter(|group| group.waits.is_none()).map(|group| group.pc).min().unwrap_or(u32::MAX)
    }

    /// Whether lanes are at `pc`.
    pub(crate) fn any_at(&self, pc: u32) -> bool {
        self.list.iter().any(|group| group.pc == pc)
    }

    /// Lets those that wait try again whose wait `may_end`, told by one of their lanes; and of loops, those that have not seen
    /// all `changes` yet. The answer is whether any lanes run.
    pub(crate) fn wake(&mut self, changes: u64, may_end: impl Fn(u32, WaitingFor) -> bool) -> bool {
        for group in self.list.iter_mut().filter(|group| group.spins_since != Some(changes)) {
            let lane = group.mask.trailing_zeros();
            if group.waits.is_none_or(|(what, _)| may_end(lane, what)) {
                (group.waits, group.spins_since) = (None, None);
            }
        }
        self.list.iter().any(|group| group.waits.is_none())
    }
}
