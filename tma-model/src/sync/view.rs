//! An agent's knowledge of the others.
//!
//! Knowledge is four sets of steps, each of which contains the one before it:
//!
//! * *ready*: steps whose writes the asynchronous proxy sees, because a proxy fence follows them.
//!   There is one such set for each kind of memory;
//! * *visible*: steps whose writes the agent itself sees;
//! * *complete*: steps that have ended, though their writes need not be visible. This is what
//!   another block learns from an arrival at the scope of a block;
//! * *past*: steps that have happened, such as those before the issue of a copy that has completed.
//!   They order the phases of barriers, but no accesses to memory.
//!
//! For the steps that are complete, there is also the subset that a proxy fence follows: a copy may
//! overwrite what they have read.

use std::ops::{Index, IndexMut};

use super::clock::{Clock, Component, Epoch};
use super::fence::Memory;
use super::state::StatePart;

/// One value for each kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByMemory<T> {
    /// Value for shared memory.
    pub shared: T,
    /// Value for global memory.
    pub global: T,
}

impl<T> Index<Memory> for ByMemory<T> {
    type Output = T;

    #[inline]
    fn index(&self, memory: Memory) -> &T {
        match memory {
            Memory::Shared => &self.shared,
            Memory::Global => &self.global,
        }
    }
}

impl<T> IndexMut<Memory> for ByMemory<T> {
    #[inline]
    fn index_mut(&mut self, memory: Memory) -> &mut T {
        match memory {
            Memory::Shared => &mut self.shared,
            Memory::Global => &mut self.global,
        }
    }
}

impl ByMemory<Clock> {
    /// Joins the clocks of each memory.
    fn join(&self, other: &Self) -> Self {
        Self { shared: self.shared.join(&other.shared), global: self.global.join(&other.global) }
    }

    /// Returns whether both have the same clocks.
    fn shares_storage(&self, other: &Self) -> bool {
        self.shared.shares_storage(&other.shared) && self.global.shares_storage(&other.global)
    }
}

/// An agent's knowledge of other agents' steps.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    visible: Clock,
    ready: ByMemory<Clock>,
    /// `None` if all steps that are complete are visible as well.
    complete: Option<CompleteSteps>,
    /// `None` if all steps that are past are complete as well.
    past: Option<Clock>,
}

/// Steps that are complete, and those among them that a proxy fence for each memory follows.
#[derive(Clone, Debug)]
struct CompleteSteps {
    all: Clock,
    fenced: ByMemory<Clock>,
}

impl Knowledge {
    /// Returns all steps whose writes are visible.
    #[inline]
    pub fn visible(&self) -> &Clock {
        &self.visible
    }

    /// Returns all steps whose generic writes to `memory` are followed by a proxy fence.
    #[inline]
    pub fn fenced(&self, memory: Memory) -> &Clock {
        &self.ready[memory]
    }

    /// Returns all steps that are known to be complete.
    #[inline]
    pub fn complete(&self) -> &Clock {
        self.complete.as_ref().map_or(&self.visible, |complete| &complete.all)
    }

    /// Returns the steps that are complete and followed by a proxy fence, for each memory.
    fn complete_fenced(&self) -> &ByMemory<Clock> {
        self.complete.as_ref().map_or(&self.ready, |complete| &complete.fenced)
    }

    /// Returns the steps known to be complete whose generic reads of `memory` are followed by a
    /// proxy fence.
    pub fn fenced_reads(&self, memory: Memory) -> &Clock {
        &self.complete_fenced()[memory]
    }

    /// Returns all steps that are known to have happened.
    pub fn past(&self) -> &Clock {
        self.past.as_ref().unwrap_or_else(|| self.complete())
    }

    /// Adds `past` to the steps that have happened, and to no other set.
    pub fn learn_past(&mut self, past: &Clock) {
        if !self.past().covers(past) {
            self.past = Some(self.past().join(past));
        }
    }

    /// Returns whether no step is known.
    pub fn is_empty(&self) -> bool {
        self.complete().is_empty()
    }

