//! Numbers of arguments and of generic arguments.

use std::ops::RangeInclusive;

use super::Word;
use crate::diag::Code;
use crate::diag::text::Text;
use crate::diag::wording::{arguments, counted, given};

/// A mistake in the number of arguments, or in the arguments themselves.
#[derive(Clone, Debug)]
pub enum Argument {
    /// The wrong number of arguments to a word of the language. `usage` shows a correct call, and
    /// `note` completes that sentence.
    Count { word: Word, wanted: usize, found: usize, usage: String, note: &'static str },
    /// The wrong number of arguments to a device function.
    Device { function: String, wanted: usize, found: usize },
    /// The wrong number of generic arguments of a device function.
    DeviceGenerics { function: String, wanted: usize, found: usize },
    /// A generic of a device function that neither the call nor its arguments determine.
    UnknownGeneric { function: String, generic: String },
    /// The wrong number of generic arguments of a type.
    TypeGenerics { word: Word, wanted: RangeInclusive<usize>, found: usize, usage: String },
    /// The wrong number of coordinates or offsets for the dimensions.
    Dimensions { numbers: Numbers, wanted: usize, found: usize },
    /// A wait without the number of groups that may be pending.
    NoGroups { word: Word },
    /// `setmaxnreg_inc` without a number of registers.
    NoRegisters { word: Word },
    /// `columns` or `band` without a number.
    NoCount { word: Word, of: Counted },
    /// `pack` without an element type.
    NoPackedElement,
    /// `t_if` without a constant condition.
    NoCondition,
    /// A word about one dimension, without the dimension.
    NoDimension { word: Word },
    /// `get_vec` without a number of elements. A vector has at most `most`.
    NoLanes { word: Word, most: u32 },
}

/// The meaning of an array of numbers.
#[derive(Clone, Copy, Debug)]
pub enum Numbers {
    Coordinates,
    TileCoordinates,
    Offsets,
}

/// The meaning of a number between angle brackets.
#[derive(Clone, Copy, Debug)]
pub enum Counted {
    Columns,
    /// Columns of a tile.
    TileColumns,
    Rows,
}

impl Argument {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Count { word, wanted, found, usage, note } => {
                let message = format!("`{word}` takes {}, but {}", arguments(*wanted), given(*found));
                Text::new(Code::ArgumentCount, message).help(format!("write `{usage}`{note}"))
            }
            Self::Device { function, wanted, found } => {
                let message = format!("`{function}` takes {}, but {}", arguments(*wanted), given(*found));
                Text::new(Code::ArgumentCount, message)
            }
            Self::DeviceGenerics { function, wanted, found } => {
                let wanted = counted(*wanted, "generic argument");
                let message = format!("`{function}` takes {wanted}, but {}", given(*found));
                Text::new(Code::ArgumentCount, message)
                    .help("specify all, with `_` for those that the arguments determine, or none")
            }
            Self::UnknownGeneric { function, generic } => {
                Text::new(Code::CannotInfer, format!("cannot infer `{generic}` of `{function}`"))
                    .help(format!("specify it: `{function}::<..>(..)`"))
            }
            Self::TypeGenerics { word, wanted, found, usage } => {
                let (least, most) = (wanted.start(), wanted.end());
                let noun = "generic argument";
                let wanted = match least == most {
                    true => counted(*most, noun),
                    false => format!("{least} or {most} {noun}s"),
                };
                Text::new(Code::ArgumentCount, format!("`{word}` takes {wanted}, but {}", given(*found)))
                    .help(format!("write `{usage}`"))
            }
            Self::Dimensions { numbers, wanted, found } => {
                let message = format!("expected {}, found {found}", counted(*wanted, numbers.noun()));
                Text::new(Code::CoordinateCount, message).help(match numbers {
                    Numbers::Coordinates | Numbers::TileCoordinates => {
                        "pass one for each dimension, outermost first"
                    }
                    Numbers::Offsets => {
                        "pass one for each dimension of pixels; images and channels have none"
                    }
                })
            }
            Self::NoGroups { word } => {
                let message = format!("`{word}` needs the number of groups that may stay pending");
                Text::new(Code::ArgumentCount, message)
                    .help(format!("write `{word}::<0>()` to wait for all groups"))
            }
            Self::NoRegisters { word } => {
                let message = format!("`{word}` needs the number of registers per thread");
                Text::new(Code::ArgumentCount, message).help(format!("write `{word}::<40>()`"))
            }
            Self::NoCount { word, of } => {
                let (noun, help) = match of {
                    Counted::Columns => ("columns", "write `sum.columns::<64>(j)` for the j-th 64 columns"),
                    Counted::TileColumns => {
                        ("columns", "write `tile.columns::<64>(j)` for the j-th 64 columns")
                    }
                    Counted::Rows => ("rows", "write `tile.band::<64>(i)` for the i-th 64 rows"),
                };
                Text::new(Code::ArgumentCount, format!("`{word}` needs the number of {noun}")).help(help)
            }
            Self::NoPackedElement => {
                Text::new(Code::ArgumentCount, "`pack` needs the element type of the operand")
                    .help("write `sum.pack::<bf16>()`")
            }
            Self::NoCondition => {
                Text::new(Code::ArgumentCount, "`t_if` needs a constant that states whether to transpose")
                    .help("write `tile.t_if::<B>()`, with a constant `B: bool`")
            }
            Self::NoDimension { word } => {
                Text::new(Code::ArgumentCount, format!("`{word}` needs a dimension"))
                    .help(format!("write `{word}::<0>(..)` for the outermost dimension"))
            }
            Self::NoLanes { word, most } => {
                Text::new(Code::ArgumentCount, format!("`{word}` needs the number of elements to read"))
                    .help(format!("write `{word}::<{most}>(..)`"))
            }
        }
    }
}

impl Numbers {
    /// Returns the noun for one of the numbers.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Coordinates => "coordinate",
            Self::TileCoordinates => "tile coordinate",
            Self::Offsets => "offset",
        }
    }
}
