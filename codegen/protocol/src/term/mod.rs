//! Values as far as they are known at compile time: numbers, and formulas over the values that a
//! launch brings.
//!
//! Terms are hash-consed: values that are computed in the same way are the same term, so two
//! threads that read one parameter decide alike. Arithmetic wraps as in the hardware
//! ([`eval`](tma_front::ir::eval)). Floats have no terms, since nothing that synchronises depends
//! on them.

pub(super) mod linear;
mod node;
mod small;
mod values;

use tma_front::ir::{BinaryOp, Const, IntegerOp, MathOp, Scalar, UnaryOp, eval};
use tma_front::quick::QuickMap;

use self::node::each_operand;
use self::small::SmallNumbers;
use super::to_u32;

pub(super) use self::node::{Known, Node, NumberedKind, Symbol, SymbolCounts, Term};
pub(super) use self::values::Values;

/// All terms of a kernel.
#[derive(Debug, Default)]
pub(super) struct Terms {
    nodes: Vec<(Node, Scalar)>,
    /// The term of each node, except small numbers.
    numbers: QuickMap<(Node, Scalar), Term>,
    small: SmallNumbers,
    /// The terms of the two truth values.
    truths: [Option<Term>; 2],
    /// For each term, whether it contains a symbol that an execution has numbered.
    has_numbered: Vec<bool>,
    /// For each term, the number of operations in it.
    sizes: Vec<u32>,
    /// The period of loop counters. Iteration counts do not wrap when multiplied by a divisor of
    /// it.
    period: i128,
    /// Operations since the last call of `take_operations`.
    operations: u64,
}

/// The most operations in a term that is followed. A sum that grows in every iteration by a number
/// of the launch exceeds it. This bounds everything that walks through terms.
const MAX_OPERATIONS: u32 = 500;

impl Term {
    /// Returns the term, unless it is too large to be followed.
    pub(super) fn if_followable(self, terms: &Terms) -> Option<Self> {
        (terms.sizes[self.0 as usize] <= MAX_OPERATIONS).then_some(self)
    }
}

/// Returns the result of an operation on numbers of type `scalar`.
pub(super) fn binary_of_known(op: BinaryOp, x: i128, y: i128, scalar: Scalar) -> Option<i128> {
    let (x, y) = (Known::Int(x), Known::Int(y));
    let small = small::binary(op, x, y, scalar);
    let known = small.or_else(|| eval::binary(op, x.value(), y.value(), scalar).and_then(Known::of))?;
    Some(known.as_int())
}

impl Terms {
    pub(super) fn add(&mut self, node: Node, scalar: Scalar) -> Term {
        if let Node::Known(Known::Int(number)) = node
            && let Some(term) = self.add_small(number, scalar)
        {
            return term;
        }
        self.add_new(node, scalar)
    }

    fn add_new(&mut self, node: Node, scalar: Scalar) -> Term {
        let key = (node, scalar);
        if let Some(&term) = self.numbers.get(&key) {
            return term;
        }
        let term = self.push(key.0.clone(), scalar);
        self.numbers.insert(key, term);
        term
    }

    /// Adds a term that does not exist yet.
    fn push(&mut self, node: Node, scalar: Scalar) -> Term {
        let term = Term(to_u32(self.nodes.len()));
        let (mut numbered, mut size) = (node.numbered_kind().is_some(), 1_u32);
        each_operand(&node, |operand| {
            numbered |= self.is_numbered(operand);
            size = size.saturating_add(self.sizes[operand.0 as usize]);
        });
        self.small.push(&node, scalar);
        self.sizes.push(size);
        self.has_numbered.push(numbered);
        self.nodes.push((node, scalar));
        term
    }

    /// Sets the period of loop counters. From now on they are a multiple of it and a rest.
    pub(super) fn count_in(&mut self, period: i128) {
        self.period = period;
    }

    /// Returns how many operations were computed since the last call.
    pub(super) fn take_operations(&mut self) -> u64 {
        std::mem::take(&mut self.operations)
    }

