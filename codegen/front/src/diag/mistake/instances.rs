//! Instances of generic kernels.

use crate::diag::Code;
use crate::diag::text::Text;
use crate::diag::wording::{counted, either};
use crate::limits::PRODUCT_INSTANCES;

/// A mistake in `instances(..)`.
#[derive(Clone, Debug)]
pub enum Instances {
    /// A generic kernel without instances, with an argument that fits each generic.
    None { kernel: String, example: Vec<&'static str> },
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
    /// A type generic that is computed.
    ComputedType { generic: String },
    /// A generic that is computed, and computed or listed elsewhere, too.
    ComputedTwice { generic: String },
    /// A constant that is computed from one that is computed later.
    ComputedLater { generic: String, uses: String },
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
            Self::None { kernel, example } => (
                format!("`{kernel}` is generic, but has no instances"),
                format!(
                    "list those to compile, such as `#[tma_kernel(.., instances(first = <{}>))]`; \
                     modules made from this one may add theirs, by `#[tma_module(from = .., instances = [..])]`",
                    example.join(", ")
                ),
            ),
            Self::SameName(name) => {
                (format!("two instances are named `{name}`"), "rename one of them".to_owned())
            }
            Self::ReservedName(name) => (
                format!("an instance cannot be named `{name}`: the kernel's module has a type of that name"),
                "rename it".to_owned(),
            ),
            Self::ArgumentCount { instance, found, wanted } => (
                format!(
                    "`{instance}` has {}, but the kernel has {}",
                    counted(*found, "argument"),
                    counted(*wanted, "generic parameter")
                ),
                "supply one argument for each generic parameter, in order".to_owned(),
            ),
            Self::NoType { generic } => (
                format!("`{generic}` must be a type, but this argument is not"),
                "write types and constants in the order of the generic parameters".to_owned(),
            ),
            Self::TooMany { made } => (
                format!("the products make {made} instances up to here, but at most {PRODUCT_INSTANCES} are \
                         allowed"),
                "list only what is launched, in shorter products separated by `;`: each instance is compiled \
                 on its own"
                    .to_owned(),
            ),
            Self::UnknownGeneric { kernel, generic, known } => (
                format!("`{kernel}` has no generic parameter `{generic}`"),
                match known[..] {
                    [] => "remove `instances(..)`: the kernel has no generic parameters".to_owned(),
                    _ => format!("use {}", either(known)),
                },
            ),
            Self::TwoLists { generic } => (
                format!("`{generic}` has two lists in one product"),
                "merge them, or separate two products by `;`".to_owned(),
            ),
            Self::NoList { generic } => {
                (format!("the product has no list for `{generic}`"), format!("add `{generic} in [..]`, or `let {generic} = ..`"))
            }
            Self::ComputedType { generic } => (
                format!("`{generic}` is a type: only constants are computed"),
                format!("list its types: `{generic} in [..]`"),
            ),
            Self::ComputedTwice { generic } => (
                format!("`{generic}` is bound more than once"),
                "keep one: `let` computes a constant of all products, which then have no list for it".to_owned(),
            ),
            Self::ComputedLater { generic, uses } if generic == uses => (
                format!("`{generic}` is computed from itself"),
                "compute it from constants of the lists".to_owned(),
            ),
            Self::ComputedLater { generic, uses } => (
                format!("`{generic}` is computed from `{uses}`, which is computed later"),
                format!("move `let {uses} = ..` before `let {generic} = ..`"),
            ),
            Self::EmptyList { generics } => (
                format!("the list of `{}` is empty", generics.join(", ")),
                "add at least one value, or remove the product".to_owned(),
            ),
            Self::ValueCount { generics, found } => (
                format!(
                    "expected {} for `{}`, found {found}",
                    counted(generics.len(), "argument"),
                    generics.join(", ")
                ),
                format!(
                    "write {} for each instance, in parentheses if there are several",
                    counted(generics.len(), "argument")
                ),
            ),
            Self::NamelessValue => (
                "this value gives no name for an instance".to_owned(),
                "add a name before it: `name = ..`".to_owned(),
            ),
            Self::SameValue { generics, name } => (
                format!("two values of `{}` are named `{name}`", generics.join(", ")),
                "remove one of them, or add another name before it: `name = ..`".to_owned(),
            ),
        };
        Text::new(Code::Instances, message).help(help)
    }
}
