//! Values of the wrong type.

use super::{Numbers, Word};
use crate::diag::text::Text;
use crate::diag::{Code, Decision, PartialType};
use crate::ir::{Compound, Scalar, Type, WarpSide};

/// A value that does not have the expected type.
#[derive(Clone, Debug)]
pub enum Mismatch {
    /// A value of type `found` instead of `wanted`.
    Type { found: PartialType, wanted: PartialType, since: Option<Since> },
    /// A `&` instead of a `&mut`.
    Shared,
    /// A value instead of a reference.
    Value,
    /// A reference instead of a value.
    Reference,
    /// An assignment to a variable of several parts, which has this type.
    Holds { name: String, ty: PartialType },
    /// An assignment of a value of several parts to a variable with one.
    CannotHold { name: String, ty: PartialType },
    /// An assignment of a value that belongs to another pipeline.
    OtherPipeline { name: String },
    /// An assignment of rows that belong to another slice.
    OtherSlice { name: String },
    /// A pattern of a tuple for a value of another type.
    NoTuple { found: PartialType },
    /// A pattern of an array for a value of another type.
    NoArrayValue { found: PartialType },
    /// A flight that keeps a value of another pipeline.
    OtherFlight,
    /// An argument that is not a `Phase`.
    NoPhase { word: Word, found: PartialType },
    /// A phase that is not passed by `&mut`.
    PhaseByValue { word: Word },
    /// An accumulator stored to something other than a tile.
    StoredTo(PartialType),
    /// An accumulator stored to something other than rows of a slice.
    StoredToRows(PartialType),
    /// An operand in registers loaded from something other than a tile.
    NotLoaded(PartialType),
    /// An operand that is not in the registers of a warp.
    NotInRegisters { side: WarpSide, found: PartialType },
    /// Metadata of a sparse operand that is not an array of `u32`.
    NoMetadata(PartialType),
    /// An argument of `print_tile` that is not a tile.
    Printed(PartialType),
    /// Numbers that are not an array.
    NoArray { numbers: Numbers, found: PartialType },
    /// Offsets that are not `u16`.
    Offsets(PartialType),
    /// A copy of another block's tile.
    RemoteTile,
    /// A copy to another block whose destination is not another block's memory.
    NotRemote(PartialType),
    /// A value that blocks do not share.
    NotShared(PartialType),
    /// Not shared memory with contiguous elements of this type.
    NoSequence { found: PartialType, element: Scalar },
    /// An operand that tensor cores cannot multiply.
    NotAnOperand(PartialType),
    /// A value that is not a vector of such elements.
    NoVector { found: PartialType, element: Scalar },
}

/// The location that determined one of the two types.
#[derive(Clone, Debug)]
pub enum Since {
    Found(Decision),
    Wanted(Decision),
}

