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
use crate::machine::index::ThreadId;

/// Known steps of one cluster.
#[derive(Clone, Debug, Default)]
struct Known {
    knows: Knowledge,
    /// The steps that a proxy fence of global memory follows.
    fenced: Clock,
}

/// Known steps of clusters, by the number of the cluster.
#[derive(Clone, Debug, Default)]
pub(in crate::machine) struct Foreign(BTreeMap<u32, Known>);

impl Foreign {
    /// Returns the known steps of one cluster.
    pub(in crate::machine) fn of(&self, cluster: u32) -> Option<&Knowledge> {
        self.0.get(&cluster).map(|known| &known.knows)
    }

    /// Returns whether this includes everything that `other` knows.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let covered = |(cluster, theirs): (&u32, &Known)| {
            self.0
                .get(cluster)
                .is_some_and(|mine| covers(&mine.knows, &theirs.knows) && mine.fenced.covers(&theirs.fenced))
        };
        other.0.iter().all(covered)
    }

    /// Adds the knowledge of `other`. Returns false if nothing was new.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        let mut news = false;
        for (cluster, theirs) in &other.0 {
            let mine = self.0.entry(*cluster).or_default();
            if !covers(&mine.knows, &theirs.knows) {
                mine.knows = mine.knows.join(&theirs.knows);
                news = true;
            }
            if !mine.fenced.covers(&theirs.fenced) {
                mine.fenced = mine.fenced.join(&theirs.fenced);
                news = true;
            }
        }
        news
    }

    /// Adds the steps that `other` has seen, as followed by a proxy fence.
    fn fence(&mut self, other: &Self) {
        for (cluster, theirs) in &other.0 {
            let mine = self.0.entry(*cluster).or_default();
            mine.fenced = mine.fenced.join(theirs.knows.seen());
        }
    }
}

fn covers(mine: &Knowledge, theirs: &Knowledge) -> bool {
    mine.same(theirs) || mine.seen().covers(theirs.seen()) && mine.over().covers(theirs.over())
}

/// The imports of a thread. Each includes the earlier ones.
#[derive(Debug)]
struct Importer {
    component: Component,
    imports: Vec<Arc<Foreign>>,
}

impl Importer {
    /// Returns the last import that a clock knows of.
    fn last(&self, clock: &Clock) -> Option<&Arc<Foreign>> {
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
        who: ThreadId,
        news: &Foreign,
        own: u32,
        view: &mut View,
        component: Option<Component>,
    ) {
        if !news.0.keys().any(|cluster| *cluster != own) {
            return;
        }
        let index = *self.of.entry(who).or_insert(self.importers.len());
        if index == self.importers.len() {
            let Some(component) = component else { return };
            self.importers.push(Importer { component, imports: Vec::new() });
        }
        let Some(importer) = self.importers.get_mut(index) else { return };
        let mut all = importer.imports.last().map(|last| Foreign::clone(last)).unwrap_or_default();
        if !all.join(news) {
            return;
        }
        all.0.remove(&own);
        importer.imports.push(Arc::new(all));
        view.learn(Epoch::new(importer.component, importer.imports.len() as u32));
    }

    /// Returns whether a thread already has an import agent.
    pub(in crate::machine) fn has(&self, who: ThreadId) -> bool {
        self.of.contains_key(&who)
    }

    /// Returns the knowledge that a thread of cluster `own` with knowledge `knows` releases.
    pub(super) fn export(&self, own: u32, knows: &Knowledge) -> Foreign {
        let mut all = Foreign::default();
        let fenced = knows.fenced(Memory::Global);
        for importer in &self.importers {
            if let Some(import) = importer.last(knows.seen()) {
                all.join(import);
            }
            if let Some(import) = importer.last(fenced) {
                all.fence(import);
            }
        }
        all.0.insert(own, Known { knows: knows.clone(), fenced: fenced.clone() });
        all
    }
}

/// A thread, or a copy that it starts, whose access is compared with earlier ones.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Observer<'o> {
    pub(in crate::machine) cluster: u32,
    pub(in crate::machine) view: &'o View,
    pub(in crate::machine) imports: &'o Imports,
}

impl Observer<'_> {
    fn imported(&self, mark: &GlobalAccess, clock: &Clock, knows: impl Fn(&Known) -> bool) -> bool {
        let of_cluster = |import: &Arc<Foreign>| import.0.get(&mark.author.cluster).is_some_and(&knows);
        self.imports.importers.iter().filter_map(|importer| importer.last(clock)).any(of_cluster)
    }

    /// Returns whether the access happens before the observer and its effect is visible to it.
    #[inline]
    pub(super) fn follows(&self, mark: &GlobalAccess) -> bool {
        if mark.author.cluster == self.cluster {
            return self.view.follows(mark.step);
        }
        self.imported(mark, self.view.knows().seen(), |known| known.knows.seen().knows(mark.step))
    }

    /// Returns whether the access, which may be a read, happens before the observer.
    #[inline]
    pub(super) fn knows_over(&self, mark: &GlobalAccess) -> bool {
        if mark.author.cluster == self.cluster {
            return self.view.knows_over(mark.step);
        }
        self.imported(mark, self.view.knows().over(), |known| known.knows.over().knows(mark.step))
    }

    /// Returns whether a thread's write happens before the observer, with a proxy fence of global
    /// memory on the way.
    pub(super) fn sees_async(&self, mark: &GlobalAccess) -> bool {
        if mark.author.cluster == self.cluster {
            return self.view.sees_async(mark.step, Memory::Global);
        }
        let fenced = self.view.knows().fenced(Memory::Global);
        self.imported(mark, fenced, |known| known.knows.seen().knows(mark.step))
            || self.imported(mark, self.view.knows().seen(), |known| known.fenced.knows(mark.step))
    }

    /// Returns whether a thread's read happens before the observer, with a proxy fence of global
    /// memory on the way.
    pub(super) fn fences_read(&self, mark: &GlobalAccess) -> bool {
        if mark.author.cluster == self.cluster {
            return self.view.fences_read(mark.step, Memory::Global);
        }
        let knows = self.view.knows();
        self.imported(mark, knows.fenced_reads(Memory::Global), |known| known.knows.over().knows(mark.step))
            || self.imported(mark, knows.over(), |known| known.fenced.knows(mark.step))
    }
}
