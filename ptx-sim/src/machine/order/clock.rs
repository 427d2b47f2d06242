//! Vector clocks, made for threads that mostly know the same.
//!
//! A component counts the steps of one agent: a thread, or something asynchronous that others learn the completion of (an
//! mbarrier's phases, a thread's bulk groups). Clocks share their numbers until they differ; what a thread knows of itself is
//! kept beside its clock, so that a barrier gives all its threads one and the same clock.

use std::rc::Rc;

/// An agent, as an index into clocks.
pub(super) type Component = u32;

/// A step of an agent. Steps count from 1; the default is no step at all, which everybody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Epoch(u64);

impl Epoch {
    pub(super) const fn new(component: Component, count: u32) -> Self {
        Self((component as u64) << 32 | count as u64)
    }

    pub(super) const fn component(self) -> Component {
        (self.0 >> 32) as Component
    }

    pub(super) const fn count(self) -> u32 {
        self.0 as u32
    }

    pub(super) const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// The last step of each agent that is known; 0 for those beyond its end.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock(Rc<Vec<u32>>);

impl Clock {
    #[inline]
    pub(super) fn get(&self, component: Component) -> u32 {
        self.0.get(component as usize).copied().unwrap_or(0)
    }

    pub(super) fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    fn covers(&self, other: &Self) -> bool {
        let shared = self.0.iter().zip(other.0.iter()).all(|(mine, theirs)| mine >= theirs);
        shared && other.0.iter().skip(self.0.len()).all(|&theirs| theirs == 0)
    }

    /// All that either knows.
    pub(super) fn join(&self, other: &Self) -> Self {
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
        let mine = Rc::make_mut(&mut self.0);
        if mine.len() < other.0.len() {
            mine.resize(other.0.len(), 0);
        }
        for (mine, &theirs) in mine.iter_mut().zip(other.0.iter()) {
            *mine = (*mine).max(theirs);
        }
    }

    /// Learns that `component` has come to `count`.
    pub(super) fn learn(&mut self, component: Component, count: u32) {
        if self.get(component) >= count {
            return;
        }
        let numbers = Rc::make_mut(&mut self.0);
        if numbers.len() <= component as usize {
            numbers.resize(component as usize + 1, 0);
        }
        if let Some(number) = numbers.get_mut(component as usize) {
            *number = count;
        }
    }
}

/// The memories that `fence.proxy.async` is of, as an index: it may name one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    Shared = 0,
    Global = 1,
}

/// Of what the asynchronous proxy sees in each memory: nothing.
pub(super) const NOT_READY: [u32; 2] = [0; 2];

/// What is known, and what of it the asynchronous proxy sees in each memory: the part that a proxy fence lies behind.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    pub(super) seen: Clock,
    ready: [Clock; 2],
    /// All that is known to be over: what is seen, and steps of other blocks that told of themselves within the scope of a
    /// block, which is that they are over and not what they wrote. None if there are no such steps.
    over: Option<Over>,
    /// All that has happened: what is over, and what came before the copies that completed. Threads need not see any of
    /// that, but it orders phases. None if that is nothing more.
    past: Option<Clock>,
}

/// What is over, and what of it lies behind a proxy fence of shared memory.
#[derive(Clone, Debug)]
struct Over {
    all: Clock,
    fenced: Clock,
}

impl Knowledge {
    /// All that is known to be over, whether or not what it wrote is seen.
    fn over(&self) -> &Clock {
        self.over.as_ref().map_or(&self.seen, |over| &over.all)
    }

    /// What of that lies behind a proxy fence of shared memory.
    fn over_fenced(&self) -> &Clock {
        self.over.as_ref().map_or(&self.ready[Memory::Shared as usize], |over| &over.fenced)
    }

    /// All that is known to have happened.
    pub(super) fn past(&self) -> &Clock {
        self.past.as_ref().unwrap_or_else(|| self.over())
    }

    /// Learns that `past` has happened, and nothing else of it.
    pub(super) fn learn_past(&mut self, past: &Clock) {
        if !self.past().covers(past) {
            self.past = Some(self.past().join(past));
        }
    }

    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.over().0.is_empty()
    }

    /// What another block learns of it that is told, or listens, within the scope of a block only.
    pub(super) fn to_other_block(&self) -> Self {
        let over = Over { all: self.over().clone(), fenced: self.over_fenced().clone() };
        Self { over: Some(over), past: self.past.clone(), ..Self::default() }
    }

    fn same(&self, other: &Self) -> bool {
        let mut ready = self.ready.iter().zip(&other.ready);
        self.seen.same(&other.seen)
            && ready.all(|(mine, theirs)| mine.same(theirs))
            && self.over().same(other.over())
            && self.over_fenced().same(other.over_fenced())
            && self.past().same(other.past())
    }

    pub(super) fn join(&self, other: &Self) -> Self {
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
        let ([shared, global], [their_shared, their_global]) = (&self.ready, &other.ready);
        let ready = [shared.join(their_shared), global.join(their_global)];
        Self { seen: self.seen.join(&other.seen), ready, over, past }
    }

    /// Learns that `component` has come to `count`, and of that the asynchronous proxy sees what came before `ready`,
    /// in each memory.
    pub(super) fn learn(&mut self, component: Component, count: u32, ready: [u32; 2]) {
        self.seen.learn(component, count);
        for (mine, ready) in self.ready.iter_mut().zip(ready) {
            mine.learn(component, ready);
        }
        if let Some(over) = &mut self.over {
            over.all.learn(component, count);
            over.fenced.learn(component, ready[Memory::Shared as usize]);
        }
        if let Some(past) = &mut self.past {
            past.learn(component, count);
        }
    }
}

