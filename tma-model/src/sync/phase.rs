//! The ordering that the completion of an mbarrier's phase establishes, and the waits that a
//! completion may overrun.
//!
//! A wait that observes a phase complete acquires what the arrivals of that phase and of all
//! earlier phases released. A copy that signals the mbarrier releases nothing: its completion only
//! proves that what had happened when the copy was issued is *past*. A relaxed arrival proves the
//! same.
//!
//! A wait can distinguish the current phase of an mbarrier from the preceding one, and no others
//! (PTX ISA, "mbarrier.test_wait"). A wait that comes one phase too late therefore waits for the
//! phase after that, possibly forever: it is *overrun*. To rule this out, each completion of a
//! phase must be ordered after the waits that have observed the preceding phase complete.

use std::collections::BTreeMap;

use super::clock::{Clock, Component, Epoch};
use super::fence::Scope;
use super::state::StatePart;
use super::view::{JOIN_THRESHOLD, Knowledge, Releases, View};

/// A wait that has observed a phase complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait<S> {
    /// The step of the waiting agent.
    pub step: Epoch,
    /// Location in the program.
    pub site: S,
}

/// Steps known to have happened at the issue of a copy, or at a relaxed arrival: those that the
/// agent knows to be past, and its own up to its last wait.
#[derive(Clone, Debug, Default)]
pub struct Issue {
    past: Clock,
    waited: Epoch,
}

impl Issue {
    /// Captures what has happened before `view` issues an operation now. `waited` is the agent's
    /// step at its last wait, or 0.
    pub fn of(view: &View, waited: u32) -> Self {
        Self { past: view.knows().past().clone(), waited: Epoch::new(view.epoch().component(), waited) }
    }
}

/// Several issues, not yet joined.
#[derive(Clone, Debug, Default)]
pub struct Issues {
    past: Vec<Clock>,
    waited: Vec<Epoch>,
}

impl Issues {
    /// Adds an issue.
    pub fn add(&mut self, issue: &Issue) {
        if !self.past.iter().any(|past| past.shares_storage(&issue.past)) {
            self.past.push(issue.past.clone());
            if self.past.len() >= JOIN_THRESHOLD {
                self.join();
            }
        }
        if self.waited.last() != Some(&issue.waited) {
            self.waited.push(issue.waited);
        }
    }

    /// Adds the issues of `other`.
    pub fn merge(&mut self, mut other: Self) {
        self.past.push(other.join());
    }

    /// Visits the parts of the issues, after joining them.
    pub fn visit_state(&mut self, visit: &mut impl FnMut(StatePart<'_>)) {
        visit(StatePart::Clock(&self.join()));
    }

    /// Joins the issues and returns the result, which also replaces them here.
    pub fn join(&mut self) -> Clock {
        let mut all = self.past.pop().unwrap_or_default();
        for past in self.past.drain(..) {
            all = all.join(&past);
        }
        for waited in self.waited.drain(..) {
            all.learn(waited);
        }
        self.past.push(all.clone());
        all
    }
}

/// The knowledge that arrivals have released.
#[derive(Clone, Debug, Default)]
struct Arrived {
    /// Releases by agents of the mbarrier's own block.
    own_block: Releases,
    /// Releases by agents of other blocks, at the scope of the cluster.
    remote_cluster: Releases,
    /// Releases by agents of other blocks, at the scope of their block.
    remote_block: Releases,
    /// Steps that were past at the issue of the copies that have counted, and at relaxed arrivals.
    issues: Issues,
}

/// The knowledge that a wait acquires from a complete phase, at the scope of a block and of the
/// cluster.
#[derive(Clone, Debug, Default)]
struct Completed {
    block: Knowledge,
    cluster: Knowledge,
}

/// The ordering that the phases of an mbarrier establish. `S` is a location in the program.
#[derive(Clone, Debug)]
pub struct PhaseOrder<S> {
    /// Releases of all phases so remote_cluster.
    arrived: Arrived,
    /// Knowledge that the last complete phase conveys.
    completed: Completed,
    /// The waits that have observed the last complete phase: the last wait of each agent.
    waits: BTreeMap<Component, (u32, S)>,
    overrun: Option<Wait<S>>,
}

impl<S> Default for PhaseOrder<S> {
    fn default() -> Self {
        let (arrived, completed) = (Arrived::default(), Completed::default());
        Self { arrived, completed, waits: BTreeMap::new(), overrun: None }
    }
}

impl<S: Copy> PhaseOrder<S> {
    /// Returns the releases to which an arrival adds, depending on its scope and on whether the
    /// agent belongs to the mbarrier's own block.
    pub fn arrivals(&mut self, own_block: bool, scope: Scope) -> &mut Releases {
        match (own_block, scope) {
            (true, Scope::Block | Scope::Cluster) => &mut self.arrived.own_block,
            (false, Scope::Cluster) => &mut self.arrived.remote_cluster,
            (false, Scope::Block) => &mut self.arrived.remote_block,
        }
    }

