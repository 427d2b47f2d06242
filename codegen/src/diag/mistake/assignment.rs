//! Assignments to values that cannot be modified.

use crate::diag::text::Text;
use crate::diag::{Code, PartialType};
use crate::ir::Type;

/// An attempt to modify something that cannot be modified.
#[derive(Clone, Debug)]
pub(crate) enum Assignment {
    /// To a constant of the module.
    Constant(String),
    /// To an expression that is not a place.
    NoPlace,
    /// Of a value with several parts, to an expression that is not a variable.
    NoVariable,
    /// To a part of a variable whose parts are not in registers.
    Part { name: String, ty: PartialType },
    /// To a variable without `mut`.
    Immutable(String),
    /// To a variable with `mut` that is a handle, and in no register.
    MutableHandle(PartialType),
    /// To a state that is a temporary.
    Temporary,
    /// To an accumulator that is a temporary.
    TemporaryAccumulator,
}

impl Assignment {
    pub(super) fn text(&self) -> Text {
        let (message, help) = match self {
            Self::Constant(name) => {
                (format!("`{name}` is a constant"), format!("copy it: `let mut value = {name};`"))
            }
            Self::NoPlace => (
                "this cannot be assigned to".to_owned(),
                "assign to a `let mut` variable, or to an element of a register array".to_owned(),
            ),
            Self::NoVariable => {
                ("this cannot be assigned to".to_owned(), "assign to a `let mut` variable".to_owned())
            }
            Self::Part { name, ty } => {
                (format!("no part of {ty} can be assigned to"), instead_of_part(name, ty))
            }
            Self::Immutable(name) => {
                (format!("`{name}` cannot be changed"), format!("declare it with `let mut {name} = ..;`"))
            }
            Self::MutableHandle(ty) => (format!("{ty} cannot be changed"), "remove `mut`".to_owned()),
            Self::Temporary => (
                "this changes a value that nothing holds".to_owned(),
                "keep it in a variable: `let mut producer = ring.producer();`".to_owned(),
            ),
            Self::TemporaryAccumulator => (
                "this accumulator is in no variable".to_owned(),
                "write `let mut sum = Accumulator::<f32, 64, 128>::zero();`".to_owned(),
            ),
        };
        Text::new(Code::NotAssignable, message).help(help)
    }
}

fn instead_of_part(name: &str, ty: &PartialType) -> String {
    if let PartialType::Known(Type::Global(_) | Type::SharedArray(..)) = ty {
        format!("write `{name}.set(i, value)`")
    } else if let PartialType::Known(Type::Tile(_)) = ty {
        format!("write `{name}.set([row, column], value)`, with a coordinate for each dimension")
    } else if let PartialType::Known(Type::Stages(..)) = ty {
        format!("stages change by their methods: `{name}[i].set(..)`")
    } else {
        "only register arrays have elements that are assigned to".to_owned()
    }
}
