//! Instances of generic kernels.

use crate::diag::Code;
use crate::diag::text::Text;
use crate::diag::wording::{counted, given};
use crate::limits::PRODUCT_INSTANCES;

/// A mistake in `instances(..)`.
#[derive(Clone, Debug)]
pub(crate) enum Instances {
    /// A generic kernel without instances.
    None { kernel: String },
    /// Two instances with the same name.
    SameName(String),
    /// An instance with the name of a type in the kernel's module.
    ReservedName(String),
    /// An instance with more or fewer arguments than the kernel has generics.
    ArgumentCount { instance: String, found: usize, wanted: usize },
    /// A constant as the argument of a type generic.
    NoType { generic: String },
    /// More instances than allowed. This many are made up to here.
    TooMany { made: usize },
    /// A list for a name that is not a generic of the kernel.
    UnknownGeneric { kernel: String, generic: String, known: Vec<String> },
    /// Two lists for the same generic.
    TwoLists { generic: String },
    /// A generic without a list.
    NoList { generic: String },
    /// A list without values.
    EmptyList { generics: Vec<String> },
    /// A value with more or fewer arguments than its list has generics.
    ValueCount { generics: Vec<String>, found: usize },
    /// A value from which no name can be derived.
    NamelessValue,
    /// Two values of a list with the same name.
    SameValue { generics: Vec<String>, name: String },
}

impl Instances {
    pub(super) fn text(&self) -> Text {
        let (message, help) = match self {
            Self::None { kernel } => (
                format!("`{kernel}` is generic, but no instance is named"),
                "name what to compile: `#[tma_kernel(threads = 128, instances(small = <64, 64>))]`"
                    .to_owned(),
            ),
            Self::SameName(name) => (format!("two instances are called `{name}`"), "rename one".to_owned()),
            Self::ReservedName(name) => (
                format!("an instance cannot be called `{name}`: the kernel's module has a type of that name"),
                "rename it".to_owned(),
            ),
            Self::ArgumentCount { instance, found, wanted } => (
                format!("`{instance}` gives {}, but the kernel has {wanted}", counted(*found, "argument")),
                "give one for each generic, in order".to_owned(),
            ),
            Self::NoType { generic } => (
                format!("`{generic}` is a type, but this is not"),
                "give types and constants in the order of the generics".to_owned(),
            ),
            Self::TooMany { made } => (
                format!("the products make {made} instances up to here; they may make {PRODUCT_INSTANCES}"),
                "each is compiled on its own: list what is launched, in shorter products separated by `;`"
                    .to_owned(),
            ),
            Self::UnknownGeneric { kernel, generic, known } => (
                format!("`{kernel}` has no generic `{generic}`"),
                match known[..] {
                    [] => "remove `instances(..)`: the kernel has no generics".to_owned(),
                    _ => format!("its generics are `{}`", known.join("`, `")),
                },
            ),
            Self::TwoLists { generic } => (
                format!("`{generic}` has two lists in one product"),
                "join them, or write `;` between two products".to_owned(),
            ),
            Self::NoList { generic } => {
                (format!("the product has no list for `{generic}`"), format!("add `{generic} in [..]`"))
            }
            Self::EmptyList { generics } => (
                format!("the list of `{}` is empty", generics.join(", ")),
                "list at least one value, or remove the product".to_owned(),
            ),
            Self::ValueCount { generics, found } => (
                format!("the list is for `{}`, but {}", generics.join(", "), given(*found)),
                format!(
                    "give {} for each instance, in parentheses if there are several",
                    counted(generics.len(), "argument")
                ),
            ),
            Self::NamelessValue => (
                "this value has nothing to name an instance by".to_owned(),
                "write a name before it: `name = ..`".to_owned(),
            ),
            Self::SameValue { generics, name } => (
                format!("two values of `{}` are called `{name}`", generics.join(", ")),
                "remove one, or write another name before it: `name = ..`".to_owned(),
            ),
        };
        Text::new(Code::Instances, message).help(help)
    }
}
