//! Multiplications on the tensor cores by a warp, and operands that are loaded into registers.
//! Sources: PTX ISA, "mma", "ldmatrix".

use std::fmt;

use tma_model::mma::{Operand, WARP_COLUMNS, WARP_ROWS};

use super::{Expr, FragmentType, Kernel, LocalId, MMA_ROWS, Scalar, SharedOperand, Type};

/// The group of threads that a matrix is distributed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Team {
    /// 128 threads, which multiply asynchronously (`wgmma`).
    Warpgroup,
    /// 32 threads, which multiply by `mma.sync`.
    Warp,
}

/// An operand of a multiplication by a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WarpFragmentType {
    /// The left or right operand.
    pub side: WarpSide,
    /// An element type that tensor cores multiply.
    pub element: Scalar,
    /// M for a left operand, N for a right one.
    pub rows: u32,
    /// K, the dimension that is summed over.
    pub columns: u32,
}

/// The side of an operand in a multiplication by a warp. The two sides distribute their elements
/// over the threads differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarpSide {
    /// A, M × K.
    Left,
    /// B, N × K.
    Right,
}

/// The operation that a multiplication by a warp accumulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarpMmaOp {
    /// Multiply and add.
    Add,
    /// Multiply and add integers; each instruction clamps the sum to the range of the type.
    Saturating,
    /// Count the bits that are set in both rows.
    AndPopc,
    /// Count the bits that differ.
    XorPopc,
}

/// An operand that is loaded into registers from a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadedType {
    /// A left operand, loaded by a warpgroup.
    Warpgroup(FragmentType),
    /// Either operand, loaded by a warp.
    Warp(WarpFragmentType),
}

/// `accumulator += left · rightᵀ`, over all columns of both operands.
#[derive(Clone, Debug)]
pub struct MmaSync {
    /// The operation.
    pub op: WarpMmaOp,
    /// The accumulator, which is read and written.
    pub accumulator: LocalId,
    /// The left operand, with as many rows as the accumulator.
    pub left: LocalId,
    /// The right operand, with one row for each column of the accumulator.
    pub right: LocalId,
}

/// `dest = tile[at..]`, loaded as an operand.
#[derive(Clone, Debug)]
pub struct FragmentLoad {
    /// The local to load.
    pub dest: LocalId,
    /// The tile that contains the operand, as it is or transposed.
    pub from: SharedOperand,
    /// Row and column in the operand's matrix, each a `u32`.
    pub at: [Expr; 2],
    /// Whether elements of the tile may be [narrower](LoadedType::widened_from) than the operand's.
    pub widens: bool,
}

/// `tile[at..] = accumulator`, converted, by the whole warp.
#[derive(Clone, Debug)]
pub struct WarpStore {
    /// The accumulator.
    pub accumulator: LocalId,
    /// The destination.
    pub tile: Expr,
    /// Row and column in the tile, each a `u32`.
    pub at: [Expr; 2],
}

impl Team {
    /// Returns the rows of one band: M of one instruction.
    pub const fn rows(self) -> u32 {
        match self {
            Self::Warpgroup => MMA_ROWS,
            Self::Warp => WARP_ROWS,
        }
    }

    /// Returns the prefix of the names of the team's types.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Warpgroup => "",
            Self::Warp => "Warp",
        }
    }
}

impl FragmentLoad {
    /// Returns the team whose registers are loaded.
    pub fn team(&self, kernel: &Kernel) -> Option<Team> {
        LoadedType::of(&kernel.local(self.dest).ty).map(LoadedType::team)
    }
}

impl WarpSide {
    /// Returns the rows of one band. A register, taken over all lanes, covers 8 of them.
    pub const fn rows(self) -> u32 {
        match self {
            Self::Left => WARP_ROWS,
            Self::Right => WARP_COLUMNS,
        }
    }

    /// Returns the number of registers of a lane for one band and one
    /// [`unit`](WarpFragmentType::unit).
    pub const fn halves(self) -> u32 {
        self.rows() / WARP_COLUMNS
    }

    /// Returns the name of the operand's type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Left => "WarpLeft",
            Self::Right => "WarpRight",
        }
    }
}

impl WarpFragmentType {
    /// Returns the number of elements along a row that one register of each of the row's four lanes
    /// covers: 16 bytes, or 32 bytes of `f64`. It is the smallest K of a multiplication.
    pub const fn unit(self) -> u32 {
        if matches!(self.element, Scalar::F64) { 4 } else { 16 / self.element.bytes() }
    }

