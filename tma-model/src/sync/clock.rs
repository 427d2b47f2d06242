//! Vector clocks, made for agents that mostly know the same.
//!
//! A component counts the steps of one agent: a thread, or something asynchronous whose completion
//! others learn of (an mbarrier's phases, a thread's bulk groups). Clocks share their numbers until
//! they differ. What an agent knows of itself is kept beside its clock (see
//! [`View`](super::View)), so that a barrier gives all its threads one and the same clock.

use std::sync::Arc;

/// An agent, as an index into clocks. Whoever uses clocks numbers its agents from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Component(u32);

impl Component {
    /// The agent of this number.
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A step of an agent. Steps count from 1; the default is no step at all, which everybody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch(u64);

impl Epoch {
    /// Step `count` of an agent.
    #[inline]
    pub const fn new(component: Component, count: u32) -> Self {
        Self((component.0 as u64) << 32 | count as u64)
    }

    /// The agent.
    #[inline]
    pub const fn component(self) -> Component {
        Component((self.0 >> 32) as u32)
    }

    /// The number of the step.
    #[inline]
    pub const fn count(self) -> u32 {
        self.0 as u32
    }

    /// Whether it is no step at all.
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// The last step of each agent that is known; 0 for those beyond its end.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<Vec<u32>>);

impl Clock {
    /// The last known step of an agent.
    #[inline]
    pub fn get(&self, component: Component) -> u32 {
        self.0.get(component.0 as usize).copied().unwrap_or(0)
    }

    /// Whether a step is known.
    #[inline]
    pub fn knows(&self, step: Epoch) -> bool {
        self.get(step.component()) >= step.count()
    }

    /// Whether both are one clock. Clocks that know the same may still be two.
    #[inline]
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many agents it has a number for.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The last known step of each agent, in their order.
    pub fn steps(&self) -> impl Iterator<Item = Epoch> {
        self.0.iter().zip(0..).map(|(&count, number)| Epoch::new(Component::new(number), count))
    }

    /// A number that clocks have in common which share their numbers, while they live.
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Whether it knows all that `other` knows.
    pub fn covers(&self, other: &Self) -> bool {
        let shared = self.0.iter().zip(other.0.iter()).all(|(mine, theirs)| mine >= theirs);
        shared && other.0.iter().skip(self.0.len()).all(|&theirs| theirs == 0)
    }

    /// All that either knows.
    pub fn join(&self, other: &Self) -> Self {
        if self.same(other) || self.covers(other) {
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

    /// Learns of a step, and with it of those before it.
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
