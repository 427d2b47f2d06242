//! Types of values, handles and parameters.

use std::fmt;

use super::{
    AccumulatorType, ChoiceType, Compound, FragmentType, RowsType, Scalar, TileSwizzle, TileType,
    WarpFragmentType,
};

/// An inference variable. None is left once `parse` has finished a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InferId(pub u32);

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `()`.
    Unit,
    /// `!`: control never returns from the expression.
    Never,
    /// A number or a `bool`.
    Scalar(Scalar),
    /// Three `u32`: the result of `thread_idx()` and the other index queries. Never stored in a
    /// local.
    Dim3,
    /// An L2 cache policy (64 bits).
    CachePolicy,
    /// A fixed-length array in registers.
    Array(Box<Type>, u32),
    /// A matrix in registers, to which the tensor cores add.
    Accumulator(AccumulatorType),
    /// One value for each accumulator row of which a thread holds elements.
    Rows(RowsType),
    /// The left operand of a `wgmma`, in registers of a warpgroup.
    Fragment(FragmentType),
    /// An operand of an `mma.sync`, in registers of a warp.
    WarpFragment(WarpFragmentType),
    /// A tile in shared memory.
    Tile(TileType),
    /// An mbarrier in shared memory.
    Barrier,
    /// The state of an mbarrier's phase, as returned by an arrival (64 bits).
    Token,
    /// An array of scalars in shared memory.
    SharedArray(Scalar, u32),
    /// A fixed-length array of shared objects of one type, selected by index.
    Stages(Box<Type>, u32),
    /// A shared object of another block of the cluster: a tile, barrier, array, or stages of these.
    Remote(Box<Type>),
    /// An enum of the language whose variants are written as arguments. Never stored in a local.
    Choice(ChoiceType),
    /// A parameter: the descriptor of a tensor in global memory that is copied tile by tile.
    TensorMap(TileType),
    /// A parameter: the descriptor of a tensor with this many dimensions, of which one copy moves a
    /// column of pixels (im2col mode). The tile has pixels by channels.
    Im2colMap(TileType, u32),
    /// A parameter: tensor maps in global memory that kernels create.
    Maps(TileType),
    /// A tensor map in shared memory, for modification.
    SharedMap(TileType),
    /// A parameter: a slice of global memory.
    Global(Scalar),
    /// A parameter: the memory of every rank of a team.
    Peers(PeerMemory),
    /// A slice of global memory of a rank that need not be this one.
    Peer(Scalar),
    /// A value of several parts. None is left once `parse` has finished a kernel.
    Compound(Compound),
    /// Not yet inferred.
    Infer(InferId),
    /// The type of an expression whose error was already reported. Agrees with every type.
    Error,
}

/// The memory that each rank of a team has, as a kernel's parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PeerMemory {
    /// A slice of global memory.
    Global(Scalar),
    /// A tensor that is copied tile by tile.
    TensorMap(TileType),
}

impl Type {
    /// Returns the scalar type, if it is one.
    pub fn as_scalar(&self) -> Option<Scalar> {
        if let Self::Scalar(scalar) = self { Some(*scalar) } else { None }
    }

    /// Returns the number of scalars that a value holds in registers: of an aggregate the sum over
    /// its elements, of any other type 1.
    pub fn scalars(&self) -> u64 {
        match self.elements() {
            Some((element, len)) => element.scalars().saturating_mul(u64::from(len)),
            None => 1,
        }
    }

    /// Returns the element type and the number of elements per thread, if the elements are in
    /// registers and accessed by index.
    pub fn elements(&self) -> Option<(Type, u32)> {
        if let Self::Array(element, len) = self {
            Some(((**element).clone(), *len))
        } else if let Self::Accumulator(accumulator) = self {
            Some((accumulator.element.into(), accumulator.elements()))
        } else if let Self::Rows(rows) = self {
            Some((rows.element.into(), rows.elements()))
        } else {
            None
        }
    }

    /// Whether a local can hold a value of this type, as far as the type is known.
    pub fn is_storable(&self) -> bool {
        match self {
            Self::Scalar(_) | Self::Array(..) | Self::Token | Self::CachePolicy | Self::Infer(_) => true,
            Self::Accumulator(_) | Self::Rows(_) | Self::Fragment(_) | Self::WarpFragment(_) => true,
            Self::Tile(_) | Self::Barrier | Self::SharedArray(..) | Self::Stages(..) | Self::Remote(_) => {
                true
            }
            Self::Unit | Self::Never | Self::Dim3 | Self::Choice(_) => false,
            Self::SharedMap(_) => true,
            Self::TensorMap(_)
            | Self::Im2colMap(..)
            | Self::Maps(_)
            | Self::Global(_)
            | Self::Peers(_)
            | Self::Peer(_)
            | Self::Compound(_)
            | Self::Error => false,
        }
    }

