//! Counters after any number of iterations: `period * iterations + rest`.
//!
//! If a loop is followed for all its iterations at once, its counter is such a sum. The period is a
//! multiple of the numbers that the counter is divided by, so its stage and phase are known
//! although its value is not. Counters do not wrap: they stay below the ends of their loops, which
//! a launch brings.

use tma_front::ir::{BinaryOp, Scalar};

use super::{Node, Symbol, Term, Terms};

/// The bound of factors and addends that are separated from the iterations. Sums of greater ones
/// would wrap after few iterations.
const MAX: i128 = 1 << 8;
/// The bound of the periods of sums.
const MAX_PERIOD: i128 = 1 << 16;
/// The bound of the rests of sums: a period, and the increments of some iterations. Greater ones
/// may represent a subtraction.
const MAX_REST: i128 = 1 << 12;

/// The sum `period * iterations + rest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Linear {
    /// A symbol of iterations, or a cast of one.
    pub(crate) iterations: Term,
    pub(crate) period: i128,
    pub(crate) rest: i128,
}

impl Terms {
    /// Returns a term as such a sum.
    pub(crate) fn linear(&self, term: Term) -> Option<Linear> {
        if !self.is_numbered(term) {
            return None;
        }
        let (product, rest) = match self.node(term).operands_of_binary(BinaryOp::Add) {
            Some((product, rest)) => (product, self.int(rest)?),
            None => (term, 0),
        };
        let (iterations, period) = match self.node(product).operands_of_binary(BinaryOp::Mul) {
            Some((iterations, period)) => (iterations, self.int(period)?),
            None => (product, 1),
        };
        let symbol = if let Node::Cast(inner) = *self.node(iterations) { inner } else { iterations };
        let is_iterations = matches!(self.node(symbol), Node::Symbol(Symbol::Iterations(_)))
            && keeps_numbers(self.scalar(symbol), self.scalar(iterations));
        let is_small = (1..MAX_PERIOD).contains(&period) && (0..MAX_REST).contains(&rest);
        (is_iterations && is_small && self.counts_in(period)).then_some(Linear { iterations, period, rest })
    }

    /// Whether the product of this period and the iterations does not wrap. It does not if the
    /// counters themselves do not.
    fn counts_in(&self, period: i128) -> bool {
        period == 1 || self.period > 0 && self.period % period == 0
    }

    /// Returns the sum as a term.
    pub(crate) fn sum(&mut self, Linear { iterations, period, rest }: Linear) -> Term {
        let scalar = self.scalar(iterations);
        let product = match period {
            1 => iterations,
            _ => {
                let period = self.number(period, scalar);
                self.add(Node::Binary(BinaryOp::Mul, iterations, period), scalar)
            }
        };
        if rest == 0 {
            return product;
        }
        let rest = self.number(rest, scalar);
        self.add(Node::Binary(BinaryOp::Add, product, rest), scalar)
    }

    /// Computes an operation with such a sum, if the result is known or is such a sum.
    pub(crate) fn binary_of_linear(&mut self, op: BinaryOp, a: Term, b: Term) -> Option<Term> {
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

    /// Computes the low bits of a sum minus a number. They are the same if the difference wraps.
    fn of_wrapped(&mut self, op: BinaryOp, a: Term, b: Term) -> Option<Term> {
        let Node::Binary(BinaryOp::Sub, sum, less) = *self.node(a) else { return None };
        let (Linear { iterations, period, rest }, less, by) =
            (self.linear(sum)?, self.int(less)?, self.int(b)?);
        let modulo = if op == BinaryOp::And { by + 1 } else { by };
        let scalar = self.scalar(iterations);
        // A remainder has the sign of the dividend.
        let is_low = op == BinaryOp::And || op == BinaryOp::Rem && !scalar.is_signed();
        (is_low && is_power_of_two(modulo) && period % modulo == 0)
            .then(|| self.number((rest - less).rem_euclid(modulo), scalar))
    }

    /// Computes an operation on two counters with the same iterations.
    fn of_two(&mut self, op: BinaryOp, a: Linear, b: Linear) -> Option<Term> {
        let scalar = self.scalar(a.iterations);
        if a.iterations != b.iterations || a.period != b.period {
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
        let Linear { iterations, period, rest } = sum;
        let scalar = self.scalar(iterations);
        let divides = |by: i128| by > 0 && period % by == 0;
        let known = |terms: &mut Self, number| Some(terms.number(number, scalar));
        match op {
            BinaryOp::Add if (0..MAX).contains(&by) => Some(self.sum(Linear { rest: rest + by, ..sum })),
            BinaryOp::Sub if (0..=rest).contains(&by) => Some(self.sum(Linear { rest: rest - by, ..sum })),
            BinaryOp::Mul
                if (1..MAX).contains(&by) && self.counts_in(period * by) && rest * by < MAX_REST =>
            {
                Some(self.sum(Linear { iterations, period: period * by, rest: rest * by }))
            }
            BinaryOp::Rem if divides(by) => known(self, rest % by),
            BinaryOp::Div if divides(by) => {
                Some(self.sum(Linear { iterations, period: period / by, rest: rest / by }))
            }
            BinaryOp::And if by >= 0 && is_power_of_two(by + 1) && divides(by + 1) => known(self, rest & by),
            BinaryOp::Shr if (0..16).contains(&by) && divides(1 << by) => {
                Some(self.sum(Linear { iterations, period: period >> by, rest: rest >> by }))
            }
            BinaryOp::Xor if (0..MAX).contains(&by) && divides(power_of_two_above(by)) => {
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

    /// Casts a sum to a type that contains all of its numbers. The result is a sum again.
    pub(crate) fn cast_of_linear(&mut self, a: Term, to: Scalar) -> Option<Term> {
        let sum = self.linear(a)?;
        if !keeps_numbers(self.scalar(a), to) {
            return None;
        }
        let symbol =
            if let Node::Cast(symbol) = *self.node(sum.iterations) { symbol } else { sum.iterations };
        let iterations = if self.scalar(symbol) == to { symbol } else { self.add(Node::Cast(symbol), to) };
        Some(self.sum(Linear { iterations, ..sum }))
    }
}

/// Whether `to` contains all counts that `from` contains.
fn keeps_numbers(from: Scalar, to: Scalar) -> bool {
    let most = |scalar: Scalar| scalar.integer_range().map(|(_, most)| most);
    most(from).is_some() && most(to) >= most(from)
}

fn is_power_of_two(number: i128) -> bool {
    number > 0 && number & (number - 1) == 0
}

/// Returns the least power of two that is greater than a number.
fn power_of_two_above(number: i128) -> i128 {
    (0..).map(|bits| 1 << bits).find(|power| *power > number).unwrap_or(i128::MAX)
}
