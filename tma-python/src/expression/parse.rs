//! Text to expressions.

use super::{Allocation, Node, Operation};
use crate::element;

/// Words of the language, which no argument is named like.
const KEYWORDS: [&str; 11] =
    ["if", "else", "and", "or", "not", "is", "None", "True", "False", "len", "empty"];

/// The deepest nesting of an expression.
const DEEPEST: usize = 50;

/// Parses `empty(SHAPE, DTYPE)` or `empty_like(x)`.
pub(super) fn allocation(text: &str, arguments: &[&str]) -> Result<Allocation, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, arguments, depth: 0 };
    let made = if parser.take("empty_like") {
        parser.require("(")?;
        let like = parser.expression()?;
        Allocation { shape: Node::Shape(like.clone().into()), element: Node::ElementOf(like.into()) }
    } else {
        parser.require("empty")?;
        parser.require("(")?;
        let shape = parser.expression()?;
        parser.require(",")?;
        Allocation { shape, element: parser.expression()? }
    };
    parser.require(")")?;
    match parser.tokens.first() {
        None => Ok(made),
        Some(token) => Err(format!("`{token}` follows the end")),
    }
}

/// Divides a text into names, numbers and marks.
fn tokens(text: &str) -> Result<Vec<&str>, String> {
    const MARKS: [&str; 18] =
        ["//", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "%", "(", ")", "[", "]", ",", ".", ":"];
    let mut rest = text.trim_start();
    let mut found = vec![];
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            let mark = MARKS.iter().find(|mark| rest.starts_with(**mark));
            mark.ok_or_else(|| format!("`{first}` has no meaning here"))?.len()
        };
        let (token, after) = rest.split_at(length);
        found.push(token);
        rest = after.trim_start();
    }
    Ok(found)
}

struct Parser<'t> {
    tokens: &'t [&'t str],
    arguments: &'t [&'t str],
    depth: usize,
}

