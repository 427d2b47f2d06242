//! Findings for conflicts between two accesses to global memory.

use tma_model::sync::{AccessKind, Proxy};

use crate::machine::Machine;
use crate::machine::global::{AccessAttributes, Footprint, GlobalAccess, GlobalConflict, Pair, did, finding};
use crate::machine::types::Action;
use crate::report::Party;

impl Machine {
    /// Reports a conflict between `action` and an earlier access, in global memory.
    #[cold]
    pub(in crate::machine) fn global_conflict(
        &mut self,
        action: Action,
        attributes: AccessAttributes,
        conflict: GlobalConflict,
    ) {
        let GlobalConflict { rule, address, other } = conflict;
        // A store whose group no thread has waited for has its own finding.
        let is_copy = other.attributes.proxy == Proxy::Async && other.attributes.kind != AccessKind::Read;
        let (own, layout) = (self.memory.accesses.cluster(), self.memory.accesses.layout());
        let same_cluster = other.grid_thread.cluster == own;
        let ranks = match [other.grid_thread.cluster, own].map(|cluster| layout.rank(cluster)) {
            [Some(from), Some(to)] if from != to => Some([from, to]),
            [_, _] => None,
        };
        if is_copy && same_cluster && self.memory.stores.at(address, 1).is_some() {
            return;
        }
        let party = self.party_of(&other);
        let log = &mut self.diagnostics;
        let pair = Pair { rule, earlier: other.attributes, later: attributes, same_cluster, ranks };
        log.report(finding(address, pair).with(log.party(action)).with(party));
    }

    /// Returns the thread of an access, in the form in which findings refer to it.
    fn party_of(&self, access: &GlobalAccess) -> Party {
        let accesses = &self.memory.accesses;
        let actor = self.diagnostics.actor_at(accesses.thread(access.grid_thread), access.line);
        let party = self.diagnostics.party(actor.does(did(access.attributes)));
        match accesses.block_of(access.grid_thread) {
            Some(block) => Party { block, rank: accesses.layout().rank(access.grid_thread.cluster), ..party },
            None => party,
        }
    }

    /// Takes the accesses of the cluster to global memory, when the cluster ends.
    pub(crate) fn take_footprint(&mut self) -> Footprint {
        let table = self.memory.accesses.take_table();
        table.map_or_else(Footprint::default, |table| Footprint::of(&table, |access| self.party_of(access)))
    }

    /// Returns the number of loads that observed old stores since the last call.
    #[inline]
    pub(crate) fn take_stale_reads(&mut self) -> u64 {
        self.memory.accesses.take_stale_reads()
    }
}
