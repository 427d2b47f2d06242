//! An agent's knowledge of the others.
//!
//! Knowledge is four sets of steps, each of which contains the one before it:
//!
//! * *ready*: steps whose writes the asynchronous proxy sees, because a proxy fence follows them.
//!   There is one such set for each kind of memory;
//! * *seen*: steps whose writes the agent itself sees;
//! * *over*: steps that have ended, though their writes need not be visible. This is what another
//!   block learns from an arrival at the scope of a block;
//! * *past*: steps that have happened, such as those before the issue of a copy that has completed.
//!   They order the phases of barriers, but no accesses to memory.
//!
//! For the steps that are over, there is also the subset that a proxy fence follows: a copy may
//! overwrite what they have read.

use std::ops::{Index, IndexMut};

use super::clock::{Clock, Component, Epoch};
use super::fence::Memory;
use super::parts::Part;

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
    fn same(&self, other: &Self) -> bool {
        self.shared.same(&other.shared) && self.global.same(&other.global)
    }
}

/// An agent's knowledge of other agents' steps.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    seen: Clock,
    ready: ByMemory<Clock>,
    /// `None` if all steps that are over are seen as well.
    over: Option<Over>,
    /// `None` if all steps that are past are over as well.
    past: Option<Clock>,
}

/// Steps that are over, and those among them that a proxy fence for each memory follows.
#[derive(Clone, Debug)]
struct Over {
    all: Clock,
    fenced: ByMemory<Clock>,
}

impl Knowledge {
    /// Returns all steps whose writes are seen.
    #[inline]
    pub fn seen(&self) -> &Clock {
        &self.seen
    }

    /// Returns all steps whose generic writes to `memory` are followed by a proxy fence.
    #[inline]
    pub fn fenced(&self, memory: Memory) -> &Clock {
        &self.ready[memory]
    }

    /// Returns all steps that are known to be over.
    #[inline]
    pub fn over(&self) -> &Clock {
        self.over.as_ref().map_or(&self.seen, |over| &over.all)
    }

    /// Returns the steps that are over and followed by a proxy fence, for each memory.
    fn over_fenced(&self) -> &ByMemory<Clock> {
        self.over.as_ref().map_or(&self.ready, |over| &over.fenced)
    }

    /// Returns the steps known to be over whose generic reads of `memory` are followed by a proxy
    /// fence.
    pub fn fenced_reads(&self, memory: Memory) -> &Clock {
        &self.over_fenced()[memory]
    }

    /// Returns all steps that are known to have happened.
    pub fn past(&self) -> &Clock {
        self.past.as_ref().unwrap_or_else(|| self.over())
    }

    /// Adds `past` to the steps that have happened, and to no other set.
    pub fn learn_past(&mut self, past: &Clock) {
        if !self.past().covers(past) {
            self.past = Some(self.past().join(past));
        }
    }

    /// Returns whether no step is known.
    pub fn is_empty(&self) -> bool {
        self.over().is_empty()
    }

