//! Conclusions from the executions of a kernel that were followed.

use std::collections::BTreeSet;
use std::rc::Rc;

use tma_front::diag::Diagnostic;
use tma_front::ir::{Kernel, ParamId, SharedVar, Type};
use tma_front::quick::QuickMap;

use super::input::Input;
use crate::launch;
use crate::memory::Site;
use crate::state::Execution;
use crate::term::{Term, Terms};

/// How many decisions are compared to see which launches fail and which do not: a second's work.
const MAX_COMPARED: usize = 1 << 24;
/// The memory that a diagnostic takes, in bytes: its text and the parts of it.
const DIAGNOSTIC_BYTES: usize = 4096;

/// The end of an execution, and its decisions.
pub(crate) struct Ended {
    pub(crate) iterations: u32,
    /// The fewest iterations of a loop that has ended.
    pub(crate) min_iterations: Option<u32>,
    pub(crate) decided: QuickMap<Term, bool>,
    /// The complete rounds of `sync_grid`: their counters and sites.
    pub(crate) grid_rounds: Vec<(ParamId, Site)>,
    /// The sites at which threads returned before the end of the kernel.
    pub(crate) returned: Vec<Site>,
}

impl Ended {
    /// Returns what is kept of an execution that has ended.
    pub(crate) fn of(state: Execution) -> Self {
        Self {
            iterations: state.decisions.max_iterations,
            min_iterations: state.decisions.min_iterations,
            decided: state.facts.decided().collect(),
            returned: state.history.returned().collect(),
            grid_rounds: state.history.grid_rounds,
        }
    }

    /// Whether all loops took more than `most` iterations. No kernel means to exclude such a
    /// launch.
    pub(crate) fn is_typical(&self, most: u32) -> bool {
        self.iterations > most && self.min_iterations.is_none_or(|min_iterations| min_iterations > most)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.decided.len() * 2 * size_of::<(Term, bool)>()
            + self.grid_rounds.len() * size_of::<(ParamId, Site)>()
            + self.returned.len() * size_of::<Site>()
    }
}

/// The decisions that an execution begins with: those of another one, and the opposite of the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    taken: Rc<[bool]>,
    /// The index of the decision that differs. `None` at the first execution.
    other: Option<usize>,
}

impl Path {
    pub(crate) fn decisions(&self) -> Vec<bool> {
        let Some(other) = self.other else { return vec![] };
        self.taken[..other].iter().copied().chain([true]).collect()
    }
}

/// An execution that breaks a rule.
struct Failed {
    ended: Ended,
    diagnostic: Box<Diagnostic>,
}

/// The executions of a kernel in clusters of one size.
#[derive(Default)]
pub(crate) struct Results {
    passed: Vec<Ended>,
    failed: Vec<Failed>,
    /// The free decisions of the last execution, and the iterations that it took.
    pub(crate) taken: Vec<bool>,
    pub(crate) iterations: u32,
    /// Whether the last execution stopped undecided.
    pub(crate) is_unknown: bool,
    /// Whether an execution was followed whose loops go around every ring.
    pub(crate) is_typical: bool,
    /// The memory that these take, in bytes, without the open decisions.
    held_bytes: usize,
    /// The number of decisions that are still open.
    pub(crate) open: usize,
}

/// The conclusion from all executions.
#[derive(Default)]
pub(crate) struct Conclusion {
    pub(crate) broken: Option<Box<Diagnostic>>,
    /// Violations in some launches that do not occur in others of the same kind.
    pub(crate) suspects: Vec<Diagnostic>,
}

impl Results {
    /// Whether any execution was followed to its end without a violation.
    pub(crate) fn has_passed(&self) -> bool {
        !self.passed.is_empty()
    }

    /// Returns the executions without a violation.
    pub(crate) fn passed(&self) -> &[Ended] {
        &self.passed
    }

    /// Records an execution that has ended without a violation.
    pub(crate) fn pass(&mut self, ended: Ended) {
        self.held_bytes += ended.bytes();
        self.passed.push(ended);
    }

    /// Records a violation in an execution.
    pub(crate) fn fail(&mut self, ended: Ended, diagnostic: Box<Diagnostic>) {
        self.held_bytes += ended.bytes() + DIAGNOSTIC_BYTES;
        self.failed.push(Failed { ended, diagnostic });
    }

    /// Whether there were executions, and all failed.
    pub(crate) fn all_failed(&self) -> bool {
        self.passed.is_empty() && !self.failed.is_empty()
    }

