//! Numbers with their nouns and verbs, as messages use them.

use std::fmt::Display;

/// Formats a count with its noun: `1 argument`, `2 arguments`.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{plural}")
}

/// Formats the number of arguments that a function takes.
pub(crate) fn arguments(n: usize) -> String {
    match n {
        0 => "no arguments".to_owned(),
        n => counted(n, "argument"),
    }
}

/// Formats a count: `1 was supplied`, `2 were supplied`.
pub(crate) fn given(n: usize) -> String {
    let were = if n == 1 { "was" } else { "were" };
    format!("{n} {were} supplied")
}

/// Formats a list: `a`, `b` and `c`.
pub(crate) fn listed(names: impl IntoIterator<Item = impl Display>) -> String {
    joined(quoted(names), "and")
}

/// Formats a choice: `a`, `b` or `c`.
pub(crate) fn either(names: impl IntoIterator<Item = impl Display>) -> String {
    joined(quoted(names), "or")
}

/// Formats a choice of types, without backquotes: f32, f16 or bf16.
pub(crate) fn one_of(names: impl IntoIterator<Item = impl Display>) -> String {
    joined(names.into_iter().map(|name| name.to_string()).collect(), "or")
}

/// Puts each name in backquotes.
fn quoted(names: impl IntoIterator<Item = impl Display>) -> Vec<String> {
    names.into_iter().map(|name| format!("`{name}`")).collect()
}

fn joined(mut names: Vec<String>, word: &str) -> String {
    match names.pop() {
        Some(last) if names.is_empty() => last,
        Some(last) => format!("{} {word} {last}", names.join(", ")),
        None => String::new(),
    }
}

/// Names the extent along a dimension: `number of rows` and `number of columns` if there are two.
pub(crate) fn extent(dimension: usize, rank: usize) -> String {
    match axis(dimension, rank) {
        Some(axis) => format!("number of {axis}s"),
        None => format!("extent in dimension {dimension}"),
    }
}

/// Names a coordinate: `row coordinate` and `column coordinate` if there are two.
pub(crate) fn coordinate(dimension: usize, rank: usize) -> String {
    match (axis(dimension, rank), rank) {
        (Some(axis), _) => format!("{axis} coordinate"),
        (None, 1) => "coordinate".to_owned(),
        (None, _) => format!("coordinate in dimension {dimension}"),
    }
}

/// Returns the name of a dimension of a matrix.
pub(crate) fn axis(dimension: usize, rank: usize) -> Option<&'static str> {
    match (dimension, rank) {
        (0, 2) => Some("row"),
        (1, 2) => Some("column"),
        _ => None,
    }
}
