//! The nodes of terms: numbers, symbols, and operations on other terms.

use tma_front::ir::{BinaryOp, Const, IntegerOp, MathOp, Special, TeamNumber, UnaryOp};

/// A value, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Term(pub(super) u32);

impl Term {
    /// Returns the number of the term. Terms that are built in the same way have the same number.
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// An integer or a truth value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Known {
    Bool(bool),
    Int(i128),
}

/// A value that is not known before the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Symbol {
    /// A scalar parameter.
    Param(u32),
    /// The length of a slice.
    Len(u32),
    /// The index of the cluster in the grid, or the extent of the grid.
    GridIndex(Special),
    /// A number of the launch on a team.
    Team(TeamNumber),
    /// The lane that `elect_one` picks, by the index of the warp in its block.
    Elected(u32),
    /// The element at an index of a slice that the kernel does not write.
    Read(u32, Term),
    /// Any other value, such as the result of an atomic operation. Each one is a new symbol.
    Fresh(u32),
    /// The number of periods that loop counters have gone through: 0 or more, but so few that no
    /// sum with it wraps. Counters that advance together share a symbol.
    Iterations(u32),
}

/// The structure of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Known(Known),
    Symbol(Symbol),
    Not(Term),
    Unary(UnaryOp, Term),
    /// `Eq` and `Lt` are the only comparisons.
    Binary(BinaryOp, Term, Term),
    Cast(Term),
    Math(MathOp, Vec<Term>),
    Integer(IntegerOp, Vec<Term>),
}

/// The kinds of symbols that an execution numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberedKind {
    Fresh,
    Iterations,
}

/// How many symbols of each kind an execution has numbered. An execution that decides as another
/// one did has the same symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SymbolCounts {
    pub(super) fresh: u32,
    pub(super) iterations: u32,
}

impl Node {
    /// Returns the kind of a symbol that an execution has numbered.
    pub(crate) fn numbered_kind(&self) -> Option<NumberedKind> {
        match self {
            Self::Symbol(Symbol::Fresh(_)) => Some(NumberedKind::Fresh),
            Self::Symbol(Symbol::Iterations(_)) => Some(NumberedKind::Iterations),
            Self::Symbol(
                Symbol::Param(_)
                | Symbol::Len(_)
                | Symbol::GridIndex(_)
                | Symbol::Team(_)
                | Symbol::Elected(_)
                | Symbol::Read(..),
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

    /// Returns the operands if this is the operation `wanted`.
    pub(crate) fn operands_of_binary(&self, wanted: BinaryOp) -> Option<(Term, Term)> {
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

    pub(crate) fn value(self) -> Const {
        match self {
            Self::Bool(value) => Const::Bool(value),
            Self::Int(value) => Const::Int(value),
        }
    }

    pub(crate) fn as_int(self) -> i128 {
        match self {
            Self::Bool(value) => i128::from(value),
            Self::Int(value) => value,
        }
    }
}

/// Visits the operands of a node.
pub(super) fn each_operand(node: &Node, mut visit: impl FnMut(Term)) {
    match node {
        Node::Known(_)
        | Node::Symbol(
            Symbol::Param(_)
            | Symbol::Len(_)
            | Symbol::GridIndex(_)
            | Symbol::Team(_)
            | Symbol::Elected(_)
            | Symbol::Fresh(_)
            | Symbol::Iterations(_),
        ) => {}
        Node::Symbol(Symbol::Read(_, a)) | Node::Not(a) | Node::Unary(_, a) | Node::Cast(a) => visit(*a),
        Node::Binary(_, a, b) => {
            visit(*a);
            visit(*b);
        }
        Node::Math(_, all) | Node::Integer(_, all) => all.iter().copied().for_each(visit),
    }
}
