//! Multiplications on the tensor cores by a warpgroup, and their operands. Source: PTX ISA,
//! "wgmma".

use std::fmt;

use tma_model::mma::Operand;

use super::{Expr, LocalId, ParamId, Scalar, Team, TileType};

/// An accumulator matrix in the registers of a team. Each of its threads holds some of the
/// elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccumulatorType {
    /// The threads that hold it.
    pub team: Team,
    /// `f32`, `f16` or `i32`; in a warp also `f64`.
    pub element: Scalar,
    /// M, a multiple of the team's rows.
    pub rows: u32,
    /// N of one instruction; in a warp a multiple of that.
    pub columns: u32,
}

/// One value for each row of an accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowsType {
    /// The threads that hold it.
    pub team: Team,
    /// The accumulator's element type.
    pub element: Scalar,
    /// The accumulator's rows.
    pub rows: u32,
}

/// The left operand of a multiplication, in the registers of a warpgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FragmentType {
    /// An element type that tensor cores multiply.
    pub element: Scalar,
    /// M, a multiple of 64.
    pub rows: u32,
    /// K, the dimension that is summed over.
    pub columns: u32,
}

/// A tile as the operand of a multiplication.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperandType {
    /// The tile in shared memory.
    pub tile: TileType,
    /// The number of rows, if the operand is a band of a tile of several panels: in each panel, the
    /// rows that start at the operand's address.
    pub band: Option<u32>,
    /// Whether the operand is the transpose of the tile.
    pub transposed: bool,
    /// Whether the elements are negated.
    pub negated: bool,
    /// Whether the operand is sparse: of every four elements of a row only two are stored, and
    /// metadata selects them.
    pub sparse: bool,
}

/// The operation that a multiplication accumulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MmaOp {
    /// Multiply and add.
    Add,
    /// Multiply and add integers; each instruction clamps the sum to the range of the type.
    Saturating,
    /// Count the bits that are set in both rows.
    AndPopc,
}

/// `accumulator += left · rightᵀ`, over all columns of both operands, committed as a group of its
/// own.
#[derive(Clone, Debug)]
pub struct Mma {
    /// The operation.
    pub op: MmaOp,
    /// The accumulator, which is read and written.
    pub accumulator: LocalId,
    /// The left operand, with as many rows as the accumulator.
    pub left: LeftOperand,
    /// The metadata of a sparse left operand: an array of `u32` that must not change while the
    /// multiplication is in flight.
    pub metadata: Option<LocalId>,
    /// The right operand, with one row for each column of the accumulator.
    pub right: SharedOperand,
}

/// The left operand of a multiplication.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "a multiplication is boxed as a whole")]
pub enum LeftOperand {
    /// In shared memory.
    Shared(SharedOperand),
    /// In registers: a local that must not change while the multiplication is in flight.
    Registers(LocalId),
}

/// An operand in shared memory.
#[derive(Clone, Debug)]
pub struct SharedOperand {
    /// The address.
    pub tile: Expr,
    /// The operand type.
    pub ty: OperandType,
}

/// A row-major matrix in a slice of global memory.
#[derive(Clone, Debug)]
pub struct GlobalMatrix {
    /// The slice that contains the whole matrix.
    pub global: ParamId,
    /// The index of the first element, a `u64`.
    pub first: Expr,
    /// The numbers of rows and columns, each a `u32`.
    pub extents: [Expr; 2],
    /// The distance between rows in elements, a `u32`.
    pub stride: Expr,
}

/// A store of accumulator columns to a matrix. Elements outside the matrix are not stored.
#[derive(Clone, Debug)]
pub struct MatrixStore {
    /// The accumulator.
    pub accumulator: LocalId,
    /// The first column, a `u32`.
    pub first: Expr,
    /// The number of columns.
    pub columns: u32,
    /// The destination.
    pub matrix: GlobalMatrix,
    /// Row and column in the destination, each a `u32`.
    pub at: [Expr; 2],
}

/// The multiplications of an accumulator that a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Awaited {
    /// All of them.
    All,
    /// All but the most recent one.
    Older,
}