    /// Visits the parts of the knowledge.
    pub fn visit_state(&self, visit: &mut impl FnMut(StatePart<'_>)) {
        let Self { visible, ready, complete, past } = self;
        let complete_fenced = self.complete_fenced();
        let fenced = [&ready.shared, &ready.global, &complete_fenced.shared, &complete_fenced.global];
        for clock in [visible, self.complete(), self.past()].into_iter().chain(fenced) {
            visit(StatePart::Clock(clock));
        }
        visit(StatePart::Number(u64::from(complete.is_some()) << 1 | u64::from(past.is_some())));
    }

    /// Returns what another block learns of this knowledge if the release or the acquire is at the
    /// scope of a block.
    pub fn to_other_block(&self) -> Self {
        let complete = CompleteSteps { all: self.complete().clone(), fenced: self.complete_fenced().clone() };
        Self { complete: Some(complete), past: self.past.clone(), ..Self::default() }
    }

    /// Returns whether both share all their clocks.
    pub fn shares_storage(&self, other: &Self) -> bool {
        self.visible.shares_storage(&other.visible)
            && self.ready.shares_storage(&other.ready)
            && self.complete().shares_storage(other.complete())
            && self.complete_fenced().shares_storage(other.complete_fenced())
            && self.past().shares_storage(other.past())
    }

    /// Returns the union of both.
    pub fn join(&self, other: &Self) -> Self {
        let complete = match (&self.complete, &other.complete) {
            (None, None) => None,
            (Some(_), _) | (_, Some(_)) => Some(CompleteSteps {
                all: self.complete().join(other.complete()),
                fenced: self.complete_fenced().join(other.complete_fenced()),
            }),
        };
        let past = match (&self.past, &other.past) {
            (None, None) => None,
            (Some(_), _) | (_, Some(_)) => Some(self.past().join(other.past())),
        };
        Self {
            visible: self.visible.join(&other.visible),
            ready: self.ready.join(&other.ready),
            complete,
            past,
        }
    }

    /// Adds a step that no proxy fence follows.
    pub fn learn(&mut self, step: Epoch) {
        self.learn_fenced(step, ByMemory::default());
    }

    /// Adds a step. The agent's steps up to `fenced` are followed by a proxy fence for each memory.
    fn learn_fenced(&mut self, step: Epoch, fenced: ByMemory<u32>) {
        let (shared, global) =
            (Epoch::new(step.component(), fenced.shared), Epoch::new(step.component(), fenced.global));
        self.visible.learn(step);
        if let Some(complete) = &mut self.complete {
            complete.all.learn(step);
        }
        let complete_fenced = self.complete.as_mut().map(|complete| &mut complete.fenced);
        for fenced in std::iter::once(&mut self.ready).chain(complete_fenced) {
            fenced.shared.learn(shared);
            fenced.global.learn(global);
        }
        if let Some(past) = &mut self.past {
            past.learn(step);
        }
        debug_assert!(
            self.visible.knows(shared) && self.visible.knows(global),
            "a step is fenced but not visible"
        );
    }
}

/// An agent's view: its knowledge of others, and its own steps.
#[derive(Clone, Debug)]
pub struct View {
    me: Component,
    /// The agent's current step.
    own: u32,
    /// The agent's own last step that the asynchronous proxy sees, for each memory.
    own_fenced: ByMemory<u32>,
    knows: Knowledge,
    /// Whether the view is in use. If not, it neither acquires nor releases anything.
    is_active: bool,
}

impl View {
    /// Creates an agent that knows nothing. An agent that is not active stays so.
    pub fn new(me: Component, is_active: bool) -> Self {
        Self { me, own: 1, own_fenced: ByMemory::default(), knows: Knowledge::default(), is_active }
    }

    /// Returns the current step.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        Epoch::new(self.me, self.own)
    }

