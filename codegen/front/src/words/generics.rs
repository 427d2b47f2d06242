//! The generic parameters of types and functions.

use std::ops::RangeInclusive;

use super::TypeWord;
use crate::ir::{ChoiceType, Compound, Team, Type, WarpSide};

/// A kind of generic parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generic {
    /// An arithmetic type.
    Number,
    /// An integer type of 32 or 64 bits.
    WordInteger,
    /// A 16-bit float type.
    Half,
    /// A scalar type whose size is asked.
    Sized,
    /// The type of a shared object.
    Shared,
    /// The type of a shared object that holds nothing but data.
    SharedData,
    /// The range of a `for`.
    Range,
    /// The element type of an accumulator.
    AccumulatorElement,
    /// An element type that tensor cores multiply.
    OperandElement,
    /// The element type of a warp's accumulator.
    WarpAccumulatorElement,
    /// An element type that a warp multiplies.
    WarpOperandElement,
    /// M: the rows of a matrix in registers.
    MatrixRows,
    /// K: the dimension of an operand in registers that is summed over.
    K,
    /// The lifetime of a borrow. May be omitted.
    Lifetime,
    /// The value that is kept until a multiplication is complete.
    KeptValue,
    /// The type of an operand in shared memory.
    Operand,
    /// The number of registers per thread.
    Registers,
    /// The number of bulk groups that may be pending.
    Groups,
    /// The number of elements of a vector.
    Lanes,
    /// A dimension of a tensor.
    Dimension,
    /// The element type of a tile, an array or a slice.
    Element,
    /// The shape of a tile.
    Shape,
    /// The swizzle of a tile. May be omitted.
    Swizzle,
    /// A constant extent or count.
    Count,
    /// A `bool`, which defaults to true in a type.
    Flag,
    /// A tuple of tiles.
    Tiles,
    /// A tile.
    Tile,
    /// The number of dimensions of a tensor that is copied by columns of pixels.
    Rank,
    /// Memory that each rank of a team has.
    PeerMemory,
}

impl Generic {
    /// Returns the placeholder for it in messages.
    pub(super) fn letter(self) -> &'static str {
        match self {
            Self::Number
            | Self::Half
            | Self::WordInteger
            | Self::Element
            | Self::Sized
            | Self::AccumulatorElement
            | Self::WarpAccumulatorElement => "T",
            Self::OperandElement | Self::WarpOperandElement => "E",
            Self::MatrixRows => "M",
            Self::K => "K",
            Self::Lifetime => "'_",
            Self::KeptValue => "Keep",
            Self::Shared | Self::SharedData | Self::Operand | Self::PeerMemory => "X",
            Self::Range => "R",
            Self::Groups | Self::Lanes | Self::Count | Self::Rank | Self::Registers => "N",
            Self::Dimension => "D",
            Self::Flag => "B",
            Self::Shape => "S",
            Self::Swizzle => "W",
            Self::Tiles => "(A, B)",
            Self::Tile => "Tile<..>",
        }
    }

    /// Returns a note on it for messages, as the end of a sentence.
    pub(super) fn note(self) -> &'static str {
        match self {
            Self::Groups => ": at most `N` groups may be pending, and 0 waits for all",
            Self::Lanes => ", of `N` elements",
            Self::Flag => ", if `B`",
            Self::Dimension => ", for dimension `D`",
            Self::Registers => ": registers per thread, a multiple of 8 from 24 to 256",
            Self::Number
            | Self::Half
            | Self::WordInteger
            | Self::Sized
            | Self::Shared
            | Self::SharedData
            | Self::Range
            | Self::AccumulatorElement
            | Self::WarpAccumulatorElement
            | Self::OperandElement
            | Self::WarpOperandElement
            | Self::MatrixRows
            | Self::K
            | Self::Lifetime
            | Self::KeptValue
            | Self::Operand
            | Self::Element
            | Self::Shape
            | Self::Swizzle
            | Self::Count
            | Self::Tiles
            | Self::Tile
            | Self::Rank
            | Self::PeerMemory => "",
        }
    }

    /// Whether it may be omitted from a type, which then has a default.
    pub fn has_default(self) -> bool {
        matches!(self, Self::Swizzle | Self::Flag)
    }

    /// Whether it must be written in a call, since it cannot be inferred.
    pub(super) fn is_written(self) -> bool {
        matches!(
            self,
            Self::Groups
                | Self::Lanes
                | Self::Dimension
                | Self::Registers
                | Self::Count
                | Self::Sized
                | Self::Flag
                | Self::OperandElement
        )
    }
}

impl TypeWord {
    /// Whether it is the shape of a tile.
    pub(crate) fn is_shape(self) -> bool {
        matches!(self, Self::Shape1 | Self::Shape2 | Self::Shape3 | Self::Shape4 | Self::Shape5)
    }