/// A reduction of the values of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowOp {
    /// The maximum; the number if one value is NaN.
    Max,
    /// The sum.
    Sum,
}

/// M of one instruction.
pub const MMA_ROWS: u32 = 64;

impl AccumulatorType {
    /// Returns the number of bands. A band has M of one instruction.
    pub const fn bands(self) -> u32 {
        self.rows / self.team.rows()
    }

    /// Returns the number of elements per thread.
    pub const fn elements(self) -> u32 {
        self.bands().saturating_mul(self.columns / 2)
    }

    /// Returns the number of elements per thread in one band.
    pub const fn elements_of_band(self) -> u32 {
        self.columns / 2
    }

    /// Returns the number of 32-bit registers per thread.
    pub fn registers(self) -> u64 {
        u64::from(self.elements()) * u64::from(self.element.bytes()) / 4
    }
}

impl RowsType {
    /// Returns the number of values per thread: two for each band.
    pub const fn elements(self) -> u32 {
        self.rows / (self.team.rows() / 2)
    }
}

impl FragmentType {
    /// Returns the number of 32-bit registers per thread: four for 64 rows by 32 bytes.
    pub const fn registers(self) -> u32 {
        (self.rows / MMA_ROWS).saturating_mul(self.steps()).saturating_mul(4)
    }

    /// Returns the number of instructions along K that it is an operand of.
    pub const fn steps(self) -> u32 {
        self.columns.saturating_mul(self.element.bytes()) / 32
    }
}

impl MmaOp {
    /// Returns the method's name in a kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "mma",
            Self::Saturating => "mma_saturating",
            Self::AndPopc => "mma_and_popc",
        }
    }

    /// Returns how the tensor cores interpret tiles of this scalar. Bits are stored in unsigned
    /// integers.
    pub const fn operand(self, scalar: Scalar) -> Option<Operand> {
        match (self, scalar) {
            (Self::Add | Self::Saturating, _) => Operand::of(scalar),
            (Self::AndPopc, Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64) => Some(Operand::B1),
            (
                Self::AndPopc,
                Scalar::Bool
                | Scalar::I8
                | Scalar::I16
                | Scalar::I32
                | Scalar::I64
                | Scalar::Usize
                | Scalar::F16
                | Scalar::Bf16
                | Scalar::F32
                | Scalar::F64
                | Scalar::Tf32
                | Scalar::E4m3
                | Scalar::E5m2,
            ) => None,
        }
    }
}

impl From<TileType> for OperandType {
    fn from(tile: TileType) -> Self {
        Self { tile, band: None, transposed: false, negated: false, sparse: false }
    }
}

impl RowOp {
    /// Returns the name in a kernel, after `row_`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Sum => "sum",
        }
    }
}

impl fmt::Display for AccumulatorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { team, element, rows, columns } = self;
        write!(f, "{}Accumulator<{element}, {rows}, {columns}>", team.prefix())
    }
}

impl fmt::Display for RowsType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Rows<{}, {}>", self.team.prefix(), self.element, self.rows)
    }
}

impl fmt::Display for FragmentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fragment<{}, {}, {}>", self.element, self.rows, self.columns)
    }
}

impl fmt::Display for OperandType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrap =
            |f: &mut fmt::Formatter<'_>, name: &str, inner: &dyn fmt::Display| write!(f, "{name}<{inner}>");
        let tile: &dyn fmt::Display = match &self.band {
            None => &self.tile,
            Some(rows) => &format_args!("{rows} rows of {}", self.tile).to_string(),
        };
        let sparse = format!("Sparse<{tile}>");
        let tile: &dyn fmt::Display = if self.sparse { &sparse } else { tile };
        match (self.negated, self.transposed) {
            (false, false) => tile.fmt(f),
            (false, true) => wrap(f, "Transposed", tile),
            (true, false) => wrap(f, "Negated", tile),
            (true, true) => write!(f, "Negated<Transposed<{tile}>>"),
        }
    }
}
