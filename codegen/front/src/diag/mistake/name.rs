//! Names, paths, methods and fields.

use std::fmt;

use super::Word;
use crate::diag::suggest::{OPEN_FUNCTIONS, Suggestion};
use crate::diag::text::Text;
use crate::diag::wording::{either, listed};
use crate::diag::{Code, PartialType};
use crate::ir::{Choice, ChoiceType, Compound, Scalar, Type};

/// A name that is unknown, or that means something else.
#[derive(Clone, Debug)]
pub enum Name {
    /// A constant that a type does not have.
    Constant { of: PartialType, name: String },
    /// A constant that a scalar does not have. `written` is the type as the source has it.
    ScalarConstant { of: Scalar, name: String, written: String },
    /// A value named by a path, whose owner may be a type.
    Path { path: String, of_type: bool },
    /// An unknown value. `is_function` if a function has this name.
    Value { name: String, is_function: bool, suggestion: Option<Suggestion> },
    /// A variant that an enum of the language does not have.
    Choice { of: ChoiceType, name: String },
    /// A function that a scalar does not have. `known` are those that it has.
    ScalarFunction { of: Scalar, name: String, suggestion: Option<Suggestion>, known: Vec<String> },
    /// A function that a type of the language does not have. `known` are those that it has.
    TypeFunction { of: &'static str, name: String, known: Vec<String> },
    /// A function of a type that has no functions.
    NoFunction { of: PartialType, name: String },
    /// An unknown function.
    Function { name: String, suggestion: Option<Suggestion> },
    /// A call of a variable, which may hide a word of the language.
    Variable { name: String, hides_word: bool },
    /// A call of the kernel itself.
    ThisKernel(String),
    /// An item of the host, which may hide a word of the language.
    Host { name: String, item: HostItem, hides_word: bool },
    /// A constant whose value differs from the language's, as rustc reports.
    OtherConstant { path: String },
    /// A path outside of the language. `word` is its last name, if the language has that.
    Foreign { path: String, word: Option<String> },
    /// A member of a type generic.
    OfGeneric { path: String, generic: String, name: String, is_call: bool },
    /// `<T>::name`.
    Qualified,
    /// A word of the language that is not imported.
    NotImported { word: Word },
    /// A method that a type does not have. `known` are those that it has.
    Method { of: PartialType, name: String, suggestion: Option<Suggestion>, known: Vec<Word> },
    /// A method about tiles on a map that moves columns of pixels.
    NoTiles { word: Word },
    /// A field that a type does not have.
    Field { of: PartialType, name: String },
    /// A type that is not the struct that a literal, a pattern or a call names.
    NoStruct(PartialType),
    /// The name of a type, where a value is expected.
    TypeAsValue(PartialType),
    /// A function that a struct does not have. `known` are those that it has.
    StructFunction { of: String, name: String, known: Vec<String> },
    /// A method that a struct does not have. `known` are those that it has. `is_function` if it has
    /// a function of this name without `self`.
    StructMethod { of: String, name: String, known: Vec<String>, is_function: bool },
    /// A field that a pipeline's slot, or its state, does not have.
    SlotField { of: Compound, name: String },
}

/// An item that exists on the host but not in kernels. It is displayed with its article.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostItem {
    Kernel,
    Function,
    Static,
    Struct,
    Enum,
    Union,
    Trait,
    Macro,
}

impl fmt::Display for HostItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "a kernel",
            Self::Function => "a host function",
            Self::Static => "a `static`",
            Self::Struct => "a host struct",
            Self::Enum => "a host enum",
            Self::Union => "a host union",
            Self::Trait => "a trait",
            Self::Macro => "a macro",
        })
    }
}