    /// Returns the memory that all terms take, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        // A node, its entry in the map, and its properties.
        const TERM_BYTES: usize = 2 * size_of::<(Node, Scalar)>() + 32;
        (self.nodes.len() * TERM_BYTES) as u64
    }

    /// Returns the node of a term.
    pub(super) fn node(&self, term: Term) -> &Node {
        &self.nodes[term.0 as usize].0
    }

    /// Returns the type of a term.
    pub(super) fn scalar(&self, term: Term) -> Scalar {
        self.nodes[term.0 as usize].1
    }

    /// Returns the value of a term, if it is known.
    pub(super) fn known(&self, term: Term) -> Option<Known> {
        if let Node::Known(known) = self.node(term) { Some(*known) } else { None }
    }

    /// Returns the value of a term, if it is a known integer.
    pub(super) fn int(&self, term: Term) -> Option<i128> {
        match self.small.get(term) {
            Some((_, number)) => Some(number.into()),
            None => self.known(term).map(Known::as_int),
        }
    }

    /// Returns the term of a constant, if it has one.
    pub(super) fn constant(&mut self, value: Const, scalar: Scalar) -> Option<Term> {
        let known = Known::of(value)?;
        Some(self.add(Node::Known(known), scalar))
    }

    /// Returns the term of an integer.
    pub(super) fn number(&mut self, value: impl Into<i128>, scalar: Scalar) -> Term {
        let number = value.into();
        self.add_small(number, scalar)
            .unwrap_or_else(|| self.add_new(Node::Known(Known::Int(number)), scalar))
    }

    /// Returns the term of a truth value.
    pub(super) fn truth(&mut self, value: bool) -> Term {
        if let Some(term) = self.truths[usize::from(value)] {
            return term;
        }
        let term = self.add(Node::Known(Known::Bool(value)), Scalar::Bool);
        self.truths[usize::from(value)] = Some(term);
        term
    }

    pub(super) fn symbol(&mut self, symbol: Symbol, scalar: Scalar) -> Term {
        self.add(Node::Symbol(symbol), scalar)
    }

    /// Creates a symbol of a kind that an execution numbers.
    pub(super) fn numbered(&mut self, kind: NumberedKind, counts: &mut SymbolCounts, scalar: Scalar) -> Term {
        let symbol = match kind {
            NumberedKind::Fresh => {
                counts.fresh += 1;
                Symbol::Fresh(counts.fresh)
            }
            NumberedKind::Iterations => {
                counts.iterations += 1;
                Symbol::Iterations(counts.iterations)
            }
        };
        self.symbol(symbol, scalar)
    }

    /// Matches `x / c + (x % c != 0)`, which is how `div_ceil` is computed. Returns `x` and `c`.
    pub(super) fn rounded_up(&self, term: Term) -> Option<(Term, i128)> {
        let Node::Binary(BinaryOp::Add, quotient, more) = *self.node(term) else { return None };
        let Node::Binary(BinaryOp::Div, of, by) = *self.node(quotient) else { return None };
        let Node::Cast(differs) = *self.node(more) else { return None };
        let Node::Not(is_zero) = *self.node(differs) else { return None };
        let Node::Binary(BinaryOp::Eq, a, b) = *self.node(is_zero) else { return None };
        let rest = if self.int(a) == Some(0) { b } else { a };
        let is_rest = (self.int(a) == Some(0) || self.int(b) == Some(0))
            && *self.node(rest) == Node::Binary(BinaryOp::Rem, of, by);
        self.int(by).filter(|by| is_rest && *by > 0).map(|by| (of, by))
    }

    /// Whether a term contains a symbol that an execution has numbered.
    pub(super) fn is_numbered(&self, term: Term) -> bool {
        self.has_numbered[term.0 as usize]
    }

    pub(super) fn not(&mut self, a: Term) -> Term {
        match *self.node(a) {
            Node::Known(Known::Bool(value)) => self.truth(!value),
            Node::Not(inner) => inner,
            Node::Known(Known::Int(_))
            | Node::Symbol(_)
            | Node::Unary(..)
            | Node::Binary(..)
            | Node::Cast(_)
            | Node::Math(..)
            | Node::Integer(..) => self.add(Node::Not(a), Scalar::Bool),
        }
    }

    pub(super) fn unary(&mut self, op: UnaryOp, a: Term) -> Term {
        self.operations += 1;
        let scalar = self.scalar(a);
        if let Some(known) = self.known(a)
            && let Some(value) = eval::unary(op, known.value(), scalar).and_then(Known::of)
        {
            return self.add(Node::Known(value), scalar);
        }
        match op {
            UnaryOp::Not if scalar == Scalar::Bool => self.not(a),
            UnaryOp::Not | UnaryOp::Neg => self.add(Node::Unary(op, a), scalar),
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: Term, b: Term) -> Term {
        self.operations += 1;
        if let Some(term) = self.binary_of_small(op, a, b) {
            return term;
        }
        let scalar = self.scalar(a);
        let result = if op.is_comparison() { Scalar::Bool } else { scalar };
        if let (Some(x), Some(y)) = (self.known(a), self.known(b))
            && let Some(value) = eval::binary(op, x.value(), y.value(), scalar).and_then(Known::of)
        {
            return self.add(Node::Known(value), result);
        }
        if (self.is_numbered(a) || self.is_numbered(b))
            && let Some(term) = self.binary_of_linear(op, a, b)
        {
            return term;
        }
        match op {
            BinaryOp::Gt => self.binary(BinaryOp::Lt, b, a),
            BinaryOp::Ge => {
                let less = self.binary(BinaryOp::Lt, a, b);
                self.not(less)
            }
            BinaryOp::Le => {
                let more = self.binary(BinaryOp::Lt, b, a);
                self.not(more)
            }
            BinaryOp::Ne => {
                let same = self.binary(BinaryOp::Eq, a, b);
                self.not(same)
            }
            BinaryOp::Eq if a == b => self.truth(true),
            BinaryOp::Lt if a == b => self.truth(false),
            BinaryOp::Lt => self.less(a, b),
            BinaryOp::Eq => {
                let (a, b) = (a.min(b), a.max(b));
                self.add(Node::Binary(op, a, b), result)
            }
            BinaryOp::And | BinaryOp::Or if scalar == Scalar::Bool => self.connective(op, a, b),
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => self.arithmetic(op, a, b),
            BinaryOp::Rem | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => {
                self.add(Node::Binary(op, a, b), result)
            }
        }
    }

    /// Returns `a < b`. If one side is a minimum or maximum, that is a condition on each of its
    /// operands.
    fn less(&mut self, a: Term, b: Term) -> Term {
        for (side, other, is_left) in [(a, b, true), (b, a, false)] {
            let Node::Math(op @ (MathOp::Min | MathOp::Max), both) = self.node(side).clone() else {
                continue;
            };
            let [one, two] = both[..] else { continue };
            let each = [one, two].map(|part| {
                let (a, b) = if is_left { (part, other) } else { (other, part) };
                self.binary(BinaryOp::Lt, a, b)
            });
            // A minimum is less than a number if one of its operands is.
            let any = (op == MathOp::Min) == is_left;
            return self.connective(if any { BinaryOp::Or } else { BinaryOp::And }, each[0], each[1]);
        }
        self.add(Node::Binary(BinaryOp::Lt, a, b), Scalar::Bool)
    }

    /// Returns the `&` or `|` of truth values, and simplifies it if one of them is known.
    fn connective(&mut self, op: BinaryOp, a: Term, b: Term) -> Term {
        let neutral = op == BinaryOp::And;
        for (one, other) in [(a, b), (b, a)] {
            match self.known(one) {
                Some(Known::Bool(value)) if value == neutral => return other,
                Some(_) => return one,
                None => {}
            }
        }
        self.add(Node::Binary(op, a, b), Scalar::Bool)
    }

    /// Simplifies arithmetic. Sums are kept as `x + c`, so that a counter and its successor differ
    /// in `c` only.
    pub(super) fn arithmetic(&mut self, op: BinaryOp, a: Term, b: Term) -> Term {
        let scalar = self.scalar(a);
        let (x, y) = (self.int(a), self.int(b));
        match op {
            BinaryOp::Add => match (x, y) {
                (_, Some(0)) => return a,
                (Some(0), _) => return b,
                (Some(_), None) => return self.arithmetic(BinaryOp::Add, b, a),
                (None, Some(_)) => {
                    if let Node::Binary(BinaryOp::Add, inner, first) = *self.node(a)
                        && self.int(first).is_some()
                    {
                        let sum = self.binary(BinaryOp::Add, first, b);
                        return self.arithmetic(BinaryOp::Add, inner, sum);
                    }
                }
                (None, None) => {
                    let whole = self.minuend(b, a).or_else(|| self.minuend(a, b));
                    if let Some(whole) = whole {
                        return whole;
                    }
                }
                (Some(_), Some(_)) => {}
            },
            BinaryOp::Mul => match (x, y) {
                (_, Some(1)) | (Some(0), _) => return a,
                (Some(1), _) | (_, Some(0)) => return b,
                (None | Some(_), None | Some(_)) => {}
            },
            BinaryOp::Sub if y == Some(0) => return a,
            BinaryOp::Div if y == Some(1) => return a,
            BinaryOp::Sub | BinaryOp::Div | BinaryOp::Rem => {}
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => {}
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {}
        }
        self.add(Node::Binary(op, a, b), scalar)
    }

    /// Returns the minuend of a difference whose subtrahend is `by`. The sum of both is the
    /// minuend, even if the difference wraps.
    fn minuend(&self, difference: Term, by: Term) -> Option<Term> {
        let (whole, less) = self.node(difference).operands_of_binary(BinaryOp::Sub)?;
        (less == by).then_some(whole)
    }

    pub(super) fn cast(&mut self, a: Term, to: Scalar) -> Option<Term> {
        self.operations += 1;
        let from = self.scalar(a);
        if from == to {
            return Some(a);
        }
        // All types with small numbers contain this one.
        if let Some(term) = self.cast_small(a, to) {
            return Some(term);
        }
        if let Some(known) = self.known(a) {
            return self.constant(eval::cast(known.value(), to)?, to);
        }
        if let Some(term) = self.cast_of_linear(a, to) {
            return Some(term);
        }
        to.is_integer().then(|| self.add(Node::Cast(a), to))
    }

    pub(super) fn math(&mut self, op: MathOp, operands: Vec<Term>) -> Option<Term> {
        self.operations += 1;
        let scalar = self.scalar(*operands.first()?);
        let known: Option<Vec<_>> = operands.iter().map(|&term| self.known(term).map(Known::value)).collect();
        if let Some(value) = known.and_then(|known| eval::math(op, &known)) {
            return self.constant(value, scalar);
        }
        Some(self.add(Node::Math(op, operands), scalar))
    }

    pub(super) fn integer(&mut self, op: IntegerOp, operands: Vec<Term>) -> Option<Term> {
        self.operations += 1;
        let scalar = self.scalar(*operands.first()?);
        let result = if op.counts() { Scalar::U32 } else { scalar };
        let known: Option<Vec<_>> = operands.iter().map(|&term| self.known(term).map(Known::value)).collect();
        if let Some(value) = known.and_then(|known| eval::integer(op, &known, scalar)) {
            return self.constant(value, result);
        }
        Some(self.add(Node::Integer(op, operands), result))
    }

    /// Returns the operands of a term.
    pub(super) fn operands(&self, term: Term) -> Vec<Term> {
        let mut all = vec![];
        each_operand(self.node(term), |operand| all.push(operand));
        all
    }

    /// Evaluates a term with these numbers for its symbols.
    pub(super) fn evaluate(&self, term: Term, numbers: &QuickMap<Term, i128>) -> Option<Known> {
        if let Node::Symbol(_) = self.node(term) {
            Some(self.number_of(term, *numbers.get(&term)?))
        } else {
            self.apply(term, &|operand| self.evaluate(operand, numbers))
        }
    }

    /// Returns the value of a symbol that has this number.
    fn number_of(&self, symbol: Term, number: i128) -> Known {
        if self.scalar(symbol) == Scalar::Bool { Known::Bool(number != 0) } else { Known::Int(number) }
    }

    /// Evaluates a term that is not a symbol, from the values of its operands.
    fn apply(&self, term: Term, value: &impl Fn(Term) -> Option<Known>) -> Option<Known> {
        let of = |term: &Term| value(*term).map(Known::value);
        let scalar = self.scalar(term);
        let result = match self.node(term) {
            Node::Known(known) => return Some(*known),
            Node::Symbol(_) => return None,
            Node::Not(a) => eval::unary(UnaryOp::Not, of(a)?, Scalar::Bool),
            Node::Unary(op, a) => eval::unary(*op, of(a)?, scalar),
            Node::Binary(op, a, b) => {
                let (x, y) = (value(*a)?, value(*b)?);
                if let Some(known) = small::binary(*op, x, y, self.scalar(*a)) {
                    return Some(known);
                }
                eval::binary(*op, x.value(), y.value(), self.scalar(*a))
            }
            Node::Cast(a) => eval::cast(of(a)?, scalar),
            Node::Math(op, all) => eval::math(*op, &all.iter().map(of).collect::<Option<Vec<_>>>()?),
            Node::Integer(op, all) => {
                let scalar = self.scalar(*all.first()?);
                eval::integer(*op, &all.iter().map(of).collect::<Option<Vec<_>>>()?, scalar)
            }
        };
        Known::of(result?)
    }
}
