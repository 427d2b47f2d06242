//! Types as far as inference knows them.

use std::fmt;

use crate::ir::Type;

/// A type of which inference may know only a part yet. It is displayed as messages name it.
#[derive(Clone, Debug)]
pub(crate) enum PartialType {
    /// Some integer.
    Integer,
    /// Some float.
    Float,
    /// Anything.
    Unknown,
    /// So many of such elements.
    Array(Box<PartialType>, u32),
    /// This type.
    Known(Type),
}

impl fmt::Display for PartialType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer => f.write_str("an integer"),
            Self::Float => f.write_str("a float"),
            Self::Unknown => f.write_str("an unknown type"),
            Self::Array(element, len) => write!(f, "`[{}; {len}]`", element.to_string().replace('`', "")),
            Self::Known(ty) => write!(f, "`{ty}`"),
        }
    }
}

impl From<&Type> for PartialType {
    fn from(ty: &Type) -> Self {
        Self::Known(ty.clone())
    }
}

/// What made a type what it is, on another line than the mistake.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    /// The line of the use.
    pub(crate) line: usize,
    /// What it makes the type.
    pub(crate) ty: PartialType,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} makes it {}", self.line, self.ty)
    }
}