    /// Returns the tile that a tensor map copies.
    pub fn moved(&self) -> Option<&TileType> {
        if let Self::TensorMap(tile)
        | Self::Im2colMap(tile, _)
        | Self::Maps(tile)
        | Self::Peers(PeerMemory::TensorMap(tile)) = self
        {
            Some(tile)
        } else {
            None
        }
    }

    /// Returns the element type and the number of elements, if the elements are contiguous in
    /// shared memory.
    pub fn sequence(&self) -> Option<(Scalar, u64)> {
        if let Self::SharedArray(element, len) = self {
            Some((*element, u64::from(*len)))
        } else if let Self::Tile(tile) = self
            && tile.swizzle == TileSwizzle::None
        {
            Some((tile.element, tile.bytes() / u64::from(tile.element.bytes())))
        } else {
            None
        }
    }

    /// Whether a value of this type is an address in the block's own shared memory.
    pub fn is_shared_handle(&self) -> bool {
        match self {
            Self::Tile(_) | Self::Barrier | Self::SharedArray(..) | Self::SharedMap(_) | Self::Stages(..) => {
                true
            }
            Self::Unit
            | Self::Never
            | Self::Scalar(_)
            | Self::Dim3
            | Self::CachePolicy
            | Self::Array(..)
            | Self::Accumulator(_)
            | Self::Rows(_)
            | Self::Fragment(_)
            | Self::WarpFragment(_)
            | Self::Token
            | Self::Remote(_)
            | Self::Choice(_)
            | Self::TensorMap(_)
            | Self::Im2colMap(..)
            | Self::Maps(_)
            | Self::Global(_)
            | Self::Peers(_)
            | Self::Peer(_)
            | Self::Compound(_)
            | Self::Infer(_)
            | Self::Error => false,
        }
    }

    /// Returns the type of the object itself, whether or not it belongs to another block.
    pub fn local(&self) -> &Type {
        if let Self::Remote(thing) = self { thing } else { self }
    }
}

impl From<Scalar> for Type {
    fn from(scalar: Scalar) -> Self {
        Self::Scalar(scalar)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit => f.write_str("()"),
            Self::Never => f.write_str("!"),
            Self::Scalar(scalar) => scalar.fmt(f),
            Self::Dim3 => f.write_str("Dim3"),
            Self::CachePolicy => f.write_str("CachePolicy"),
            Self::Array(element, len) => write!(f, "[{element}; {len}]"),
            Self::Accumulator(accumulator) => accumulator.fmt(f),
            Self::Rows(rows) => rows.fmt(f),
            Self::Fragment(fragment) => fragment.fmt(f),
            Self::WarpFragment(fragment) => fragment.fmt(f),
            Self::Tile(tile) => tile.fmt(f),
            Self::Barrier => f.write_str("Barrier"),
            Self::Token => f.write_str("Token"),
            Self::SharedArray(scalar, len) => write!(f, "SharedArray<{scalar}, {len}>"),
            Self::Stages(thing, len) => write!(f, "Stages<{thing}, {len}>"),
            Self::Remote(thing) => write!(f, "Remote<{thing}>"),
            Self::Choice(of) => f.write_str(of.name()),
            Self::TensorMap(tile) => write!(f, "TensorMap<{tile}>"),
            Self::Im2colMap(tile, rank) => write!(f, "Im2colMap<{tile}, {rank}>"),
            Self::Maps(tile) => write!(f, "Maps<{tile}>"),
            Self::SharedMap(tile) => write!(f, "SharedMap<{tile}>"),
            Self::Global(scalar) => write!(f, "Global<{scalar}>"),
            Self::Peers(PeerMemory::Global(scalar)) => write!(f, "Peers<Global<{scalar}>>"),
            Self::Peers(PeerMemory::TensorMap(tile)) => write!(f, "Peers<TensorMap<{tile}>>"),
            Self::Peer(scalar) => write!(f, "Peer<Global<{scalar}>>"),
            Self::Compound(compound) => compound.fmt(f),
            Self::Infer(_) | Self::Error => f.write_str("_"),
        }
    }
}