    /// Whether it is a part of a tile's type, and not the type of a value.
    pub(crate) fn is_part(self) -> bool {
        self.is_shape() || matches!(self, Self::TileSwizzle(_))
    }

    /// Whether it takes this number of generic arguments.
    pub(crate) fn takes(self, found: usize) -> bool {
        self.wanted().contains(&found)
    }

    /// Whether it has a lifetime.
    pub(crate) fn has_lifetime(self) -> bool {
        self.generics().contains(&Generic::Lifetime)
    }

    /// Returns the range of the number of generic arguments.
    pub(crate) fn wanted(self) -> RangeInclusive<usize> {
        self.least()..=self.most()
    }

    /// The number without optional arguments.
    fn least(self) -> usize {
        let is_left_out = |generic: &&Generic| generic.has_default() || matches!(generic, Generic::Lifetime);
        self.generics().iter().filter(|generic| !is_left_out(generic)).count()
    }

    /// The number of all arguments but lifetimes.
    fn most(self) -> usize {
        self.generics().iter().filter(|generic| !matches!(generic, Generic::Lifetime)).count()
    }

    /// Returns how it is written with its generic arguments.
    pub(crate) fn usage(self) -> String {
        let written = self.generics().iter().filter(|generic| !generic.has_default());
        let generics: Vec<_> = match self.is_shape() {
            true => written.zip(["A", "B", "C", "D", "E"]).map(|(_, extent)| extent).collect(),
            false => written.map(|generic| generic.letter()).collect(),
        };
        match generics[..] {
            [] => self.name().to_owned(),
            _ => format!("{}<{}>", self.name(), generics.join(", ")),
        }
    }

    /// Returns the name of a type, or `None` for a type that is not written as a name.
    pub(crate) fn of(ty: &Type) -> Option<Self> {
        Some(match ty {
            Type::Scalar(scalar) => Self::Scalar(*scalar),
            Type::Dim3 => Self::Dim3,
            Type::CachePolicy => Self::CachePolicy,
            Type::Accumulator(of) => match of.team {
                Team::Warpgroup => Self::Accumulator,
                Team::Warp => Self::WarpAccumulator,
            },
            Type::Rows(of) => match of.team {
                Team::Warpgroup => Self::Rows,
                Team::Warp => Self::WarpRows,
            },
            Type::Fragment(_) => Self::Fragment,
            Type::WarpFragment(of) => match of.side {
                WarpSide::Left => Self::WarpLeft,
                WarpSide::Right => Self::WarpRight,
            },
            Type::Tile(_) => Self::Tile,
            Type::Barrier => Self::Barrier,
            Type::Token => Self::Token,
            Type::SharedArray(..) => Self::SharedArray,
            Type::Stages(..) => Self::Stages,
            Type::Remote(_) => Self::Remote,
            Type::Choice(of) => match of {
                ChoiceType::ClusterAxis => Self::ClusterAxis,
                ChoiceType::Order => Self::Order,
                ChoiceType::Scope => Self::Scope,
            },
            Type::TensorMap(_) => Self::TensorMap,
            Type::Im2colMap(..) => Self::Im2colMap,
            Type::Maps(_) => Self::Maps,
            Type::SharedMap(_) => Self::SharedMap,
            Type::Global(_) => Self::Global,
            Type::Peers(_) => Self::Peers,
            Type::Peer(_) => Self::Peer,
            Type::Compound(compound) => match compound {
                // A type of the standard library.
                Compound::Option(_) => return None,
                Compound::Phase => Self::Phase,
                Compound::Pipeline(_) => Self::Pipeline,
                Compound::Producer(_) => Self::Producer,
                Compound::Consumer(_) => Self::Consumer,
                Compound::EmptySlot(_) => Self::EmptySlot,
                Compound::LoadingSlot(_) => Self::LoadingSlot,
                Compound::FullSlot(_) => Self::FullSlot,
                Compound::Operand(operand) if operand.negated => Self::Negated,
                Compound::Operand(operand) if operand.sparse => Self::Sparse,
                Compound::Operand(operand) if operand.transposed => Self::Transposed,
                Compound::Operand(_) => Self::Tile,
                Compound::SparseFragment(_) => Self::Sparse,
                Compound::Columns(_) => Self::Columns,
                Compound::Matrix(_) => Self::GlobalMatrix,
                Compound::Flight(..) => Self::Flight,
                Compound::Struct(_) | Compound::Tuple(_) | Compound::Array(..) => return None,
            },
            Type::Unit | Type::Never | Type::Array(..) | Type::Infer(_) | Type::Error => return None,
        })
    }
}
