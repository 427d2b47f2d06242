//! Types of values, handles and parameters.

use std::fmt;

use super::Compound;

/// A value that fits a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is named as in Rust
pub enum Scalar {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    /// 64 bits, as on the host; a type of its own so that indices check as rustc checks them.
    Usize,
    F16,
    Bf16,
    F32,
    F64,
    /// f32 with 10 bits of mantissa, in 32 bits. Stored and converted, never computed with.
    Tf32,
    /// 8-bit float: 4 exponent and 3 mantissa bits. Stored and converted, never computed with.
    E4m3,
    /// 8-bit float: 5 exponent and 2 mantissa bits. Stored and converted, never computed with.
    E5m2,
}

impl Scalar {
    /// Every scalar, in the order of declaration.
    pub const ALL: [Scalar; 17] = [
        Self::Bool,
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::Usize,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
        Self::Tf32,
        Self::E4m3,
        Self::E5m2,
    ];

    /// Its name in Rust.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::Usize => "usize",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Tf32 => "tf32",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
        }
    }

    /// Whether it is a type of a library, not of Rust itself: its name must be imported.
    pub const fn is_of_library(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::Tf32 | Self::E4m3 | Self::E5m2)
    }

    /// Its size in memory, in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Bool | Self::I8 | Self::U8 | Self::E4m3 | Self::E5m2 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 | Self::Tf32 => 4,
            Self::I64 | Self::U64 | Self::Usize | Self::F64 => 8,
        }
    }

    /// Whether it is an integer (not `bool`).
    pub const fn is_integer(self) -> bool {
        self.integer_range().is_some()
    }

    /// Whether it is an integer with a sign.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Whether it is a floating-point number of any width.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64 | Self::Tf32 | Self::E4m3 | Self::E5m2)
    }

    /// Whether arithmetic is defined on it: all numbers but `tf32` and the 8-bit floats.
    pub const fn is_arithmetic(self) -> bool {
        !matches!(self, Self::Bool | Self::Tf32 | Self::E4m3 | Self::E5m2)
    }

    /// The least and greatest value of an integer.
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        match self {
            Self::I8 => Some((i8::MIN as i128, i8::MAX as i128)),
            Self::U8 => Some((0, u8::MAX as i128)),
            Self::I16 => Some((i16::MIN as i128, i16::MAX as i128)),
            Self::U16 => Some((0, u16::MAX as i128)),
            Self::I32 => Some((i32::MIN as i128, i32::MAX as i128)),
            Self::U32 => Some((0, u32::MAX as i128)),
            Self::I64 => Some((i64::MIN as i128, i64::MAX as i128)),
            Self::U64 | Self::Usize => Some((0, u64::MAX as i128)),
            Self::Bool
            | Self::F16
            | Self::Bf16
            | Self::F32
            | Self::F64
            | Self::Tf32
            | Self::E4m3
            | Self::E5m2 => None,
        }
    }
}

/// How the 16-byte chunks of a tile's rows are permuted in shared memory, and whether its rows are of pixels.
///
/// Source: CUDA driver API, `CUtensorMapSwizzle` and `CUtensorMapInterleave`; PTX ISA, "Swizzling Modes" and
/// "Interleave layout".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the width of the permuted span, or of a pixel, in bytes
pub enum Swizzle {
    None,
    B32,
    B64,
    B128,
    Interleave16,
    /// Goes with the pattern of [`Swizzle::B32`].
    Interleave32,
}

impl Swizzle {
    /// Every one of them.
    pub const ALL: [Self; 6] =
        [Self::None, Self::B32, Self::B64, Self::B128, Self::Interleave16, Self::Interleave32];

    /// The bytes that a row may not exceed, and that a shorter one is padded to; `None` where any row will do.
    pub const fn span(self) -> Option<u32> {
        match self {
            Self::None | Self::Interleave16 | Self::Interleave32 => None,
            Self::B32 => Some(32),
            Self::B64 => Some(64),
            Self::B128 => Some(128),
        }
    }

    /// The bits of an offset that the pattern changes: those of a chunk's place within the permuted bytes.
    pub const fn chunk_bits(self) -> u32 {
        match self {
            Self::None | Self::Interleave16 => 0,
            Self::B32 | Self::Interleave32 => 0x10,
            Self::B64 => 0x30,
            Self::B128 => 0x70,
        }
    }