/// A thread's view: what it knows of others, and its own steps.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) me: Component,
    /// Its current step.
    pub(super) own: u32,
    /// Its own last step that the asynchronous proxy sees, in each memory.
    own_ready: [u32; 2],
    pub(super) knows: Knowledge,
    /// Whether any of this is asked for: if not, it learns and tells nothing.
    used: bool,
}

impl View {
    pub(super) fn new(me: Component, used: bool) -> Self {
        Self { me, own: 1, own_ready: [0; 2], knows: Knowledge::default(), used }
    }

    /// The current step.
    #[inline]
    pub(super) fn epoch(&self) -> Epoch {
        Epoch::new(self.me, self.own)
    }

    /// Whether `epoch` comes before what the thread does now, and what it wrote is seen.
    #[inline]
    pub(super) fn follows(&self, epoch: Epoch) -> bool {
        epoch.component() == self.me || self.knows.seen.get(epoch.component()) >= epoch.count()
    }

    /// Whether `epoch` comes before what the thread does now: enough if it wrote nothing that matters.
    #[inline]
    pub(super) fn knows_over(&self, epoch: Epoch) -> bool {
        epoch.component() == self.me || self.knows.over().get(epoch.component()) >= epoch.count()
    }

    /// Whether what the thread starts now in the asynchronous proxy sees the generic access `epoch` to `memory`.
    pub(super) fn sees_async(&self, epoch: Epoch, memory: Memory) -> bool {
        self.lies_behind(epoch, memory, &self.knows.ready[memory as usize])
    }

    /// Whether a proxy fence lies between the generic read `epoch` of shared memory, which is over, and what the thread starts
    /// now in the asynchronous proxy.
    pub(super) fn fences_read(&self, epoch: Epoch) -> bool {
        self.lies_behind(epoch, Memory::Shared, self.knows.over_fenced())
    }

    /// Whether `epoch` lies behind a fence: the thread's own, or one of those that `fenced` tells of.
    fn lies_behind(&self, epoch: Epoch, memory: Memory, fenced: &Clock) -> bool {
        let own = epoch.component() == self.me && self.own_ready[memory as usize] >= epoch.count();
        own || fenced.get(epoch.component()) >= epoch.count()
    }

    /// What follows is a new step: others may come to know what went before without knowing what follows.
    pub(super) fn step(&mut self) {
        self.own = self.own.saturating_add(1);
    }

    /// Makes all that the thread knows ready for the asynchronous proxy, in these memories.
    pub(super) fn fence_async(&mut self, memories: &[Memory]) {
        for &memory in memories {
            self.knows.ready[memory as usize] = self.knows.seen.clone();
            self.own_ready[memory as usize] = self.own;
            if memory == Memory::Shared
                && let Some(over) = &mut self.knows.over
            {
                over.fenced = over.all.clone();
            }
        }
        self.step();
    }
}

/// Joins of a clock with the same other clock are made by many threads in a row: the last one is kept.
#[derive(Debug, Default)]
pub(super) struct Acquirer {
    last: Option<(Knowledge, Knowledge, Knowledge)>,
}

impl Acquirer {
    /// `view` learns `news`.
    pub(super) fn acquire(&mut self, view: &mut View, news: &Knowledge) {
        if !view.used || view.knows.same(news) {
            return;
        }
        if let Some((before, same_news, after)) = &self.last
            && before.same(&view.knows)
            && same_news.same(news)
        {
            view.knows = after.clone();
            return;
        }
        let after = view.knows.join(news);
        let before = std::mem::replace(&mut view.knows, after.clone());
        self.last = Some((before, news.clone(), after));
    }
}

/// What several threads told, not yet joined.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathered {
    told: Vec<Knowledge>,
    /// Component, step, step that the asynchronous proxy sees in each memory.
    own: Vec<(Component, u32, [u32; 2])>,
}

/// How many differing clocks are kept before they are joined.
pub(super) const KEPT: usize = 32;

impl Gathered {
    /// Adds what `view` knows, and starts a new step of it.
    pub(super) fn release(&mut self, view: &mut View) {
        if !view.used {
            return;
        }
        self.add(&view.knows);
        self.own.push((view.me, view.own, view.own_ready));
        view.step();
    }

    /// Adds what was told elsewhere.
    pub(super) fn add(&mut self, knows: &Knowledge) {
        if !self.told.iter().any(|told| told.same(knows)) {
            self.told.push(knows.clone());
            if self.told.len() >= KEPT {
                self.join();
            }
        }
    }

    /// All of it. It stays gathered, in short.
    pub(super) fn join(&mut self) -> Knowledge {
        let mut all = self.told.pop().unwrap_or_default();
        for told in self.told.drain(..) {
            all = all.join(&told);
        }
        for (component, own, own_ready) in self.own.drain(..) {
            all.learn(component, own, own_ready);
        }
        self.told.push(all.clone());
        all
    }
}
