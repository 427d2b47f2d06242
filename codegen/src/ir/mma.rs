//! Multiplications by the tensor cores, and what they work on. Source: PTX ISA, "wgmma".

use std::fmt;

use tma_model::mma::Operand;

use super::{Expr, LocalId, ParamId, Scalar, Team, TileType};

/// A matrix in the registers of a team, which multiplications add to. Each of its threads holds
/// some of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccumulatorType {
    /// Whose registers.
    pub team: Team,
    /// `f32`, `f16` or `i32`, and `f64` in a warp.
    pub element: Scalar,
    /// A multiple of the team's.
    pub rows: u32,
    /// What one instruction takes; in a warp a multiple of that.
    pub columns: u32,
}

/// A value for each row of an accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowsType {
    /// Whose registers.
    pub team: Team,
    /// That of the accumulator.
    pub element: Scalar,
    /// Those of the accumulator.
    pub rows: u32,
}

/// The left operand of a multiplication, in the registers of a warpgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FragmentType {
    /// What tensor cores multiply.
    pub element: Scalar,
    /// A multiple of 64.
    pub rows: u32,
    /// Along these it is multiplied.
    pub columns: u32,
}

/// A tile as the operand of a multiplication.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperandType {
    /// What lies in shared memory.
    pub tile: TileType,
    /// How many of its rows the operand is, if it is a band of a tile in several panels: those that
    /// follow its address in each of them.
    pub band: Option<u32>,
    /// Whether rows are taken for columns.
    pub transposed: bool,
    /// Whether its elements are negated.
    pub negated: bool,
    /// Whether of each four elements of a row only two are there, and metadata tells which.
    pub sparse: bool,
}

/// What a multiplication adds, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MmaOp {
    /// Products.
    Add,
    /// Products of integers; each instruction clamps the sum to the numbers that there are.
    Saturating,
    /// How many bits are set in both rows.
    AndPopc,
}

/// `accumulator += left · rightᵀ`, over all columns of both: a group of its own.
#[derive(Clone, Debug)]
pub struct Mma {
    /// What is added.
    pub op: MmaOp,
    /// What is added to.
    pub accumulator: LocalId,
    /// Of as many rows as the accumulator.
    pub left: LeftOperand,
    /// The metadata of a sparse left operand: an array of `u32` that nothing else writes while the
    /// multiplication is under way.
    pub metadata: Option<LocalId>,
    /// With a row for each column of the accumulator.
    pub right: SharedOperand,
}

/// The left operand.
#[derive(Clone, Debug)]
pub enum LeftOperand {
    /// In shared memory.
    Shared(SharedOperand),
    /// In registers: a local that nothing else writes while the multiplication is under way.
    Registers(LocalId),
}

/// An operand in shared memory.
#[derive(Clone, Debug)]
pub struct SharedOperand {
    /// The address.
    pub tile: Expr,
    /// What it is.
    pub ty: OperandType,
}

/// Rows of a slice of global memory.
#[derive(Clone, Debug)]
pub struct GlobalMatrix {
    /// The slice, which has all of them.
    pub global: ParamId,
    /// The element that they begin with, a `u64`.
    pub first: Expr,
    /// Rows and columns, each a `u32`.
    pub extents: [Expr; 2],
    /// Elements from one row to the next, a `u32`.
    pub stride: Expr,
}

/// Columns of an accumulator, stored to a matrix: what is outside of it is left out.
#[derive(Clone, Debug)]
pub struct MatrixStore {
    /// What is stored.
    pub accumulator: LocalId,
    /// The first of the columns, a `u32`.
    pub first: Expr,
    /// How many columns.
    pub columns: u32,
    /// What is stored to.
    pub matrix: GlobalMatrix,
    /// Row and column there, each a `u32`.
    pub at: [Expr; 2],
}

/// Which multiplications of an accumulator a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Awaited {
    /// All of them.
    All,
    /// All but the newest.
    Older,
}

/// How the values of a row become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowOp {
    /// The greatest; the number where one is NaN.
    Max,
    /// The sum.
    Sum,
}

/// Rows of a matrix that one instruction takes.
pub const MMA_ROWS: u32 = 64;

impl AccumulatorType {
    /// How many times the rows that its team holds at a time.
    pub const fn bands(self) -> u32 {
        self.rows / self.team.rows()
    }

    /// How many of its elements a thread holds.
    pub const fn elements(self) -> u32 {
        self.bands().saturating_mul(self.columns / 2)
    }

    /// How many of them belong to a band.
    pub const fn elements_of_band(self) -> u32 {
        self.columns / 2
    }

    /// How many registers of 32 bits a thread holds.
    pub fn registers(self) -> u64 {
        u64::from(self.elements()) * u64::from(self.element.bytes()) / 4
    }
}

impl RowsType {
    /// How many of its values a thread holds: two of each band.
    pub const fn elements(self) -> u32 {
        self.rows / (self.team.rows() / 2)
    }
}

impl FragmentType {
    /// How many registers of 32 bits a thread holds: four for 64 rows and 32 bytes of a row.
    pub const fn registers(self) -> u32 {
        (self.rows / MMA_ROWS).saturating_mul(self.steps()).saturating_mul(4)
    }

    /// How many instructions it lasts for, one after another.
    pub const fn steps(self) -> u32 {
        self.columns.saturating_mul(self.element.bytes()) / 32
    }
}

impl MmaOp {
    /// Its name in a kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "mma",
            Self::Saturating => "mma_saturating",
            Self::AndPopc => "mma_and_popc",
        }
    }

    /// What tensor cores take tiles of this scalar for: bits are those of unsigned integers.
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
    /// Its name in a kernel, after `row_`.
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
