//! The groups of copies that each thread has issued, and what it has not waited for.

use tma_model::sync::{BulkGroups, Component, CopyGroups, Epoch, GroupEnd, GroupWait, Issue};

use super::Engines;
use crate::machine::index::{PerThread, ThreadId};
use crate::machine::memory::SharedPlace;
use crate::machine::order::HappensBefore;
use crate::machine::types::{Actor, Site};

/// The bulk groups of a thread.
#[derive(Debug, Default)]
pub(super) struct BulkState {
    pub(super) groups: BulkGroups,
    /// The clock component that counts the groups that were waited for.
    component: Option<Component>,
    /// The one that counts the groups that are known to be written.
    written: Option<Component>,
    /// The last copy of each group not waited for.
    unwaited: Vec<(u32, Site)>,
}

/// What a thread has issued of `cp.async`.
#[derive(Debug, Default)]
pub(super) struct CopyState {
    groups: CopyGroups,
    /// The clock component that counts its batches.
    component: Option<Component>,
    /// Arrivals that are to come when the batches up to theirs have landed.
    arrivals: Vec<Arrival>,
    /// The copies that neither a wait nor an mbarrier stands for, by batch.
    unwaited: Vec<(u32, Site)>,
}

/// `cp.async.mbarrier.arrive`, which waits for the copies before it.
#[derive(Clone, Debug)]
pub(in crate::machine) struct Arrival {
    pub(in crate::machine) actor: Actor,
    pub(in crate::machine) place: SharedPlace,
    /// The thread's batch that it waits for, with those before.
    pub(in crate::machine) batch: Epoch,
    /// What had happened when it was issued.
    pub(in crate::machine) issue: Issue,
}

/// A component that is made when it is first asked for.
fn component_of(known: &mut Option<Component>, who: ThreadId, order: &mut HappensBefore) -> Component {
    *known.get_or_insert_with(|| {
        let component = order.new_component();
        order.name_agent(component, who);
        component
    })
}

/// Adds a copy that is to be waited for.
fn add_unwaited(list: &mut Vec<(u32, Site)>, number: u32, site: Site) {
    if list.last() != Some(&(number, site)) {
        list.push((number, site));
    }
}

impl Engines {
    /// The bulk group that the next copy of a thread is of, as the step that tells that its sources
    /// are read, and the one that tells that it is written.
    pub(in crate::machine) fn open_group(
        &mut self,
        actor: Actor,
        order: &mut HappensBefore,
    ) -> (Epoch, Epoch) {
        let bulk = &mut self.bulk[actor.who];
        let component = component_of(&mut bulk.component, actor.who, order);
        let number = bulk.groups.current();
        add_unwaited(&mut bulk.unwaited, number, actor.site);
        let written = component_of(&mut bulk.written, actor.who, order);
        (Epoch::new(component, number), Epoch::new(written, number))
    }

    /// A thread knows that its bulk groups up to `last` are written.
    pub(in crate::machine) fn know_written(&self, who: ThreadId, last: u32, order: &mut HappensBefore) {
        if let Some(component) = self.bulk[who].written
            && last > 0
        {
            order.view_mut(who).learn(Epoch::new(component, last));
        }
    }

    /// A copy of so many pieces is started in the current bulk group.
    pub(in crate::machine) fn start_in_group(&mut self, who: ThreadId, pieces: u32) {
        self.bulk[who].groups.start(pieces);
    }

    /// A piece of a bulk group has been read.
    pub(in crate::machine) fn group_read(&mut self, who: ThreadId, group: Epoch) {
        self.bulk[who].groups.read(group.count());
    }

    /// A piece of a bulk group has been written.
    pub(in crate::machine) fn group_written(&mut self, who: ThreadId, group: Epoch) {
        self.bulk[who].groups.written(group.count());
    }

    /// `cp.async.bulk.commit_group`.
    pub(in crate::machine) fn commit_group(&mut self, who: ThreadId) {
        self.bulk[who].groups.commit();
    }

