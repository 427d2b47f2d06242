//! The facts of an execution: bounds of terms, and truth values of conditions.
//!
//! Numbers that a launch brings are assumed to be below half of the range of their type, if it has
//! 32 or 64 bits. So small sums with them do not wrap.

use std::cell::RefCell;

use tma_front::ir::{BinaryOp, MathOp, Scalar, Special, TeamNumber};
use tma_front::limits::TEAM_RANKS;
use tma_front::quick::{QuickMap, QuickSet};

use super::term::{Known, Node, Symbol, Term, Terms, binary_of_known};

/// The facts of an execution.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    decided: QuickMap<Term, bool>,
    bounds: QuickMap<Term, (i128, i128)>,
    /// A cache of ranges derived from the bounds. Terms share their operands.
    ranges: RefCell<QuickMap<Term, (i128, i128)>>,
    unequal: QuickSet<(Term, i128)>,
    /// Comparisons of sums that were decided.
    sums: QuickMap<Compared, Decided>,
}

/// A comparison of two terms, one of which has a constant added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Compared {
    sum: Term,
    other: Term,
    sum_is_less: bool,
}

/// The least and the greatest constant for which a comparison was decided, either way.
#[derive(Clone, Copy, Debug, Default)]
struct Decided {
    holds: Option<(i128, i128)>,
    fails: Option<(i128, i128)>,
}

impl Decided {
    /// Returns whether the comparison holds with this constant, if that follows. `x + c < y` holds
    /// for all smaller constants, and `y < x + c` for all greater ones.
    fn follows(self, number: i128, sum_is_less: bool) -> Option<bool> {
        let (holds, fails) = match sum_is_less {
            true => (
                self.holds.is_some_and(|(_, most)| number <= most),
                self.fails.is_some_and(|(least, _)| number >= least),
            ),
            false => (
                self.holds.is_some_and(|(least, _)| number >= least),
                self.fails.is_some_and(|(_, most)| number <= most),
            ),
        };
        (holds || fails).then_some(holds)
    }

    fn note(&mut self, number: i128, holds: bool) {
        let range = if holds { &mut self.holds } else { &mut self.fails };
        let (least, most) = range.unwrap_or((number, number));
        *range = Some((least.min(number), most.max(number)));
    }
}

/// Rewrites `x + c < y + d` as a comparison of `x + c`, one of `y + d`, and one of `x + (c - d)`
/// with `y`, where these sums do not wrap.
fn comparisons(facts: &Facts, terms: &Terms, a: Term, b: Term) -> [(Compared, i128); 3] {
    let whole = |term: Term| {
        let (inner, number) = split_sum(terms, term);
        let most = terms.scalar(term).integer_range().map_or(0, |(_, most)| most);
        let holds = terms.linear(term).is_some() || facts.range(terms, inner).1 + number <= most;
        if holds { (inner, number) } else { (term, 0) }
    };
    let ((sum, number), (other_sum, other_number)) = (whole(a), whole(b));
    [
        (Compared { sum, other: b, sum_is_less: true }, number),
        (Compared { sum: other_sum, other: a, sum_is_less: false }, other_number),
        (Compared { sum, other: other_sum, sum_is_less: true }, number - other_number),
    ]
}

/// Divides and rounds up.
fn ceiling(number: i128, by: i128) -> i128 {
    number.div_euclid(by) + i128::from(number.rem_euclid(by) > 0)
}

/// The greatest constant that counts as added. Greater ones may represent a subtraction.
const MAX_ADDED: i128 = 1 << 20;

