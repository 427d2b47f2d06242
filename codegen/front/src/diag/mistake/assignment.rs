//! Assignments to values that cannot be modified.

use crate::diag::text::Text;
use crate::diag::{Code, PartialType};
use crate::ir::Type;

/// An attempt to modify something that cannot be modified.
#[derive(Clone, Debug)]
pub enum Assignment {
    /// To a constant of the module.
    Constant(String),
    /// To an expression that is not a place.
    NotAssignable,
    /// Of a value with several parts, to an expression that is not a variable.
    NoVariable,
    /// To a part of a variable whose parts are not in registers.
    Part { name: String, ty: PartialType },
    /// To a variable without `mut`, which may be a parameter.
    Immutable { name: String, parameter: Option<Parameter> },
    /// To a variable with `mut` that is a handle, and in no register.
    MutableHandle(PartialType),
    /// Of another object to a part of this variable that is in no register.
    OtherObject { name: String, ty: PartialType },
    /// To a state that is a temporary.
    Temporary,
    /// To an accumulator that is a temporary.
    TemporaryAccumulator,
}

/// How a function takes a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// By value.
    Value,
    /// By `&`.
    Reference,
}

impl Assignment {
    pub(super) fn text(&self) -> Text {
        let (message, help) = match self {
            Self::Constant(name) => {
                let message = format!("cannot assign to `{name}`, which is a constant");
                (message, format!("copy it: `let mut value = {name};`"))
            }
            Self::NotAssignable => (
                "cannot assign to this expression".to_owned(),
                "assign to a `let mut` variable, to a field of one, or to an element of a register array"
                    .to_owned(),
            ),
            Self::NoVariable => {
                ("cannot assign to this expression".to_owned(), "assign to a `let mut` variable".to_owned())
            }
            Self::Part { name, ty } => {
                (format!("cannot assign to an element of {ty}"), instead_of_part(name, ty))
            }
            Self::Immutable { name, parameter } => {
                let message = format!("cannot modify `{name}`, which is not declared as mutable");
                (message, declared_mutable(name, *parameter))
            }
            Self::MutableHandle(ty) => {
                (format!("a variable of type {ty} cannot be mutable"), "remove `mut`".to_owned())
            }
            Self::OtherObject { name, ty } => (
                format!("cannot assign another {ty} to a part of `{name}`"),
                "use another variable: which object this part refers to is decided at compile time"
                    .to_owned(),
            ),
            Self::Temporary => (
                "cannot modify a temporary".to_owned(),
                "bind it to a variable first, such as `let mut producer = ring.producer();` or \
                 `let mut consumer = ring.consumer();`"
                    .to_owned(),
            ),
            Self::TemporaryAccumulator => (
                "cannot accumulate into a temporary".to_owned(),
                "bind it to a variable: `let mut sum = Accumulator::<f32, 64, 128>::zero();`".to_owned(),
            ),
        };
        Text::new(Code::NotAssignable, message).help(help)
    }
}

/// Says how to declare a variable so that it can be modified.
fn declared_mutable(name: &str, parameter: Option<Parameter>) -> String {
    match (parameter, name) {
        (Some(Parameter::Value), "self") => "declare the parameter as `mut self`".to_owned(),
        (Some(Parameter::Reference), "self") => "declare the parameter as `&mut self`".to_owned(),
        (Some(Parameter::Value), _) => format!("declare the parameter as `mut {name}: ..`"),
        (Some(Parameter::Reference), _) => format!("declare the parameter as `{name}: &mut ..`"),
        (None, _) => format!("declare it with `let mut {name} = ..;`"),
    }
}

fn instead_of_part(name: &str, ty: &PartialType) -> String {
    if let PartialType::Known(Type::Global(_) | Type::SharedArray(..)) = ty {
        format!("write `{name}.set(i, value)`")
    } else if let PartialType::Known(Type::Tile(_)) = ty {
        format!("write `{name}.set([row, column], value)`, with one coordinate for each dimension")
    } else if let PartialType::Known(Type::Stages(..)) = ty {
        format!("use a method of the stage: `{name}[i].set(..)`")
    } else {
        "assign to an element of a register array: no other type has assignable elements".to_owned()
    }
}
