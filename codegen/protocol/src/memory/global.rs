//! Accesses of threads and copies to the global memory of a parameter.
//!
//! Terms describe the bytes. Two accesses certainly touch the same bytes if their terms are equal,
//! or are numbers that overlap; with other terms they may. Different parameters are different
//! memory, like the Rust references that the host passes.

use tma_front::ir::{ParamId, StmtId};
use tma_front::quick::QuickMap;
use tma_model::sync::{Access, Epoch, Hazard, Memory, Proxy, Requirement};

use super::region::Overlap;
use super::{Site, all_know_over};
use crate::code::Used;
use crate::lanes::Lanes;
use crate::state::Agent;
use crate::term::{Term, Terms};

/// A location in the memory of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum GlobalLocation {
    /// Elements from an index on, for each thread, and their number if it is known.
    Elements(Lanes<Term>, Option<u32>),
    /// The box at these coordinates, with these extents.
    Box(Vec<Term>, Vec<u32>),
    /// An unknown location.
    Anywhere,
}

/// An access that was made or is in flight.
#[derive(Clone, Debug)]
pub(crate) struct GlobalRecord {
    pub(crate) param: ParamId,
    pub(crate) access: Access,
    pub(crate) step: Epoch,
    pub(crate) at: GlobalLocation,
    pub(crate) site: Site,
}

/// Two conflicting accesses.
#[derive(Clone, Debug)]
pub(crate) struct GlobalClash {
    pub(crate) earlier: GlobalRecord,
    pub(crate) hazard: Hazard,
    pub(crate) overlap: Overlap,
}

/// Records an access by a group of threads. Returns its conflict with
/// an earlier one, if any, and preferably a certain one. Two accesses of threads are not compared,
/// so their order is left to `check::global` and the host.
pub(crate) fn access(
    records: &mut Vec<GlobalRecord>,
    terms: &mut Terms,
    agent: &Agent,
    used: &QuickMap<StmtId, Used>,
    new: GlobalRecord,
) -> Option<GlobalClash> {
    let used_of = |read: &GlobalRecord| used.get(&read.site.stmt).copied().unwrap_or_default();
    let mut clash: Option<GlobalClash> = None;
    for old in records.iter().filter(|old| old.param == new.param) {
        if (old.access.proxy, new.access.proxy) == (Proxy::Generic, Proxy::Generic) {
            continue;
        }
        let requirement = old.access.before(new.access);
        let crosses = requirement == Requirement::CompleteAndFenced;
        let requirement =
            if crosses && used_of(old) == Used::Surely { Requirement::Complete } else { requirement };
        let Some(hazard) = missing(requirement, old.step, agent) else { continue };
        let is_unsure = crosses && hazard == Hazard::NoProxyFence && used_of(old) == Used::Maybe;
        let found = overlap(terms, &old.at, &new.at);
        let overlap = if is_unsure && found == Overlap::Yes { Overlap::Maybe } else { found };
        let is_worse = clash.as_ref().is_none_or(|known| known.overlap != Overlap::Yes);
        if overlap != Overlap::No && is_worse {
            clash = Some(GlobalClash { earlier: old.clone(), hazard, overlap });
        }
    }
    let is_same = |old: &&mut GlobalRecord| {
        old.site.stmt == new.site.stmt
            && old.site.agent == new.site.agent
            && old.access == new.access
            && old.step.component() == new.step.component()
    };
    match records.iter_mut().find(is_same) {
        // This is another iteration of a loop. A wait for its step covers the earlier iterations.
        Some(old) => {
            let at = if old.at == new.at { new.at } else { GlobalLocation::Anywhere };
            *old = GlobalRecord { at, ..new };
        }
        None => records.push(new),
    }
    clash
}

/// Returns the order that is missing between a step and what the threads of a group do now.
fn missing(requirement: Requirement, step: Epoch, agent: &Agent) -> Option<Hazard> {
    let hazard = requirement.missing(step, &agent.view, Memory::Global);
    let is_ahead =
        || requirement != Requirement::Nothing && !all_know_over(&agent.view, step, agent.threads.len());
    hazard.or_else(|| is_ahead().then_some(Hazard::Unordered))
}

/// Whether two accesses touch the same elements.
pub(crate) fn overlap(terms: &mut Terms, a: &GlobalLocation, b: &GlobalLocation) -> Overlap {
    match (a, b) {
        (GlobalLocation::Elements(one, length), GlobalLocation::Elements(other, others)) => {
            let each = |lanes: &Lanes<Term>| match lanes {
                Lanes::Same(term) => vec![*term],
                Lanes::Each(all) => all.to_vec(),
            };
            let (one, other) = (each(one), each(other));
            let mut found = Overlap::No;
            for &from in &one {
                for &to in &other {
                    match elements(terms, from, *length, to, *others) {
                        Overlap::Yes => return Overlap::Yes,
                        Overlap::Maybe => found = Overlap::Maybe,
                        Overlap::No => {}
                    }
                }
            }
            found
        }
        (GlobalLocation::Box(one, extents), GlobalLocation::Box(other, _)) => {
            boxes(terms, one, other, extents)
        }
        (GlobalLocation::Elements(..) | GlobalLocation::Box(..), _) | (GlobalLocation::Anywhere, _) => {
            Overlap::Maybe
        }
    }
}

/// Whether two boxes of these extents have an element in common. Boxes are assumed to be apart if
/// the difference of their coordinates is not known.
fn boxes(terms: &Terms, one: &[Term], other: &[Term], extents: &[u32]) -> Overlap {
    if one == other {
        return Overlap::Yes;
    }
    // The index of a map among several comes first, and has no extent.
    let extents =
        std::iter::repeat_n(1, one.len().saturating_sub(extents.len())).chain(extents.iter().copied());
    let overlaps = one.iter().zip(other).zip(extents).all(|((&one, &other), extent)| {
        let known = terms.int(one).zip(terms.int(other));
        one == other || known.is_some_and(|(one, other)| (one - other).abs() < i128::from(extent))
    });
    if overlaps { Overlap::Yes } else { Overlap::No }
}

/// Whether two ranges of elements have an element in common.
fn elements(terms: &mut Terms, from: Term, length: Option<u32>, to: Term, others: Option<u32>) -> Overlap {
    if from == to {
        return Overlap::Yes;
    }
    let Some((first, second)) = terms.int(from).zip(terms.int(to)) else { return Overlap::Maybe };
    let Some((length, others)) = length.zip(others) else { return Overlap::Maybe };
    let (length, others) = (i128::from(length), i128::from(others));
    if first < second + others && second < first + length { Overlap::Yes } else { Overlap::No }
}
