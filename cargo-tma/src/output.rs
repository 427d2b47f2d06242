//! The result of a command.

use clap::ValueEnum;
use serde_json::Value;

/// The format of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    Text,
    /// One JSON value, for programs
    Json,
}

/// The output of a command, and whether it found nothing wrong.
#[derive(Debug)]
pub(crate) struct Output {
    /// Styled text for people, in whole lines.
    pub(crate) text: String,
    /// The same for programs.
    pub(crate) json: Value,
    /// Whether the command found nothing wrong.
    pub(crate) is_clean: bool,
}

impl Output {
    /// Creates the output of a command that found nothing wrong.
    pub(crate) fn clean(text: String, json: Value) -> Self {
        Self { text, json, is_clean: true }
    }
}
