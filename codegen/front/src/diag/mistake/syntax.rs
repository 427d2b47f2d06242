//! Rust syntax that kernels do not support.

use crate::diag::suggest::Suggestion;
use crate::diag::text::Text;
use crate::diag::wording::either;
use crate::diag::{Code, PartialType};

/// Syntax that kernels do not support, or not in this position.
#[derive(Clone, Debug)]
pub enum Syntax {
    /// An item inside a kernel.
    Item,
    /// A pattern in `let` that is not a name.
    LetPattern,
    /// A pattern in `for` that is not a name.
    ForPattern,
    /// A parameter's pattern that is not a name.
    ParameterPattern,
    /// A pattern in `match`.
    Pattern,
    /// A pattern that options do not have.
    OptionPattern,
    /// A value that is no option, where one is taken apart.
    NoOption(PartialType),
    /// `let` without a value.
    LetWithoutValue,
    /// `let .. else`.
    LetElse,
    /// An expression without a more specific message.
    Expression,
    /// An expression of a specific form.
    Form(Form),
    /// A callee that is not a name.
    Callee,
    /// `unroll` outside of a `for`.
    Unroll,
    /// An operator.
    Operator,
    /// A literal.
    Literal,
    /// A `for` over something other than a range or an array.
    ForRange,
    /// `break` with a value, from a loop that has none.
    BreakValue,
    /// `continue` with the label of a block.
    ContinueBlock { label: String },
    /// A second `step_by` of a range.
    Stepped,
    /// `break` or `continue` outside of any loop.
    OutsideLoop { word: &'static str },
    /// `break` or `continue` with a label that no loop has.
    UnknownLabel { word: &'static str, label: String },
    /// An unknown macro. `known` are those that exist.
    Macro { name: String, suggestion: Option<Suggestion>, known: Vec<String> },
    /// `*` of something other than a reference.
    Dereference,
    /// `&` of something other than a variable.
    Reference,
    /// A reference in a variable or a part of one.
    KeptReference,
    /// A reference to an element of an array.
    ReferenceToElement { mutable: bool },
    /// Expressions that are nested too deeply.
    TooDeep,
    /// A value that a branch cannot select.
    Chosen(PartialType),
    /// An operand that diverges, or that does not end in an expression.
    NoValue,
}

/// A form of expression.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    Closure,
    Reference,
    Range,
    Unsafe,
    Let,
    Try,
    Async,
    Other,
}

impl Syntax {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Item => Text::new(Code::UnsupportedStatement, "items are not supported inside kernels")
                .help(
                    "move it into the `#[tma_module]` around the kernel, which can contain constants, type \
                     aliases and `#[tma_device]` functions",
                ),
            Self::LetPattern => Text::new(Code::UnsupportedPattern, "this pattern is not supported in `let`")
                .help("use names, `_`, `..`, and patterns of structs, tuples and arrays"),
            Self::ForPattern => {
                Text::new(Code::UnsupportedPattern, "`for` supports only a single name as its pattern")
            }
            Self::ParameterPattern => {
                Text::new(Code::UnsupportedPattern, "a parameter supports only a single name as its pattern")
            }
            Self::Pattern => Text::new(Code::UnsupportedPattern, "this pattern is not supported in kernels")
                .help("use integers, ranges such as `0..4` and `4..=7`, `a | b`, constants or `_`"),
            Self::OptionPattern => {
                Text::new(Code::UnsupportedPattern, "this pattern of an option is not supported in kernels")
                    .help("use `Some(name)` or `None`; `match` needs an arm for each")
            }
            Self::NoOption(found) => Text::new(
                Code::UnsupportedPattern,
                format!("only an `Option<Global<T>>` can be taken apart, not {found}"),
            )
            .help("use `match` on an integer, or `if`"),
            Self::LetWithoutValue => {
                Text::new(Code::UnsupportedStatement, "a variable must be initialised in its declaration")
                    .help("write `let x = ..;`, or `let x = if .. { .. } else { .. };`")
            }
            Self::LetElse => {
                Text::new(Code::UnsupportedStatement, "`let .. else` is supported only with `Some(name)`")
                    .help("use `if`")
            }
            Self::Expression => {
                Text::new(Code::UnsupportedExpression, "this expression is not supported in kernels")
            }
            Self::Form(form) => {
                let (message, help) = form.words();
                Text::new(Code::UnsupportedExpression, message).help(help)
            }
            Self::Callee => {
                Text::new(Code::UnsupportedExpression, "only functions can be called, by their names")
            }
            Self::Unroll => Text::new(Code::UnsupportedExpression, "`unroll` is supported only in a `for`")
                .help("write `for i in unroll(0..4)`"),
            Self::Operator => {
                Text::new(Code::UnsupportedExpression, "this operator is not supported in kernels")
            }
            Self::Literal => {
                Text::new(Code::UnsupportedExpression, "this literal is not supported in kernels")
                    .help("use an integer, a float, `true` or `false`")
            }
            Self::ForRange => {
                Text::new(Code::UnsupportedExpression, "`for` must iterate over a range or a register array")
                    .help(
                        "write `for x in array`, or `for i in a..b`, `a..=b`, `(a..b).rev()`, \
                         `(a..b).step_by(n)`, or `unroll(..)` around a range",
                    )
            }
            Self::BreakValue => {
                Text::new(Code::LoopControl, "only `loop` and labelled blocks have a value, as in Rust")
                    .help("assign to a `let mut` variable before the `break`")
            }
            Self::ContinueBlock { label } => Text::new(
                Code::LoopControl,
                format!("`continue` repeats a loop, and `{label}` is the label of a block"),
            )
            .help(format!("write `break {label}` to leave the block")),
            Self::Stepped => Text::new(
                Code::UnsupportedExpression,
                "a range has one `step_by`, and at most one `rev` on each side of it",
            )
            .help("multiply the steps"),
            Self::OutsideLoop { word } => Text::new(Code::LoopControl, format!("`{word}` outside of a loop")),
            Self::UnknownLabel { word, label } => {
                Text::new(Code::LoopControl, format!("no loop around this `{word}` has the label `{label}`"))
            }
            Self::Macro { name, suggestion, known } => {
                let macros = || format!("use {}", either(known));
                Text::new(Code::UnsupportedExpression, format!("`{name}!` is not supported in kernels"))
                    .help(suggestion.as_ref().map_or_else(macros, ToString::to_string))
            }
            Self::Dereference => Text::new(
                Code::UnsupportedExpression,
                "only a `&` parameter of a device function can be dereferenced",
            )
            .help("remove the `*`"),
            Self::Reference => {
                Text::new(Code::UnsupportedExpression, "only a register variable can be borrowed")
                    .help("pass tiles and barriers by value: they are handles")
            }
            Self::ReferenceToElement { mutable } => {
                Text::new(Code::UnsupportedExpression, "an element of an array cannot be borrowed").help(
                    match mutable {
                        true => {
                            "copy it to a variable, borrow that, and write it back: `let mut x = v[i]; \
                             f(&mut x); v[i] = x;`"
                        }
                        false => "copy it to a variable, and borrow that: `let x = v[i];`",
                    },
                )
            }
            Self::KeptReference => {
                Text::new(Code::UnsupportedExpression, "references cannot be kept in variables")
                    .help("use the parameter itself, or copy the value: `*x`")
            }
            Self::TooDeep => Text::new(Code::UnsupportedExpression, "this expression is nested too deeply")
                .help("bind its parts to variables: `let part = ..;`"),
            Self::Chosen(found) => {
                Text::new(Code::UnsupportedExpression, format!("{found} cannot be selected at run time"))
                    .help("move the whole operation into both branches")
            }
            Self::NoValue => Text::new(Code::UnsupportedExpression, "this expression has no value")
                .help("make it a statement of its own: it never returns, or does not end in an expression"),
        }
    }
}

impl Form {
    /// Returns the message, and what to write instead.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Closure => (
                "closures are not supported in kernels",
                "write a `#[tma_device]` function in a `#[tma_module]`",
            ),
            Self::Reference => (
                "references are supported only as arguments of device functions",
                "pass tiles and barriers by value: they are handles",
            ),
            Self::Range => ("ranges are supported only in `for`", "write `for i in a..b`"),
            Self::Unsafe => {
                ("`unsafe` blocks are not supported in kernels", "remove the `unsafe`: only `ptx!` needs it")
            }
            Self::Let => (
                "`let` is supported only as `if let Some(name) = option`",
                "use `match` on an integer, or `if`",
            ),
            Self::Try => ("`?` is not supported in kernels", "use `assert!`: kernels return no errors"),
            Self::Async => (
                "`async` is not supported in kernels",
                "wait for an asynchronous copy at its barrier: `barrier.wait(parity)`",
            ),
            Self::Other => (
                "this form of expression is not supported in kernels",
                "use an expression that the language reference lists",
            ),
        }
    }
}
