//! Names, paths, methods and fields.

use std::fmt;

use super::Word;
use crate::diag::suggest::Suggestion;
use crate::diag::text::Text;
use crate::diag::wording::listed;
use crate::diag::{Code, PartialType};
use crate::ir::{Choice, ChoiceType, Compound, Scalar, Type};

/// A name that is unknown, or that means something else.
#[derive(Clone, Debug)]
pub(crate) enum Name {
    /// A constant that a type does not have.
    Constant { of: PartialType, name: String },
    /// A constant that a scalar does not have.
    ScalarConstant { of: Scalar, name: String },
    /// A value named by a path.
    Path,
    /// An unknown value. `is_function` if a function has this name.
    Value { name: String, is_function: bool, suggestion: Option<Suggestion> },
    /// A variant that an enum of the language does not have.
    Choice { of: ChoiceType, name: String },
    /// A function that a scalar does not have. `known` are those that it has.
    ScalarFunction { of: Scalar, name: String, known: Vec<String> },
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
    /// A field that a pipeline's slot, or its state, does not have.
    SlotField { of: Compound, name: String },
}

/// An item that exists on the host but not in kernels. It is displayed with its article.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostItem {
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
            Self::Function => "a function of the host",
            Self::Static => "a `static`",
            Self::Struct => "a struct of the host",
            Self::Enum => "an enum of the host",
            Self::Union => "a union of the host",
            Self::Trait => "a trait",
            Self::Macro => "a macro of this module",
        })
    }
}

