//! `cp.async` without `.bulk`: a thread's own small copies from global to shared memory, in the generic proxy.
//!
//! A thread's copies come in batches: `commit_group` ends one, and so does `cp.async.mbarrier.arrive`. What a copy writes
//! is a step of its own, numbered by the batch, which not even the thread that issued it knows before a wait: PTX ISA,
//! "cp.async", no other mechanism than groups and mbarriers tells of the completion, and copies have no order.

use std::collections::BTreeMap;

use super::Machine;
use super::access::Access;
use super::clock::{Epoch, Knowledge, NOT_READY};
use super::conflict::Act;
use super::engine::delay;
use super::mbarrier::Refusal;
use super::mbarrier_ops::GONE;
use super::overrun::Issue;
use super::remote::Remote;
use super::state::POISON;
use super::types::{Arrive, Poll, Scope, Site, Space, ThreadId};
use crate::report::{Finding, FindingKind, Stop};

/// The most bytes of one copy.
const MOST: usize = 16;

/// `cp.async` of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyAsync {
    /// The thread.
    pub who: ThreadId,
    /// The destination, in the thread's own block.
    pub to: u64,
    /// The source, in global memory.
    pub from: u64,
    /// Bytes that are written: 4, 8 or 16.
    pub bytes: u32,
    /// Bytes that are read; the others become zero.
    pub read: u32,
}

/// What a thread has issued.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The clock component that counts its batches.
    component: Option<u32>,
    /// Batches that have ended.
    ended: u32,
    /// The last batch of each group that was committed and not waited for.
    groups: Vec<u32>,
    /// Copies under way, of each batch that has any.
    open: Vec<(u32, u32)>,
    /// Arrivals that are to come when the batches up to theirs have landed.
    arrivals: Vec<Arrival>,
    /// Where the copies that neither a wait nor an mbarrier stands for were issued.
    pub(super) forgotten: Vec<(u32, Site)>,
}

impl Copies {
    fn batch(&self) -> u32 {
        self.ended.saturating_add(1)
    }

    fn end_batch(&mut self) -> u32 {
        self.ended = self.batch();
        self.ended
    }

    fn has_landed(&self, batch: u32) -> bool {
        self.open.iter().all(|&(open, _)| open > batch)
    }
}

/// A copy that is under way.
#[derive(Debug)]
pub(super) struct Small {
    copy: CopyAsync,
    site: Site,
    rank: usize,
    at: usize,
    batch: u32,
    /// What the source held when the copy was issued.
    before: [u8; MOST],
}

/// `cp.async.mbarrier.arrive`, which waits for the copies before it.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    who: ThreadId,
    site: Site,
    rank: usize,
    at: u32,
    batch: u32,
    /// What the mbarrier learns of the time before.
    issue: Issue,
}

#[derive(Debug)]
pub(super) enum Event {
    Land(Vec<Small>),
    Arrive(Arrival),
    Remote(Remote),
}

/// Copies, arrivals and remote stores that are to take effect: by time, then by a draw, then as they were issued.
#[derive(Debug, Default)]
pub(super) struct Landings {
    events: BTreeMap<(u64, u64, u32), Event>,
    issued: u32,
}

impl Landings {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// When the next one takes effect.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.events.first_key_value().map(|(key, _)| key.0)
    }

    fn pop_due(&mut self, now: u64) -> Option<Event> {
        if self.next_due()? > now {
            return None;
        }
        self.events.pop_first().map(|(_, event)| event)
    }

    fn push(&mut self, due: u64, tie: u64, event: Event) {
        self.issued = self.issued.wrapping_add(1);
        self.events.insert((due, tie, self.issued), event);
    }
}

impl Machine {
    /// `cp.async`, of the threads of a warp that are at it.
    ///
    /// # Errors
    ///
    /// Out of bounds or misaligned; more bytes to read than to write.
    pub fn copy_async(&mut self, copies: &[CopyAsync], site: Site) -> Result<(), Stop> {
        // The threads' copies land at up to three times.
        let slowness = self.random.below(4);
        let mut landings = [const { Vec::new() }; 3];
        for &copy in copies {
            let small = self.issue(copy, site)?;
            landings[self.random.below(3) as usize].push(small);
        }
        for landing in landings.into_iter().filter(|landing| !landing.is_empty()) {
            self.later(slowness, Event::Land(landing));
        }
        Ok(())
    }

    /// What a thread has issued. Apart from the threads, of which most issue nothing.
    fn copies_of(&mut self, who: ThreadId) -> &mut Copies {
        let index = self.index(who);
        if self.copies.len() <= index {
            self.copies.resize_with(self.threads.len(), Copies::default);
        }
        &mut self.copies[index]
    }

