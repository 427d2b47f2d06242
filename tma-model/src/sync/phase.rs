//! What the completion of an mbarrier's phase orders, and the waits that it may overrun.
//!
//! Who sees a phase complete learns what came before the arrivals of that phase and of those before
//! it. Of copies that count at the mbarrier a completion tells what had happened when they were
//! issued, as *past*; relaxed arrivals tell as much.
//!
//! An mbarrier tells its current phase from the one before, and no more (PTX ISA,
//! "mbarrier.test_wait"). A wait that comes when one more phase has completed waits for the phase
//! after that, or forever: it is *overrun*. So each completion has to know of the waits that have
//! seen the phase before it complete.

use std::collections::BTreeMap;

use super::clock::{Clock, Component, Epoch};
use super::fence::Scope;
use super::parts::Part;
use super::view::{KEPT, Knowledge, Releases, View};

/// A wait that has seen a phase complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait<S> {
    /// The step of the agent that waited.
    pub step: Epoch,
    /// Where it is in the program.
    pub site: S,
}

/// What had happened when a copy was issued, or at a relaxed arrival: what the agent knows to be
/// past, and its own steps up to its last wait.
#[derive(Clone, Debug, Default)]
pub struct Issue {
    past: Clock,
    waited: Epoch,
}

impl Issue {
    /// What `view` issues now. `waited` is the agent's step at its last wait, or 0.
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
    /// One more.
    pub fn add(&mut self, issue: &Issue) {
        if !self.past.iter().any(|past| past.same(&issue.past)) {
            self.past.push(issue.past.clone());
            if self.past.len() >= KEPT {
                self.join();
            }
        }
        if self.waited.last() != Some(&issue.waited) {
            self.waited.push(issue.waited);
        }
    }

    /// Those of `other` as well.
    pub fn merge(&mut self, mut other: Self) {
        self.past.push(other.join());
    }

    /// What it consists of, joined.
    pub fn parts(&mut self, visit: &mut impl FnMut(Part<'_>)) {
        visit(Part::Clock(&self.join()));
    }

    /// All of it. It stays here, in short.
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

/// What arrivals have told.
#[derive(Clone, Debug, Default)]
struct Arrived {
    /// Agents of the mbarrier's own block.
    near: Releases,
    /// Agents of other blocks, to the cluster.
    far: Releases,
    /// Agents of other blocks, to their own block.
    aside: Releases,
    /// What was past for copies that have counted, and for relaxed arrivals.
    issues: Issues,
}

/// What a complete phase tells who waits within the scope of a block, and of the cluster.
#[derive(Clone, Debug, Default)]
struct Completed {
    block: Knowledge,
    cluster: Knowledge,
}

/// What the phases of an mbarrier order. `S` is a place in the program.
#[derive(Clone, Debug)]
pub struct PhaseOrder<S> {
    /// Of all phases.
    arrived: Arrived,
    /// Of the last complete phase.
    completed: Completed,
    /// The waits that have seen the last complete phase: the last one of each agent.
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
    /// What the arrivals of agents of the mbarrier's own block, or of others, release.
    pub fn arrivals(&mut self, own_block: bool, scope: Scope) -> &mut Releases {
        match (own_block, scope) {
            (true, Scope::Block | Scope::Cluster) => &mut self.arrived.near,
            (false, Scope::Cluster) => &mut self.arrived.far,
            (false, Scope::Block) => &mut self.arrived.aside,
        }
    }

    /// A copy counts here that was issued so, or an arrival that releases nothing.
    pub fn note_issue(&mut self, issue: &Issue) {
        self.arrived.issues.add(issue);
    }

    /// A wait has seen the last complete phase.
    pub fn note_wait(&mut self, wait: Wait<S>) {
        self.waits.insert(wait.step.component(), (wait.step.count(), wait.site));
    }

    /// What the last complete phase tells.
    pub fn completed(&self, scope: Scope) -> &Knowledge {
        match scope {
            Scope::Block => &self.completed.block,
            Scope::Cluster => &self.completed.cluster,
        }
    }

    /// What it consists of, but for places in the program.
    pub fn parts(&mut self, visit: &mut impl FnMut(Part<'_>)) {
        let Arrived { near, far, aside, issues } = &mut self.arrived;
        [near, far, aside].into_iter().for_each(|releases| releases.parts(visit));
        issues.parts(visit);
        let Completed { block, cluster } = &self.completed;
        [block, cluster].into_iter().for_each(|knows| knows.parts(visit));
        visit(Part::Number(self.waits.len() as u64));
        for (&agent, &(step, _)) in &self.waits {
            visit(Part::Number(u64::from(agent.number())));
            visit(Part::Step(Epoch::new(agent, step)));
        }
    }

    /// A phase is complete, which is step `phase` of the mbarrier's own.
    pub fn complete(&mut self, phase: Epoch) {
        let mut near = self.arrived.near.join();
        near.learn(phase);
        let (far, aside) = (self.arrived.far.join(), self.arrived.aside.join());
        near.learn_past(&self.arrived.issues.join());
        self.completed = if far.is_empty() && aside.is_empty() {
            Completed { block: near.clone(), cluster: near }
        } else {
            let near = near.join(&aside.to_other_block());
            Completed { block: near.join(&far.to_other_block()), cluster: near.join(&far) }
        };
        let past = self.completed.block.past();
        let unknown = self.waits.iter().find(|&(&agent, &(step, _))| past.get(agent) < step);
        self.overrun = unknown.map(|(&agent, &(step, site))| Wait { step: Epoch::new(agent, step), site });
        self.waits.clear();
    }

    /// A wait for the phase before the last complete one that nothing orders before the end of
    /// that: told once.
    pub fn take_overrun(&mut self) -> Option<Wait<S>> {
        self.overrun.take()
    }
}
