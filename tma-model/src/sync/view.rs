//! What an agent knows of the others.
//!
//! Knowledge has four parts, each of which includes the one before it or is a part of it:
//!
//! * *ready*: steps whose writes the asynchronous proxy sees, for each memory, because a proxy
//!   fence lies behind them;
//! * *seen*: steps whose writes the agent itself sees;
//! * *over*: steps that have ended, though what they wrote need not be seen: what an arrival tells
//!   another block within the scope of its own;
//! * *past*: steps that have happened, such as those before the issue of a copy that has completed.
//!   They order phases of barriers, and no access to memory.

use std::ops::{Index, IndexMut};

use super::clock::{Clock, Component, Epoch};
use super::fence::Memory;
use super::parts::Part;

/// One value for each memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByMemory<T> {
    /// Of shared memory.
    pub shared: T,
    /// Of global memory.
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
    /// All that either knows, of each memory.
    fn join(&self, other: &Self) -> Self {
        Self { shared: self.shared.join(&other.shared), global: self.global.join(&other.global) }
    }

    /// Whether both are the same clocks.
    fn same(&self, other: &Self) -> bool {
        self.shared.same(&other.shared) && self.global.same(&other.global)
    }
}

/// What is known of others.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    seen: Clock,
    ready: ByMemory<Clock>,
    /// None where nothing is over that is not seen as well.
    over: Option<Over>,
    /// None where nothing is past that is not over as well.
    past: Option<Clock>,
}

/// Steps that are over, and those of them that a proxy fence of each memory follows.
#[derive(Clone, Debug)]
struct Over {
    all: Clock,
    fenced: ByMemory<Clock>,
}

impl Knowledge {
    /// All steps whose writes are seen.
    #[inline]
    pub fn seen(&self) -> &Clock {
        &self.seen
    }

    /// All steps whose generic writes to `memory` lie behind a proxy fence.
    #[inline]
    pub fn fenced(&self, memory: Memory) -> &Clock {
        &self.ready[memory]
    }

    /// All steps that are known to be over.
    #[inline]
    pub fn over(&self) -> &Clock {
        self.over.as_ref().map_or(&self.seen, |over| &over.all)
    }

    /// Those of them that a proxy fence of each memory follows.
    fn over_fenced(&self) -> &ByMemory<Clock> {
        self.over.as_ref().map_or(&self.ready, |over| &over.fenced)
    }

    /// Steps known to be over whose generic reads of `memory` come before a proxy fence.
    pub fn fenced_reads(&self, memory: Memory) -> &Clock {
        &self.over_fenced()[memory]
    }

    /// All steps that are known to have happened.
    pub fn past(&self) -> &Clock {
        self.past.as_ref().unwrap_or_else(|| self.over())
    }