    /// Bytes of a pixel's slice of channels, in which an interleaved layout counts along the innermost dimension.
    pub const fn pixel_bytes(self) -> Option<u32> {
        match self {
            Self::None | Self::B32 | Self::B64 | Self::B128 => None,
            Self::Interleave16 => Some(16),
            Self::Interleave32 => Some(32),
        }
    }

    /// Its name as a type parameter of `Tile`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "NoSwizzle",
            Self::B32 => "Swizzle32",
            Self::B64 => "Swizzle64",
            Self::B128 => "Swizzle128",
            Self::Interleave16 => "Interleave16",
            Self::Interleave32 => "Interleave32",
        }
    }
}

/// The shape, element and layout of a tile; also what types a tensor map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TileType {
    /// What the tile holds.
    pub element: Scalar,
    /// Extents in elements, row-major, outermost first; 1 to 5 of them.
    pub extents: Vec<u32>,
    /// The permutation of chunks within rows.
    pub swizzle: Swizzle,
}

impl TileType {
    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// The extent of the contiguous dimension, in elements.
    pub fn inner_extent(&self) -> u32 {
        self.extents.last().copied().unwrap_or(1)
    }

    /// The dimension along which a sliced load divides this tile: the outermost of more than one
    /// element, so that slices lie one after the other in shared memory.
    pub fn sliced_dimension(&self) -> usize {
        self.extents.iter().position(|&extent| extent > 1).unwrap_or(0)
    }

    /// Elements of a pixel's slice of channels; `None` where the layout is not interleaved.
    pub fn pixel_elements(&self) -> Option<u32> {
        self.swizzle.pixel_bytes().map(|bytes| bytes / self.element.bytes())
    }

    /// Bytes of one row: the innermost extent × the element's size.
    pub fn row_bytes(&self) -> u64 {
        u64::from(self.inner_extent()) * u64::from(self.element.bytes())
    }

    /// Bytes from one row to the next in shared memory: with a swizzle, its whole span, of which a shorter row
    /// leaves the rest unused. No document says so; it is what an H200 does.
    pub fn row_pitch(&self) -> u64 {
        self.swizzle.span().map_or(0, u64::from).max(self.row_bytes())
    }

    /// Bytes that the tile takes in shared memory.
    pub fn shared_bytes(&self) -> u64 {
        let outer = self.extents.split_last().map_or(&[][..], |(_, outer)| outer);
        outer.iter().fold(self.row_pitch(), |bytes, &extent| bytes.saturating_mul(u64::from(extent)))
    }

    /// Bytes of the tile's elements, which is what one copy of it adds to a barrier's transaction count.
    pub fn bytes(&self) -> u64 {
        self.extents
            .iter()
            .fold(u64::from(self.element.bytes()), |bytes, &extent| bytes.saturating_mul(u64::from(extent)))
    }
}

/// An unknown of type inference; gone once `parse` has finished a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InferId(pub u32);

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `()`.
    Unit,
    /// `!`: control does not come back from here.
    Never,
    /// A number or a truth value.
    Scalar(Scalar),
    /// Three `u32`: the answer of the place queries. Never stored in a local.
    Dim3,
    /// 64 bits that tell the L2 cache what to keep.
    CachePolicy,
    /// A fixed array in registers.
    Array(Box<Type>, u32),
    /// A tile in shared memory.
    Tile(TileType),
    /// An mbarrier in shared memory.
    Barrier,
    /// The state of an mbarrier's phase, as an arrival gives it (64 bits).
    Token,
    /// Scalars in shared memory.
    SharedArray(Scalar, u32),
    /// As many of one thing in shared memory, picked by index.
    Stages(Box<Type>, u32),
    /// The same thing in the shared memory of a block of the cluster: a tile, barrier, array, or stages of these.
    Remote(Box<Type>),
    /// The blocks that a sliced load is shared among. Never stored in a local.
    ClusterAxis,
    /// A parameter: the descriptor of a tensor in global memory that is moved tile by tile.
    TensorMap(TileType),
    /// A parameter: the descriptor of a tensor with this many dimensions, of which one copy moves a column of pixels. The
    /// tile has pixels by channels.
    Im2colMap(TileType, u32),
    /// A parameter: maps in global memory, which kernels make.
    Maps(TileType),
    /// A map in shared memory, to be changed.
    SharedMap(TileType),
    /// A parameter: a slice of global memory.
    Global(Scalar),
    /// Of several parts; gone once `parse` has finished a kernel.
    Compound(Compound),
    /// Not yet known.
    Infer(InferId),
    /// The type of what was already reported; agrees with every type.
    Error,
}