    /// Lets `event` happen at a time that is drawn.
    pub(super) fn later(&mut self, slowness: u64, event: Event) {
        let due = self.engine.now + delay(slowness, &mut self.random);
        let tie = self.random.next();
        self.engine.landings.push(due, tie, event);
    }

    fn issue(&mut self, copy: CopyAsync, site: Site) -> Result<Small, Stop> {
        let CopyAsync { who, to, from, bytes, read } = copy;
        let access = Access { who, site, does: "issues the copy" };
        let (rank, at) = self.shared_place(access, Space::Shared, to, bytes, bytes)?;
        if read > bytes {
            let message =
                format!("`cp.async` of {bytes} bytes is to read {read}; the source has at most as many");
            let party = self.party(who, site, access.does);
            return self.stop(Finding::new(FindingKind::IllegalCopy, message).with(party));
        }
        let mut before = [0; MOST];
        if read > 0 {
            self.place(access, Space::Global, from, bytes, bytes)?;
            self.load_global(access, from, &mut before[..read as usize])?;
        }
        let component = match self.copies_of(who).component {
            Some(component) => component,
            None => {
                let component = self.new_component();
                self.engine.name_agent(component, who);
                self.copies_of(who).component = Some(component);
                component
            }
        };
        let copies = self.copies_of(who);
        let batch = copies.batch();
        match copies.open.iter_mut().find(|open| open.0 == batch) {
            Some(open) => open.1 += 1,
            None => copies.open.push((batch, 1)),
        }
        if copies.forgotten.last() != Some(&(batch, site)) {
            copies.forgotten.push((batch, site));
        }
        if self.config.checks.order {
            let done = Epoch::new(component, batch);
            let index = self.index(who);
            let (view, shadow) = (&self.threads[index].view, &mut self.blocks[rank].shadow);
            if let Some(conflict) = shadow.write_copy(at, bytes, view, done, site.ptx_line) {
                self.conflict(access, Act::CopyIn, rank, conflict);
            }
        }
        let at = at as usize;
        self.blocks[rank].data[at..at + bytes as usize].fill(POISON);
        Ok(Small { copy, site, rank, at, batch, before })
    }

    /// `cp.async.commit_group`: the copies since the last one become a group.
    pub fn copy_async_commit(&mut self, who: ThreadId) {
        let copies = self.copies_of(who);
        let batch = copies.end_batch();
        copies.groups.push(batch);
    }

    /// `cp.async.wait_group`: waits until at most `pending` groups are left. None is `cp.async.wait_all`: for all copies,
    /// committed or not.
    pub fn copy_async_wait(&mut self, who: ThreadId, pending: Option<u32>) -> Poll {
        let copies = self.copies_of(who);
        let batch = match pending {
            None => Some(copies.batch()),
            Some(pending) => {
                let last = copies.groups.len().checked_sub(pending as usize + 1);
                last.and_then(|last| copies.groups.get(last).copied())
            }
        };
        let Some(batch) = batch else { return Poll::Ready };
        if !copies.has_landed(batch) {
            return Poll::Blocked;
        }
        copies.ended = copies.ended.max(batch);
        copies.groups.retain(|&group| group > batch);
        copies.forgotten.retain(|&(issued, _)| issued > batch);
        if let Some(component) = copies.component {
            self.view(who).knows.learn(component, batch, NOT_READY);
        }
        Poll::Ready
    }

    /// `cp.async.mbarrier.arrive`: an arrival when all copies that the thread has issued are complete. Unless
    /// `no_increment`, the phase expects this arrival in addition to what it expects anyway.
    ///
    /// # Errors
    ///
    /// No mbarrier there, or more arrivals than it can count.
    pub fn copy_async_arrive(
        &mut self,
        who: ThreadId,
        space: Space,
        address: u64,
        no_increment: bool,
        site: Site,
    ) -> Result<(), Stop> {
        let access = Access { who, site, does: "has its copies arrive" };
        let (rank, at) = self.mbarrier_place(access, space, address)?;
        let Some(mbarrier) = self.blocks[rank].mbarriers.at(at) else {
            return self.bug(access, GONE);
        };
        let counted = if no_increment { Ok(()) } else { mbarrier.expect_one_more() };
        mbarrier.under_way += 1;
        mbarrier.last_load = Some((mbarrier.phase.saturating_add(1), who, site));
        if let Err(refusal) = counted {
            return self.refused(access, rank, at, refusal);
        }
        let issue = self.issue_of(who);
        let copies = self.copies_of(who);
        let batch = copies.end_batch();
        copies.forgotten.clear();
        copies.arrivals.push(Arrival { who, site, rank, at, batch, issue });
        self.arrive_if_landed(who);
        Ok(())
    }