    /// Returns the number of units in a row.
    pub const fn units(self) -> u32 {
        self.columns / self.unit()
    }

    /// Returns the number of bands, of [`WarpSide::rows`] rows each.
    pub const fn bands(self) -> u32 {
        self.rows / self.side.rows()
    }

    /// Returns the number of registers per lane, of 64 bits for `f64` and of 32 bits otherwise.
    pub const fn registers(self) -> u32 {
        self.bands().saturating_mul(self.units()).saturating_mul(self.side.halves())
    }

    /// Returns row and column of the first element of the block, 8 rows by one unit, that register
    /// `i` holds a part of.
    ///
    /// Source: PTX ISA, "Matrix Fragments for mma.m16n8k*". For A, two registers cover rows 0 to 7
    /// and 8 to 15 of one unit; those of the next unit follow.
    pub const fn origin(self, i: u32) -> [u32; 2] {
        let halves = self.side.halves();
        let of_band = self.units() * halves;
        let (band, within) = (i / of_band, i % of_band);
        [band * self.side.rows() + within % halves * WARP_COLUMNS, within / halves * self.unit()]
    }
}

impl LoadedType {
    /// Returns the operand type of a local, or `None` if its type is not loaded from a tile.
    pub fn of(ty: &Type) -> Option<Self> {
        if let Type::Fragment(fragment) = *ty {
            Some(Self::Warpgroup(fragment))
        } else if let Type::WarpFragment(fragment) = *ty {
            Some(Self::Warp(fragment))
        } else {
            None
        }
    }

    /// Returns the team whose registers hold the operand.
    pub const fn team(self) -> Team {
        match self {
            Self::Warpgroup(_) => Team::Warpgroup,
            Self::Warp(_) => Team::Warp,
        }
    }

    /// Returns the part that each warp holds.
    pub const fn of_warp(self) -> WarpFragmentType {
        match self {
            Self::Warpgroup(FragmentType { element, rows, columns }) => {
                let rows = rows / (MMA_ROWS / WARP_ROWS);
                WarpFragmentType { side: WarpSide::Left, element, rows, columns }
            }
            Self::Warp(ty) => ty,
        }
    }

    /// Returns the part that each warp holds before it is widened: the same elements, as they are in
    /// the tile. Two registers of the operand are widened from one of these.
    pub const fn widened_from(self) -> Option<WarpFragmentType> {
        let of_warp = self.of_warp();
        if matches!(of_warp.element, Scalar::F16) {
            Some(WarpFragmentType { element: Scalar::E4m3, ..of_warp })
        } else {
            None
        }
    }

    /// Returns the numbers of rows and columns.
    pub const fn extents(self) -> [u32; 2] {
        match self {
            Self::Warpgroup(FragmentType { rows, columns, .. })
            | Self::Warp(WarpFragmentType { rows, columns, .. }) => [rows, columns],
        }
    }

    /// Like [`WarpFragmentType::origin`]. For a warpgroup this is the origin in its first warp,
    /// whose bands are 64 rows apart.
    ///
    /// Source: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk*". Of each 64 rows a warp
    /// holds 16, distributed as for mma.m16n8k*.
    pub const fn origin(self, i: u32) -> [u32; 2] {
        let [row, column] = self.of_warp().origin(i);
        match self {
            Self::Warpgroup(_) => [row / WARP_ROWS * MMA_ROWS + row % WARP_ROWS, column],
            Self::Warp(_) => [row, column],
        }
    }
}

impl WarpMmaOp {
    /// Returns the method's name in a kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "mma_sync",
            Self::Saturating => "mma_sync_saturating",
            Self::AndPopc => "mma_sync_and_popc",
            Self::XorPopc => "mma_sync_xor_popc",
        }
    }

    /// Returns how the tensor cores interpret fragments of this scalar. Bits are stored in unsigned
    /// integers.
    pub fn operand(self, scalar: Scalar) -> Option<Operand> {
        const BITS: [Scalar; 4] = [Scalar::U8, Scalar::U16, Scalar::U32, Scalar::U64];
        match self {
            Self::Add | Self::Saturating => Operand::of(scalar),
            Self::AndPopc | Self::XorPopc => BITS.contains(&scalar).then_some(Operand::B1),
        }
    }
}

impl fmt::Display for LoadedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Warpgroup(ty) => ty.fmt(f),
            Self::Warp(ty) => ty.fmt(f),
        }
    }
}

impl fmt::Display for WarpFragmentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<{}, {}, {}>", self.side.name(), self.element, self.rows, self.columns)
    }
}
