//! Vector clocks, optimised for agents that mostly know the same steps.
//!
//! A component counts the steps of one agent: a thread, or something asynchronous whose completion
//! others observe (an mbarrier's phases, a thread's bulk groups). Clocks share storage until they
//! differ. An agent's knowledge of itself is kept outside its clock (see [`View`](super::View)), so
//! after a barrier all its threads share one clock.

use std::sync::Arc;

/// An agent, as an index into clocks. The user of the clocks numbers the agents from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Component(u32);

impl Component {
    /// Creates the agent with this number.
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the agent's number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A step of an agent. Steps count from 1. The default is no step at all, and every clock includes
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch(u64);

impl Epoch {
    /// Creates step `count` of an agent.
    #[inline]
    pub const fn new(component: Component, count: u32) -> Self {
        Self((component.0 as u64) << 32 | count as u64)
    }

    /// Returns the agent.
    #[inline]
    pub const fn component(self) -> Component {
        Component((self.0 >> 32) as u32)
    }

    /// Returns the number of the step.
    #[inline]
    pub const fn count(self) -> u32 {
        self.0 as u32
    }

    /// Returns whether this is the default, which is no step at all.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// A vector clock: the last known step of each agent, and 0 for agents beyond its length.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<Vec<u32>>);

impl Clock {
    /// Returns the last known step of an agent.
    #[inline]
    pub fn get(&self, component: Component) -> u32 {
        self.0.get(component.0 as usize).copied().unwrap_or(0)
    }

    /// Returns whether a step is known.
    #[inline]
    pub fn knows(&self, step: Epoch) -> bool {
        self.get(step.component()) >= step.count()
    }

    /// Returns whether both clocks share their storage. Clocks that do not may still be equal.
    #[inline]
    pub fn shares_storage(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns whether the clock has no components.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of components.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the last known step of each agent, in the order of the agents.
    pub fn steps(&self) -> impl Iterator<Item = Epoch> {
        self.0.iter().zip(0..).map(|(&count, number)| Epoch::new(Component::new(number), count))
    }

    /// Returns a number that identifies the clock's storage. Two live clocks have the same id
    /// if and only if they share it.
    pub fn storage_id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Returns whether the clock includes all steps that `other` includes.
    pub fn covers(&self, other: &Self) -> bool {
        let shared = self.0.iter().zip(other.0.iter()).all(|(mine, theirs)| mine >= theirs);
        shared && other.0.iter().skip(self.0.len()).all(|&theirs| theirs == 0)
    }

    /// Returns the union of both clocks.
    pub fn join(&self, other: &Self) -> Self {
        if self.shares_storage(other) || self.covers(other) {
            return self.clone();
        }
        if other.covers(self) {
            return other.clone();
        }
        let mut joined = self.clone();
        joined.absorb(other);
        joined
    }

    fn absorb(&mut self, other: &Self) {
        let mine = Arc::make_mut(&mut self.0);
        if mine.len() < other.0.len() {
            mine.resize(other.0.len(), 0);
        }
        for (mine, &theirs) in mine.iter_mut().zip(other.0.iter()) {
            *mine = (*mine).max(theirs);
        }
    }

    /// Adds a step, and with it all earlier steps of its agent.
    pub fn learn(&mut self, step: Epoch) {
        if self.knows(step) {
            return;
        }
        let index = step.component().0 as usize;
        let numbers = Arc::make_mut(&mut self.0);
        if numbers.len() <= index {
            numbers.resize(index + 1, 0);
        }
        if let Some(number) = numbers.get_mut(index) {
            *number = step.count();
        }
    }
}
