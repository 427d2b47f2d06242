//! Values of the wrong type.

use super::{Numbers, Word};
use crate::diag::text::Text;
use crate::diag::{Code, Decision, PartialType};
use crate::ir::{Compound, Scalar, Type, WarpSide};

/// A value that does not have the expected type.
#[derive(Clone, Debug)]
pub(crate) enum Mismatch {
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
    NoFactor(PartialType),
    /// A value that is not a vector of such elements.
    NoVector { found: PartialType, element: Scalar },
}

/// The location that determined one of the two types.
#[derive(Clone, Debug)]
pub(crate) enum Since {
    Found(Decision),
    Wanted(Decision),
}

impl Mismatch {
    pub(super) fn text(&self) -> Text {
        let (message, help) = match self {
            Self::Type { found, wanted, since } => {
                let since = since.as_ref().map(|since| match since {
                    Since::Found(decision) => decision.to_string(),
                    Since::Wanted(decision) => format!("what is wanted here was left open: {decision}"),
                });
                let message = format!("this is {found}, but {wanted} is wanted");
                return Text::new(Code::TypeMismatch, message).help_if(since);
            }
            Self::Shared => return Text::new(Code::TypeMismatch, "this is a `&`, but a `&mut` is wanted"),
            Self::CannotHold { name, ty } => {
                return Text::new(Code::TypeMismatch, format!("`{name}` cannot hold {ty}"));
            }
            Self::Value => ("a reference to a variable is wanted here".to_owned(), "write `&x`, or `&mut x`"),
            Self::Reference => (
                "a value is wanted here, not a reference".to_owned(),
                "remove the `&`, or write `*x` where `x` is a reference itself",
            ),
            Self::Holds { name, ty } => (
                format!("`{name}` holds {ty}"),
                "its methods change it; another of its kind may be assigned to it",
            ),
            Self::OtherPipeline { name } => (
                format!("`{name}` belongs to another pipeline than this"),
                "keep what comes from each pipeline in variables of its own",
            ),
            Self::OtherSlice { name } => (
                format!("`{name}` belongs to another slice than this"),
                "keep the rows of each slice in variables of their own",
            ),
            Self::OtherFlight => (
                "the flight keeps what belongs to another pipeline".to_owned(),
                "wait for it, and start another with `mma` of the accumulator",
            ),
            Self::NoPhase { word, found } => (
                format!("`{word}` takes a `Phase`, not {found}"),
                "pass `&mut phase`, of `let mut phase = Phase::new();`; a parity is for `wait`",
            ),
            Self::PhaseByValue { word } => {
                (format!("`{word}` changes the phase, so it takes a `&mut`"), "write `&mut phase`")
            }
            Self::StoredTo(found) => (
                format!("an accumulator is stored to a tile, not to {found}"),
                if let PartialType::Known(Type::Compound(Compound::Operand(_))) = found {
                    "this is an operand only; a band of one panel is a tile: `tile.columns::<64>(j).band::<64>(i)`"
                } else {
                    "store to a `Tile` of the block's own shared memory, and from there by a copy"
                },
            ),
            Self::StoredToRows(found) => (
                format!("an accumulator is stored to rows of a slice here, not to {found}"),
                "write `sum.store_to(slice.matrix(0, [rows, columns], stride), [row, column])`",
            ),
            Self::NotLoaded(found) => (
                format!("an operand in registers is loaded from a tile, not from {found}"),
                "pass a `Tile` in shared memory, or `tile.t()`",
            ),
            Self::NotInRegisters { side, found } => (
                format!(
                    "a warp multiplies operands in registers: a `{}` is wanted, not {found}",
                    side.name()
                ),
                "load it from a tile: `WarpLeft::<f16, 16, 16>::load(tile, [row, k])`, and `WarpRight` alike",
            ),
            Self::NoMetadata(found) => (
                format!("metadata is an array of `u32`, not {found}"),
                "write `tile.sparse([word])`, or that of a fragment, with a `u32` for 64 rows and each one or two instructions",
            ),
            Self::Printed(found) => (
                format!("`print_tile` prints a tile, not {found}"),
                if let PartialType::Known(Type::Accumulator(_) | Type::Compound(Compound::Columns(_))) = found
                {
                    "store it to a tile, and that to a tensor, for another kernel to load and print"
                } else {
                    "print a `Tile` of the block's own shared memory; `printf!` prints single values"
                },
            ),
            Self::NoArray { numbers, found } => (
                format!("{}s are an array, not {found}", numbers.noun()),
                match numbers {
                    Numbers::Coordinates => "write `[row, column]`",
                    Numbers::TileCoordinates => "write `[row of tiles, column of tiles]`",
                    Numbers::Offsets => "write `[y, x]`",
                },
            ),
            Self::Offsets(found) => (format!("offsets are `u16`, not {found}"), "cast them: `x as u16`"),
            Self::RemoteTile => (
                "a copy moves the block's own tile, not a remote one".to_owned(),
                "`load_multicast` brings a tile to other blocks; each block stores its own",
            ),
            Self::NotRemote(found) => (
                format!("this is {found}, but another block's memory is wanted"),
                "write `remote(array, rank)`",
            ),
            Self::NotShared(found) => (
                format!("{found} is nothing that another block shares"),
                if let PartialType::Known(Type::Remote(_)) = found {
                    "give `remote` the block's own tile, array or barrier"
                } else {
                    "`remote` takes a tile, a shared array, a barrier, or `Stages` of these"
                },
            ),
            Self::NoSequence { found, element } => return no_sequence(found, *element),
            Self::NoFactor(found) => (
                format!("tensor cores multiply tiles, not {found}"),
                "pass a `Tile` in shared memory, or as the left operand a `Fragment`",
            ),
            Self::NoVector { found, element } => (
                format!("a vector is an array of `{element}`, not {found}"),
                "write `set_vec(i, [a, b])`, or `set(i, a)` for one element",
            ),
        };
        Text::new(Code::TypeMismatch, message).help(help)
    }
}

fn no_sequence(found: &PartialType, element: Scalar) -> Text {
    let is_swizzled = matches!(found, PartialType::Known(Type::Tile(tile)) if tile.element == element);
    let message = format!("a bulk copy does not go from or to {found} here");
    Text::new(Code::TypeMismatch, message).help(match is_swizzled {
        true => "a swizzled tile does not have its elements one after the other: leave the swizzle out, or copy by a \
                 tensor map"
            .to_owned(),
        false => format!("the shared memory is a `SharedArray<{element}, N>`, or a `Tile` of `{element}`"),
    })
}
