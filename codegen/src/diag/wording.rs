//! Numbers with their nouns and verbs, as messages use them.

use std::fmt::Display;

/// Formats a count with its noun: `1 argument`, `2 arguments`.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{plural}")
}

/// Returns the form of "to be" that agrees with `n`.
pub(crate) fn are(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

/// Formats the number of arguments that a function takes.
pub(crate) fn arguments(n: usize) -> String {
    match n {
        0 => "no arguments".to_owned(),
        1 => "one argument".to_owned(),
        n => counted(n, "argument"),
    }
}

/// Formats a count: `1 is given`, `2 are given`.
pub(crate) fn given(n: usize) -> String {
    format!("{n} {} given", are(n))
}

/// Formats a list: `a`, `b` and `c`.
pub(crate) fn listed(names: impl IntoIterator<Item = impl Display>) -> String {
    let mut names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.pop() {
        Some(last) if names.is_empty() => last,
        Some(last) => format!("{} and {last}", names.join(", ")),
        None => String::new(),
    }
}
