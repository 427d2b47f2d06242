//! What counters have come to after any number of turns: `period * turns + rest`.
//!
//! Where a loop is followed for all its turns at once, its counter is such a sum, whose period is a
//! multiple of what it is divided by. So its stage and its phase are known although its value is
//! not. Counters do not wrap: they stay below the ends of their loops, which a launch brings.

use super::{Node, Symbol, Term, Terms};
use crate::ir::{BinaryOp, Scalar};

/// Factors, and numbers that are added, below this are kept apart from the turns: sums of greater
/// ones would wrap after few turns.
const MOST: i128 = 1 << 8;
/// Periods below this are those of sums.
const MOST_PERIOD: i128 = 1 << 16;
/// Rests below this are: a period, and what some turns add. Others may stand for what is subtracted.
const MOST_REST: i128 = 1 << 12;

/// `period * turns + rest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::check::protocol) struct Linear {
    /// A symbol of turns, or a cast of one.
    pub(in crate::check::protocol) turns: Term,
    pub(in crate::check::protocol) period: i128,
    pub(in crate::check::protocol) rest: i128,
}

impl Terms {
    /// The term as such a sum.
    pub(in crate::check::protocol) fn linear(&self, term: Term) -> Option<Linear> {
        if !self.is_numbered(term) {
            return None;
        }
        let (product, rest) = match self.node(term).operands_of_binary(BinaryOp::Add) {
            Some((product, rest)) => (product, self.int(rest)?),
            None => (term, 0),
        };
        let (turns, period) = match self.node(product).operands_of_binary(BinaryOp::Mul) {
            Some((turns, period)) => (turns, self.int(period)?),
            None => (product, 1),
        };
        let symbol = if let Node::Cast(inner) = *self.node(turns) { inner } else { turns };
        let is_turns = matches!(self.node(symbol), Node::Symbol(Symbol::Turns(_)))
            && keeps_numbers(self.scalar(symbol), self.scalar(turns));
        let is_small = (1..MOST_PERIOD).contains(&period) && (0..MOST_REST).contains(&rest);
        (is_turns && is_small && self.counts_in(period)).then_some(Linear { turns, period, rest })
    }

    /// Whether so many times the turns do not wrap: not more than what is counted does.
    fn counts_in(&self, period: i128) -> bool {
        period == 1 || self.period > 0 && self.period % period == 0
    }

    /// The sum as a term.
    pub(in crate::check::protocol) fn sum(&mut self, Linear { turns, period, rest }: Linear) -> Term {
        let scalar = self.scalar(turns);
        let product = match period {
            1 => turns,
            _ => {
                let period = self.number(period, scalar);
                self.add(Node::Binary(BinaryOp::Mul, turns, period), scalar)
            }
        };
        if rest == 0 {
            return product;
        }
        let rest = self.number(rest, scalar);
        self.add(Node::Binary(BinaryOp::Add, product, rest), scalar)
    }

