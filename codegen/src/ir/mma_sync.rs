//! Multiplications by a warp, and what they work on; operands that are loaded into registers.
//! Sources: PTX ISA, "mma", "ldmatrix".

use std::fmt;

use tma_model::mma::{Operand, WARP_COLUMNS, WARP_ROWS};

use super::{Expr, FragmentType, Kernel, LocalId, MMA_ROWS, Scalar, SharedOperand, Type};

/// The threads among whose registers a matrix is shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Team {
    /// 128 threads, which multiply asynchronously.
    Warpgroup,
    /// 32 threads, which multiply by `mma.sync`.
    Warp,
}

/// An operand of a multiplication by a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WarpFragmentType {
    /// Which of the two it is.
    pub side: WarpSide,
    /// What tensor cores multiply.
    pub element: Scalar,
    /// Rows of the left operand, columns of what the right one is multiplied to.
    pub rows: u32,
    /// Along these it is multiplied.
    pub columns: u32,
}

/// Which operand of a multiplication by a warp. Their elements lie in different threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarpSide {
    /// A, M × K.
    Left,
    /// B, N × K.
    Right,
}

/// What a multiplication by a warp adds, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarpMmaOp {
    /// Products.
    Add,
    /// Products of integers; each instruction clamps the sum to the numbers that there are.
    Saturating,
    /// How many bits are set in both rows.
    AndPopc,
    /// How many bits differ.
    XorPopc,
}

/// An operand that is loaded into registers from a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadedType {
    /// A left operand, by a warpgroup.
    Warpgroup(FragmentType),
    /// Either operand, by a warp.
    Warp(WarpFragmentType),
}

/// `accumulator += left · rightᵀ`, over all columns of both.
#[derive(Clone, Debug)]
pub struct MmaSync {
    /// What is added.
    pub op: WarpMmaOp,
    /// What is added to.
    pub accumulator: LocalId,
    /// Of as many rows as the accumulator.
    pub left: LocalId,
    /// With a row for each column of the accumulator.
    pub right: LocalId,
}

/// `dest = tile[at..]`, as an operand.
#[derive(Clone, Debug)]
pub struct FragmentLoad {
    /// What is loaded.
    pub dest: LocalId,
    /// Of which it is a part, as it is or transposed.
    pub from: SharedOperand,
    /// Row and column of the operand's matrix, each a `u32`.
    pub at: [Expr; 2],
}

/// `tile[at..] = accumulator`, converted, by the whole warp.
#[derive(Clone, Debug)]
pub struct WarpStore {
    /// What is stored.
    pub accumulator: LocalId,
    /// What is stored to.
    pub tile: Expr,
    /// Row and column there, each a `u32`.
    pub at: [Expr; 2],
}

impl Team {
    /// Rows of a matrix of which its threads hold one part: those of one instruction.
    pub const fn rows(self) -> u32 {
        match self {
            Self::Warpgroup => MMA_ROWS,
            Self::Warp => WARP_ROWS,
        }
    }

    /// How the names of its types begin.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Warpgroup => "",
            Self::Warp => "Warp",
        }
    }
}

impl FragmentLoad {
    /// Whose registers it is loaded into.
    pub fn team(&self, kernel: &Kernel) -> Option<Team> {
        LoadedType::of(&kernel.local(self.dest).ty).map(LoadedType::team)
    }
}

impl WarpSide {
    /// Rows that are divided among the registers of all lanes, 8 to each.
    pub const fn rows(self) -> u32 {
        match self {
            Self::Left => WARP_ROWS,
            Self::Right => WARP_COLUMNS,
        }
    }

    /// How many registers a lane has of those rows, for each [`unit`](WarpFragmentType::unit).
    pub const fn halves(self) -> u32 {
        self.rows() / WARP_COLUMNS
    }

    /// The name of the operand's type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Left => "WarpLeft",
            Self::Right => "WarpRight",
        }
    }
}

impl WarpFragmentType {
    /// Elements of a row that the four lanes of a row hold in a register each: 16 bytes, and 32 of
    /// `f64`. The least that is multiplied.
    pub const fn unit(self) -> u32 {
        if matches!(self.element, Scalar::F64) { 4 } else { 16 / self.element.bytes() }
    }

    /// Units of a row.
    pub const fn units(self) -> u32 {
        self.columns / self.unit()
    }

    /// Groups of rows, [`WarpSide::rows`] each.
    pub const fn bands(self) -> u32 {
        self.rows / self.side.rows()
    }

    /// How many registers a lane holds, of 64 bits for `f64` and else of 32.
    pub const fn registers(self) -> u32 {
        self.bands().saturating_mul(self.units()).saturating_mul(self.side.halves())
    }

    /// The first element of the 8 rows and the unit of which register `i` holds a part.
    ///
    /// Source: PTX ISA, "Matrix Fragments for mma.m16n8k*": of A two registers are one below the
    /// other, then those of the next unit follow.
    pub const fn origin(self, i: u32) -> [u32; 2] {
        let halves = self.side.halves();
        let of_band = self.units() * halves;
        let (band, within) = (i / of_band, i % of_band);
        [band * self.side.rows() + within % halves * WARP_COLUMNS, within / halves * self.unit()]
    }
}

impl LoadedType {
    /// That of a local; none of one that is not loaded so.
    pub fn of(ty: &Type) -> Option<Self> {
        if let Type::Fragment(fragment) = *ty {
            Some(Self::Warpgroup(fragment))
        } else if let Type::WarpFragment(fragment) = *ty {
            Some(Self::Warp(fragment))
        } else {
            None
        }
    }

    /// Whose registers.
    pub const fn team(self) -> Team {
        match self {
            Self::Warpgroup(_) => Team::Warpgroup,
            Self::Warp(_) => Team::Warp,
        }
    }

    /// What each warp holds of it.
    pub const fn of_warp(self) -> WarpFragmentType {
        match self {
            Self::Warpgroup(FragmentType { element, rows, columns }) => {
                let rows = rows / (MMA_ROWS / WARP_ROWS);
                WarpFragmentType { side: WarpSide::Left, element, rows, columns }
            }
            Self::Warp(ty) => ty,
        }
    }

    /// Rows and columns.
    pub const fn extents(self) -> [u32; 2] {
        match self {
            Self::Warpgroup(FragmentType { rows, columns, .. })
            | Self::Warp(WarpFragmentType { rows, columns, .. }) => [rows, columns],
        }
    }

    /// As [`WarpFragmentType::origin`]; of a warpgroup, that of its first warp, whose bands are 64
    /// rows apart.
    ///
    /// Source: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk*": of each 64 rows a warp has
    /// 16, and of these what it has for mma.m16n8k*.
    pub const fn origin(self, i: u32) -> [u32; 2] {
        let [row, column] = self.of_warp().origin(i);
        match self {
            Self::Warpgroup(_) => [row / WARP_ROWS * MMA_ROWS + row % WARP_ROWS, column],
            Self::Warp(_) => [row, column],
        }
    }
}

impl WarpMmaOp {
    /// Its name in a kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "mma_sync",
            Self::Saturating => "mma_sync_saturating",
            Self::AndPopc => "mma_sync_and_popc",
            Self::XorPopc => "mma_sync_xor_popc",
        }
    }

    /// What tensor cores take fragments of this scalar for: bits are those of unsigned integers.
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
