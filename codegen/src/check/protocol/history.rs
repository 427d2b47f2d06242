//! What a run remembers for its messages alone.
//!
//! Whether anything is wrong never depends on it, so a proof does not compare it: there it may be
//! that of another state, and nothing that a proof finds is reported.

use std::collections::BTreeMap;

use super::barriers::At;
use super::finding::{Act, Party};
use super::memory::Site;
use super::run::Run;

#[derive(Debug, Default)]
pub(super) struct History {
    /// Where each group of threads returned that did so before the end of the kernel.
    returned: BTreeMap<usize, Site>,
    /// Of each mbarrier the sliced loads that count for its current phase.
    slices: BTreeMap<At, Slices>,
    /// The waits that passed at once, since the phase of their parity was known to be over, with
    /// the phases that their threads had seen complete.
    idle: BTreeMap<At, Vec<(Site, u32)>>,
    /// Where mbarriers were invalidated.
    invalidated: BTreeMap<At, Site>,
}

/// The parts of a tile that blocks have loaded for all of them.
#[derive(Debug)]
struct Slices {
    phase: u32,
    /// The blocks that load a part each.
    peers: u32,
    loads: Vec<Site>,
}

impl History {
    /// A group of threads returns.
    pub(super) fn note_return(&mut self, site: Site) {
        self.returned.insert(site.agent, site);
    }

    /// Where groups of threads have returned.
    pub(super) fn returned(&self) -> impl Iterator<Item = Site> {
        self.returned.values().copied()
    }

    /// A block loads its part of a tile for these, as a mask.
    pub(super) fn note_slice(&mut self, place: At, phase: u32, (peers, site): (u32, Site)) {
        let slices = self.slices.entry(place).or_insert(Slices { phase, peers, loads: vec![] });
        if slices.phase != phase {
            *slices = Slices { phase, peers, loads: vec![] };
        }
        slices.loads.push(site);
    }

    /// A wait passes at once, by threads that have seen so many phases complete. In a loop only its
    /// last turn is kept.
    pub(super) fn note_idle(&mut self, place: At, site: Site, seen: u32) {
        let all = self.idle.entry(place).or_default();
        all.retain(|(other, _)| (other.agent, other.stmt) != (site.agent, site.stmt));
        all.push((site, seen));
    }

    /// How many phases the threads of a wait had seen complete, if it passed at once.
    pub(super) fn idle(&self, place: At, wait: Site) -> Option<u32> {
        let all = self.idle.get(&place)?;
        all.iter().find(|(site, _)| *site == wait).map(|(_, seen)| *seen)
    }

    /// An mbarrier is invalidated.
    pub(super) fn note_invalidation(&mut self, place: At, site: Site) {
        self.invalidated.insert(place, site);
    }

    /// An mbarrier is initialised: what was there before is over.
    pub(super) fn note_init(&mut self, place: At) {
        self.invalidated.remove(&place);
        self.slices.remove(&place);
        self.idle.remove(&place);
    }

    /// Where an mbarrier was invalidated that is gone.
    pub(super) fn invalidated(&self, place: At) -> Option<Site> {
        self.invalidated.get(&place).copied()
    }
}

impl Run<'_, '_> {
    /// Groups of threads of this block, or of all, that have returned.
    pub(super) fn returned(&self, block: Option<usize>) -> Vec<Party> {
        let is_of = |site: &Site| {
            let agent = &self.agents[site.agent];
            agent.is_done && block.is_none_or(|block| agent.block == block)
        };
        self.history.returned().filter(is_of).map(|site| Party { site, does: Act::Return }).collect()
    }

    /// The last of the sliced loads that count for the current phase of an mbarrier, and the blocks
    /// that have not loaded their parts; none if all have.
    pub(super) fn missing_slices(&self, place: At) -> Option<(Site, Vec<usize>)> {
        let slices = self.history.slices.get(&place)?;
        let mbarrier = self.blocks.get(place.0)?.mbarriers.get(&place.1)?;
        let last = *slices.loads.last()?;
        if slices.phase != mbarrier.count.phase() {
            return None;
        }
        let has_loaded =
            |block: usize| slices.loads.iter().any(|site| self.agents[site.agent].block == block);
        let peers = (0..self.blocks.len()).filter(|block| slices.peers >> block & 1 == 1);
        let missing: Vec<usize> = peers.filter(|block| !has_loaded(*block)).collect();
        (!missing.is_empty()).then_some((last, missing))
    }
}
