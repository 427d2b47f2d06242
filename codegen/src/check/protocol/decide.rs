//! Conditions: what follows from what was decided, and what is free.

use super::code::Ends;
use super::finding::Why;
use super::lanes::Lanes;
use super::run::{Run, Step, Stop};
use super::term::{Node, Term};
use crate::ir::{BinaryOp, Scalar, Stmt};

impl Run<'_, '_> {
    /// Whether a condition holds for the group, which parts if it holds for some. What is not known
    /// is decided: first so that a loop ends, and the other way in another world.
    pub(super) fn decide(&mut self, condition: &Lanes<Term>, stmt: &Stmt, ends: Ends) -> Step<bool> {
        if self.choices.forks && ends != Ends::Neither {
            let is_free = condition.uniform().is_none_or(|term| self.terms.known(term).is_none());
            let of = self.input.code.step(self.me().at).loops.last();
            self.choices.free.extend(of.filter(|_| is_free));
        }
        let known = condition.map(|term| self.facts.known(self.terms, term));
        if let Some(known) = known {
            return match known.uniform() {
                Some(holds) => Ok(holds),
                None => Err(self.split(&known.classes())),
            };
        }
        let count = self.me().threads.len();
        let all: Vec<_> = (0..count).filter_map(|lane| condition.get(lane)).collect();
        if condition.uniform().is_none() {
            self.doubt(Why::Cut, stmt.origin.span);
        }
        let mut holds = None;
        for term in all {
            match (self.facts.known(self.terms, term), holds) {
                (Some(known), Some(holds)) if known != holds => return Err(Stop::Over),
                (Some(_), _) => {}
                (None, Some(holds)) => {
                    if !self.facts.assume_free(self.terms, term, holds) {
                        return Err(Stop::Over);
                    }
                }
                (None, None) => holds = Some(self.choose(term, ends)?),
            }
        }
        Ok(holds.unwrap_or(true))
    }

    /// Decides a condition that is free: of several together each, as far as that is needed.
    fn choose(&mut self, condition: Term, ends: Ends) -> Step<bool> {
        if let Node::Not(inner) = *self.terms.node(condition) {
            let ends = match ends {
                Ends::Then => Ends::Otherwise,
                Ends::Otherwise => Ends::Then,
                Ends::Neither => Ends::Neither,
            };
            return self.choose(inner, ends).map(|holds| !holds);
        }
        if let Node::Binary(BinaryOp::And | BinaryOp::Or, a, b) = *self.terms.node(condition)
            && self.terms.scalar(condition) == Scalar::Bool
        {
            for part in [a, b] {
                if let Some(holds) = self.facts.known(self.terms, condition) {
                    return Ok(holds);
                }
                if self.facts.known(self.terms, part).is_none() {
                    self.choose(part, ends)?;
                }
            }
            return self.facts.known(self.terms, condition).ok_or(Stop::Over);
        }
        self.choose_one(condition, ends)
    }

    fn choose_one(&mut self, condition: Term, ends: Ends) -> Step<bool> {
        if self.choices.forks {
            return Err(Stop::Fork(condition));
        }
        let in_loop = self.me().turns.last().copied();
        if in_loop.is_some_and(|(_, turn)| turn > self.input.most_turns) {
            return Err(Stop::Cut);
        }
        let turn = in_loop.map_or(0, |(_, turn)| turn);
        let is_outer = in_loop.is_some_and(|(of, _)| self.input.code.is_outer(of));
        let first = match ends {
            Ends::Then | Ends::Neither => true,
            Ends::Otherwise => false,
        };
        let choices = &mut self.choices;
        let may_go_on = ends != Ends::Neither;
        let is_other = choices.path.get(choices.taken.len()).copied();
        let turns = if is_outer { choices.turns.outer } else { choices.turns.inner };
        let is_other = is_other.unwrap_or(may_go_on && turn < turns);
        choices.most_turns = choices.most_turns.max(turn + u32::from(may_go_on && is_other));
        if may_go_on && !is_other {
            choices.fewest_turns = Some(choices.fewest_turns.map_or(turn, |fewest| fewest.min(turn)));
        }
        choices.taken.push(is_other);
        let value = first != is_other;
        if self.facts.assume_free(self.terms, condition, value) { Ok(value) } else { Err(Stop::Over) }
    }

    /// Whether a value is in one of these ranges.
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
