//! The groups of copies that each thread has issued, and the copies that it has not waited for.

use tma_model::sync::{BulkGroups, Component, CopyGroups, Epoch, GroupEnd, GroupWait, Issue};

use super::Engines;
use crate::machine::index::{PerThread, ThreadId};
use crate::machine::memory::SharedLocation;
use crate::machine::order::HappensBefore;
use crate::machine::types::{Actor, Site};

/// The bulk groups of a thread.
#[derive(Debug, Default)]
pub(super) struct BulkState {
    pub(super) groups: BulkGroups,
    /// The clock component that counts the groups whose sources are known to have been read.
    component: Option<Component>,
    /// The clock component that counts the groups that are known to have been written.
    written: Option<Component>,
    /// The copies of each group that were not waited for.
    unwaited: Vec<(u32, Site)>,
}

/// The `cp.async` of a thread.
#[derive(Debug, Default)]
pub(super) struct CopyState {
    groups: CopyGroups,
    /// The clock component that counts the batches.
    component: Option<Component>,
    /// Arrivals that become due when all batches up to theirs have landed.
    arrivals: Vec<Arrival>,
    /// The copies that neither a wait nor an mbarrier covers, by batch.
    unwaited: Vec<(u32, Site)>,
}

/// `cp.async.mbarrier.arrive`, which waits for the copies before it.
#[derive(Clone, Debug)]
pub(in crate::machine) struct Arrival {
    pub(in crate::machine) actor: Actor,
    pub(in crate::machine) location: SharedLocation,
    /// The last batch of the thread that it waits for.
    pub(in crate::machine) batch: Epoch,
    /// The knowledge of the past at the time of issue.
    pub(in crate::machine) issue: Issue,
}

/// Returns a component, which is created at the first call.
fn component_of(known: &mut Option<Component>, thread: ThreadId, order: &mut HappensBefore) -> Component {
    *known.get_or_insert_with(|| {
        let component = order.new_component();
        order.name_agent(component, thread);
        component
    })
}

/// Adds a copy that must be waited for.
fn add_unwaited(list: &mut Vec<(u32, Site)>, number: u32, site: Site) {
    if list.last() != Some(&(number, site)) {
        list.push((number, site));
    }
}

impl Engines {
    /// Returns the bulk group of a thread's next copy: the step at which its sources have been
    /// read, and the step at which it has been written.
    pub(in crate::machine) fn open_group(
        &mut self,
        actor: Actor,
        order: &mut HappensBefore,
    ) -> (Epoch, Epoch) {
        let bulk = &mut self.bulk[actor.thread];
        let component = component_of(&mut bulk.component, actor.thread, order);
        let number = bulk.groups.current();
        add_unwaited(&mut bulk.unwaited, number, actor.site);
        let written = component_of(&mut bulk.written, actor.thread, order);
        (Epoch::new(component, number), Epoch::new(written, number))
    }

    /// Lets a thread know that its bulk groups up to `last` have been written.
    pub(in crate::machine) fn learn_written(&self, thread: ThreadId, last: u32, order: &mut HappensBefore) {
        if let Some(component) = self.bulk[thread].written
            && last > 0
        {
            order.view_mut(thread).learn(Epoch::new(component, last));
        }
    }

    /// Starts a copy of this many pieces in the current bulk group.
    pub(in crate::machine) fn start_in_group(&mut self, thread: ThreadId, pieces: u32) {
        self.bulk[thread].groups.start(pieces);
    }

    /// Records that a piece of a bulk group has been read.
    pub(in crate::machine) fn group_read(&mut self, thread: ThreadId, group: Epoch) {
        self.bulk[thread].groups.read(group.count());
    }

    /// Records that a piece of a bulk group has been written.
    pub(in crate::machine) fn group_written(&mut self, thread: ThreadId, group: Epoch) {
        self.bulk[thread].groups.written(group.count());
    }

    /// `cp.async.bulk.commit_group`.
    pub(in crate::machine) fn commit_group(&mut self, thread: ThreadId) {
        self.bulk[thread].groups.commit();
    }

