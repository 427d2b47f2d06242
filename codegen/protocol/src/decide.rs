//! Conditions: whether they follow from earlier decisions, or are free.

use std::rc::Rc;

use tma_front::ir::{BinaryOp, Scalar, Stmt, StmtId};
use tma_front::limits::WARP_THREADS;

use super::code::LoopEnding;
use super::finding::UndecidedReason;
use super::lanes::Lanes;
use super::launch;
use super::proof::Renaming;
use super::run::{Run, StepResult, Stop};
use super::term::{Node, Symbol, Term};

/// The role of a branch in the loop around it.
#[derive(Clone, Copy, Debug)]
struct BranchRole {
    /// The loop that the branch may end, or is in, and its iteration.
    in_loop: Option<(StmtId, u32)>,
    may_end: bool,
    /// The value to try first: the one that ends the loop, or that the first execution takes.
    /// `None` if either will do.
    first: Option<bool>,
}

impl Run<'_, '_> {
    /// Returns whether a condition holds for the group, and splits the group if only some threads
    /// agree. A condition that is not known is decided: first so that a loop ends, and the other
    /// way in another execution.
    pub(super) fn decide(
        &mut self,
        condition: &Lanes<Term>,
        stmt: &Stmt,
        ends: LoopEnding,
    ) -> StepResult<bool> {
        if self.policy.forks && matches!(ends, LoopEnding::Then | LoopEnding::Otherwise) {
            let is_free = condition.uniform().is_none_or(|term| self.terms.known(term).is_none());
            let of = self.input.code.step(self.agent().at).loops.last();
            self.findings.free_loops.extend(of.filter(|_| is_free));
        }
        let known = condition.map(|term| self.state.facts.known(self.terms, term));
        if let Some(known) = known {
            return match known.uniform() {
                Some(holds) => Ok(holds),
                None if self.notes_distinguished(condition) => Err(self.split_alone(&known.classes())),
                None => Err(self.split(&known.classes())),
            };
        }
        let count = self.agent().threads.len();
        let all: Vec<_> = (0..count).filter_map(|lane| condition.get(lane)).collect();
        if condition.uniform().is_none() {
            self.note_undecided(UndecidedReason::Divergence, stmt.origin.span);
            if ends == LoopEnding::Otherwise && self.is_in_silent_loop() {
                return self.decide_by_first_lane(condition, ends);
            }
        }
        let mut holds = None;
        for term in all {
            match (self.state.facts.known(self.terms, term), holds) {
                (Some(known), Some(holds)) if known != holds => return Err(Stop::Discarded),
                (Some(_), _) => {}
                (None, Some(holds)) => {
                    if !self.state.facts.assume_free(self.terms, term, holds) {
                        return Err(Stop::Discarded);
                    }
                }
                (None, None) => holds = Some(self.choose(term, self.branch_role(ends))?),
            }
        }
        Ok(holds.unwrap_or(true))
    }

    /// Records which threads a condition distinguishes by their thread indices, as opposed to by
    /// which of them is elected. Returns whether there are any.
    fn notes_distinguished(&mut self, condition: &Lanes<Term>) -> bool {
        let threads = Rc::clone(&self.agent().threads);
        let mut named = vec![];
        for (lane, thread) in threads.iter().enumerate() {
            let Some(term) = condition.get(lane) else { return false };
            let symbol = self.terms.symbol(Symbol::Elected(thread / WARP_THREADS), Scalar::U32);
            let [own, none] = [thread % WARP_THREADS, WARP_THREADS].map(|lane| {
                let lane = self.terms.number(i128::from(lane), Scalar::U32);
                self.terms.binary(BinaryOp::Eq, symbol, lane)
            });
            let mut renaming = Renaming::default();
            renaming.whole.insert(own, none);
            named.push(renaming.of(self.terms, term));
        }
        Lanes::of(named).is_some_and(|named| self.notes_classes(&named))
    }

    /// Whether the innermost loop of the current group is one in which nothing synchronises. Always
    /// false in a proof.
    fn is_in_silent_loop(&self) -> bool {
        let is_silent = |(of, _): &(StmtId, u32)| self.input.code.is_silent(*of);
        !self.policy.forks && self.agent().iterations.last().is_some_and(is_silent)
    }

    /// Decides a loop whose iterations are distributed over lanes, as in
    /// `for i in (lane..n).step_by(32)`. The first lane of the warp decides freely, and the others
    /// have no more iterations, so that launches with a single element are explored.
    fn decide_by_first_lane(&mut self, condition: &Lanes<Term>, ends: LoopEnding) -> StepResult<bool> {
        let threads = Rc::clone(&self.agent().threads);
        for (lane, thread) in threads.iter().enumerate() {
            let Some(term) = condition.get(lane) else { continue };
            if self.state.facts.known(self.terms, term).is_some() {
                continue;
            }
            if thread % WARP_THREADS == 0 {
                self.choose(term, self.branch_role(ends))?;
            } else if !self.state.facts.assume_free(self.terms, term, false) {
                return Err(Stop::Discarded);
            }
        }
        let known = condition.map(|term| self.state.facts.known(self.terms, term)).ok_or(Stop::Discarded)?;
        known.uniform().ok_or_else(|| self.split(&known.classes()))
    }

