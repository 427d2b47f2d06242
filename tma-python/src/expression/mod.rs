//! The language that describes results: a part of Python, so that Python evaluates the same text.
//!
//! | form | value |
//! | --- | --- |
//! | `empty(SHAPE, DTYPE)` | a new tensor in row-major order |
//! | `empty_like(x)` | the same with the shape and the element type of `x` |
//! | `x.shape`, `x.dtype` | those of a tensor |
//! | `[m, n]`, `s[0]`, `s[-1]`, `s[1:]`, `s[:-1]`, `s + t`, `len(s)` | shapes, which are lists |
//! | `+`, `-`, `*`, `//`, `%` | arithmetic |
//! | `a if c else b`, `not`, `and`, `or`, `==`, `!=`, `<`, `<=`, `>`, `>=`, `is None`, `is not None` | conditions |
//! | `float32`, `bfloat16`, .. | element types |
//!
//! Other names are arguments of the operator.

mod evaluate;
mod parse;

use std::fmt;

use tma_runtime::spec::Scalar;

use crate::value::Value;

/// The description of a result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Allocation {
    shape: Node,
    element: Node,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Int(i64),
    Bool(bool),
    None,
    Element(Scalar),
    /// An argument of the operator, by its index.
    Argument(usize),
    Shape(Box<Node>),
    ElementOf(Box<Node>),
    List(Vec<Node>),
    Length(Box<Node>),
    Index(Box<Node>, Box<Node>),
    Slice(Box<Node>, Option<Box<Node>>, Option<Box<Node>>),
    Negative(Box<Node>),
    Not(Box<Node>),
    Binary(Operation, Box<Node>, Box<Node>),
    /// `then if condition else otherwise`.
    If {
        condition: Box<Node>,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
}

/// An operator between two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
}

impl Allocation {
    /// Parses the description of a result of an operator with these arguments.
    ///
    /// # Errors
    ///
    /// A text that names the first mistake.
    pub(crate) fn parse(text: &str, arguments: &[&str]) -> Result<Self, String> {
        parse::allocation(text, arguments)
    }

    /// Returns the shape and the element type of the result for these arguments.
    ///
    /// # Errors
    ///
    /// A text that names the first mistake, such as an index out of bounds.
    pub(crate) fn evaluate(&self, arguments: &[Value<'_>]) -> Result<(Vec<i64>, Scalar), String> {
        evaluate::allocation(self, arguments)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "//",
            Self::Remainder => "%",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::And => "and",
            Self::Or => "or",
        })
    }
}

#[cfg(test)]
mod tests;