    /// Visits the parts of the view.
    pub fn visit_state(&self, visit: &mut impl FnMut(StatePart<'_>)) {
        // Views that are compared are in use.
        let Self { me, own, own_fenced: ByMemory { shared, global }, knows, is_active: _ } = self;
        visit(StatePart::Step(Epoch::new(*me, *own)));
        for fenced in [shared, global] {
            visit(StatePart::UpTo(Epoch::new(*me, *fenced)));
        }
        knows.visit_state(visit);
    }

    /// Returns what the agent knows of others.
    #[inline]
    pub fn knows(&self) -> &Knowledge {
        &self.knows
    }

    /// Returns whether `step` happens before the agent's current operation, and its writes are
    /// visible.
    #[inline]
    pub fn follows(&self, step: Epoch) -> bool {
        step.component() == self.me || self.knows.visible.knows(step)
    }

    /// Returns whether `step` is complete before the agent's current operation. This is sufficient
    /// if the writes of the step do not matter.
    #[inline]
    pub fn knows_complete(&self, step: Epoch) -> bool {
        step.component() == self.me || self.knows.complete().knows(step)
    }

    /// Returns whether an asynchronous operation that the agent starts now sees what `step` wrote
    /// to `memory` through the generic proxy.
    pub fn is_visible_to_async(&self, step: Epoch, memory: Memory) -> bool {
        self.is_fenced(step, memory, &self.knows.ready[memory])
    }

    /// Returns whether a proxy fence separates the complete generic read `step` of `memory`
    /// from an asynchronous operation that the agent starts now. Without one, a copy into global
    /// memory may overtake the read: on an H100, 1 to 3 of 100 reads saw what the next copy wrote
    /// (`tests/tests/litmus/proxies.rs`).
    pub fn has_fenced_read(&self, step: Epoch, memory: Memory) -> bool {
        self.is_fenced(step, memory, self.knows.fenced_reads(memory))
    }

    /// Returns whether a fence follows `step`: the agent's own, or one that `fenced` records.
    fn is_fenced(&self, step: Epoch, memory: Memory, fenced: &Clock) -> bool {
        let own = step.component() == self.me && self.own_fenced[memory] >= step.count();
        own || fenced.knows(step)
    }

    /// Starts a new step. Others may learn of what precedes it without learning of what follows it.
    pub fn step(&mut self) {
        self.own = self.own.saturating_add(1);
    }

    /// Adds a step of another agent that no proxy fence follows.
    pub fn learn(&mut self, step: Epoch) {
        debug_assert!(step.component() != self.me, "an agent knows its own steps");
        self.knows.learn(step);
    }

    /// Adds `past` to the steps that have happened, and to no other set.
    pub fn learn_past(&mut self, past: &Clock) {
        self.knows.learn_past(past);
    }

    /// A proxy fence: makes all that the agent knows ready for the asynchronous proxy, in these
    /// kinds of memory.
    pub fn fence_async(&mut self, memories: &[Memory]) {
        for &memory in memories {
            self.knows.ready[memory] = self.knows.visible.clone();
            self.own_fenced[memory] = self.own;
            if let Some(complete) = &mut self.knows.complete {
                complete.fenced[memory] = complete.all.clone();
            }
        }
        self.step();
    }
}

/// Joins knowledge into views. Often many threads in a row perform the same join, so the last one
/// is cached.
#[derive(Debug, Default)]
pub struct Acquirer {
    last: Option<Join>,
}

/// A cached join: the view's knowledge before, the acquired knowledge, and the result.
#[derive(Debug)]
struct Join {
    before: Knowledge,
    acquired: Knowledge,
    after: Knowledge,
}

impl Acquirer {
    /// Joins `acquired` into `view`.
    pub fn acquire(&mut self, view: &mut View, acquired: &Knowledge) {
        if !view.is_active || view.knows.shares_storage(acquired) {
            return;
        }
        if let Some(last) = &self.last
            && last.before.shares_storage(&view.knows)
            && last.acquired.shares_storage(acquired)
        {
            view.knows = last.after.clone();
            return;
        }
        let after = view.knows.join(acquired);
        let before = std::mem::replace(&mut view.knows, after.clone());
        self.last = Some(Join { before, acquired: acquired.clone(), after });
    }
}

/// The releases of several agents, not yet joined.
#[derive(Clone, Debug, Default)]
pub struct Releases {
    known: Vec<Knowledge>,
    /// The releasing agents' own steps, and the last of these that a proxy fence for each memory
    /// follows.
    own: Vec<(Epoch, ByMemory<u32>)>,
}

/// The number of distinct clocks that are kept before they are joined.
pub(super) const JOIN_THRESHOLD: usize = 32;

impl Releases {
    /// Adds what `view` knows and its own steps, and starts a new step of the view.
    pub fn release(&mut self, view: &mut View) {
        if !view.is_active {
            return;
        }
        self.add(&view.knows);
        self.own.push((view.epoch(), view.own_fenced));
        view.step();
    }

    /// Adds knowledge that was released elsewhere.
    pub fn add(&mut self, knows: &Knowledge) {
        if !self.known.iter().any(|known| known.shares_storage(knows)) {
            self.known.push(knows.clone());
            if self.known.len() >= JOIN_THRESHOLD {
                self.join();
            }
        }
    }

    /// Visits the parts of the releases, after joining them.
    pub fn visit_state(&mut self, visit: &mut impl FnMut(StatePart<'_>)) {
        self.join().visit_state(visit);
    }

    /// Joins the releases and returns the result, which also replaces them here.
    pub fn join(&mut self) -> Knowledge {
        let mut all = self.known.pop().unwrap_or_default();
        for known in self.known.drain(..) {
            all = all.join(&known);
        }
        for (step, fenced) in self.own.drain(..) {
            all.learn_fenced(step, fenced);
        }
        self.known.push(all.clone());
        all
    }
}