    /// Decides a free condition. The operands of `&` and `|` are decided one by one, as far as
    /// needed.
    fn choose(&mut self, condition: Term, role: BranchRole) -> StepResult<bool> {
        if let Node::Not(inner) = *self.terms.node(condition) {
            let role = BranchRole { first: role.first.map(|first| !first), ..role };
            return self.choose(inner, role).map(|holds| !holds);
        }
        if let Node::Binary(BinaryOp::And | BinaryOp::Or, a, b) = *self.terms.node(condition)
            && self.terms.scalar(condition) == Scalar::Bool
        {
            for part in [a, b] {
                if let Some(holds) = self.state.facts.known(self.terms, condition) {
                    return Ok(holds);
                }
                if self.state.facts.known(self.terms, part).is_none() {
                    self.choose(part, role)?;
                }
            }
            return self.state.facts.known(self.terms, condition).ok_or(Stop::Discarded);
        }
        self.choose_one(condition, role)
    }

    fn choose_one(&mut self, condition: Term, role: BranchRole) -> StepResult<bool> {
        if self.policy.forks {
            return Err(Stop::Fork(condition));
        }
        let innermost = self.agent().iterations.last();
        if innermost.is_some_and(|(_, iteration)| *iteration > self.input.max_iterations) {
            return Err(Stop::IterationLimit);
        }
        let BranchRole { in_loop, may_end, first } = role;
        // Numbers are rarely equal.
        let is_equality = self.terms.node(condition).operands_of_binary(BinaryOp::Eq).is_some();
        let first = first.unwrap_or(!is_equality);
        let iteration = in_loop.map_or(0, |(_, iteration)| iteration);
        let iterations = in_loop.map_or(self.policy.iterations.inner, |(of, _)| self.default_iterations(of));
        let decisions = &mut self.state.decisions;
        let is_other = self.policy.path.get(decisions.taken.len()).copied();
        let is_other = is_other.unwrap_or(may_end && iteration < iterations);
        decisions.max_iterations = decisions.max_iterations.max(iteration + u32::from(may_end && is_other));
        if may_end && !is_other {
            decisions.min_iterations =
                Some(decisions.min_iterations.map_or(iteration, |fewest| fewest.min(iteration)));
        }
        decisions.taken.push(is_other);
        if launch::has_data(self.terms, condition) {
            let of_loop = in_loop.filter(|_| may_end).map(|(of, _)| of);
            decisions.data = decisions.data.and(self.state.current, of_loop);
        }
        let value = first != is_other;
        if self.state.facts.assume_free(self.terms, condition, value) {
            Ok(value)
        } else {
            Err(Stop::Discarded)
        }
    }

    /// Returns the role of a branch. A `break` out of a loop in which nothing synchronises ends a
    /// search: the outer loop continues with the element that was found, and ends if there is none.
    fn branch_role(&self, ends: LoopEnding) -> BranchRole {
        let iterations = self.agent().iterations.as_slice();
        let (in_loop, may_end, first) = match (ends, iterations) {
            (LoopEnding::Then, [.., around, (of, _)]) if self.input.code.is_silent(*of) => {
                (Some(around), true, Some(false))
            }
            (LoopEnding::Then, _) => (iterations.last(), true, Some(true)),
            (LoopEnding::Otherwise, _) => (iterations.last(), true, Some(false)),
            (LoopEnding::Iteration, _) => (iterations.last(), false, Some(false)),
            (LoopEnding::Neither, _) => (iterations.last(), false, None),
        };
        BranchRole { in_loop: in_loop.copied(), may_end, first }
    }

    /// Returns how many iterations of a loop are taken by default.
    fn default_iterations(&self, of: StmtId) -> u32 {
        let iterations = self.policy.iterations;
        if self.input.code.is_silent(of) {
            iterations.silent
        } else if self.input.code.is_outer(of) {
            iterations.outer
        } else {
            iterations.inner
        }
    }

    /// Returns the condition that a value is in one of these ranges.
    pub(super) fn within(&mut self, term: Term, ranges: &[(i128, i128)]) -> Term {
        let scalar = self.terms.scalar(term);
        let mut any = self.terms.truth(false);
        for &(low, high) in ranges {
            let holds = if scalar == Scalar::Bool {
                if low == high && low == 0 { self.terms.not(term) } else { term }
            } else {
                let (low, high) = (self.terms.number(low, scalar), self.terms.number(high, scalar));
                let above = self.terms.binary(BinaryOp::Ge, term, low);
                let below = self.terms.binary(BinaryOp::Le, term, high);
                self.terms.binary(BinaryOp::And, above, below)
            };
            any = self.terms.binary(BinaryOp::Or, any, holds);
        }
        any
    }
}
