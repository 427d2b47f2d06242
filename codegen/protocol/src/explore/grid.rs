//! Blocks that execute `sync_grid` more often than others, or with another counter.
//!
//! An execution is that of one cluster. Two executions may belong to one launch if they decide
//! alike, except for conditions on the index of the cluster in the grid. If one of them reaches a
//! `sync_grid` that the other does not, it waits forever: all blocks arrive at each `sync_grid`, at
//! one counter.

use tma_front::diag::Diagnostic;
use tma_front::ir::{Axis, Scalar, Special};

use super::input::Input;
use super::results::Ended;
use crate::explain;
use crate::finding::{Detail, Party, Rule, ThreadAct, Violation};
use crate::launch::{self, Numbers};
use crate::memory::Site;
use crate::term::{Known, Symbol, Term, Terms};
use crate::value::along;

/// The largest grid that is tried, in clusters along an axis.
const MAX_CLUSTERS: i128 = 4;
const AXES: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

/// How many executions are compared with each other.
const MAX_COMPARED: usize = 64;

/// Returns a violation if a block waits for the grid forever in a launch that has two of these
/// executions.
pub(super) fn grid_divergence(
    input: &Input<'_>,
    terms: &mut Terms,
    all: &[Ended],
) -> Option<Box<Diagnostic>> {
    let all = &all[..all.len().min(MAX_COMPARED)];
    let reaching = all.iter().filter(|ended| !ended.grid_rounds.is_empty());
    let mut pairs = reaching
        .flat_map(|one| all.iter().filter_map(move |other| Some((one, other, unmatched_round(one, other)?))));
    pairs.find_map(|(one, other, site)| {
        let numbers = common_launch(input, terms, one, other)?;
        let at = Party { site, does: ThreadAct::WaitForGrid };
        // A `return` that both executions take is not why one of them is missing.
        let is_apart = |site: &&Site| one.returned.iter().all(|own| own.stmt != site.stmt);
        let returns = other.returned.iter().find(is_apart);
        let others = returns.map(|&site| Party { site, does: ThreadAct::BlockReturns });
        let others = others.into_iter().collect();
        let found = Violation { rule: Rule::Deadlock, at, others, detail: Detail::Nothing };
        Some(Box::new(explain::diagnostic(input, terms, &numbers, &found)))
    })
}

/// Returns the first `sync_grid` that an execution reaches and another does not.
fn unmatched_round(one: &Ended, other: &Ended) -> Option<Site> {
    let counter = |ended: &Ended, round: usize| ended.grid_rounds.get(round).map(|(counter, _)| *counter);
    let (_, (_, site)) =
        one.grid_rounds.iter().enumerate().find(|(round, (own, _))| counter(other, *round) != Some(*own))?;
    Some(*site)
}

/// Returns the numbers of a launch in which one cluster takes the decisions of `one`, and another
/// those of `other`, if only their indices in the grid distinguish them.
fn common_launch(input: &Input<'_>, terms: &mut Terms, one: &Ended, other: &Ended) -> Option<Numbers> {
    let decided = || one.decided.keys().chain(other.decided.keys());
    let differs = |term| other.decided.get(term).is_some_and(|value| one.decided[term] != *value);
    // Conditions on data or parameters that the two do not share may exclude each other in every
    // launch.
    let is_alike = |term: &Term| one.decided.get(term) == other.decided.get(term);
    let is_excused = |term: &Term| {
        !is_alike(term) && launch::is_chosen(terms, *term) && !launch::is_of_grid_index(terms, *term)
    };
    if decided().any(|term| launch::has_data(terms, *term) || is_excused(term))
        || one.decided.keys().any(|term| differs(term) && !launch::is_of_grid_index(terms, *term))
    {
        return None;
    }
    let mut ordinary = launch::ordinary_numbers(terms, decided());
    for axis in AXES {
        let grid = terms.symbol(Symbol::GridIndex(Special::GridDim(axis)), Scalar::U32);
        ordinary.insert(grid, i128::from(along(input.cluster, axis)));
    }
    for axis in AXES {
        let [grid, cluster_idx] = [Special::GridDim(axis), Special::ClusterIdx(axis)]
            .map(|special| terms.symbol(Symbol::GridIndex(special), Scalar::U32));
        let extent = i128::from(along(input.cluster, axis));
        for clusters in 2..=MAX_CLUSTERS {
            let mut numbers = ordinary.clone();
            numbers.insert(grid, clusters * extent);
            let mut first = |ended: &Ended| {
                (0..clusters).find(|&at| {
                    numbers.insert(cluster_idx, at);
                    holds(terms, ended, &numbers)
                })
            };
            if let (Some(_), Some(at)) = (first(other), first(one)) {
                numbers.insert(cluster_idx, at);
                return Some(numbers);
            }
        }
    }
    None
}

/// Whether an execution takes its decisions with these numbers.
fn holds(terms: &Terms, ended: &Ended, numbers: &Numbers) -> bool {
    let is_so = |(term, value): (&Term, &bool)| terms.evaluate(*term, numbers) == Some(Known::Bool(*value));
    ended.decided.iter().all(is_so)
}
