//! Records of an execution that only messages use.
//!
//! No verdict depends on them, so a proof does not compare them. During a proof they may belong to
//! another state, which is harmless because a proof reports no findings.

use std::collections::BTreeMap;

use super::barriers::At;
use super::finding::{Act, Party};
use super::memory::Site;
use super::run::Run;

#[derive(Debug, Default)]
pub(super) struct History {
    /// The `return` of each group that ended before the end of the kernel.
    returned: BTreeMap<usize, Site>,
    /// The sliced loads that count for the current phase of each mbarrier.
    slices: BTreeMap<At, Slices>,
    /// Waits that passed at once because a phase of their parity was known to be complete. The
    /// number is that of the phases that their threads had seen complete.
    idle: BTreeMap<At, Vec<(Site, u32)>>,
    /// The sites at which mbarriers were invalidated.
    invalidated: BTreeMap<At, Site>,
}

/// Parts of a tile that blocks have loaded for each other.
#[derive(Debug)]
struct Slices {
    phase: u32,
    /// The mask of the blocks that load a part each.
    peers: u32,
    loads: Vec<Site>,
}

impl History {
    /// Records that a group of threads returns.
    pub(super) fn note_return(&mut self, site: Site) {
        self.returned.insert(site.agent, site);
    }

    /// Returns the sites at which groups of threads have returned.
    pub(super) fn returned(&self) -> impl Iterator<Item = Site> {
        self.returned.values().copied()
    }

    /// Records that a block loads its part of a tile. `peers` is the mask of the blocks that load
    /// one.
    pub(super) fn note_slice(&mut self, place: At, phase: u32, (peers, site): (u32, Site)) {
        let slices = self.slices.entry(place).or_insert(Slices { phase, peers, loads: vec![] });
        if slices.phase != phase {
            *slices = Slices { phase, peers, loads: vec![] };
        }
        slices.loads.push(site);
    }

    /// Records a wait that passes at once, by threads that have seen `seen` phases complete. Of a
    /// wait in a loop only the latest iteration is kept.
    pub(super) fn note_idle(&mut self, place: At, site: Site, seen: u32) {
        let all = self.idle.entry(place).or_default();
        all.retain(|(other, _)| (other.agent, other.stmt) != (site.agent, site.stmt));
        all.push((site, seen));
    }

    /// Returns how many phases the threads of a wait had seen complete, if it passed at once.
    pub(super) fn idle(&self, place: At, wait: Site) -> Option<u32> {
        let all = self.idle.get(&place)?;
        all.iter().find(|(site, _)| *site == wait).map(|(_, seen)| *seen)
    }

    /// Records that an mbarrier is invalidated.
    pub(super) fn note_invalidation(&mut self, place: At, site: Site) {
        self.invalidated.insert(place, site);
    }

    /// Records that an mbarrier is initialised, and drops the records of its predecessor.
    pub(super) fn note_init(&mut self, place: At) {
        self.invalidated.remove(&place);
        self.slices.remove(&place);
        self.idle.remove(&place);
    }

    /// Returns the site at which an mbarrier was invalidated, if none was initialised there since.
    pub(super) fn invalidated(&self, place: At) -> Option<Site> {
        self.invalidated.get(&place).copied()
    }
}

impl Run<'_, '_> {
    /// Returns the groups of threads of this block, or of all blocks, that have returned.
    pub(super) fn returned(&self, block: Option<usize>) -> Vec<Party> {
        let is_of = |site: &Site| {
            let agent = &self.agents[site.agent];
            agent.is_done && block.is_none_or(|block| agent.block == block)
        };
        self.history.returned().filter(is_of).map(|site| Party { site, does: Act::Return }).collect()
    }

    /// Returns the latest sliced load that counts for the current phase of an mbarrier, and the
    /// blocks that have not loaded their parts. Returns `None` if all blocks have.
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