    /// Returns the memory that is held, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.held_bytes + self.open * size_of::<Path>()) as u64
    }

    /// Returns the paths that differ from the last execution in a decision after the first `known`.
    pub(crate) fn others(&mut self, known: usize) -> impl Iterator<Item = Path> + use<> {
        let taken: Rc<[bool]> = Rc::from(self.taken.as_slice());
        self.held_bytes += taken.len();
        (known..taken.len()).map(move |other| Path { taken: Rc::clone(&taken), other: Some(other) })
    }

    /// Returns the violation that is certain. A violation only in launches that a kernel may never
    /// get is not, such as those in which a loop has no iterations.
    pub(crate) fn conclusion(mut self, input: &Input<'_>, terms: &Terms) -> Conclusion {
        let most = max_stages(input.kernel.kernel()) + 1;
        let passes_elsewhere = self.passes_elsewhere(terms);
        let passing_keys: BTreeSet<_> = self
            .failed
            .iter()
            .zip(&passes_elsewhere)
            .filter(|(_, passes_elsewhere)| **passes_elsewhere)
            .map(|(one, _)| mistake_key(one))
            .collect();
        let is_certain = |index: usize| {
            let one = &self.failed[index];
            // Some loop has no iterations. If such a violation is excused in another execution, it
            // is excused here as well.
            let is_alike = one.ended.min_iterations == Some(0) && passing_keys.contains(&mistake_key(one));
            one.ended.is_typical(most) || self.is_typical && !passes_elsewhere[index] && !is_alike
        };
        let certain: Vec<usize> = (0..self.failed.len()).filter(|&index| is_certain(index)).collect();
        // The violation with the most iterations concerns launches that the kernel is made for. Of
        // its executions, the one with the fewest iterations has the smallest numbers.
        let iterations = |index: &usize| self.failed[*index].ended.iterations;
        let typical = certain
            .iter()
            .max_by_key(|index| iterations(index))
            .map(|&index| mistake_key(&self.failed[index]));
        let is_that = |index: &&usize| Some(mistake_key(&self.failed[**index])) == typical;
        let first = certain.iter().filter(is_that).min_by_key(|index| iterations(index)).copied();
        match first {
            Some(index) => {
                Conclusion { broken: Some(self.failed.swap_remove(index).diagnostic), suspects: vec![] }
            }
            None => {
                let suspects = self.failed.into_iter().map(|failed| *failed.diagnostic);
                Conclusion { broken: None, suspects: suspects.collect() }
            }
        }
    }

    /// Returns for each failed execution whether a launch of the same kind passes. If there is too
    /// much to compare, that is assumed, and nothing is reported.
    fn passes_elsewhere(&self, terms: &Terms) -> Vec<bool> {
        let mut left = MAX_COMPARED;
        let mut excuses = |failed: &Ended, passed: &Ended| {
            // The loops around the violation would have continued.
            let iterations =
                failed.iterations + u32::from(failed.iterations > 0 && failed.min_iterations.is_none());
            left = left.saturating_sub(1);
            passed.iterations >= iterations && differs(terms, failed, passed, &mut left) || left == 0
        };
        let is_excused = |failed: &Failed| self.passed.iter().any(|passed| excuses(&failed.ended, passed));
        self.failed.iter().map(is_excused).collect()
    }
}

/// Returns a key for the mistake that a diagnostic reports.
fn mistake_key(failed: &Failed) -> impl Ord + use<> {
    let diagnostic = &failed.diagnostic;
    (diagnostic.code(), diagnostic.span.start().line, diagnostic.span.start().column)
}

/// Whether an execution differs from another in numbers that a launch chooses, and in nothing else.
fn differs(terms: &Terms, one: &Ended, other: &Ended, left: &mut usize) -> bool {
    *left = left.saturating_sub(one.decided.len());
    let mut any = false;
    for (term, value) in &one.decided {
        if other.decided.get(term).is_some_and(|same| same != value) {
            any = true;
            if !launch::is_chosen(terms, *term) {
                return false;
            }
        }
    }
    any
}

/// Returns the number of stages of the largest ring.
pub(crate) fn max_stages(kernel: &Kernel) -> u32 {
    let of_var = |var: &SharedVar| if let Type::Stages(_, stages) = var.ty { stages } else { 1 };
    kernel.shared.iter().map(of_var).max().unwrap_or(1)
}
