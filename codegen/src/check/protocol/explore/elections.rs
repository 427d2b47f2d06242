//! Which lanes `elect_one` picks.
//!
//! PTX ISA, "elect.sync": the lane is the same for the same mask, and nothing else is said of it. So
//! it is a symbol of each warp. Threads that the kernel does not tell apart by their numbers are
//! alike: of each kind of them one is elected, in a world of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::input::Input;
use crate::check::protocol::groups;
use crate::limits::WARP_THREADS;

/// The lanes that are elected, by warp; the usual ones where none is given.
pub(in crate::check::protocol) type Elected = BTreeMap<u32, u32>;

/// The most elections that are followed, as far as the budget allows.
const MOST: usize = 1 << 8;

/// A kernel's elections.
#[derive(Debug, Default)]
pub(in crate::check::protocol) struct Elections {
    /// The warps that elect a thread.
    warps: BTreeSet<u32>,
    /// The threads of a block that are alike.
    alike: Vec<Rc<[u32]>>,
}

impl Elections {
    /// Of a block of so many threads, which are all alike.
    pub(in crate::check::protocol) fn of(threads: u32) -> Self {
        let all: Vec<u32> = (0..threads).collect();
        Self { warps: BTreeSet::new(), alike: vec![Rc::from(all)] }
    }

    /// These warps elect a thread, and the kernel tells these threads apart.
    pub(in crate::check::protocol) fn note(&mut self, warps: &BTreeSet<u32>, apart: &[Vec<Vec<u32>>]) {
        self.warps.extend(warps);
        apart.iter().for_each(|classes| _ = groups::refine(&mut self.alike, classes));
    }

    /// Every kind of election, the usual one first; none if there are too many.
    pub(in crate::check::protocol) fn all(&self, input: &Input<'_>) -> Option<Vec<Elected>> {
        let mut all = vec![Elected::new()];
        // What the kernel does with the usual lane for its number shows where another is elected.
        let mut beside = Elected::new();
        for &warp in &self.warps {
            let usual = warp * WARP_THREADS + input.usual(warp);
            let first = |threads: &Rc<[u32]>, but: Option<u32>| {
                let is_other = |thread: &u32| thread / WARP_THREADS == warp && Some(*thread) != but;
                threads.iter().copied().find(is_other).map(|thread| thread % WARP_THREADS)
            };
            let (of_usual, others): (Vec<_>, Vec<_>) =
                self.alike.iter().partition(|threads| threads.contains(&usual));
            beside.extend(
                of_usual.iter().find_map(|threads| first(threads, Some(usual))).map(|lane| (warp, lane)),
            );
            let lanes: Vec<u32> = others.iter().filter_map(|threads| first(threads, None)).collect();
            if all.len() * (lanes.len() + 1) > MOST {
                return None;
            }
            let more = |elected: &Elected| {
                let with = |&lane: &u32| elected.clone().into_iter().chain([(warp, lane)]).collect();
                lanes.iter().map(with).collect::<Vec<Elected>>()
            };
            all.extend(all.iter().flat_map(more).collect::<Vec<_>>());
        }
        all.extend((!beside.is_empty()).then_some(beside));
        Some(all)
    }
}