impl Mismatch {
    pub(super) fn text(&self) -> Text {
        let (message, help) = match self {
            Self::Type { found, wanted, since } => {
                let text = Text::new(
                    Code::TypeMismatch,
                    format!("mismatched types: expected {wanted}, found {found}"),
                );
                let text = text.help_if(widening(found, wanted));
                return match since {
                    Some(Since::Found(decision)) => text.note(format!("its type is {decision}")),
                    Some(Since::Wanted(decision)) => text.note(format!("the expected type is {decision}")),
                    None => text,
                };
            }
            Self::Shared => {
                return Text::new(Code::TypeMismatch, "mismatched types: expected a `&mut`, found a `&`");
            }
            Self::CannotHold { name, ty } => {
                return Text::new(Code::TypeMismatch, format!("cannot assign {ty} to `{name}`"));
            }
            Self::Value => {
                ("expected a reference to a variable, found a value".to_owned(), "write `&x`, or `&mut x`")
            }
            Self::Reference => (
                "expected a value, found a reference".to_owned(),
                "remove the `&`, or write `*x` if `x` is itself a reference",
            ),
            Self::Holds { name, ty } => (
                format!("cannot assign this value to `{name}`, which holds {ty}"),
                "modify it with its methods, or assign another value of its type",
            ),
            Self::OtherPipeline { name } => (
                format!("`{name}` belongs to a different pipeline than this value"),
                "use separate variables for the values of each pipeline",
            ),
            Self::OtherSlice { name } => (
                format!("`{name}` belongs to a different slice than this value"),
                "use a separate variable for each slice",
            ),
            Self::NoTuple { found } => (
                format!("mismatched types: the pattern is that of a tuple, and the value is {found}"),
                "bind the value to a single name",
            ),
            Self::NoArrayValue { found } => (
                format!("mismatched types: the pattern is that of an array, and the value is {found}"),
                "bind the value to a single name",
            ),
            Self::OtherFlight => (
                "the flight already keeps a value of another pipeline".to_owned(),
                "wait for it, and start another multiplication with `mma` of the accumulator",
            ),
            Self::NoPhase { word, found } => (
                format!("`{word}` takes a `Phase`, not {found}"),
                "pass `&mut phase`, declared as `let mut phase = Phase::new();`, or call `wait` with a \
                 parity",
            ),
            Self::PhaseByValue { word } => {
                (format!("`{word}` modifies the phase and takes it by `&mut`"), "write `&mut phase`")
            }
            Self::StoredTo(found) => (
                format!("expected a tile to store the accumulator to, found {found}"),
                if let PartialType::Known(Type::Compound(Compound::Operand(_))) = found {
                    "use a band of one panel, which is a tile: `tile.columns::<64>(j).band::<64>(i)`"
                } else {
                    "store to a `Tile` of the block's own shared memory, and copy from there"
                },
            ),
            Self::StoredToRows(found) => (
                format!("expected rows of a slice to store the accumulator to, found {found}"),
                "write `sum.store_to(slice.matrix(0, [rows, columns], stride), [row, column])`",
            ),
            Self::NotLoaded(found) => (
                format!("expected a tile to load the operand from, found {found}"),
                "pass a `Tile` in shared memory, or `tile.t()`",
            ),
            Self::NotInRegisters { side, found } => (
                format!(
                    "a warp multiplies operands in registers: expected a `{}`, found {found}",
                    side.name()
                ),
                match side {
                    WarpSide::Left => "load it from a tile: `WarpLeft::<f16, 16, 16>::load(tile, [row, k])`",
                    WarpSide::Right => {
                        "load it from a tile: `WarpRight::<f16, 16, 16>::load(tile, [column, k])`"
                    }
                },
            ),
            Self::NoMetadata(found) => (
                format!("metadata must be an array of `u32`, not {found}"),
                "write `tile.sparse([word])` or `fragment.sparse([word])`, with one `u32` for 64 rows and \
                 each one or two instructions",
            ),
            Self::Printed(found) => (
                format!("`print_tile` takes a tile, not {found}"),
                if let PartialType::Known(Type::Accumulator(_) | Type::Compound(Compound::Columns(_))) = found
                {
                    "store it to a tile, and print that"
                } else {
                    "pass a `Tile` of the block's own shared memory, or print single values with `printf!`"
                },
            ),
            Self::NoArray { numbers, found } => (
                format!("expected an array of {}s, found {found}", numbers.noun()),
                match numbers {
                    Numbers::Coordinates => "write `[row, column]`",
                    Numbers::TileCoordinates => "write `[row of tiles, column of tiles]`",
                    Numbers::Offsets => "write `[y, x]`",
                },
            ),
            Self::Offsets(found) => (format!("offsets must be `u16`, not {found}"), "cast them: `x as u16`"),
            Self::RemoteTile => (
                "a copy must use a tile of its own block, not a remote one".to_owned(),
                "use `load_multicast` to load a tile into other blocks; each block stores its own",
            ),
            Self::NotRemote(found) => (
                format!("expected the memory of another block, found {found}"),
                "write `remote(array, rank)`",
            ),
            Self::NotShared(found) => (
                format!("expected an object of the block's own shared memory, found {found}"),
                if let PartialType::Known(Type::Remote(_)) = found {
                    "pass the block's own tile, array or barrier to `remote`"
                } else {
                    "pass a tile, a shared array, a barrier, or `Stages` of these to `remote`"
                },
            ),
            Self::NoSequence { found, element } => return no_sequence(found, *element),
            Self::NotAnOperand(found) => (
                format!("tensor cores multiply tiles, not {found}"),
                "pass a `Tile` in shared memory, or a `Fragment` as the left operand",
            ),
            Self::NoVector { found, element } => (
                format!("a vector must be an array of `{element}`, not {found}"),
                "write `set_vec(i, [a, b])`, or `set(i, a)` for one element",
            ),
        };
        Text::new(Code::TypeMismatch, message).help(help)
    }
}

/// Suggests the cast to an integer type that has all values of another one.
fn widening(found: &PartialType, wanted: &PartialType) -> Option<String> {
    let scalar = |ty: &PartialType| if let PartialType::Known(ty) = ty { ty.as_scalar() } else { None };
    let (from, to) = (scalar(found)?, scalar(wanted)?);
    let (narrow, wide) = (from.integer_range()?, to.integer_range()?);
    let fits = wide.0 <= narrow.0 && narrow.1 <= wide.1;
    fits.then(|| format!("cast it: `x as {to}`"))
}

fn no_sequence(found: &PartialType, element: Scalar) -> Text {
    let is_swizzled = matches!(found, PartialType::Known(Type::Tile(tile)) if tile.element == element);
    let message = format!("a bulk copy needs contiguous `{element}` in shared memory, not {found}");
    Text::new(Code::TypeMismatch, message).help(match is_swizzled {
        true => "remove the swizzle, or copy with a tensor map: the elements of a swizzled tile are not \
                 contiguous"
            .to_owned(),
        false => format!("use a `SharedArray<{element}, N>` or a `Tile` of `{element}`"),
    })
}