    /// Lets the arrivals come, at some later time, whose copies have landed.
    fn arrive_if_landed(&mut self, who: ThreadId) {
        let copies = self.copies_of(who);
        let arrivals = std::mem::take(&mut copies.arrivals);
        let (due, rest): (Vec<_>, Vec<_>) =
            arrivals.into_iter().partition(|arrival| copies.has_landed(arrival.batch));
        copies.arrivals = rest;
        for arrival in due {
            let slowness = self.random.below(3);
            self.later(slowness, Event::Arrive(arrival));
        }
    }

    /// Lets all copies and arrivals that are due take effect; true if there was any.
    pub(super) fn land_copies(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.engine.landings.pop_due(self.engine.now) {
            any = true;
            match event {
                Event::Land(copies) => copies.iter().for_each(|small| self.land(small)),
                Event::Remote(remote) => self.land_remote(&remote),
                Event::Arrive(arrival) => self.arrive_late(&arrival),
            }
        }
        any
    }

    fn land(&mut self, small: &Small) {
        let CopyAsync { who, from, bytes, read, .. } = small.copy;
        let access = Access { who, site: small.site, does: "issued the copy" };
        let (mut now, read) = ([0; MOST], read as usize);
        if let Err(fault) = self.config.global.read(from, &mut now[..read])
            && read > 0
        {
            // The copy is on its way: the fault is recorded, and the rest goes on.
            let _ = self.global_fault(access, from, read as u32, fault);
        }
        if now != small.before {
            let message = format!("global memory at {from:#x} is written while `cp.async` may still read it");
            let finding = Finding::new(FindingKind::InFlight, message)
                .with(self.party(who, small.site, access.does))
                .help("let whoever writes there wait until the copy is complete");
            self.report(finding);
        }
        let target = &mut self.blocks[small.rank].data[small.at..small.at + bytes as usize];
        target.copy_from_slice(&now[..bytes as usize]);
        let copies = self.copies_of(who);
        if let Some(batch) = copies.open.iter_mut().find(|batch| batch.0 == small.batch) {
            batch.1 -= 1;
        }
        copies.open.retain(|batch| batch.1 > 0);
        if !copies.arrivals.is_empty() {
            self.arrive_if_landed(who);
        }
    }

    /// The arrival tells of the copies, and of nothing else that the thread has done.
    fn arrive_late(&mut self, arrival: &Arrival) {
        let Arrival { who, site, rank, at, batch, ref issue } = *arrival;
        let access = Access { who, site, does: "had its copies arrive" };
        let component = self.copies_of(who).component;
        let Some(mbarrier) = self.blocks[rank].mbarriers.at(at) else { return };
        mbarrier.under_way = mbarrier.under_way.saturating_sub(1);
        mbarrier.last_load = Some((mbarrier.phase.saturating_add(1), who, site));
        if let Some(component) = component {
            let mut told = Knowledge::default();
            told.learn(component, batch, NOT_READY);
            // `cp.async.mbarrier.arrive` is for mbarriers of the own block.
            mbarrier.arrivals(true, Scope::Block).add(&told);
        }
        mbarrier.note_issue(issue);
        let arrived = mbarrier.arrive(&Arrive::ONE);
        self.counted_at(access, rank, at);
        if let Err(refusal) = arrived {
            let _: Result<(), _> = self.refused(access, rank, at, refusal);
        }
    }

    /// A thread that ends has to have waited for its copies, or left that to an mbarrier.
    pub(super) fn check_copies(&mut self, who: ThreadId, site: Site) {
        let Some(copies) = self.copies.get(self.index(who)) else { return };
        let Some(&(_, issued)) = copies.forgotten.first() else { return };
        let message = "the thread that issued a `cp.async` ends, and nobody has waited for the copy";
        let finding = Finding::new(FindingKind::Leak, message)
            .with(self.party(who, issued, "issued the copy"))
            .with(self.party(who, site, "ends"))
            .help("`cp.async.wait_all` before the thread ends");
        self.report(finding);
    }
}

impl super::mbarrier::Mbarrier {
    /// The current phase expects one arrival more.
    fn expect_one_more(&mut self) -> Result<(), Refusal> {
        if self.pending >= super::mbarrier::MAX_COUNT {
            return Err(Refusal::PendingRange);
        }
        self.pending += 1;
        Ok(())
    }
}
