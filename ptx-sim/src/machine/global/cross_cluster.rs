//! The knowledge that a cluster has of other clusters' steps.
//!
//! A release passes on the thread's knowledge of its own cluster and of others. When a thread of
//! another cluster acquires it, the thread *imports* that knowledge. The imports of a thread are
//! numbered, and count as the steps of an agent of the importing cluster. Every edge within that
//! cluster then carries the number, and with it the knowledge of other clusters. The same holds for
//! proxy fences after the import.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tma_model::sync::{Clock, Component, Epoch, Knowledge, Memory, View};

use super::mark::GlobalAccess;
use super::team::TeamLayout;
use crate::machine::index::ThreadId;

/// Known steps of one cluster.
#[derive(Clone, Debug, Default)]
struct ClusterKnowledge {
    knows: Knowledge,
    /// The steps that a proxy fence of global memory follows.
    fenced: Clock,
}

/// Known steps of clusters, by the number of the cluster.
#[derive(Clone, Debug, Default)]
pub(in crate::machine) struct CrossClusterKnowledge(BTreeMap<u32, ClusterKnowledge>);

impl CrossClusterKnowledge {
    /// Returns the known steps of one cluster.
    pub(in crate::machine) fn of(&self, cluster: u32) -> Option<&Knowledge> {
        self.0.get(&cluster).map(|known| &known.knows)
    }

    /// Returns whether this includes everything that `other` knows.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let covered = |(cluster, theirs): (&u32, &ClusterKnowledge)| {
            self.0
                .get(cluster)
                .is_some_and(|mine| covers(&mine.knows, &theirs.knows) && mine.fenced.covers(&theirs.fenced))
        };
        other.0.iter().all(covered)
    }

    /// Adds the knowledge of `other`. Returns false if nothing was new.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        let mut is_new = false;
        for (cluster, theirs) in &other.0 {
            let mine = self.0.entry(*cluster).or_default();
            if !covers(&mine.knows, &theirs.knows) {
                mine.knows = mine.knows.join(&theirs.knows);
                is_new = true;
            }
            if !mine.fenced.covers(&theirs.fenced) {
                mine.fenced = mine.fenced.join(&theirs.fenced);
                is_new = true;
            }
        }
        is_new
    }

    /// Adds the steps that `other` has seen, as followed by a proxy fence.
    fn fence(&mut self, other: &Self) {
        for (cluster, theirs) in &other.0 {
            let mine = self.0.entry(*cluster).or_default();
            mine.fenced = mine.fenced.join(theirs.knows.visible());
        }
    }
}

fn covers(mine: &Knowledge, theirs: &Knowledge) -> bool {
    mine.shares_storage(theirs)
        || mine.visible().covers(theirs.visible()) && mine.complete().covers(theirs.complete())
}

/// The imports of a thread. Each includes the earlier ones.
#[derive(Debug)]
struct Importer {
    component: Component,
    imports: Vec<Arc<CrossClusterKnowledge>>,
}

impl Importer {
    /// Returns the last import that a clock knows of.
    fn last(&self, clock: &Clock) -> Option<&Arc<CrossClusterKnowledge>> {
        self.imports.get((clock.get(self.component) as usize).checked_sub(1)?)
    }
}

/// The imports of all threads of a cluster.
#[derive(Debug, Default)]
pub(in crate::machine) struct Imports {
    importers: Vec<Importer>,
    of: HashMap<ThreadId, usize>,
}

impl Imports {
    /// Lets a thread import knowledge of clusters other than `own`. `component` is the clock
    /// component of the thread's import agent, if the thread needs a new one.
    pub(in crate::machine) fn add(
        &mut self,
        thread: ThreadId,
        acquired: &CrossClusterKnowledge,
        own: u32,
        view: &mut View,
        component: Option<Component>,
    ) {
        if !acquired.0.keys().any(|cluster| *cluster != own) {
            return;
        }
        let index = *self.of.entry(thread).or_insert(self.importers.len());
        if index == self.importers.len() {
            let Some(component) = component else { return };
            self.importers.push(Importer { component, imports: Vec::new() });
        }
        let Some(importer) = self.importers.get_mut(index) else { return };
        let mut all =
            importer.imports.last().map(|last| CrossClusterKnowledge::clone(last)).unwrap_or_default();
        if !all.join(acquired) {
            return;
        }
        all.0.remove(&own);
        importer.imports.push(Arc::new(all));
        view.learn(Epoch::new(importer.component, importer.imports.len() as u32));
    }

