//! Assignments to what cannot be changed.

use crate::diag::text::Text;
use crate::diag::{Code, PartialType};
use crate::ir::Type;

/// A change of what cannot be changed.
#[derive(Clone, Debug)]
pub(crate) enum Assignment {
    /// Of a constant of the module.
    Constant(String),
    /// Of what is no place.
    NoPlace,
    /// Of what is no variable, to a value of several parts.
    NoVariable,
    /// Of a part of a variable that has none in registers.
    Part { name: String, ty: PartialType },
    /// Of a variable without `mut`.
    Immutable(String),
    /// Of a variable with `mut` that no register holds.
    MutableHandle(PartialType),
    /// Of a state that is in no variable.
    Temporary,
    /// Of an accumulator that is in no variable.
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