    /// Visits the parts of the knowledge.
    pub fn parts(&self, visit: &mut impl FnMut(Part<'_>)) {
        let (ready, over_fenced) = (&self.ready, self.over_fenced());
        let fenced = [&ready.shared, &ready.global, &over_fenced.shared, &over_fenced.global];
        for clock in [&self.seen, self.over(), self.past()].into_iter().chain(fenced) {
            visit(Part::Clock(clock));
        }
        visit(Part::Number(u64::from(self.over.is_some()) << 1 | u64::from(self.past.is_some())));
    }

    /// Returns what another block learns of this knowledge if the release or the acquire is at the
    /// scope of a block.
    pub fn to_other_block(&self) -> Self {
        let over = Over { all: self.over().clone(), fenced: self.over_fenced().clone() };
        Self { over: Some(over), past: self.past.clone(), ..Self::default() }
    }

    /// Returns whether both share all their clocks.
    pub fn same(&self, other: &Self) -> bool {
        self.seen.same(&other.seen)
            && self.ready.same(&other.ready)
            && self.over().same(other.over())
            && self.over_fenced().same(other.over_fenced())
            && self.past().same(other.past())
    }

    /// Returns the union of both.
    pub fn join(&self, other: &Self) -> Self {
        let over = match (&self.over, &other.over) {
            (None, None) => None,
            (Some(_), _) | (_, Some(_)) => Some(Over {
                all: self.over().join(other.over()),
                fenced: self.over_fenced().join(other.over_fenced()),
            }),
        };
        let past = match (&self.past, &other.past) {
            (None, None) => None,
            (Some(_), _) | (_, Some(_)) => Some(self.past().join(other.past())),
        };
        Self { seen: self.seen.join(&other.seen), ready: self.ready.join(&other.ready), over, past }
    }

    /// Adds a step that no proxy fence follows.
    pub fn learn(&mut self, step: Epoch) {
        self.learn_fenced(step, ByMemory::default());
    }

    /// Adds a step. The agent's steps up to `fenced` are followed by a proxy fence for each memory.
    fn learn_fenced(&mut self, step: Epoch, fenced: ByMemory<u32>) {
        let (shared, global) =
            (Epoch::new(step.component(), fenced.shared), Epoch::new(step.component(), fenced.global));
        self.seen.learn(step);
        if let Some(over) = &mut self.over {
            over.all.learn(step);
        }
        let over_fenced = self.over.as_mut().map(|over| &mut over.fenced);
        for fenced in std::iter::once(&mut self.ready).chain(over_fenced) {
            fenced.shared.learn(shared);
            fenced.global.learn(global);
        }
        if let Some(past) = &mut self.past {
            past.learn(step);
        }
        debug_assert!(self.seen.knows(shared) && self.seen.knows(global), "a step is fenced and not seen");
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
    used: bool,
}

impl View {
    /// Creates an agent that knows nothing. An agent that is not `used` stays so.
    pub fn new(me: Component, used: bool) -> Self {
        Self { me, own: 1, own_fenced: ByMemory::default(), knows: Knowledge::default(), used }
    }

    /// Returns the current step.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        Epoch::new(self.me, self.own)
    }

    /// Visits the parts of the view.
    pub fn parts(&self, visit: &mut impl FnMut(Part<'_>)) {
        let ByMemory { shared, global } = self.own_fenced;
        visit(Part::Step(self.epoch()));
        for fenced in [shared, global] {
            visit(Part::UpTo(Epoch::new(self.me, fenced)));
        }
        self.knows.parts(visit);
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
        step.component() == self.me || self.knows.seen.knows(step)
    }

    /// Returns whether `step` is over before the agent's current operation. This is sufficient if
    /// the writes of the step do not matter.
    #[inline]
    pub fn knows_over(&self, step: Epoch) -> bool {
        step.component() == self.me || self.knows.over().knows(step)
    }

    /// Returns whether an asynchronous operation that the agent starts now sees what `step` wrote
    /// to `memory` through the generic proxy.
    pub fn sees_async(&self, step: Epoch, memory: Memory) -> bool {
        self.lies_behind(step, memory, &self.knows.ready[memory])
    }

    /// Returns whether a proxy fence separates the generic read `step` of `memory`, which is over,
    /// from an asynchronous operation that the agent starts now. Without one, a copy into global
    /// memory may overtake the read: on an H100, 1 to 3 of 100 reads saw what the next copy wrote
    /// (`tests/tests/litmus/proxies.rs`).
    pub fn fences_read(&self, step: Epoch, memory: Memory) -> bool {
        self.lies_behind(step, memory, self.knows.fenced_reads(memory))
    }

    /// Returns whether a fence follows `step`: the agent's own, or one that `fenced` records.
    fn lies_behind(&self, step: Epoch, memory: Memory, fenced: &Clock) -> bool {
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
            self.knows.ready[memory] = self.knows.seen.clone();
            self.own_fenced[memory] = self.own;
            if let Some(over) = &mut self.knows.over {
                over.fenced[memory] = over.all.clone();
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
    news: Knowledge,
    after: Knowledge,
}

impl Acquirer {
    /// Joins `news` into `view`.
    pub fn acquire(&mut self, view: &mut View, news: &Knowledge) {
        if !view.used || view.knows.same(news) {
            return;
        }
        if let Some(last) = &self.last
            && last.before.same(&view.knows)
            && last.news.same(news)
        {
            view.knows = last.after.clone();
            return;
        }
        let after = view.knows.join(news);
        let before = std::mem::replace(&mut view.knows, after.clone());
        self.last = Some(Join { before, news: news.clone(), after });
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
pub(super) const KEPT: usize = 32;

impl Releases {
    /// Adds what `view` knows and its own steps, and starts a new step of the view.
    pub fn release(&mut self, view: &mut View) {
        if !view.used {
            return;
        }
        self.add(&view.knows);
        self.own.push((view.epoch(), view.own_fenced));
        view.step();
    }

    /// Adds knowledge that was released elsewhere.
    pub fn add(&mut self, knows: &Knowledge) {
        if !self.known.iter().any(|known| known.same(knows)) {
            self.known.push(knows.clone());
            if self.known.len() >= KEPT {
                self.join();
            }
        }
    }

    /// Visits the parts of the releases, after joining them.
    pub fn parts(&mut self, visit: &mut impl FnMut(Part<'_>)) {
        self.join().parts(visit);
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