    /// Returns whether a thread already has an import agent.
    pub(in crate::machine) fn has(&self, thread: ThreadId) -> bool {
        self.of.contains_key(&thread)
    }

    /// Returns the knowledge that a thread of cluster `own` with knowledge `knows` releases.
    pub(super) fn export(&self, own: u32, knows: &Knowledge) -> CrossClusterKnowledge {
        let mut all = CrossClusterKnowledge::default();
        let fenced = knows.fenced(Memory::Global);
        for importer in &self.importers {
            if let Some(import) = importer.last(knows.visible()) {
                all.join(import);
            }
            if let Some(import) = importer.last(fenced) {
                all.fence(import);
            }
        }
        all.0.insert(own, ClusterKnowledge { knows: knows.clone(), fenced: fenced.clone() });
        all
    }
}

/// A thread, or a copy that it starts, whose access is compared with earlier ones.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Observer<'o> {
    pub(in crate::machine) cluster: u32,
    pub(in crate::machine) layout: TeamLayout,
    pub(in crate::machine) view: &'o View,
    pub(in crate::machine) imports: &'o Imports,
}

impl Observer<'_> {
    fn imported(
        &self,
        mark: &GlobalAccess,
        clock: &Clock,
        knows: impl Fn(&ClusterKnowledge) -> bool,
    ) -> bool {
        let of_cluster =
            |import: &Arc<CrossClusterKnowledge>| import.0.get(&mark.grid_thread.cluster).is_some_and(&knows);
        self.imports.importers.iter().filter_map(|importer| importer.last(clock)).any(of_cluster)
    }

    /// Returns whether the access happens before the observer and its effect is visible to it.
    #[inline]
    pub(super) fn follows(&self, mark: &GlobalAccess) -> bool {
        if mark.grid_thread.cluster == self.cluster {
            return self.view.follows(mark.step);
        }
        self.imported(mark, self.view.knows().visible(), |known| known.knows.visible().knows(mark.step))
    }

    /// Returns whether the access, which may be a read, happens before the observer.
    #[inline]
    pub(super) fn knows_complete(&self, mark: &GlobalAccess) -> bool {
        if mark.grid_thread.cluster == self.cluster {
            return self.view.knows_complete(mark.step);
        }
        self.imported(mark, self.view.knows().complete(), |known| known.knows.complete().knows(mark.step))
    }

    /// Returns whether a thread's write happens before the observer, with a proxy fence of global
    /// memory on the way.
    pub(super) fn is_visible_to_async(&self, mark: &GlobalAccess) -> bool {
        if mark.grid_thread.cluster == self.cluster {
            return self.view.is_visible_to_async(mark.step, Memory::Global);
        }
        let fenced = self.view.knows().fenced(Memory::Global);
        self.imported(mark, fenced, |known| known.knows.visible().knows(mark.step))
            || self.imported(mark, self.view.knows().visible(), |known| known.fenced.knows(mark.step))
    }

    /// Returns whether a thread's read happens before the observer, with a proxy fence of global
    /// memory on the way.
    pub(super) fn has_fenced_read(&self, mark: &GlobalAccess) -> bool {
        if mark.grid_thread.cluster == self.cluster {
            return self.view.has_fenced_read(mark.step, Memory::Global);
        }
        let knows = self.view.knows();
        self.imported(mark, knows.fenced_reads(Memory::Global), |known| {
            known.knows.complete().knows(mark.step)
        }) || self.imported(mark, knows.complete(), |known| known.fenced.knows(mark.step))
    }
}