    /// Records the issue of a copy that counts at this mbarrier, or an arrival that releases
    /// nothing.
    pub fn note_issue(&mut self, issue: &Issue) {
        self.arrived.issues.add(issue);
    }

    /// Records a wait that has observed the last complete phase.
    pub fn note_wait(&mut self, wait: Wait<S>) {
        self.waits.insert(wait.step.component(), (wait.step.count(), wait.site));
    }

    /// Returns the knowledge that a wait at `scope` acquires from the last complete phase.
    pub fn completed(&self, scope: Scope) -> &Knowledge {
        match scope {
            Scope::Block => &self.completed.block,
            Scope::Cluster => &self.completed.cluster,
        }
    }

    /// Visits the parts of the state, except for locations in the program.
    pub fn visit_state(&mut self, visit: &mut impl FnMut(StatePart<'_>)) {
        // Whoever completes a phase takes the overrun at once.
        let Self { arrived, completed, waits, overrun: _ } = self;
        let Arrived { own_block, remote_cluster, remote_block, issues } = arrived;
        [own_block, remote_cluster, remote_block]
            .into_iter()
            .for_each(|releases| releases.visit_state(visit));
        issues.visit_state(visit);
        let Completed { block, cluster } = completed;
        [block, cluster].into_iter().for_each(|knows| knows.visit_state(visit));
        visit(StatePart::Number(waits.len() as u64));
        for (&agent, &mut (step, _)) in waits {
            visit(StatePart::Number(u64::from(agent.number())));
            visit(StatePart::Step(Epoch::new(agent, step)));
        }
    }

    /// Completes a phase. `phase` is the mbarrier's own step for it.
    pub fn complete(&mut self, phase: Epoch) {
        let mut own_block = self.arrived.own_block.join();
        own_block.learn(phase);
        let (remote_cluster, remote_block) =
            (self.arrived.remote_cluster.join(), self.arrived.remote_block.join());
        own_block.learn_past(&self.arrived.issues.join());
        self.completed = if remote_cluster.is_empty() && remote_block.is_empty() {
            Completed { block: own_block.clone(), cluster: own_block }
        } else {
            let own_block = own_block.join(&remote_block.to_other_block());
            Completed {
                block: own_block.join(&remote_cluster.to_other_block()),
                cluster: own_block.join(&remote_cluster),
            }
        };
        let past = self.completed.block.past();
        let unknown = self.waits.iter().find(|&(&agent, &(step, _))| past.get(agent) < step);
        self.overrun = unknown.map(|(&agent, &(step, site))| Wait { step: Epoch::new(agent, step), site });
        self.waits.clear();
    }

    /// Takes the wait that the last completion has overrun: it observed the preceding phase, and
    /// nothing orders it before the completion. Each overrun is reported once.
    pub fn take_overrun(&mut self) -> Option<Wait<S>> {
        self.overrun.take()
    }
}
