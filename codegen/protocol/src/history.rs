//! Records of an execution that no later step reads: only messages do, and the comparison of
//! executions that have ended.

use std::collections::BTreeMap;

use tma_front::ir::ParamId;

use super::barriers::MbarrierAddr;
use super::finding::{Party, ThreadAct};
use super::memory::Site;
use super::run::Run;

#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The complete rounds of `sync_grid`: their counters and sites. A proof records none, since it
    /// repeats loops any number of times.
    pub(super) grid_rounds: Vec<(ParamId, Site)>,
    /// The `return` of each group that ended before the end of the kernel.
    returned: BTreeMap<usize, Site>,
    /// The sliced loads that count for the current phase of each mbarrier.
    slices: BTreeMap<MbarrierAddr, Slices>,
    /// Waits that passed at once because a phase of their parity was known to be complete. The
    /// number is that of the phases that their threads had seen complete.
    passed_at_once: BTreeMap<MbarrierAddr, Vec<(Site, u32)>>,
    /// The sites at which mbarriers were invalidated.
    invalidated: BTreeMap<MbarrierAddr, Site>,
}

/// Parts of a tile that blocks have loaded for each other.
#[derive(Clone, Debug)]
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
    pub(super) fn note_slice(&mut self, addr: MbarrierAddr, phase: u32, peers: u32, site: Site) {
        let slices = self.slices.entry(addr).or_insert(Slices { phase, peers, loads: vec![] });
        if slices.phase != phase {
            *slices = Slices { phase, peers, loads: vec![] };
        }
        slices.loads.push(site);
    }

    /// Records a wait that passes at once, by threads that have seen `seen` phases complete. Of a
    /// wait in a loop only the latest iteration is kept.
    pub(super) fn note_passed_at_once(&mut self, addr: MbarrierAddr, site: Site, seen: u32) {
        let all = self.passed_at_once.entry(addr).or_default();
        all.retain(|(other, _)| (other.agent, other.stmt) != (site.agent, site.stmt));
        all.push((site, seen));
    }

    /// Returns how many phases the threads of a wait had seen complete, if it passed at once.
    pub(super) fn passed_at_once(&self, addr: MbarrierAddr, wait: Site) -> Option<u32> {
        let all = self.passed_at_once.get(&addr)?;
        all.iter().find(|(site, _)| *site == wait).map(|(_, seen)| *seen)
    }

    /// Records that an mbarrier is invalidated.
    pub(super) fn note_invalidation(&mut self, addr: MbarrierAddr, site: Site) {
        self.invalidated.insert(addr, site);
    }

    /// Records that an mbarrier is initialised, and drops the records of its predecessor.
    pub(super) fn note_init(&mut self, addr: MbarrierAddr) {
        self.invalidated.remove(&addr);
        self.slices.remove(&addr);
        self.passed_at_once.remove(&addr);
    }

    /// Returns the site at which an mbarrier was invalidated, if none was initialised there since.
    pub(super) fn invalidated(&self, addr: MbarrierAddr) -> Option<Site> {
        self.invalidated.get(&addr).copied()
    }
}

impl Run<'_, '_> {
    /// Returns the groups of threads of this block, or of all blocks, that have returned.
    pub(super) fn returned(&self, block: Option<usize>) -> Vec<Party> {
        let is_of = |site: &Site| {
            let agent = &self.state.agents[site.agent];
            agent.is_done && block.is_none_or(|block| agent.block == block)
        };
        self.state
            .history
            .returned()
            .filter(is_of)
            .map(|site| Party { site, does: ThreadAct::Return })
            .collect()
    }

    /// Returns the latest sliced load that counts for the current phase of an mbarrier, and the
    /// blocks that have not loaded their parts. Returns `None` if all blocks have.
    pub(super) fn missing_slices(&self, addr: MbarrierAddr) -> Option<(Site, Vec<usize>)> {
        let slices = self.state.history.slices.get(&addr)?;
        let mbarrier = self.state.blocks.get(addr.block)?.mbarriers.get(&addr.at)?;
        let last = *slices.loads.last()?;
        if slices.phase != mbarrier.count.phase() {
            return None;
        }
        let has_loaded =
            |block: usize| slices.loads.iter().any(|site| self.state.agents[site.agent].block == block);
        let peers = (0..self.state.blocks.len()).filter(|block| slices.peers >> block & 1 == 1);
        let missing: Vec<usize> = peers.filter(|block| !has_loaded(*block)).collect();
        (!missing.is_empty()).then_some((last, missing))
    }
}