    /// What an operation with such a sum comes to, if that is known or a sum as well.
    pub(in crate::check::protocol) fn of_turns(&mut self, op: BinaryOp, a: Term, b: Term) -> Option<Term> {
        match (self.linear(a), self.linear(b)) {
            (Some(a), Some(b)) => self.of_two(op, a, b),
            (Some(sum), None) => {
                let by = self.int(b)?;
                self.with_number(op, sum, by)
            }
            (None, Some(sum)) => {
                let by = self.int(a)?;
                let is_symmetric = matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Eq);
                if op == BinaryOp::Lt && by < sum.rest {
                    return Some(self.truth(true));
                }
                if is_symmetric { self.with_number(op, sum, by) } else { None }
            }
            (None, None) => self.of_wrapped(op, a, b),
        }
    }

    /// The low bits of a sum less a number, which are the same if that wraps.
    fn of_wrapped(&mut self, op: BinaryOp, a: Term, b: Term) -> Option<Term> {
        let Node::Binary(BinaryOp::Sub, sum, less) = *self.node(a) else { return None };
        let (Linear { turns, period, rest }, less, by) = (self.linear(sum)?, self.int(less)?, self.int(b)?);
        let modulo = if op == BinaryOp::And { by + 1 } else { by };
        let scalar = self.scalar(turns);
        // A remainder has the sign of what is divided.
        let is_low = op == BinaryOp::And || op == BinaryOp::Rem && !scalar.is_signed();
        (is_low && is_power_of_two(modulo) && period % modulo == 0)
            .then(|| self.number((rest - less).rem_euclid(modulo), scalar))
    }

    /// Of two counters that have come equally far.
    fn of_two(&mut self, op: BinaryOp, a: Linear, b: Linear) -> Option<Term> {
        let scalar = self.scalar(a.turns);
        if a.turns != b.turns || a.period != b.period {
            return None;
        }
        match op {
            BinaryOp::Lt => Some(self.truth(a.rest < b.rest)),
            BinaryOp::Eq => Some(self.truth(a.rest == b.rest)),
            BinaryOp::Sub if a.rest >= b.rest => Some(self.number(a.rest - b.rest, scalar)),
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Ne
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge => None,
        }
    }

    fn with_number(&mut self, op: BinaryOp, sum: Linear, by: i128) -> Option<Term> {
        let Linear { turns, period, rest } = sum;
        let scalar = self.scalar(turns);
        let divides = |by: i128| by > 0 && period % by == 0;
        let known = |terms: &mut Self, number| Some(terms.number(number, scalar));
        match op {
            BinaryOp::Add if (0..MOST).contains(&by) => Some(self.sum(Linear { rest: rest + by, ..sum })),
            BinaryOp::Sub if (0..=rest).contains(&by) => Some(self.sum(Linear { rest: rest - by, ..sum })),
            BinaryOp::Mul
                if (1..MOST).contains(&by) && self.counts_in(period * by) && rest * by < MOST_REST =>
            {
                Some(self.sum(Linear { turns, period: period * by, rest: rest * by }))
            }
            BinaryOp::Rem if divides(by) => known(self, rest % by),
            BinaryOp::Div if divides(by) => {
                Some(self.sum(Linear { turns, period: period / by, rest: rest / by }))
            }
            BinaryOp::And if by >= 0 && is_power_of_two(by + 1) && divides(by + 1) => known(self, rest & by),
            BinaryOp::Shr if (0..16).contains(&by) && divides(1 << by) => {
                Some(self.sum(Linear { turns, period: period >> by, rest: rest >> by }))
            }
            BinaryOp::Xor if (0..MOST).contains(&by) && divides(power_of_two_above(by)) => {
                Some(self.sum(Linear { rest: rest ^ by, ..sum }))
            }
            BinaryOp::Lt if by <= rest => Some(self.truth(false)),
            BinaryOp::Eq if (rest - by) % period != 0 || by < rest => Some(self.truth(false)),
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge => None,
        }
    }

    /// A sum keeps its form as a number of another type that has all of its numbers.
    pub(in crate::check::protocol) fn cast_of_turns(&mut self, a: Term, to: Scalar) -> Option<Term> {
        let sum = self.linear(a)?;
        if !keeps_numbers(self.scalar(a), to) {
            return None;
        }
        let symbol = if let Node::Cast(symbol) = *self.node(sum.turns) { symbol } else { sum.turns };
        let turns = if self.scalar(symbol) == to { symbol } else { self.add(Node::Cast(symbol), to) };
        Some(self.sum(Linear { turns, ..sum }))
    }
}

/// Whether a type has all numbers of another that counts.
fn keeps_numbers(from: Scalar, to: Scalar) -> bool {
    let most = |scalar: Scalar| scalar.integer_range().map(|(_, most)| most);
    most(from).is_some() && most(to) >= most(from)
}

fn is_power_of_two(number: i128) -> bool {
    number > 0 && number & (number - 1) == 0
}

/// The least power of two that is greater.
fn power_of_two_above(number: i128) -> i128 {
    (0..).map(|bits| 1 << bits).find(|power| *power > number).unwrap_or(i128::MAX)
}
