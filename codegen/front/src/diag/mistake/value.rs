//! Literals, constants, operators, and failures of inference.

use std::fmt;

use super::Word;
use crate::diag::text::Text;
use crate::diag::{Code, PartialType};
use crate::ir::{Compound, Const, Scalar, Type};
use crate::limits::CONSTANT_STEPS;

/// A value that is unknown or does not exist, or an operator that it does not have.
#[derive(Clone, Debug)]
pub enum Value {
    /// An index into a value that cannot be indexed.
    Index(PartialType),
    /// An operator that a type does not have.
    Operator { of: PartialType, sign: &'static str },
    /// An integer that fits no type.
    TooLarge,
    /// A float that is not a number.
    NoNumber,
    /// A literal that does not fit its type.
    Range { value: i128, ty: Type },
    /// A variable whose type cannot be inferred. `accumulator` is the name of its type without
    /// generics.
    UnknownVariable { name: String, accumulator: Option<&'static str> },
    /// An expression whose type cannot be inferred.
    UnknownType,
    /// A method call on a value of unknown type.
    UnknownReceiver { word: Word },
    /// A conversion to an unknown type.
    UnknownResult(UntypedConversion),
    /// Not a constant, where one is expected.
    NoConstant,
    /// Not a constant, in a pattern.
    NoPattern,
    /// A call in a constant of a function that is not `const`.
    NotConstFn { function: String },
    /// A constant whose evaluation fails.
    Constant(NoValue),
    /// A constant expression whose evaluation fails.
    Expression(NoValue),
    /// A constant that depends on itself.
    Circular(String),
    /// `clamp` to an empty range.
    Clamp { low: Const, high: Const },
}

/// The reason why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoValue {
    /// A division by zero.
    DividesByZero,
    /// A result that the type does not have, in Rust's words.
    Overflow(&'static str),
    /// A shift by the width of the type or more.
    ShiftsTooFar,
    /// An index beyond the end of an array.
    OutOfBounds,
    /// An assertion that does not hold.
    AssertionFails,
    /// More statements than the compiler runs.
    TooManySteps,
}

/// A conversion without a target type.
#[derive(Clone, Copy, Debug)]
pub enum UntypedConversion {
    As,
    Cast,
}

impl Value {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Index(found) => Text::new(Code::InvalidOperator, format!("{found} cannot be indexed"))
                .help("use `.get(..)` and `.set(..)` of tiles, shared arrays and global slices"),
            Self::Operator { of, sign } => {
                let is_stored = matches!(
                    of,
                    PartialType::Known(Type::Scalar(Scalar::Tf32 | Scalar::E4m3 | Scalar::E5m2))
                );
                let is_struct = matches!(of, PartialType::Known(Type::Compound(Compound::Struct(_))));
                let help = match is_stored {
                    true => Some(format!("convert it with `.to_f32()` first: {of} is for storage only")),
                    false if is_struct && matches!(*sign, "==" | "!=") => {
                        Some(format!("derive `PartialEq` for {of}, or compare the fields"))
                    }
                    false => None,
                };
                Text::new(Code::InvalidOperator, format!("{of} has no operator `{sign}`")).help_if(help)
            }
            Self::TooLarge => Text::new(Code::LiteralRange, "integer literal is too large"),
            Self::NoNumber => Text::new(Code::LiteralRange, "invalid float literal"),
            Self::Range { value, ty } => {
                let range = ty.as_scalar().and_then(Scalar::integer_range);
                let (least, greatest) = range.unwrap_or_default();
                let message =
                    format!("literal out of range for `{ty}`: {value} is not in {least} to {greatest}");
                Text::new(Code::LiteralRange, message)
            }
            Self::UnknownVariable { name, accumulator } => {
                Text::new(Code::CannotInfer, format!("cannot infer the type of `{name}`")).help(
                    match accumulator {
                        Some(ty) => format!("write its element and extents: `{ty}::<f32, M, N>::zero()`"),
                        None => format!("annotate it: `let {name}: u32`"),
                    },
                )
            }
            Self::UnknownType => Text::new(Code::CannotInfer, "cannot infer the type of this expression")
                .help("annotate the variable that it comes from"),
            Self::UnknownReceiver { word } => {
                Text::new(Code::CannotInfer, format!("cannot infer the type that `{word}` is called on"))
                    .help("annotate the value where it is created: `1.0f32`, or `let x: f32 = ..`")
            }
            Self::UnknownResult(conversion) => {
                let (word, help) = match conversion {
                    UntypedConversion::As => ("as _", "write the type: `x as f32`"),
                    UntypedConversion::Cast => ("cast", "write `cast::<f32>(x)`"),
                };
                Text::new(Code::CannotInfer, format!("cannot infer the type that `{word}` converts to"))
                    .help(help)
            }
            Self::NoConstant => Text::new(Code::NotConstant, "this must be a constant").help(
                "use literals, constants of the `#[tma_module]`, const generics, and arithmetic on these",
            ),
            Self::NoPattern => Text::new(Code::NotConstant, "this pattern must be a constant")
                .help("use literals, constants of the `#[tma_module]` or const generics"),
            Self::NotConstFn { function } => {
                Text::new(Code::NotConstant, format!("a constant cannot call `{function}`"))
                    .help(format!("declare it as `const fn {function}`"))
            }
            Self::Constant(why) => {
                Text::new(Code::ConstantValue, format!("cannot evaluate this constant: {why}"))
            }
            Self::Expression(why) => {
                Text::new(Code::ConstantValue, format!("cannot evaluate this expression: {why}"))
            }
            Self::Circular(name) => {
                Text::new(Code::ConstantValue, format!("the constant `{name}` depends on itself"))
                    .help("break the cycle")
            }
            Self::Clamp { low, high } => {
                let (low, high) = (number(*low), number(*high));
                Text::new(
                    Code::ConstantValue,
                    format!("the bounds of `clamp` must be in order, but they are {low} and {high}"),
                )
                .help("write the lower bound first; neither bound can be NaN")
            }
        }
    }
}

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DividesByZero => f.write_str("division by zero"),
            Self::Overflow(words) => f.write_str(words),
            Self::ShiftsTooFar => f.write_str("shift by the width of the type or more"),
            Self::OutOfBounds => f.write_str("index out of bounds"),
            Self::AssertionFails => f.write_str("the assertion fails"),
            Self::TooManySteps => write!(f, "it takes more than {CONSTANT_STEPS} steps"),
        }
    }
}

/// Formats a constant with the value used in computations.
fn number(value: Const) -> String {
    match value {
        Const::Bool(value) => value.to_string(),
        Const::Int(value) => value.to_string(),
        Const::Float(value) | Const::Literal { double: value, .. } => value.to_string(),
    }
}
