//! What a term is: a number, a symbol, or an operation on others.

use crate::ir::{BinaryOp, Const, IntegerOp, MathOp, Special, UnaryOp};

/// A value, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::check::protocol) struct Term(pub(super) u32);

impl Term {
    /// Its number: terms that are made the same way have the same.
    pub(in crate::check::protocol) fn number(self) -> u32 {
        self.0
    }
}

/// An integer or a truth value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::check::protocol) enum Known {
    Bool(bool),
    Int(i128),
}

/// What is not known before the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::check::protocol) enum Symbol {
    /// A scalar parameter.
    Param(u32),
    /// The length of a slice.
    Len(u32),
    /// Where the cluster, or the block, is in the grid, and how large that is.
    Place(Special),
    /// The lane that `elect_one` picks of a warp, by the number of the warp in its block.
    Elected(u32),
    /// What a slice that the kernel does not write has at an index.
    Read(u32, Term),
    /// Anything else, such as what an atomic operation gives: a new one each time.
    Fresh(u32),
    /// How often loops have gone through a period of their counters: 0, or any number more that is
    /// so small that no sum with it wraps. Counters that go on together have the same symbol.
    Turns(u32),
}

/// How a term is made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::check::protocol) enum Node {
    Known(Known),
    Symbol(Symbol),
    Not(Term),
    Unary(UnaryOp, Term),
    /// Comparisons are `Eq` and `Lt` alone.
    Binary(BinaryOp, Term, Term),
    Cast(Term),
    Math(MathOp, Vec<Term>),
    Integer(IntegerOp, Vec<Term>),
}

/// The symbols that a run gives numbers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::check::protocol) enum Given {
    Fresh,
    Turns,
}

impl Node {
    /// Of a symbol that has a number from a run, which kind it is.
    pub(in crate::check::protocol) fn given(&self) -> Option<Given> {
        match self {
            Self::Symbol(Symbol::Fresh(_)) => Some(Given::Fresh),
            Self::Symbol(Symbol::Turns(_)) => Some(Given::Turns),
            Self::Symbol(
                Symbol::Param(_) | Symbol::Len(_) | Symbol::Place(_) | Symbol::Elected(_) | Symbol::Read(..),
            ) => None,
            Self::Known(_)
            | Self::Not(_)
            | Self::Unary(..)
            | Self::Binary(..)
            | Self::Cast(_)
            | Self::Math(..)
            | Self::Integer(..) => None,
        }
    }

    /// The operands of this operation, if it is one.
    pub(in crate::check::protocol) fn operands_of_binary(&self, wanted: BinaryOp) -> Option<(Term, Term)> {
        if let Self::Binary(op, a, b) = *self
            && op == wanted
        {
            return Some((a, b));
        }
        None
    }
}

impl Known {
    pub(super) fn of(value: Const) -> Option<Self> {
        match value {
            Const::Bool(value) => Some(Self::Bool(value)),
            Const::Int(value) => Some(Self::Int(value)),
            Const::Float(_) | Const::Literal { .. } => None,
        }
    }

    pub(in crate::check::protocol) fn value(self) -> Const {
        match self {
            Self::Bool(value) => Const::Bool(value),
            Self::Int(value) => Const::Int(value),
        }
    }

    pub(in crate::check::protocol) fn as_int(self) -> i128 {
        match self {
            Self::Bool(value) => i128::from(value),
            Self::Int(value) => value,
        }
    }
}

/// Visits the terms that a term is made of.
pub(super) fn each_operand(node: &Node, mut visit: impl FnMut(Term)) {
    match node {
        Node::Known(_)
        | Node::Symbol(
            Symbol::Param(_)
            | Symbol::Len(_)
            | Symbol::Place(_)
            | Symbol::Elected(_)
            | Symbol::Fresh(_)
            | Symbol::Turns(_),
        ) => {}
        Node::Symbol(Symbol::Read(_, a)) | Node::Not(a) | Node::Unary(_, a) | Node::Cast(a) => visit(*a),
        Node::Binary(_, a, b) => {
            visit(*a);
            visit(*b);
        }
        Node::Math(_, all) | Node::Integer(_, all) => all.iter().copied().for_each(visit),
    }
}
