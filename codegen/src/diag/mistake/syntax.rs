//! Rust syntax that kernels do not support.

use crate::diag::suggest::Suggestion;
use crate::diag::text::Text;
use crate::diag::wording::listed;
use crate::diag::{Code, PartialType};

/// Syntax that kernels do not support, or not in this position.
#[derive(Clone, Debug)]
pub(crate) enum Syntax {
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
    /// A `for` over something other than a range.
    ForRange,
    /// `break` with a value.
    BreakValue,
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
    /// Expressions that are nested too deeply.
    TooDeep,
    /// A value that a branch cannot select.
    Chosen(PartialType),
    /// An operand that diverges, or that does not end in an expression.
    NoValue,
}

/// A form of expression.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Closure,
    Reference,
    Aggregate,
    Range,
    Unsafe,
    Let,
    Try,
    Async,
    LabelledBlock,
    Other,
}

impl Syntax {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Item => Text::new(Code::UnsupportedStatement, "kernels hold no items").help(
                "move it into the `#[tma_module]` around the kernel: constants, type aliases and `#[tma_device]` \
                 functions are shared there",
            ),
            Self::LetPattern => Text::new(Code::UnsupportedPattern, "`let` takes one name here")
                .help("write a `let` for each variable"),
            Self::ForPattern => Text::new(Code::UnsupportedPattern, "`for` takes one name here"),
            Self::ParameterPattern => Text::new(Code::UnsupportedPattern, "a parameter takes one name here"),
            Self::Pattern => Text::new(Code::UnsupportedPattern, "kernels do not have this pattern").help(
                "patterns are integers, ranges such as `0..4` and `4..=7`, `a | b`, constants, and `_`",
            ),
            Self::LetWithoutValue => {
                Text::new(Code::UnsupportedStatement, "a variable needs its first value here")
                    .help("write `let x = ..;`, or `let x = if .. { .. } else { .. };`")
            }
            Self::LetElse => {
                Text::new(Code::UnsupportedStatement, "kernels do not have `let .. else`").help("use `if`")
            }
            Self::Expression => Text::new(Code::UnsupportedExpression, "kernels do not have this"),
            Self::Form(form) => {
                let (form, help) = form.words();
                Text::new(Code::UnsupportedExpression, format!("kernels do not have {form}")).help(help)
            }
            Self::Callee => {
                Text::new(Code::UnsupportedExpression, "only functions are called, by name")
            }
            Self::Unroll => Text::new(Code::UnsupportedExpression, "`unroll` stands in a `for` only")
                .help("write `for i in unroll(0..4)`"),
            Self::Operator => Text::new(Code::UnsupportedExpression, "kernels do not have this operator"),
            Self::Literal => Text::new(Code::UnsupportedExpression, "kernels have no such literal")
                .help("a kernel's literals are integers, floats, `true` and `false`"),
            Self::ForRange => Text::new(Code::UnsupportedExpression, "`for` runs over a range").help(
                "write `for i in a..b`, `a..=b`, `(a..b).step_by(n)`, or `unroll(..)` around one of these",
            ),
            Self::BreakValue => Text::new(Code::UnsupportedExpression, "`break` has no value in kernels")
                .help("assign to a `let mut` variable before the `break`"),
            Self::OutsideLoop { word } => {
                Text::new(Code::LoopControl, format!("`{word}` stands outside of any loop"))
            }
            Self::UnknownLabel { word, label } => {
                Text::new(Code::LoopControl, format!("no loop around this `{word}` is called `{label}`"))
            }
            Self::Macro { name, suggestion, known } => {
                let macros = || format!("the macros of kernels are {}", listed(known));
                Text::new(Code::UnsupportedExpression, format!("kernels do not have `{name}!`"))
                    .help(suggestion.as_ref().map_or_else(macros, ToString::to_string))
            }
            Self::Dereference => {
                Text::new(Code::UnsupportedExpression, "only a device function's `&` parameter has a `*`")
                    .help("remove the `*`")
            }
            Self::Reference => {
                Text::new(Code::UnsupportedExpression, "only a register variable can be referred to")
                    .help("tiles and barriers are handles: pass them by value")
            }
            Self::TooDeep => Text::new(Code::UnsupportedExpression, "this nests too deeply")
                .help("give the parts names: `let part = ..;`"),
            Self::Chosen(found) => {
                Text::new(Code::UnsupportedExpression, format!("{found} cannot be chosen at run time"))
                    .help("put the whole operation into both branches")
            }
            Self::NoValue => Text::new(Code::UnsupportedExpression, "this has no value").help(
                "what never comes back, or ends without an expression, cannot be an operand: make it a statement of \
                 its own",
            ),
        }
    }
}

impl Form {
    /// Returns the unsupported form, and what to write instead.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Closure => ("closures", "write a `#[tma_device]` function in a `#[tma_module]`"),
            Self::Reference => (
                "references, but as arguments of device functions",
                "tiles and barriers are handles: pass them by value",
            ),
            Self::Aggregate => ("structs and tuples", "keep the parts in variables of their own"),
            Self::Range => ("ranges, but in `for`", "write `for i in a..b`"),
            Self::Unsafe => ("`unsafe` blocks", "the whole vocabulary is safe: remove it"),
            Self::Let => ("`if let`", "use `match` on an integer, or `if`"),
            Self::Try => ("`?`", "kernels do not return errors: use `assert!`"),
            Self::Async => ("`async`", "asynchronous copies complete on barriers: `barrier.wait(parity)`"),
            Self::LabelledBlock => ("labelled blocks", "use a `#[tma_device]` function with `return`"),
            Self::Other => ("this form of expression", "the language reference lists what there is"),
        }
    }
}