    /// `cp.async.bulk.wait_group`: the last group that was waited for, or none if the thread has to
    /// wait.
    pub(in crate::machine) fn wait_groups(
        &mut self,
        who: ThreadId,
        pending: u32,
        end: GroupEnd,
        order: &mut HappensBefore,
    ) -> Option<u32> {
        let bulk = &mut self.bulk[who];
        match bulk.groups.wait(pending, end) {
            GroupWait::Pending => None,
            GroupWait::Done { last, news } => {
                if news {
                    bulk.unwaited.retain(|&(number, _)| number > last);
                    if let Some(component) = bulk.component {
                        order.view_mut(who).learn(Epoch::new(component, last));
                    }
                }
                Some(last)
            }
        }
    }

    /// A copy of a bulk group that its thread has not waited for, and whether the group was
    /// committed.
    pub(in crate::machine) fn unwaited_group(&self, who: ThreadId) -> Option<(Site, bool)> {
        let bulk = &self.bulk[who];
        let &(number, site) = bulk.unwaited.first()?;
        Some((site, number <= bulk.groups.committed()))
    }

    /// What a thread has issued of `cp.async`. Most threads issue nothing, and most kernels have
    /// none that does.
    fn copies(&mut self, who: ThreadId) -> &mut CopyState {
        let shape = self.shape;
        &mut self.copies.get_or_insert_with(|| PerThread::new(shape, |_| CopyState::default()))[who]
    }

    /// A thread starts a `cp.async`: the batch that it is of, as the step that tells of it.
    pub(in crate::machine) fn start_copy(&mut self, actor: Actor, order: &mut HappensBefore) -> Epoch {
        let copies = self.copies(actor.who);
        let component = component_of(&mut copies.component, actor.who, order);
        let batch = copies.groups.current();
        copies.groups.start();
        add_unwaited(&mut copies.unwaited, batch, actor.site);
        Epoch::new(component, batch)
    }

    /// A `cp.async` of a batch has landed. The answer are the arrivals that may now come.
    pub(in crate::machine) fn copy_landed(&mut self, who: ThreadId, batch: Epoch) -> Vec<Arrival> {
        self.copies(who).groups.landed(batch.count());
        self.take_arrivals(who)
    }

    /// `cp.async.commit_group`.
    pub(in crate::machine) fn commit_copies(&mut self, who: ThreadId) {
        self.copies(who).groups.commit();
    }

    /// `cp.async.wait_group`, and without a number `cp.async.wait_all`: whether the thread goes on.
    pub(in crate::machine) fn wait_copies(
        &mut self,
        who: ThreadId,
        pending: Option<u32>,
        order: &mut HappensBefore,
    ) -> bool {
        let copies = self.copies(who);
        match copies.groups.wait(pending) {
            GroupWait::Pending => false,
            GroupWait::Done { news: false, .. } => true,
            GroupWait::Done { last, news: true } => {
                copies.unwaited.retain(|&(batch, _)| batch > last);
                if let Some(component) = copies.component {
                    order.view_mut(who).learn(Epoch::new(component, last));
                }
                true
            }
        }
    }

    /// `cp.async.mbarrier.arrive`: ends a thread's batch. The answer are the arrivals that may come
    /// at once.
    pub(in crate::machine) fn arrive_after_copies(
        &mut self,
        actor: Actor,
        place: SharedPlace,
        issue: Issue,
        order: &mut HappensBefore,
    ) -> Vec<Arrival> {
        let copies = self.copies(actor.who);
        let component = component_of(&mut copies.component, actor.who, order);
        let batch = Epoch::new(component, copies.groups.end_batch());
        copies.unwaited.clear();
        copies.arrivals.push(Arrival { actor, place, batch, issue });
        self.take_arrivals(actor.who)
    }

    /// The arrivals of which the copies have landed.
    fn take_arrivals(&mut self, who: ThreadId) -> Vec<Arrival> {
        let CopyState { arrivals, groups, .. } = self.copies(who);
        if arrivals.is_empty() {
            return Vec::new();
        }
        arrivals.extract_if(.., |arrival| groups.has_landed(arrival.batch.count())).collect()
    }

    /// A `cp.async` that its thread has not waited for.
    pub(in crate::machine) fn unwaited_copy(&self, who: ThreadId) -> Option<Site> {
        let copies = &self.copies.as_ref()?[who];
        copies.unwaited.first().map(|&(_, site)| site)
    }
}