impl Name {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Constant { of, name } => {
                Text::new(Code::UnknownName, format!("{of} has no constant `{name}`"))
            }
            Self::ScalarConstant { of, name, written } => {
                Text::new(Code::UnknownName, format!("`{of}` has no constant `{name}` in kernels")).help(
                    match number_named(name) {
                        Some(number) => format!("write `cast::<{written}>({number})`"),
                        None => "use MIN, MAX or BITS, or for floats EPSILON, INFINITY, NEG_INFINITY or NAN"
                            .to_owned(),
                    },
                )
            }
            Self::Path { path, of_type } => {
                let help = match of_type {
                    true => {
                        "pass the value as an argument, cast to a number if it is a variant: kernels have no \
                         enums and no associated constants of their own"
                    }
                    false => {
                        "move the constant into the same `#[tma_module]`, or pass its value as an argument"
                    }
                };
                Text::new(Code::UnknownName, format!("kernels cannot use `{path}`")).help(help)
            }
            Self::Value { name, is_function, suggestion } => Text::new(
                Code::UnknownName,
                format!("cannot find value `{name}` in this kernel"),
            )
            .help(match (is_function, suggestion) {
                (true, _) => format!("call the function: `{name}()`"),
                (false, Some(suggestion)) => suggestion.to_string(),
                (false, None) if is_constant(name) => format!(
                    "move the constant `{name}` into the kernel's `#[tma_module]`, import it there by \
                             `use` from another `#[tma_module]`, or pass its value as an argument"
                ),
                (false, None) => {
                    "use a variable or parameter of the kernel, or a constant or `#[tma_device]` \
                             function of its `#[tma_module]`"
                        .to_owned()
                }
            }),
            Self::Choice { of, name } => {
                let known = of.all().into_iter().map(Choice::name);
                Text::new(Code::UnknownName, format!("`{}` has no variant `{name}`", of.name()))
                    .help(format!("use {}", either(known)))
            }
            Self::ScalarFunction { of, name, suggestion, known } => {
                let conversions =
                    || format!("use {}, or `cast::<T>(x)`, which converts any scalar", listed(known));
                Text::new(Code::UnknownName, format!("`{of}` has no function `{name}` in kernels"))
                    .help(suggestion.as_ref().map_or_else(conversions, ToString::to_string))
            }
            Self::TypeFunction { of, name, known } => {
                Text::new(Code::UnknownName, format!("`{of}` has no function `{name}`"))
                    .help(format!("use {}", either(known)))
            }
            Self::NoFunction { of, name } => {
                Text::new(Code::UnknownName, format!("{of} has no function `{name}`"))
            }
            Self::Function { name, suggestion } => {
                Text::new(Code::UnknownName, format!("cannot find function `{name}` in the kernel language"))
                    .help(match suggestion {
                    Some(suggestion) => suggestion.to_string(),
                    None => {
                        "call a function of the kernel language or, in a `#[tma_module]`, a `#[tma_device]` \
                         function of the module"
                            .to_owned()
                    }
                })
            }
            Self::Variable { name, hides_word } => {
                let help = || format!("rename the variable: it hides `{name}` of the kernel language");
                Text::new(Code::OtherMeaning, format!("expected a function, found the variable `{name}`"))
                    .help_if(hides_word.then(help))
            }
            Self::ThisKernel(name) => {
                let message = format!("the kernel `{name}` cannot call itself");
                Text::new(Code::OtherMeaning, message)
                    .help("write a loop, or move shared code into a `#[tma_device]` function")
            }
            Self::Host { name, item, hides_word } => {
                let verb = if *item == HostItem::Kernel { "call" } else { "use" };
                Text::new(Code::OtherMeaning, format!("`{name}` is {item} here, which kernels cannot {verb}"))
                    .help(instead_of_host(name, *item, *hides_word))
            }
            Self::OtherConstant { path } => Text::new(
                Code::OtherMeaning,
                format!("`{path}` has a different value here than in the kernel language"),
            ),
            Self::Foreign { path, word } => {
                Text::new(Code::ForeignPath, format!("`{path}` is not part of the kernel language"))
                    .help(match word {
                    Some(word) => format!(
                        "write `{word}`, which the kernel language has of its own, with the prelude imported"
                    ),
                    None => {
                        "use the kernel's own variables, the kernel language or, in a `#[tma_module]`, the \
                         module's constants, type aliases and `#[tma_device]` functions"
                            .to_owned()
                    }
                })
            }
            Self::OfGeneric { path, generic, name, is_call } => {
                let text = match is_call {
                    true => {
                        Text::new(Code::ForeignPath, format!("`{path}` is not part of the kernel language"))
                    }
                    false => Text::new(Code::UnknownName, format!("kernels cannot use `{path}`")),
                };
                text.help(match number_named(name) {
                    Some(number) => format!("write `cast::<{generic}>({number})`"),
                    None => format!("kernels do not follow the traits of `{generic}`: {OPEN_FUNCTIONS}"),
                })
            }
            Self::Qualified => Text::new(Code::ForeignPath, "`<T>::name` is not supported in kernels")
                .help("write the type without brackets, `u32::MAX`, and methods with a dot, `x.min(y)`"),
            Self::NotImported { word } => {
                let message = format!("`{word}` of the kernel language is not imported");
                Text::new(Code::MissingPrelude, message).help(
                    "add `use tma_runtime::prelude::*;` to the module of the kernel: a module does not see \
                     the imports of its parent",
                )
            }
            Self::Method { of, name, suggestion, known } => Text::new(
                Code::UnknownMethod,
                format!("{of} has no method `{name}`"),
            )
            .help_if(methods(of, name, suggestion.as_ref(), known)),
            Self::NoTiles { word } => {
                let message = format!(
                    "an im2col map has no `{word}`: it moves columns of pixels, which do not form a grid of \
                     tiles"
                );
                Text::new(Code::UnknownMethod, message)
                    .help("pass the coordinates of the column's first pixel: `[image, y, x, channel]`")
            }
            Self::Field { of, name } => {
                let is_dim3 = matches!(of, PartialType::Known(Type::Dim3));
                Text::new(Code::UnknownMethod, format!("{of} has no field `{name}`")).help_if(if is_dim3 {
                    Some("use `x`, `y` or `z`".to_owned())
                } else {
                    fields(of)
                })
            }
            Self::NoStruct(found) => {
                Text::new(Code::TypeMismatch, format!("expected the name of a struct, found {found}"))
                    .help("use a struct of the same `#[tma_module]` that derives `Clone` and `Copy`")
            }
            Self::TypeAsValue(found) => {
                Text::new(Code::UnknownName, format!("expected a value, found the type {found}"))
                    .help("write a literal with all fields")
            }
            Self::StructFunction { of, name, known } => {
                Text::new(Code::UnknownMethod, format!("`{of}` has no device function `{name}`"))
                    .help(instead_of_method(of, known))
            }
            Self::StructMethod { of, name, is_function: true, .. } => Text::new(
                Code::UnknownMethod,
                format!("`{name}` has no `self` parameter and is not a method"),
            )
            .help(format!("write `{of}::{name}(..)`")),
            Self::StructMethod { of, name, known, is_function: false } => {
                Text::new(Code::UnknownMethod, format!("`{of}` has no device method `{name}`"))
                    .help(instead_of_method(of, known))
            }
            Self::SlotField { of, name } => {
                Text::new(Code::UnknownMethod, format!("`{of}` has no field `{name}`")).help(
                    match of.fields().len() {
                        0 if matches!(of, Compound::EmptySlot(_)) => {
                            "call `announce()` first: it returns a slot with the tiles as fields".to_owned()
                        }
                        0 => "use the slot that the producer's `acquire` or the consumer's `wait` returns: \
                              it has the tiles as fields"
                            .to_owned(),
                        1 => "use its only tile, `.0`".to_owned(),
                        tiles => format!("use one of its tiles, `.0` to `.{}`", tiles - 1),
                    },
                )
            }
        }
    }
}

