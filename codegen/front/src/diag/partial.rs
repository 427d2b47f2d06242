//! Partially inferred types.

use std::fmt;

use crate::ir::Type;

/// A type that inference may only partially know. It is displayed as messages name it.
#[derive(Clone, Debug)]
pub enum PartialType {
    /// An integer of unknown type.
    Integer,
    /// A float of unknown type.
    Float,
    /// An unknown type.
    Unknown,
    /// An array of such elements, with this length.
    Array(Box<PartialType>, u32),
    /// A tuple of such elements.
    Tuple(Vec<PartialType>),
    /// A fully known type.
    Known(Type),
}

impl PartialType {
    fn is_single(&self) -> bool {
        matches!(self, Self::Tuple(elements) if elements.len() == 1)
    }
}

impl fmt::Display for PartialType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer => f.write_str("an integer"),
            Self::Float => f.write_str("a float"),
            Self::Unknown => f.write_str("an unknown type"),
            Self::Array(element, len) => write!(f, "`[{}; {len}]`", element.to_string().replace('`', "")),
            Self::Tuple(elements) => {
                let elements: Vec<_> = elements.iter().map(Self::to_string).collect();
                let elements = elements.join(", ").replace('`', "");
                write!(f, "`({elements}{})`", if self.is_single() { "," } else { "" })
            }
            Self::Known(ty) => write!(f, "`{ty}`"),
        }
    }
}

impl From<&Type> for PartialType {
    fn from(ty: &Type) -> Self {
        Self::Known(ty.clone())
    }
}

/// The use that determined a type, on another line than the mistake.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Line of the use.
    pub(crate) line: usize,
    /// The type that it determines.
    pub(crate) ty: PartialType,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, as inferred from line {}", self.ty, self.line)
    }
}
