//! Colours. `anstream` removes them if the output is not a terminal, or if `--color` says so.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Styles a heading, or an important name.
pub(crate) fn bold(text: impl Display) -> String {
    styled(Style::new().bold(), text)
}

/// Styles secondary text: source lines, explanations.
pub(crate) fn dim(text: impl Display) -> String {
    styled(Style::new().dimmed(), text)
}

/// Styles a line of a source file among instructions.
pub(crate) fn source(text: impl Display) -> String {
    styled(AnsiColor::Cyan.on_default(), text)
}

/// Styles a success.
pub(crate) fn good(text: impl Display) -> String {
    styled(AnsiColor::Green.on_default().bold(), text)
}

/// Styles a warning.
pub(crate) fn warning(text: impl Display) -> String {
    styled(AnsiColor::Yellow.on_default().bold(), text)
}

/// Styles an error.
pub(crate) fn bad(text: impl Display) -> String {
    styled(AnsiColor::Red.on_default().bold(), text)
}