impl Type {
    /// The scalar, if it is one.
    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Self::Scalar(scalar) => Some(*scalar),
            _ => None,
        }
    }

    /// Whether a local can hold it, as far as is known.
    pub fn is_storable(&self) -> bool {
        match self {
            Self::Scalar(_) | Self::Array(..) | Self::Token | Self::CachePolicy | Self::Infer(_) => true,
            Self::Tile(_) | Self::Barrier | Self::SharedArray(..) | Self::Stages(..) | Self::Remote(_) => {
                true
            }
            Self::Unit | Self::Never | Self::Dim3 | Self::ClusterAxis => false,
            Self::SharedMap(_) => true,
            Self::TensorMap(_)
            | Self::Im2colMap(..)
            | Self::Maps(_)
            | Self::Global(_)
            | Self::Compound(_)
            | Self::Error => false,
        }
    }

    /// The tile that a map moves.
    pub fn moved(&self) -> Option<&TileType> {
        match self {
            Self::TensorMap(tile) | Self::Im2colMap(tile, _) | Self::Maps(tile) => Some(tile),
            _ => None,
        }
    }

    /// The elements in shared memory that lie one after the other in it: their type and how many there are.
    pub fn sequence(&self) -> Option<(Scalar, u64)> {
        match self {
            Self::SharedArray(element, len) => Some((*element, u64::from(*len))),
            Self::Tile(tile) if tile.swizzle == Swizzle::None => {
                Some((tile.element, tile.bytes() / u64::from(tile.element.bytes())))
            }
            _ => None,
        }
    }

    /// Whether a value of it is an address in the block's shared memory.
    pub fn is_shared_handle(&self) -> bool {
        matches!(
            self,
            Self::Tile(_) | Self::Barrier | Self::SharedArray(..) | Self::SharedMap(_) | Self::Stages(..)
        )
    }

    /// The thing itself, where it may be another block's.
    pub fn local(&self) -> &Type {
        match self {
            Self::Remote(thing) => thing,
            ty => ty,
        }
    }
}

impl From<Scalar> for Type {
    fn from(scalar: Scalar) -> Self {
        Self::Scalar(scalar)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for TileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents: Vec<_> = self.extents.iter().map(u32::to_string).collect();
        write!(f, "Tile<{}, Shape{}<{}>", self.element, self.rank(), extents.join(", "))?;
        match self.swizzle {
            Swizzle::None => f.write_str(">"),
            swizzle => write!(f, ", {}>", swizzle.name()),
        }
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
            Self::Tile(tile) => tile.fmt(f),
            Self::Barrier => f.write_str("Barrier"),
            Self::Token => f.write_str("Token"),
            Self::SharedArray(scalar, len) => write!(f, "SharedArray<{scalar}, {len}>"),
            Self::Stages(thing, len) => write!(f, "Stages<{thing}, {len}>"),
            Self::Remote(thing) => write!(f, "Remote<{thing}>"),
            Self::ClusterAxis => f.write_str("ClusterAxis"),
            Self::TensorMap(tile) => write!(f, "TensorMap<{tile}>"),
            Self::Im2colMap(tile, rank) => write!(f, "Im2colMap<{tile}, {rank}>"),
            Self::Maps(tile) => write!(f, "Maps<{tile}>"),
            Self::SharedMap(tile) => write!(f, "SharedMap<{tile}>"),
            Self::Global(scalar) => write!(f, "Global<{scalar}>"),
            Self::Compound(compound) => compound.fmt(f),
            Self::Infer(_) | Self::Error => f.write_str("_"),
        }
    }
}
