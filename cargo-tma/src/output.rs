//! What a command returns.

use clap::ValueEnum;
use serde_json::Value;

/// The format of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs: one JSON value.
    Json,
}

/// What a command prints, and whether all is well.
#[derive(Debug)]
pub(crate) struct Output {
    /// For people, with styles; whole lines.
    pub(crate) text: String,
    /// The same for programs.
    pub(crate) json: Value,
    /// Whether the command found nothing wrong.
    pub(crate) is_clean: bool,
}

impl Output {
    /// Of a command that found nothing wrong.
    pub(crate) fn clean(text: String, json: Value) -> Self {
        Self { text, json, is_clean: true }
    }
}
