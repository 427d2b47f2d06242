//! `printf!`, `assert!` and `trace_span!`.

mod ptx;

use std::fmt;

use crate::diag::text::Text;
use crate::diag::wording::counted;
use crate::diag::{Code, PartialType};
use tma_model::span::LONGEST_NAME;

pub use ptx::Ptx;

/// A mistake in a format string or in a message.
#[derive(Clone, Debug)]
pub enum Format {
    /// A `printf!` that does not parse, with syn's message.
    Printf(String),
    /// An `assert!` that does not parse, with syn's message.
    Assert(String),
    /// `name = value` among the arguments.
    Named,
    /// A format string that the GPU cannot print.
    Unprintable(Unprintable),
    /// A format string that refers to more arguments than there are.
    Missing { given: usize },
    /// A value of a type that cannot be printed.
    Value(PartialType),
    /// The message of an `assert!` that refers to arguments.
    Message,
    /// A `trace_span!` that does not parse, with syn's message.
    Span(String),
    /// A name that a span cannot have.
    SpanName,
    /// A `trace_span!` that is not a statement.
    SpanPlace,
}

/// The reason why a format string cannot be printed.
#[derive(Clone, Debug)]
pub enum Unprintable {
    /// `{` without `}`.
    NotClosed,
    /// `}` without `{`.
    NotOpened,
    /// `{inside}` that refers to no argument.
    NoArgument { inside: String },
    /// An unknown `{:spec}`.
    Spec(String),
    /// A `{:spec}` that is wider than `most`.
    TooWide { spec: String, most: u32 },
}

impl Format {
    pub(super) fn text(&self) -> Text {
        let (message, help) = match self {
            Self::Printf(error) => {
                (format!("malformed `printf!`: {error}"), "write `printf!(\"block {} of {}\\n\", a, b)`")
            }
            Self::Assert(error) => (
                format!("malformed `assert!`: {error}"),
                "write `assert!(condition, \"message\")`; on the GPU the message cannot have arguments",
            ),
            Self::Named => (
                "`printf!` does not support named arguments".to_owned(),
                "name a variable inside the braces, as in `{x}`, or pass the value alone",
            ),
            Self::Unprintable(why) => (
                format!("unsupported format string: {why}"),
                "use `{}`, `{:x}`, `{:8}`, `{:.3}`, `{0}` or `{name}`, with scalars",
            ),
            Self::Missing { given } => {
                let message =
                    format!("the format string refers to more than {}", counted(*given, "argument"));
                (message, "pass one argument for each `{}`")
            }
            Self::Value(found) => {
                (format!("{found} cannot be printed"), "print each scalar element on its own")
            }
            Self::Message => (
                "the message of an `assert!` must be plain text on the GPU".to_owned(),
                "print values with `printf!` first, and write a brace as `{{`",
            ),
            Self::Span(error) => {
                (format!("malformed `trace_span!`: {error}"), "write `trace_span!(\"softmax\");`")
            }
            Self::SpanName => (
                format!("the name of a span must have 1 to {LONGEST_NAME} characters of ASCII"),
                "use letters, digits and spaces between them, as in `trace_span!(\"load keys\");`",
            ),
            Self::SpanPlace => (
                "`trace_span!` must be a statement of its own".to_owned(),
                "write it in a block, `{ trace_span!(..); .. }`: the span lasts until the end of the block",
            ),
        };
        Text::new(Code::Format, message).help(help)
    }
}

impl fmt::Display for Unprintable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotClosed => f.write_str("unclosed `{`"),
            Self::NotOpened => f.write_str("unmatched `}`"),
            Self::NoArgument { inside } => write!(f, "`{{{inside}}}` refers to no argument"),
            Self::Spec(spec) => write!(f, "unknown format `{{:{spec}}}`"),
            Self::TooWide { spec, most } => write!(f, "`{{:{spec}}}` is wider than {most} characters"),
        }
    }
}
