//! The lanes that `elect_one` picks.
//!
//! PTX ISA, "elect.sync", says that the lane is the same for the same mask, and nothing else. So
//! the lane is a symbol of each warp. Threads that the kernel does not distinguish by thread index
//! are alike. One of each kind is elected, in an execution of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tma_front::limits::WARP_THREADS;

use super::input::Input;
use crate::groups;
use crate::run::Findings;

/// The elected lanes, by warp. A warp without an entry elects its usual lane.
pub(crate) type Elected = BTreeMap<u32, u32>;

/// The most elections that are followed, if the budget allows.
const MAX_ELECTIONS: usize = 1 << 8;

/// The elections of a kernel.
#[derive(Debug, Default)]
pub(crate) struct Elections {
    /// The warps that elect a thread.
    warps: BTreeSet<u32>,
    /// Classes of threads of a block that are alike.
    alike: Vec<Rc<[u32]>>,
}

impl Elections {
    /// Returns the elections of a block of `threads` threads, which are all alike at first.
    pub(crate) fn of(threads: u32) -> Self {
        let all: Vec<u32> = (0..threads).collect();
        Self { warps: BTreeSet::new(), alike: vec![Rc::from(all)] }
    }

    /// Records the warps that elect a thread, and the classes that the kernel distinguishes.
    pub(crate) fn note(&mut self, findings: &Findings) {
        self.warps.extend(&findings.electing_warps);
        for classes in findings.thread_classes.borrow().iter() {
            groups::refine(&mut self.alike, classes);
        }
    }

    /// Returns every kind of election, the usual one first, or `None` if there are too many.
    pub(crate) fn all(&self, input: &Input<'_>) -> Option<Vec<Elected>> {
        let mut all = vec![Elected::new()];
        // If the kernel treats the usual lane by its number, that shows when another lane is
        // elected.
        let mut other_lanes = Elected::new();
        for &warp in &self.warps {
            let usual = warp * WARP_THREADS + input.usual(warp);
            let first = |threads: &Rc<[u32]>, but: Option<u32>| {
                let is_other = |thread: &u32| thread / WARP_THREADS == warp && Some(*thread) != but;
                threads.iter().copied().find(is_other).map(|thread| thread % WARP_THREADS)
            };
            let (of_usual, others): (Vec<_>, Vec<_>) =
                self.alike.iter().partition(|threads| threads.contains(&usual));
            other_lanes.extend(
                of_usual.iter().find_map(|threads| first(threads, Some(usual))).map(|lane| (warp, lane)),
            );
            let lanes: Vec<u32> = others.iter().filter_map(|threads| first(threads, None)).collect();
            if all.len() * (lanes.len() + 1) > MAX_ELECTIONS {
                return None;
            }
            let more = |elected: &Elected| {
                let with = |&lane: &u32| elected.clone().into_iter().chain([(warp, lane)]).collect();
                lanes.iter().map(with).collect::<Vec<Elected>>()
            };
            all.extend(all.iter().flat_map(more).collect::<Vec<_>>());
        }
        all.extend((!other_lanes.is_empty()).then_some(other_lanes));
        Some(all)
    }
}
