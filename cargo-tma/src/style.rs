//! Colours. `anstream` removes them where the output is no terminal, or `--color` says so.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// A heading, or a name that matters.
pub(crate) fn bold(text: impl Display) -> String {
    styled(Style::new().bold(), text)
}

/// What stands behind: source lines, explanations.
pub(crate) fn dim(text: impl Display) -> String {
    styled(Style::new().dimmed(), text)
}

/// A line of a source file among instructions.
pub(crate) fn source(text: impl Display) -> String {
    styled(AnsiColor::Cyan.on_default(), text)
}

/// All is well.
pub(crate) fn good(text: impl Display) -> String {
    styled(AnsiColor::Green.on_default().bold(), text)
}

/// Something could be better.
pub(crate) fn warning(text: impl Display) -> String {
    styled(AnsiColor::Yellow.on_default().bold(), text)
}

/// Something is wrong.
pub(crate) fn bad(text: impl Display) -> String {
    styled(AnsiColor::Red.on_default().bold(), text)
}
