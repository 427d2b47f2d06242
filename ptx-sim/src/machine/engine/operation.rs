//! `st.async` and `red.async`: late writes of a thread to the shared memory of a block of its cluster, in the generic proxy,
//! that an mbarrier there tells of.
//!
//! Source: PTX ISA, "st.async" and "red.async": weak and relaxed operations, whose complete-tx operation has release
//! semantics at cluster scope.

use super::Machine;
use super::access::Access;
use super::clock::Epoch;
use super::conflict::Act;
use super::copy_async::Event;
use super::overrun::Issue;
use super::shadow::Manner;
use super::state::POISON;
use super::types::{Reduction, Site, Space, ThreadId};
use crate::report::{Finding, FindingKind, Stop};
use crate::tensor_map::Element;

/// `st.async`, and with `reduce` `red.async`, of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteStore {
    /// The thread.
    pub who: ThreadId,
    /// Space of `to` and of `barrier`: `shared::cluster` or generic.
    pub space: Space,
    /// The destination.
    pub to: u64,
    /// The value, and how many bytes it has: 4, 8 or 16.
    pub value: ([u8; 16], u32),
    /// The mbarrier that gets the bytes, in the same block.
    pub barrier: u64,
    /// How the value is combined with what is there.
    pub reduce: Option<(Reduction, Element)>,
}

/// A store under way.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    store: RemoteStore,
    site: Site,
    rank: usize,
    at: u32,
    barrier: u32,
    number: u32,
    /// What the mbarrier learns.
    issue: Issue,
}

impl Machine {
    /// `st.async` and `red.async`.
    ///
    /// # Errors
    ///
    /// Out of bounds or misaligned, no mbarrier there, or one in another block than the destination.
    pub fn remote_store(&mut self, store: RemoteStore, site: Site) -> Result<(), Stop> {
        let RemoteStore { who, space, to, value: (_, len), barrier, reduce } = store;
        let access = Access { who, site, does: "issues the store" };
        let (rank, at) = self.shared_place(access, space, to, len, len)?;
        let (with, barrier) = self.mbarrier_place(access, space, barrier)?;
        if rank != with {
            let message = format!("a store to block {rank} of the cluster with an mbarrier of block {with}");
            let finding = Finding::new(FindingKind::IllegalCopy, message)
                .with(self.party(who, site, access.does))
                .help("the mbarrier has to be in the block that gets the bytes");
            return self.stop(finding);
        }
        let number = self.engine.number_of(who);
        if self.config.checks.order {
            let threads = self.threads.len() as u32;
            let index = self.index(who);
            let manner = Manner { generic: true, reduces: reduce.is_some() };
            let (view, shadow) = (&self.threads[index].view, &mut self.blocks[rank].shadow);
            let found = shadow.write_async(at, len, view, (number, site.ptx_line), manner, threads);
            if let Some(conflict) = found {
                self.conflict(access, Act::CopyIn, rank, conflict);
            }
        }
        if reduce.is_none() {
            self.blocks[rank].data[at as usize..(at + len) as usize].fill(POISON);
        }
        self.expect_pieces(access, rank, barrier, 1);
        let slowness = self.random.below(4);
        let issue = self.issue_of(who);
        self.later(slowness, Event::Remote(Remote { store, site, rank, at, barrier, number, issue }));
        Ok(())
    }

    pub(super) fn land_remote(&mut self, remote: &Remote) {
        let Remote { store, site, rank, at, barrier, number, ref issue } = *remote;
        let (value, len) = store.value;
        let target = &mut self.blocks[rank].data[at as usize..(at + len) as usize];
        match store.reduce {
            None => target.copy_from_slice(&value[..len as usize]),
            Some((with, element)) => super::reduce::reduce_bytes(target, &value, with, element),
        }
        self.engine.forget(number);
        let Some(mbarrier) = self.blocks[rank].mbarriers.at(barrier) else { return };
        let phase = mbarrier.phase.saturating_add(1);
        mbarrier.under_way = mbarrier.under_way.saturating_sub(1);
        mbarrier.last_load = Some((phase, store.who, site));
        let done = Epoch::new(mbarrier.component, phase);
        mbarrier.note_issue(issue);
        let counted = mbarrier.complete_tx(len);
        let access = Access { who: store.who, site, does: "issued the store" };
        self.counted_at(access, rank, barrier);
        if self.config.checks.order {
            self.engine.name_agent(done.component(), store.who);
            self.blocks[rank].shadow.landed(at, len, number, done);
        }
        if let Err(refusal) = counted {
            let _: Result<(), _> = self.refused(access, rank, barrier, refusal);
        }
    }
}