    /// Learns that `past` has happened, and nothing else of it.
    pub fn learn_past(&mut self, past: &Clock) {
        if !self.past().covers(past) {
            self.past = Some(self.past().join(past));
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.over().is_empty()
    }

    /// What it consists of.
    pub fn parts(&self, visit: &mut impl FnMut(Part<'_>)) {
        let (ready, over_fenced) = (&self.ready, self.over_fenced());
        let fenced = [&ready.shared, &ready.global, &over_fenced.shared, &over_fenced.global];
        for clock in [&self.seen, self.over(), self.past()].into_iter().chain(fenced) {
            visit(Part::Clock(clock));
        }
        visit(Part::Number(u64::from(self.over.is_some()) << 1 | u64::from(self.past.is_some())));
    }

    /// What another block learns of it that is told, or listens, within the scope of a block only.
    pub fn to_other_block(&self) -> Self {
        let over = Over { all: self.over().clone(), fenced: self.over_fenced().clone() };
        Self { over: Some(over), past: self.past.clone(), ..Self::default() }
    }

    /// Whether all parts of both are the same clocks.
    pub fn same(&self, other: &Self) -> bool {
        self.seen.same(&other.seen)
            && self.ready.same(&other.ready)
            && self.over().same(other.over())
            && self.over_fenced().same(other.over_fenced())
            && self.past().same(other.past())
    }

    /// All that either knows.
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

    /// Learns of a step, behind which no proxy fence lies.
    pub fn learn(&mut self, step: Epoch) {
        self.learn_fenced(step, ByMemory::default());
    }

    /// Learns of a step, and that of the agent's steps those up to `fenced` lie behind a proxy
    /// fence of each memory.
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

/// An agent's view: what it knows of others, and its own steps.
#[derive(Clone, Debug)]
pub struct View {
    me: Component,
    /// Its current step.
    own: u32,
    /// Its own last step that the asynchronous proxy sees, in each memory.
    own_fenced: ByMemory<u32>,
    knows: Knowledge,
    /// Whether any of this is asked for: if not, it learns and tells nothing.
    used: bool,
}

impl View {
    /// An agent that knows nothing. One that is not `used` stays so.
    pub fn new(me: Component, used: bool) -> Self {
        Self { me, own: 1, own_fenced: ByMemory::default(), knows: Knowledge::default(), used }
    }

    /// The current step.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        Epoch::new(self.me, self.own)
    }

    /// What it consists of.
    pub fn parts(&self, visit: &mut impl FnMut(Part<'_>)) {
        let ByMemory { shared, global } = self.own_fenced;
        visit(Part::Step(self.epoch()));
        for fenced in [shared, global] {
            visit(Part::UpTo(Epoch::new(self.me, fenced)));
        }
        self.knows.parts(visit);
    }

    /// What it knows of others.
    #[inline]
    pub fn knows(&self) -> &Knowledge {
        &self.knows
    }

    /// Whether `step` comes before what the agent does now, and what it wrote is seen.
    #[inline]
    pub fn follows(&self, step: Epoch) -> bool {
        step.component() == self.me || self.knows.seen.knows(step)
    }

    /// Whether `step` comes before what the agent does now: enough if it wrote nothing that
    /// matters.
    #[inline]
    pub fn knows_over(&self, step: Epoch) -> bool {
        step.component() == self.me || self.knows.over().knows(step)
    }

    /// Whether what the agent starts now in the asynchronous proxy sees what `step` wrote to
    /// `memory` through the generic proxy.
    pub fn sees_async(&self, step: Epoch, memory: Memory) -> bool {
        self.lies_behind(step, memory, &self.knows.ready[memory])
    }

    /// Whether a proxy fence lies between the generic read `step` of `memory`, which is over, and
    /// what the agent starts now in the asynchronous proxy. Without one a copy into global memory
    /// may overtake the read: on an H100, 1 to 3 of 100 reads saw what the next copy wrote
    /// (`tests/tests/litmus/proxies.rs`).
    pub fn fences_read(&self, step: Epoch, memory: Memory) -> bool {
        self.lies_behind(step, memory, self.knows.fenced_reads(memory))
    }

    /// Whether `step` lies behind a fence: the agent's own, or one of those that `fenced` tells of.
    fn lies_behind(&self, step: Epoch, memory: Memory, fenced: &Clock) -> bool {
        let own = step.component() == self.me && self.own_fenced[memory] >= step.count();
        own || fenced.knows(step)
    }

    /// What follows is a new step: others may come to know what went before without knowing what
    /// follows.
    pub fn step(&mut self) {
        self.own = self.own.saturating_add(1);
    }

    /// Learns of a step of another agent, behind which no proxy fence lies.
    pub fn learn(&mut self, step: Epoch) {
        debug_assert!(step.component() != self.me, "an agent knows its own steps");
        self.knows.learn(step);
    }

    /// Learns that `past` has happened, and nothing else of it.
    pub fn learn_past(&mut self, past: &Clock) {
        self.knows.learn_past(past);
    }

    /// A proxy fence: makes all that the agent knows ready for the asynchronous proxy, in these
    /// memories.
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

/// Joins knowledge into views. Many threads in a row join the same two: the last join is kept.
#[derive(Debug, Default)]
pub struct Acquirer {
    last: Option<Join>,
}

/// A join that was made.
#[derive(Debug)]
struct Join {
    before: Knowledge,
    news: Knowledge,
    after: Knowledge,
}

impl Acquirer {
    /// `view` learns `news`.
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

/// What several agents released, not yet joined.
#[derive(Clone, Debug, Default)]
pub struct Releases {
    known: Vec<Knowledge>,
    /// The releasing agents' own steps, and those of them behind a proxy fence of each memory.
    own: Vec<(Epoch, ByMemory<u32>)>,
}

/// How many differing clocks are kept before they are joined.
pub(super) const KEPT: usize = 32;

impl Releases {
    /// Adds what `view` knows and has done, and starts a new step of it.
    pub fn release(&mut self, view: &mut View) {
        if !view.used {
            return;
        }
        self.add(&view.knows);
        self.own.push((view.epoch(), view.own_fenced));
        view.step();
    }

    /// Adds what was released elsewhere.
    pub fn add(&mut self, knows: &Knowledge) {
        if !self.known.iter().any(|known| known.same(knows)) {
            self.known.push(knows.clone());
            if self.known.len() >= KEPT {
                self.join();
            }
        }
    }

    /// What it consists of, joined.
    pub fn parts(&mut self, visit: &mut impl FnMut(Part<'_>)) {
        self.join().parts(visit);
    }

    /// All of it. It stays here, in short.
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