impl Name {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Constant { of, name } => {
                Text::new(Code::UnknownName, format!("{of} has no constant `{name}`"))
            }
            Self::ScalarConstant { of, name } => {
                Text::new(Code::UnknownName, format!("`{of}` has no constant `{name}` in kernels"))
                    .help("there are MIN, MAX, BITS; for floats EPSILON, INFINITY, NEG_INFINITY and NAN")
            }
            Self::Path => Text::new(Code::UnknownName, "kernels do not know names by path")
                .help("a constant must stand in the same `#[tma_module]`, or be passed as an argument"),
            Self::Value { name, is_function, suggestion } => Text::new(
                Code::UnknownName,
                format!("nothing in this kernel is called `{name}`"),
            )
            .help(match (is_function, suggestion) {
                (true, _) => format!("`{name}` is a function: write `{name}()` to call it"),
                (false, Some(suggestion)) => suggestion.to_string(),
                (false, None) => {
                    "a kernel sees its own variables and parameters and, in a `#[tma_module]`, the module's \
                             constants and `#[tma_device]` functions"
                        .to_owned()
                }
            }),
            Self::Choice { of, name } => {
                let known = of.all().into_iter().map(Choice::name);
                Text::new(Code::UnknownName, format!("there is no `{}::{name}`", of.name()))
                    .help(format!("there are {}", listed(known)))
            }
            Self::ScalarFunction { of, name, known } => {
                Text::new(Code::UnknownName, format!("`{of}` has no function `{name}` in kernels"))
                    .help(format!("there are {}; `cast::<T>(x)` converts any scalar", listed(known)))
            }
            Self::TypeFunction { of, name, known } => {
                Text::new(Code::UnknownName, format!("`{of}` has no function `{name}`"))
                    .help(format!("there are {}", listed(known)))
            }
            Self::NoFunction { of, name } => {
                Text::new(Code::UnknownName, format!("{of} has no function `{name}`"))
            }
            Self::Function { name, suggestion } => {
                Text::new(Code::UnknownName, format!("kernels have no function `{name}`"))
                    .help(match suggestion {
                    Some(suggestion) => suggestion.to_string(),
                    None => {
                        "a kernel calls the vocabulary's functions and, in a `#[tma_module]`, the module's \
                                 `#[tma_device]` functions"
                            .to_owned()
                    }
                })
            }
            Self::Variable { name, hides_word } => {
                let help = || format!("rename the variable: it hides `{name}` of the kernel language");
                Text::new(Code::OtherMeaning, format!("`{name}` is a variable here, not a function"))
                    .help_if(hides_word.then(help))
            }
            Self::ThisKernel(name) => {
                let message = format!("`{name}` is this kernel, and kernels are not called");
                Text::new(Code::OtherMeaning, message)
                    .help("write a loop, or share code in a `#[tma_device]` function")
            }
            Self::Host { name, item, hides_word } => {
                Text::new(Code::OtherMeaning, format!("`{name}` is {item} here, which kernels cannot use"))
                    .help(instead_of_host(name, *item, *hides_word))
            }
            Self::OtherConstant { path } => {
                Text::new(Code::OtherMeaning, format!("`{path}` means something else here"))
            }
            Self::Foreign { path, word } => Text::new(
                Code::ForeignPath,
                format!("`{path}` is not of the kernel language"),
            )
            .help(match word {
                Some(word) => format!(
                    "the kernel language has a `{word}` of its own: write `{word}`, with the prelude imported"
                ),
                None => "a kernel sees its own variables, the vocabulary and, in a `#[tma_module]`, the \
                                 module's constants, type aliases and `#[tma_device]` functions"
                    .to_owned(),
            }),
            Self::Qualified => Text::new(Code::ForeignPath, "kernels do not have `<T>::name`")
                .help("write the type alone, `u32::MAX`, and methods with a dot, `x.min(y)`"),
            Self::NotImported { word } => {
                let message =
                    format!("`{word}` is a word of the kernel language, and nothing imports it here");
                Text::new(Code::MissingPrelude, message).help(
                    "write `use tma_runtime::prelude::*;` in the module of the kernel: it does not see what is \
                     imported around it",
                )
            }
            Self::Method { of, name, suggestion, known } => Text::new(
                Code::UnknownMethod,
                format!("{of} has no method `{name}`"),
            )
            .help_if(methods(of, suggestion.as_ref(), known)),
            Self::NoTiles { word } => {
                let message = format!(
                    "an im2col map has no `{word}`: it moves columns of pixels, which are no grid of tiles"
                );
                Text::new(Code::UnknownMethod, message)
                    .help("write the coordinates of the column's first pixel: `[image, y, x, channel]`")
            }
            Self::Field { of, name } => {
                let is_dim3 = matches!(of, PartialType::Known(Type::Dim3));
                Text::new(Code::UnknownMethod, format!("{of} has no field `{name}`"))
                    .help_if(is_dim3.then_some("its fields are `x`, `y` and `z`"))
            }
            Self::SlotField { of, name } => {
                Text::new(Code::UnknownMethod, format!("`{of}` has no field `{name}`")).help(
                    match of.fields().len() {
                        0 => "the tiles are fields of the slots that `acquire`, `announce` and `wait` give"
                            .to_owned(),
                        1 => "its tile is `.0`".to_owned(),
                        tiles => format!("its tiles are `.0` to `.{}`", tiles - 1),
                    },
                )
            }
        }
    }
}

fn instead_of_host(name: &str, item: HostItem, hides_word: bool) -> String {
    match (item, hides_word) {
        (HostItem::Kernel, _) => {
            "a kernel is launched, not called: share code in a `#[tma_device]` function".to_owned()
        }
        (_, true) => {
            format!("rename it, or move it out of the `#[tma_module]`: it hides `{name}` of the kernel language")
        }
        (HostItem::Function, false) => "write `#[tma_device]` on it, and kernels can call it".to_owned(),
        (_, false) => {
            "pass the value as an argument; kernels share constants, type aliases and `#[tma_device]` functions"
                .to_owned()
        }
    }
}

fn methods(of: &PartialType, suggestion: Option<&Suggestion>, known: &[Word]) -> Option<String> {
    if let Some(suggestion) = suggestion {
        return Some(suggestion.to_string());
    }
    if let PartialType::Known(Type::Remote(thing)) = of
        && **thing == Type::Barrier
    {
        return Some(format!(
            "a barrier is made and waited for by its own block; other blocks arrive at it: `{}`",
            known.join("`, `")
        ));
    }
    (!known.is_empty()).then(|| format!("its methods are {}", known.join(", ")))
}
