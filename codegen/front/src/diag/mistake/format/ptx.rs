//! `ptx!`.

use crate::diag::text::Text;
use crate::diag::{Code, PartialType};

use super::Unprintable;

/// A mistake in a `ptx!`.
#[derive(Clone, Debug)]
pub enum Ptx {
    /// A `ptx!` that does not parse, with syn's message.
    Malformed(String),
    /// A template that does not parse.
    Template(Unprintable),
    /// A template that refers to an operand that is not declared.
    Unknown { name: String },
    /// An operand that the template does not use.
    Unused { name: String },
    /// Two operands of the same name.
    Twice { name: String },
    /// An operand of a type that no register holds.
    Operand(PartialType),
    /// An address of memory that neither `reads(..)` nor `writes(..)` names.
    Undeclared { object: String },
    /// `reads(..)` or `writes(..)` of a value that is not in memory.
    NotMemory(PartialType),
}

impl Ptx {
    pub(in crate::diag::mistake) fn text(&self) -> Text {
        let (message, help) = match self {
            Self::Malformed(error) => (
                format!("malformed `ptx!`: {error}"),
                "write `ptx!(\"popc.b32 {n}, {x};\", out n, in x)`".to_owned(),
            ),
            Self::Template(why) => (
                format!("unsupported template of `ptx!`: {why}"),
                "name an operand as in `{x}`, and write a brace of PTX as `{{`".to_owned(),
            ),
            Self::Unknown { name } => (
                format!("the template refers to `{name}`, which is not an operand"),
                format!("add `in {name}` or `out {name}` after the template"),
            ),
            Self::Unused { name } => (
                format!("the template does not use the operand `{name}`"),
                format!("remove the operand, or write `{{{name}}}` in the template"),
            ),
            Self::Twice { name } => (
                format!("the operand `{name}` is declared twice"),
                format!("use `inout {name}` for a variable that is read and written"),
            ),
            Self::Operand(ty) => (
                format!("{ty} cannot be an operand of `ptx!`"),
                "pass a scalar of 16, 32 or 64 bits, a `bool`, a `Global`, or an object in the block's \
                 own shared memory; convert 8 bits, as in `x as u32`"
                    .to_owned(),
            ),
            Self::Undeclared { object } => (
                format!("`ptx!` takes the address of `{object}`, and does not say what it accesses"),
                format!("add `reads({object})`, or `writes({object})` if it writes there"),
            ),
            Self::NotMemory(ty) => (
                format!("{ty} is not in memory"),
                "name a `Global` or an object in the block's own shared memory".to_owned(),
            ),
        };
        Text::new(Code::Ptx, message).help(help)
    }
}