fn instead_of_host(name: &str, item: HostItem, hides_word: bool) -> String {
    match (item, hides_word) {
        (HostItem::Kernel, _) => {
            "move shared code into a `#[tma_device]` function: kernels are only launched".to_owned()
        }
        (_, true) => {
            format!(
                "rename it, or move it out of the `#[tma_module]`: it hides `{name}` of the kernel language"
            )
        }
        (HostItem::Struct, false) => {
            "derive `Clone` and `Copy`, so that kernels can have values of it".to_owned()
        }
        (HostItem::Function, false) => "mark it `#[tma_device]`, so that kernels can call it".to_owned(),
        (_, false) => {
            "pass the value as an argument: kernels share only constants, type aliases and `#[tma_device]` \
             functions"
                .to_owned()
        }
    }
}

fn instead_of_method(of: &str, known: &[String]) -> String {
    if known.is_empty() {
        format!("write it in `#[tma_device] impl {of} {{ .. }}`, in the same `#[tma_module]`")
    } else {
        format!("use {}, or add it to a `#[tma_device] impl`", either(known))
    }
}

/// Suggests the fields of a struct or tuple.
fn fields(of: &PartialType) -> Option<String> {
    let names = if let PartialType::Known(Type::Compound(of)) = of {
        of.member_names()
    } else if let PartialType::Tuple(elements) = of {
        (0..elements.len()).map(|i| i.to_string()).collect()
    } else {
        return None;
    };
    (!names.is_empty()).then(|| format!("use {}", either(&names)))
}

/// The number of methods that a message lists even if only some are related to the unknown name.
const FEW_METHODS: usize = 8;

fn methods(of: &PartialType, name: &str, suggestion: Option<&Suggestion>, known: &[Word]) -> Option<String> {
    if let Some(suggestion) = suggestion {
        return Some(suggestion.to_string());
    }
    if let PartialType::Known(Type::Remote(thing)) = of
        && **thing == Type::Barrier
    {
        return Some(format!(
            "use {}: only its own block initialises a barrier and waits for it",
            either(known)
        ));
    }
    let is_long = known.len() > FEW_METHODS;
    let related: Vec<_> = known.iter().filter(|known| is_long && share_a_word(known, name)).collect();
    match related[..] {
        [] => (!known.is_empty()).then(|| format!("use one of its methods: {}", listed(known))),
        _ => Some(format!("use {}", either(related))),
    }
}

/// Whether two names have a word of at least three letters in common: `store_all` and `store_to`.
fn share_a_word(a: &str, b: &str) -> bool {
    a.split('_').filter(|word| word.len() > 2).any(|word| b.split('_').any(|other| other == word))
}

/// Returns the number that other crates have as a constant of this name.
fn number_named(name: &str) -> Option<&'static str> {
    match name {
        "ZERO" => Some("0.0"),
        "ONE" => Some("1.0"),
        _ => None,
    }
}

/// Whether a name is spelled as constants are: `LIMIT`.
pub(crate) fn is_constant(name: &str) -> bool {
    name.contains(|letter: char| letter.is_ascii_uppercase())
        && !name.contains(|letter: char| letter.is_ascii_lowercase())
}