    /// `cp.async.bulk.wait_group`. Returns the last group that is complete, or `None` if the thread
    /// must wait.
    pub(in crate::machine) fn wait_groups(
        &mut self,
        thread: ThreadId,
        pending: u32,
        end: GroupEnd,
        order: &mut HappensBefore,
    ) -> Option<u32> {
        let bulk = &mut self.bulk[thread];
        match bulk.groups.wait(pending, end) {
            GroupWait::Pending => None,
            GroupWait::Done { last, is_first } => {
                if is_first {
                    bulk.unwaited.retain(|&(number, _)| number > last);
                    if let Some(component) = bulk.component {
                        order.view_mut(thread).learn(Epoch::new(component, last));
                    }
                }
                Some(last)
            }
        }
    }

    /// Returns a copy of a bulk group that its thread has not waited for, and whether the group was
    /// committed.
    pub(in crate::machine) fn unwaited_group(&self, thread: ThreadId) -> Option<(Site, bool)> {
        let bulk = &self.bulk[thread];
        let &(number, site) = bulk.unwaited.first()?;
        Some((site, number <= bulk.groups.committed()))
    }

    /// Returns the state of a thread's `cp.async`. It is allocated at the first use, since most
    /// kernels have none.
    fn copies(&mut self, thread: ThreadId) -> &mut CopyState {
        let shape = self.shape;
        &mut self.copies.get_or_insert_with(|| PerThread::new(shape, |_| CopyState::default()))[thread]
    }

    /// Starts a `cp.async` of a thread. Returns the step of the batch that it belongs to.
    pub(in crate::machine) fn start_copy(&mut self, actor: Actor, order: &mut HappensBefore) -> Epoch {
        let copies = self.copies(actor.thread);
        let component = component_of(&mut copies.component, actor.thread, order);
        let batch = copies.groups.current();
        copies.groups.start();
        add_unwaited(&mut copies.unwaited, batch, actor.site);
        Epoch::new(component, batch)
    }

    /// Records that a `cp.async` of a batch has landed. Returns the arrivals that are now due.
    pub(in crate::machine) fn copy_landed(&mut self, thread: ThreadId, batch: Epoch) -> Vec<Arrival> {
        self.copies(thread).groups.landed(batch.count());
        self.take_arrivals(thread)
    }

    /// `cp.async.commit_group`.
    pub(in crate::machine) fn commit_copies(&mut self, thread: ThreadId) {
        self.copies(thread).groups.commit();
    }

    /// `cp.async.wait_group`; without a number, `cp.async.wait_all`. Returns whether the thread
    /// goes on.
    pub(in crate::machine) fn wait_copies(
        &mut self,
        thread: ThreadId,
        pending: Option<u32>,
        order: &mut HappensBefore,
    ) -> bool {
        let copies = self.copies(thread);
        match copies.groups.wait(pending) {
            GroupWait::Pending => false,
            GroupWait::Done { is_first: false, .. } => true,
            GroupWait::Done { last, is_first: true } => {
                copies.unwaited.retain(|&(batch, _)| batch > last);
                if let Some(component) = copies.component {
                    order.view_mut(thread).learn(Epoch::new(component, last));
                }
                true
            }
        }
    }

    /// `cp.async.mbarrier.arrive`: ends a thread's batch. Returns the arrivals that are due at
    /// once.
    pub(in crate::machine) fn arrive_after_copies(
        &mut self,
        actor: Actor,
        location: SharedLocation,
        issue: Issue,
        order: &mut HappensBefore,
    ) -> Vec<Arrival> {
        let copies = self.copies(actor.thread);
        let component = component_of(&mut copies.component, actor.thread, order);
        let batch = Epoch::new(component, copies.groups.end_batch());
        copies.unwaited.clear();
        copies.arrivals.push(Arrival { actor, location, batch, issue });
        self.take_arrivals(actor.thread)
    }

    /// Takes the arrivals whose copies have landed.
    fn take_arrivals(&mut self, thread: ThreadId) -> Vec<Arrival> {
        let CopyState { arrivals, groups, .. } = self.copies(thread);
        if arrivals.is_empty() {
            return Vec::new();
        }
        arrivals.extract_if(.., |arrival| groups.has_landed(arrival.batch.count())).collect()
    }

    /// Returns a `cp.async` that its thread has not waited for.
    pub(in crate::machine) fn unwaited_copy(&self, thread: ThreadId) -> Option<Site> {
        let copies = &self.copies.as_ref()?[thread];
        copies.unwaited.first().map(|&(_, site)| site)
    }
}
