//! Resolution of an instruction's pointers, and the errors in it.

use std::ops::Range;

use crate::machine::Machine;
use crate::machine::address::NO_RANK;
use crate::machine::diagnostics::{RESERVED, STAY};
use crate::machine::index::BlockRank;
use crate::machine::memory::{Extent, GlobalFault, Place, PlaceFault, SharedPlace, Stretch};
use crate::machine::types::{Action, Actor, Pointer, Space};
use crate::report::{Finding, FindingKind, Stop, counted};

impl Machine {
    /// Resolves the bytes that an instruction accesses.
    pub(super) fn place(&mut self, action: Action, pointer: Pointer, extent: Extent) -> Result<Place, Stop> {
        let Action { who, site, does } = action;
        self.place_of(&Actor { who, site }, does, pointer, extent)
    }

    /// Resolves the bytes of a thread's load or store. These are frequent, so the function is
    /// inlined, and the actor is only described if there is a finding.
    #[inline(always)]
    pub(super) fn place_of(
        &mut self,
        actor: &Actor,
        does: &'static str,
        pointer: Pointer,
        extent: Extent,
    ) -> Result<Place, Stop> {
        let own = actor.who.block;
        match self.memory.locate(pointer, own, extent) {
            Ok(Place::Global(address)) => {
                if let Some(stretch) = self.memory.stores.at(address, extent.bytes.into()) {
                    self.not_stored(actor.does(does), address, stretch);
                }
                Ok(Place::Global(address))
            }
            Ok(Place::Shared(place)) => {
                if place.rank != own && self.liveness.of_block(place.rank) == 0 {
                    self.block_gone(actor.does(does), place.rank);
                }
                Ok(Place::Shared(place))
            }
            Err(fault) => Err(self.misplaced(actor.does(does), pointer, extent, fault)),
        }
    }

    /// Resolves like [`place`](Self::place), for pointers that must be to shared memory.
    pub(super) fn shared_place(
        &mut self,
        action: Action,
        pointer: Pointer,
        extent: Extent,
    ) -> Result<SharedPlace, Stop> {
        match self.place(action, pointer, extent)? {
            Place::Shared(place) => Ok(place),
            Place::Global(address) => {
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
        help: &str,
    ) -> Result<T, Stop> {
        let party = self.diagnostics.party(action);
        self.stop(Finding::new(kind, message).with(party).help(help))
    }

    /// Records that the copy engine refuses a copy, with help if there is any.
    pub(super) fn illegal<T>(&mut self, action: Action, message: String, help: &str) -> Result<T, Stop> {
        let kind = FindingKind::IllegalCopy;
        if help.is_empty() {
            return self.refuse(action, kind, message);
        }
        self.refuse_with_help(action, kind, message, help)
    }

    #[cold]
    fn misplaced(&mut self, action: Action, pointer: Pointer, extent: Extent, fault: PlaceFault) -> Stop {
        let Pointer { space, address } = pointer;
        let party = self.diagnostics.party(action);
        let finding = match fault {
            PlaceFault::Misaligned => {
                let align = extent.align;
                let message =
                    format!("address {address:#x} of {} is not a multiple of {align}", name_of(space));
                Finding::new(FindingKind::Misaligned, message)
            }
            PlaceFault::NoBlock(rank) => {
                let or_more = if rank == NO_RANK { " or more" } else { "" };
                let blocks = counted(self.shape.blocks, "block");
                let message = format!("shared memory of rank {rank}{or_more} in a cluster of {blocks}");
                Finding::new(FindingKind::OutOfBounds, message).help(
                    "ranks are those of [[`cluster_rank()`||`%cluster_ctarank`]], from 0: to go around, take them modulo the number of blocks",
                )
            }
            PlaceFault::OutsideShared { at } => {
                let (bytes, Range { start, end }) = (counted(extent.bytes, "byte"), &self.memory.window);
                let message = format!(
                    "{bytes} at {at:#x} of shared memory, of which a block has {start:#x} up to {end:#x}"
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
    pub(super) fn not_stored(&mut self, action: Action, address: u64, stretch: Stretch) {
        let message = format!("a bulk store to global memory at {address:#x} is not known to be complete");
        let log = &mut self.diagnostics;
        let finding = Finding::new(FindingKind::InFlight, message)
            .with(log.party(action))
            .with(log.party(stretch.issuer.does("issued the store")))
            .help(
                "[[`bulk_wait_group::<0>()`||`cp.async.bulk.wait_group`]] by the thread that issued the store: \
                 [[`bulk_wait_group_read` waits||with `.read` it waits]] only until the tile is read, not until it is written",
            );
        log.report(finding);
    }

    #[cold]
    fn block_gone(&mut self, action: Action, rank: BlockRank) {
        let message =
            format!("shared memory of block {rank} of the cluster is used after all its threads have ended");
        let party = self.diagnostics.party(action);
        self.report(Finding::new(FindingKind::BlockGone, message).with(party).help(STAY));
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
