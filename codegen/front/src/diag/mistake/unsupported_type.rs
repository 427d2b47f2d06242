//! Types that an operation does not support.

use crate::diag::suggest::{Kind, elsewhere};
use crate::diag::text::Text;
use crate::diag::{Code, Decision, PartialType};
use crate::ir::{MathOp, Scalar, Type, WarpReduceOp};

use super::{NoValue, Word};

/// A type that an operation does not support.
#[derive(Clone, Debug)]
pub struct UnsupportedType {
    /// The type found.
    pub found: PartialType,
    /// The requirement that it does not meet.
    pub demand: Demand,
    /// The location that determined the type.
    pub since: Option<Decision>,
}

/// A requirement on a type.
#[derive(Clone, Debug)]
pub enum Demand {
    /// A coordinate.
    Coordinate,
    /// An index into global memory.
    GlobalIndex,
    /// The amount of a shift.
    ShiftAmount,
    /// The left operand of a shift: it must be wider than the amount.
    Width,
    /// The range of a `for`.
    Counted,
    /// The scrutinee of a `match`.
    Matched,
    /// A `match` whose patterns must cover all values of the type.
    Covered,
    /// Operands of a function on scalars.
    Math(MathOp),
    /// A value that lanes exchange or compare with this word.
    Lanes { word: Word },
    /// A value that this word reduces.
    WarpReduce { op: WarpReduceOp, word: Word },
    /// A value that `as` converts to this type.
    As(PartialType),
    /// A value that `cast` converts to this type.
    Cast(PartialType),
    /// The receiver of this method of unsigned integers.
    Unsigned { word: Word },
    /// An operand of this function of integers of 32 and 64 bits.
    Words { word: Word },
    /// The receiver of this method.
    Method { word: Word },
}

impl UnsupportedType {
    pub(super) fn text(&self) -> Text {
        let found = &self.found;
        let (code, message, help) = match &self.demand {
            Demand::Coordinate => (
                Code::TypeMismatch,
                format!("coordinates must be `u32` or `i32`, not {found}"),
                Some("cast them: `x as u32`".to_owned()),
            ),
            Demand::GlobalIndex => (
                Code::TypeMismatch,
                format!("an index must be an integer of 32 or 64 bits, not {found}"),
                Some("cast it: `i as u64`".to_owned()),
            ),
            Demand::ShiftAmount => {
                (Code::TypeMismatch, format!("a shift amount must be an integer, not {found}"), None)
            }
            Demand::Width => (
                Code::ConstantValue,
                format!("cannot evaluate this expression: {}", NoValue::ShiftsTooFar),
                None,
            ),
            Demand::Counted => {
                (Code::TypeMismatch, format!("`for` iterates over integers, not {found}"), None)
            }
            Demand::Matched => {
                (Code::TypeMismatch, format!("`match` requires an integer or a `bool`, not {found}"), None)
            }
            Demand::Covered => (
                Code::MatchNotExhaustive,
                "this `match` does not cover all values".to_owned(),
                Some("add an arm `_ => ..`".to_owned()),
            ),
            Demand::Math(op) => (
                Code::InvalidOperator,
                format!("`{}` does not support {found}", op.name()),
                Some(format!("use {}", math_types(*op))),
            ),
            Demand::Lanes { word } => (
                Code::TypeMismatch,
                format!("`{word}` takes scalars, not {found}"),
                Some("call it for each element of an array".to_owned()),
            ),
            Demand::WarpReduce { op, word } => (
                Code::InvalidOperator,
                format!("`{word}` does not support {found}"),
                Some(format!("use {}", op.types())),
            ),
            Demand::As(to) => (
                Code::InvalidCast,
                format!("{found} cannot be cast to {to} with `as`"),
                Some(instead_of_as(found, to)),
            ),
            Demand::Cast(to) => (
                Code::InvalidCast,
                format!("{found} cannot be converted to {to}"),
                Some("convert a number: `cast` supports nothing else".to_owned()),
            ),
            Demand::Unsigned { word } => (
                Code::InvalidOperator,
                format!("`{word}` does not support {found}"),
                Some("use an unsigned integer".to_owned()),
            ),
            Demand::Words { word } => (
                Code::InvalidOperator,
                format!("`{word}` does not support {found}"),
                Some("use u32, i32, u64 or i64".to_owned()),
            ),
            Demand::Method { word } => (
                Code::UnknownMethod,
                format!("{found} has no method `{word}`"),
                elsewhere(word, Kind::Function).map(String::from),
            ),
        };
        let text = Text::new(code, message).help_if(help);
        match &self.since {
            Some(decision) => text.note(format!("its type is {decision}")),
            None => text,
        }
    }
}

/// The help where a value or a type is not a scalar.
const CAST: &str = "cast a scalar to a scalar type: other types have no conversions";

/// Suggests what to write where `as` does not convert. A value of unknown type may be a `bool`.
fn instead_of_as(from: &PartialType, to: &PartialType) -> String {
    match (from, scalar(to)) {
        (PartialType::Unknown | PartialType::Known(Type::Scalar(Scalar::Bool)), Some(to))
            if to.is_float() =>
        {
            format!("write `if condition {{ 1.0 }} else {{ 0.0 }}`, of type `{to}`")
        }
        (PartialType::Array(..) | PartialType::Tuple(_), _) => "cast each element on its own".to_owned(),
        (PartialType::Known(from), _) if from.as_scalar().is_none() => CAST.to_owned(),
        (PartialType::Float, Some(Scalar::Bool)) => "compare it instead: `x != 0.0`".to_owned(),
        (PartialType::Known(from), Some(Scalar::Bool)) if from.as_scalar().is_some_and(Scalar::is_float) => {
            "compare it instead: `x != 0.0`".to_owned()
        }
        (_, Some(Scalar::Bool)) => "compare it instead: `x != 0`".to_owned(),
        (_, Some(to)) => format!("write `cast::<{to}>(x)`"),
        (_, None) => CAST.to_owned(),
    }
}

fn scalar(ty: &PartialType) -> Option<Scalar> {
    if let PartialType::Known(ty) = ty { ty.as_scalar() } else { None }
}

/// Lists the types that a function on scalars supports.
fn math_types(op: MathOp) -> &'static str {
    match op {
        MathOp::Min | MathOp::Max | MathOp::Clamp => "an integer, f16, bf16, f32 or f64",
        MathOp::Abs => "a signed integer, f16, bf16, f32 or f64",
        MathOp::Fma | MathOp::CopySign => "f16, bf16, f32 or f64",
        MathOp::Sqrt | MathOp::Recip => "f32 or f64",
        MathOp::Exp2Half => "f16 or bf16",
        MathOp::Rsqrt
        | MathOp::Exp2
        | MathOp::Exp2Ftz
        | MathOp::Log2
        | MathOp::Exp
        | MathOp::Log
        | MathOp::Sin
        | MathOp::Cos
        | MathOp::Tanh
        | MathOp::Pow => "f32",
    }
}