impl Parser<'_> {
    fn take(&mut self, token: &str) -> bool {
        let is_next = self.tokens.first() == Some(&token);
        if is_next {
            self.tokens = &self.tokens[1..];
        }
        is_next
    }

    fn require(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) {
            return Ok(());
        }
        Err(match self.tokens.first() {
            Some(found) => format!("expected `{token}`, found `{found}`"),
            None => format!("expected `{token}` at the end"),
        })
    }

    fn expression(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("the expression is nested more than {DEEPEST} times"));
        }
        let mut node = self.any()?;
        if self.take("if") {
            let condition = self.any()?.into();
            self.require("else")?;
            node = Node::If { condition, then: node.into(), otherwise: self.expression()?.into() };
        }
        self.depth -= 1;
        Ok(node)
    }

    fn any(&mut self) -> Result<Node, String> {
        let mut node = self.all()?;
        while self.take("or") {
            node = binary(Operation::Or, node, self.all()?);
        }
        Ok(node)
    }

    fn all(&mut self) -> Result<Node, String> {
        let mut node = self.negation()?;
        while self.take("and") {
            node = binary(Operation::And, node, self.negation()?);
        }
        Ok(node)
    }

    fn negation(&mut self) -> Result<Node, String> {
        let mut is_negative = false;
        while self.take("not") {
            is_negative = !is_negative;
        }
        let node = self.comparison()?;
        Ok(if is_negative { Node::Not(node.into()) } else { node })
    }

    fn comparison(&mut self) -> Result<Node, String> {
        const OPERATIONS: [Operation; 6] = [
            Operation::Equal,
            Operation::NotEqual,
            Operation::LessOrEqual,
            Operation::GreaterOrEqual,
            Operation::Less,
            Operation::Greater,
        ];
        let node = self.sum()?;
        if self.take("is") {
            let operation = if self.take("not") { Operation::NotEqual } else { Operation::Equal };
            self.require("None")?;
            return Ok(binary(operation, node, Node::None));
        }
        match OPERATIONS.into_iter().find(|operation| self.take(&operation.to_string())) {
            Some(operation) => Ok(binary(operation, node, self.sum()?)),
            None => Ok(node),
        }
    }

    fn sum(&mut self) -> Result<Node, String> {
        let mut node = self.term()?;
        loop {
            let operation = match () {
                () if self.take("+") => Operation::Add,
                () if self.take("-") => Operation::Subtract,
                () => return Ok(node),
            };
            node = binary(operation, node, self.term()?);
        }
    }

    fn term(&mut self) -> Result<Node, String> {
        let mut node = self.sign()?;
        loop {
            let operation = match () {
                () if self.take("*") => Operation::Multiply,
                () if self.take("//") => Operation::Divide,
                () if self.take("%") => Operation::Remainder,
                () => return Ok(node),
            };
            node = binary(operation, node, self.sign()?);
        }
    }

    fn sign(&mut self) -> Result<Node, String> {
        let mut is_negative = false;
        while self.take("-") {
            is_negative = !is_negative;
        }
        let node = self.part()?;
        Ok(if is_negative { Node::Negative(node.into()) } else { node })
    }

    /// Parses attributes, indices and slices after a value.
    fn part(&mut self) -> Result<Node, String> {
        let mut node = self.atom()?;
        loop {
            if self.take(".") {
                node = match self.tokens.first() {
                    Some(&"shape") => Node::Shape(node.into()),
                    Some(&"dtype") => Node::ElementOf(node.into()),
                    _ => return Err("expected `shape` or `dtype` after `.`".to_owned()),
                };
                self.tokens = &self.tokens[1..];
            } else if self.take("[") {
                let first = if self.take(":") { None } else { Some(self.expression()?) };
                let is_slice = first.is_none() || self.take(":");
                node = match first {
                    Some(index) if !is_slice => Node::Index(node.into(), index.into()),
                    first => {
                        let is_open = self.tokens.first() == Some(&"]");
                        let end = if is_open { None } else { Some(self.expression()?.into()) };
                        Node::Slice(node.into(), first.map(Into::into), end)
                    }
                };
                self.require("]")?;
            } else {
                return Ok(node);
            }
        }
    }

    fn atom(&mut self) -> Result<Node, String> {
        if self.take("(") {
            let node = self.expression()?;
            self.require(")")?;
            return Ok(node);
        }
        if self.take("[") {
            let mut list = vec![];
            while !self.take("]") {
                list.push(self.expression()?);
                if !self.take(",") {
                    self.require("]")?;
                    break;
                }
            }
            return Ok(Node::List(list));
        }
        if self.take("len") {
            self.require("(")?;
            let list = self.expression()?.into();
            self.require(")")?;
            return Ok(Node::Length(list));
        }
        let Some((&word, rest)) = self.tokens.split_first() else {
            return Err("a value is missing at the end".to_owned());
        };
        self.tokens = rest;
        let index = self.arguments.iter().position(|argument| *argument == word);
        match word {
            "None" => Ok(Node::None),
            "True" => Ok(Node::Bool(true)),
            "False" => Ok(Node::Bool(false)),
            _ if KEYWORDS.contains(&word) => Err(format!("expected a value, found `{word}`")),
            _ if word.starts_with(|c: char| c.is_ascii_digit()) => {
                let number = word.parse().map_err(|_| format!("`{word}` is no number"));
                number.map(Node::Int)
            }
            _ => match (index, element::of_name(word)) {
                (Some(index), _) => Ok(Node::Argument(index)),
                (None, Some(scalar)) => Ok(Node::Element(scalar)),
                (None, None) => {
                    let names = self.arguments.join(", ");
                    Err(format!("`{word}` is neither an argument nor an element type; arguments are {names}"))
                }
            },
        }
    }
}

fn binary(operation: Operation, left: Node, right: Node) -> Node {
    Node::Binary(operation, left.into(), right.into())
}
