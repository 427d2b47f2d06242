//! Resolution of an instruction's pointers, and the errors in it.

use std::ops::Range;

use tma_model::help::Help;

use crate::machine::Machine;
use crate::machine::address::NO_RANK;
use crate::machine::diagnostics::RESERVED;
use crate::machine::index::BlockRank;
use crate::machine::memory::{
    AccessLayout, GlobalFault, LocationFault, MemoryLocation, SharedLocation, UnfinishedStore,
};
use crate::machine::types::{Action, Actor, Pointer, Space};
use crate::report::{Finding, FindingKind, Stop, counted};

impl Machine {
    /// Resolves the bytes that an instruction accesses.
    pub(super) fn locate(
        &mut self,
        action: Action,
        pointer: Pointer,
        layout: AccessLayout,
    ) -> Result<MemoryLocation, Stop> {
        let Action { thread, site, does } = action;
        self.locate_for(&Actor { thread, site }, does, pointer, layout)
    }

    /// Resolves the bytes of a thread's load or store. These are frequent, so the function is
    /// inlined, and the actor is only described if there is a finding.
    #[inline(always)]
    pub(super) fn locate_for(
        &mut self,
        actor: &Actor,
        does: &'static str,
        pointer: Pointer,
        layout: AccessLayout,
    ) -> Result<MemoryLocation, Stop> {
        let own = actor.thread.block;
        match self.memory.locate(pointer, own, layout) {
            Ok(MemoryLocation::Global(address)) => {
                if let Some(store) = self.memory.stores.at(address, layout.bytes.into()) {
                    self.not_stored(actor.does(does), address, store);
                }
                Ok(MemoryLocation::Global(address))
            }
            Ok(MemoryLocation::Shared(location)) => {
                if location.rank != own && self.liveness.of_block(location.rank) == 0 {
                    self.block_gone(actor.does(does), location.rank);
                }
                Ok(MemoryLocation::Shared(location))
            }
            Err(fault) => Err(self.location_fault(actor.does(does), pointer, layout, fault)),
        }
    }

    /// Resolves like [`locate`](Self::locate), for pointers that must be to shared memory.
    pub(super) fn locate_shared(
        &mut self,
        action: Action,
        pointer: Pointer,
        layout: AccessLayout,
    ) -> Result<SharedLocation, Stop> {
        match self.locate(action, pointer, layout)? {
            MemoryLocation::Shared(location) => Ok(location),
            MemoryLocation::Global(address) => {
                let message = format!("{address:#x} is not in shared memory");
                self.refuse(action, FindingKind::OutOfBounds, message)
            }
        }
    }

    /// Records the error that stops the cluster.
    #[cold]
    pub(super) fn refuse<T>(
        &mut self,
        action: Action,
        kind: FindingKind,
        message: String,
    ) -> Result<T, Stop> {
        let party = self.diagnostics.party(action);
        self.stop(Finding::new(kind, message).with(party))
    }

    /// Records the error that stops the cluster, with help.
    #[cold]
    pub(super) fn refuse_with_help<T>(
        &mut self,
        action: Action,
        kind: FindingKind,
        message: String,
        help: impl Into<Help>,
    ) -> Result<T, Stop> {
        let party = self.diagnostics.party(action);
        self.stop(Finding::new(kind, message).with(party).help(help))
    }

    /// Records that the copy engine refuses a copy, with help if there is any.
    pub(super) fn illegal<T>(
        &mut self,
        action: Action,
        message: String,
        help: Option<Help>,
    ) -> Result<T, Stop> {
        let kind = FindingKind::IllegalCopy;
        match help {
            Some(help) => self.refuse_with_help(action, kind, message, help),
            None => self.refuse(action, kind, message),
        }
    }

    #[cold]
    fn location_fault(
        &mut self,
        action: Action,
        pointer: Pointer,
        layout: AccessLayout,
        fault: LocationFault,
    ) -> Stop {
        let Pointer { space, address } = pointer;
        let party = self.diagnostics.party(action);
        let finding = match fault {
            LocationFault::Misaligned => {
                let align = layout.align;
                let message =
                    format!("address {address:#x} of {} is not a multiple of {align}", name_of(space));
                Finding::new(FindingKind::Misaligned, message)
            }
            LocationFault::NoBlock(rank) => {
                let or_more = if rank == NO_RANK { " or more" } else { "" };
                let blocks = counted(self.shape.blocks, "block");
                let message = format!(
                    "an access to shared memory of rank {rank}{or_more} in a cluster of \
                    {blocks}"
                );
                Finding::new(FindingKind::OutOfBounds, message).help(Help::UseRanks)
            }
            LocationFault::OutsideShared { at } => {
                let (bytes, Range { start, end }) = (counted(layout.bytes, "byte"), &self.memory.window);
                let message = format!(
                    "{bytes} at {at:#x} of shared memory, but a block has only {start:#x} to {end:#x}"
                );
                let finding = Finding::new(FindingKind::OutOfBounds, message);
                if at < u64::from(*start) { finding.help(RESERVED) } else { finding }
            }
        };
        self.diagnostics.stop(finding.with(party))
    }

    /// Records that an access to global memory is refused. A copy in flight continues regardless.
    #[cold]
    pub(super) fn global_fault(
        &mut self,
        action: Action,
        address: u64,
        bytes: u32,
        fault: GlobalFault,
    ) -> Stop {
        let (kind, message) = match fault {
            GlobalFault::Misaligned => {
                (FindingKind::Misaligned, format!("global address {address:#x} is not a multiple of {bytes}"))
            }
            GlobalFault::OutOfBounds { near: Some((base, all)) } => (
                FindingKind::OutOfBounds,
                format!(
                    "{} at byte {} of an allocation of {} ({address:#x})",
                    counted(bytes, "byte"),
                    address - base,
                    counted(all, "byte")
                ),
            ),
            GlobalFault::OutOfBounds { near: None } => {
                (FindingKind::OutOfBounds, format!("global address {address:#x} is in no allocation"))
            }
        };
        let party = self.diagnostics.party(action);
        self.diagnostics.stop(Finding::new(kind, message).with(party))
    }

    #[cold]
    pub(super) fn not_stored(&mut self, action: Action, address: u64, store: UnfinishedStore) {
        let message = format!("a bulk store to global memory at {address:#x} may not be complete");
        let log = &mut self.diagnostics;
        let finding = Finding::new(FindingKind::InFlight, message)
            .with(log.party(action))
            .with(log.party(store.issuer.does("issued the store")))
            .help(Help::WaitForStore);
        log.report(finding);
    }

    #[cold]
    fn block_gone(&mut self, action: Action, rank: BlockRank) {
        let message =
            format!("shared memory of block {rank} of the cluster is used after all its threads have ended");
        let party = self.diagnostics.party(action);
        self.report(Finding::new(FindingKind::BlockGone, message).with(party).help(Help::KeepBlockAlive));
    }
}

fn name_of(space: Space) -> &'static str {
    match space {
        Space::Global => "global memory",
        Space::Shared => "shared memory",
        Space::SharedCluster => "the cluster's shared memory",
        Space::Generic => "generic memory",
    }
}