/// Returns a term as `x + c`.
pub(super) fn split_sum(terms: &Terms, term: Term) -> (Term, i128) {
    if let Node::Binary(BinaryOp::Add, inner, by) = *terms.node(term)
        && let Some(by @ 0..=MAX_ADDED) = terms.int(by)
    {
        return (inner, by);
    }
    (term, 0)
}
impl Facts {
    /// Returns whether a condition holds, if that follows from the facts.
    pub(super) fn known(&self, terms: &Terms, condition: Term) -> Option<bool> {
        if let Some(Known::Bool(value)) = terms.known(condition) {
            return Some(value);
        }
        if let Some(&value) = self.decided.get(&condition) {
            return Some(value);
        }
        match *terms.node(condition) {
            Node::Not(a) => self.known(terms, a).map(|value| !value),
            Node::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b)
                if terms.scalar(condition) == Scalar::Bool =>
            {
                let decisive = op == BinaryOp::Or;
                match (self.known(terms, a), self.known(terms, b)) {
                    (Some(one), _) | (_, Some(one)) if one == decisive => Some(decisive),
                    (Some(_), Some(_)) => Some(!decisive),
                    (Some(_) | None, None) | (None, Some(_)) => None,
                }
            }
            Node::Binary(BinaryOp::Lt, a, b) => {
                let ((low_a, high_a), (low_b, high_b)) = (self.range(terms, a), self.range(terms, b));
                if high_a < low_b {
                    Some(true)
                } else if low_a >= high_b {
                    Some(false)
                } else {
                    let follows = |(compared, number): (Compared, i128)| {
                        self.sums.get(&compared)?.follows(number, compared.sum_is_less)
                    };
                    comparisons(self, terms, a, b).into_iter().find_map(follows)
                }
            }
            Node::Binary(BinaryOp::Eq, a, b) => {
                let ((low_a, high_a), (low_b, high_b)) = (self.range(terms, a), self.range(terms, b));
                let excluded = [(a, b), (b, a)]
                    .iter()
                    .any(|&(x, y)| terms.int(y).is_some_and(|y| self.unequal.contains(&(x, y))));
                if high_a < low_b || high_b < low_a || excluded {
                    Some(false)
                } else if low_a == high_a && low_b == high_b {
                    Some(true)
                } else {
                    None
                }
            }
            Node::Known(_)
            | Node::Symbol(_)
            | Node::Unary(..)
            | Node::Binary(..)
            | Node::Cast(_)
            | Node::Math(..)
            | Node::Integer(..) => None,
        }
    }

    /// Returns the value of a term, if only one is possible.
    pub(super) fn number(&self, terms: &Terms, term: Term) -> Option<i128> {
        let (low, high) = self.range(terms, term);
        (low == high).then_some(low)
    }

    /// Returns the least and the greatest possible value of a term.
    pub(super) fn range(&self, terms: &Terms, term: Term) -> (i128, i128) {
        if let Some(value) = terms.int(term) {
            return (value, value);
        }
        let known = self.ranges.borrow().get(&term).copied();
        known.unwrap_or_else(|| {
            let range = self.computed_range(terms, term);
            self.ranges.borrow_mut().insert(term, range);
            range
        })
    }

    fn computed_range(&self, terms: &Terms, term: Term) -> (i128, i128) {
        let scalar = terms.scalar(term);
        let (least, greatest) = scalar.integer_range().unwrap_or((0, 1));
        let within = |low: i128, high: i128| {
            if low >= least && high <= greatest { (low, high) } else { (least, greatest) }
        };
        let of = |term| self.range(terms, term);
        let derived = match *terms.node(term) {
            Node::Binary(op, a, b) if scalar != Scalar::Bool => {
                let ((low_a, high_a), (low_b, high_b)) = (of(a), of(b));
                if low_a == high_a
                    && low_b == high_b
                    && let Some(known) = binary_of_known(op, low_a, low_b, terms.scalar(a))
                {
                    return (known, known);
                }
                let quotient = terms.rounded_up(term).map(|(whole, by)| (of(whole), by));
                match op {
                    _ if quotient.is_some() => quotient
                        .map_or((least, greatest), |((low, high), by)| (ceiling(low, by), ceiling(high, by))),
                    BinaryOp::Add => within(low_a.saturating_add(low_b), high_a.saturating_add(high_b)),
                    BinaryOp::Sub => within(low_a.saturating_sub(high_b), high_a.saturating_sub(low_b)),
                    BinaryOp::Mul if low_a >= 0 && low_b >= 0 => {
                        within(low_a.saturating_mul(low_b), high_a.saturating_mul(high_b))
                    }
                    BinaryOp::Div if low_a >= 0 && low_b > 0 => (low_a / high_b, high_a / low_b),
                    BinaryOp::Rem if low_a >= 0 && low_b > 0 => (0, high_a.min(high_b - 1)),
                    BinaryOp::And if low_a >= 0 && low_b >= 0 => (0, high_a.min(high_b)),
                    BinaryOp::Shr if low_a >= 0 && low_b == high_b && (0..64).contains(&low_b) => {
                        (low_a >> low_b, high_a >> low_b)
                    }
                    BinaryOp::Mul
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
                    | BinaryOp::Ge => (least, greatest),
                }
            }
            Node::Math(op @ (MathOp::Min | MathOp::Max), ref all) => {
                let ranges = all.iter().map(|&part| of(part));
                let of_two = if op == MathOp::Min { i128::min } else { i128::max };
                let of_both = ranges.reduce(|a, b| (of_two(a.0, b.0), of_two(a.1, b.1)));
                of_both.unwrap_or((least, greatest))
            }
            Node::Cast(a) if terms.scalar(a).is_integer() => {
                let (low, high) = of(a);
                within(low, high)
            }
            Node::Symbol(Symbol::GridIndex(Special::GridDim(_))) => (1, greatest / 2),
            Node::Symbol(Symbol::Team(TeamNumber::Rank)) => (0, i128::from(TEAM_RANKS) - 1),
            Node::Symbol(Symbol::Team(TeamNumber::Ranks)) => (1, i128::from(TEAM_RANKS)),
            // These are not values that a launch brings.
            Node::Symbol(Symbol::Iterations(_) | Symbol::Fresh(_)) => (least, greatest),
            // Launches bring no values near those at which sums wrap.
            Node::Symbol(_) if scalar.bytes() >= 4 => (least / 2, greatest / 2),
            Node::Known(_)
            | Node::Symbol(_)
            | Node::Not(_)
            | Node::Unary(..)
            | Node::Binary(..)
            | Node::Cast(_)
            | Node::Math(..)
            | Node::Integer(..) => (least, greatest),
        };
        // Iteration counters do not wrap.
        let rest = terms.linear(term).map_or(least, |sum| sum.rest);
        let derived = (derived.0.max(rest), derived.1);
        match self.bounds.get(&term) {
            Some(&(low, high)) => (derived.0.max(low), derived.1.min(high)),
            None => derived,
        }
    }

    /// Decides a condition. Returns false if that contradicts earlier facts.
    pub(super) fn assume(&mut self, terms: &Terms, condition: Term, value: bool) -> bool {
        match self.known(terms, condition) {
            Some(known) => known == value,
            None => self.assume_free(terms, condition, value),
        }
    }

    /// Like [`assume`](Self::assume), for a condition that is not [`known`](Self::known).
    pub(super) fn assume_free(&mut self, terms: &Terms, condition: Term, value: bool) -> bool {
        self.decided.insert(condition, value);
        match *terms.node(condition) {
            Node::Not(a) => self.assume(terms, a, !value),
            Node::Binary(BinaryOp::And, a, b) if value => {
                self.assume(terms, a, true) && self.assume(terms, b, true)
            }
            Node::Binary(BinaryOp::Or, a, b) if !value && terms.scalar(condition) == Scalar::Bool => {
                self.assume(terms, a, false) && self.assume(terms, b, false)
            }
            Node::Binary(BinaryOp::Lt, a, b) => {
                for (compared, number) in comparisons(self, terms, a, b) {
                    self.sums.entry(compared).or_default().note(number, value);
                }
                let ((low_a, high_a), (low_b, high_b)) = (self.range(terms, a), self.range(terms, b));
                if value {
                    self.bound(terms, a, low_a, high_b - 1) && self.bound(terms, b, low_a + 1, high_b)
                } else {
                    self.bound(terms, a, low_b, high_a) && self.bound(terms, b, low_b, high_a)
                }
            }
            Node::Binary(BinaryOp::Eq, a, b) => {
                let ((low_a, high_a), (low_b, high_b)) = (self.range(terms, a), self.range(terms, b));
                if value {
                    let (low, high) = (low_a.max(low_b), high_a.min(high_b));
                    return self.bound(terms, a, low, high) && self.bound(terms, b, low, high);
                }
                for (x, y, (low, high)) in [(a, b, (low_a, high_a)), (b, a, (low_b, high_b))] {
                    if let Some(y) = terms.int(y) {
                        self.unequal.insert((x, y));
                        let (low, high) = (low + i128::from(low == y), high - i128::from(high == y));
                        if !self.bound(terms, x, low, high) {
                            return false;
                        }
                    }
                }
                true
            }
            Node::Known(_)
            | Node::Symbol(_)
            | Node::Unary(..)
            | Node::Binary(..)
            | Node::Cast(_)
            | Node::Math(..)
            | Node::Integer(..) => true,
        }
    }

    /// Narrows the range of a term. Returns false if no value is left.
    fn bound(&mut self, terms: &Terms, term: Term, low: i128, high: i128) -> bool {
        if terms.known(term).is_some() {
            return true;
        }
        let (least, greatest) = self.range(terms, term);
        let (low, high) = (low.max(least), high.min(greatest));
        if (low, high) != (least, greatest) {
            // A term has a greater number than its operands.
            self.ranges.get_mut().retain(|known, _| *known < term);
        }
        self.bounds.insert(term, (low, high));
        // A bound on a rounded-up quotient, or on a sum that does not wrap, also bounds the
        // operand.
        if let Some((whole, by)) = terms.rounded_up(term) {
            let (least, most) = ((low - 1).saturating_mul(by) + 1, high.saturating_mul(by));
            return low <= high && self.bound(terms, whole, least, most);
        }
        if let Node::Binary(BinaryOp::Add, inner, by) = *terms.node(term)
            && let Some(by) = terms.int(by)
        {
            let (inner_low, inner_high) = self.range(terms, inner);
            let limits = terms.scalar(term).integer_range();
            if limits.is_some_and(|(_, most)| inner_high.saturating_add(by) <= most && by >= 0) {
                return low <= high
                    && self.bound(terms, inner, inner_low.max(low - by), inner_high.min(high - by));
            }
        }
        low <= high
    }

    /// Returns the conditions that were decided.
    pub(super) fn decided(&self) -> impl Iterator<Item = (Term, bool)> {
        self.decided.iter().map(|(&term, &value)| (term, value))
    }

    /// Returns the conditions that were decided, in the order of their terms.
    pub(super) fn decided_in_order(&self) -> Vec<(Term, bool)> {
        let mut all: Vec<_> = self.decided().collect();
        all.sort_unstable();
        all
    }

    /// Returns the facts with their terms rewritten. Facts for whose terms `rewrite` returns `None`
    /// are dropped.
    pub(super) fn rewritten(
        &self,
        terms: &mut Terms,
        rewrite: &mut impl FnMut(&mut Terms, Term) -> Option<Term>,
    ) -> Self {
        let mut facts = Self::default();
        for (term, value) in self.decided_in_order() {
            if let Some(term) = rewrite(terms, term)
                && terms.known(term).is_none()
            {
                facts.decided.insert(term, value);
                if let Node::Binary(BinaryOp::Lt, a, b) = *terms.node(term) {
                    for (compared, number) in comparisons(&facts, terms, a, b) {
                        facts.sums.entry(compared).or_default().note(number, value);
                    }
                }
            }
        }
        // Bounds of numbered terms follow from the decisions.
        let is_lasting = |term: &Term| !terms.is_numbered(*term);
        facts.bounds =
            self.bounds.iter().filter(|(term, _)| is_lasting(term)).map(|(a, b)| (*a, *b)).collect();
        facts.unequal = self.unequal.iter().filter(|(term, _)| is_lasting(term)).copied().collect();
        facts.ranges.get_mut().clear();
        facts
    }

    /// Returns the number of facts, including derived ones.
    pub(super) fn len(&self) -> usize {
        let Self { decided, bounds, ranges, unequal, sums } = self;
        decided.len() + bounds.len() + ranges.borrow().len() + unequal.len() + sums.len()
    }

    /// Returns all facts, sorted.
    pub(super) fn listed(&self) -> Vec<(Term, u32, [i128; 2])> {
        let decided = self.decided.iter().map(|(&term, &value)| (term, 0, [i128::from(value), 0]));
        let bounds = self.bounds.iter().map(|(&term, &(low, high))| (term, 1, [low, high]));
        let unequal = self.unequal.iter().map(|&(term, number)| (term, 2, [number, 0]));
        let mut all: Vec<_> = decided.chain(bounds).chain(unequal).collect();
        all.sort_unstable();
        all
    }
}
