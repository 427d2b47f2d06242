//! Tensor core operations of a warp.

use std::fmt::{self, Display};

use super::{element_text, shape};
use crate::diag::Code;
use crate::diag::mistake::copy::Beside;
use crate::diag::mistake::limits::{Turn, in_turns};
use crate::diag::text::Text;
use crate::ir::{AccumulatorType, LoadedType, Scalar, Span, TileType, WarpFragmentType, WarpMmaOp};
use crate::limits::{THREAD_REGISTERS, WARP_THREADS};

/// An operation that a warp's tensor core instructions do not support.
#[derive(Clone, Debug)]
pub(crate) enum MmaSync {
    /// A block whose threads, specified at `at`, are not whole warps.
    Warps { threads: u64, at: Span },
    /// Elements that an accumulator of a warp cannot hold.
    AccumulatorElement(Scalar),
    /// Columns that an accumulator of a warp cannot have.
    AccumulatorColumns(u32),
    /// Elements that an operand of a warp cannot have.
    OperandElement(WarpFragmentType),
    /// An operand whose rows are not a multiple of an instruction's.
    OperandRows(WarpFragmentType),
    /// An operand whose K is not a multiple of an instruction's.
    OperandDepth(WarpFragmentType),
    /// An operand that needs more registers than a thread has.
    OperandRegisters { ty: LoadedType, registers: u64 },
    /// An operand whose elements are not those of the tile.
    LoadedElement { ty: LoadedType, tile: Scalar },
    /// A tile that is not a matrix whose rows consist of whole 16-byte chunks.
    Tile(TileType),
    /// A tile whose elements cannot be transposed.
    Transposed(Scalar),
    /// A part of a tile that does not start at a 16-byte chunk.
    Start { axis: Axis, at: Beside, element: Scalar },
    /// A part that exceeds the tile, in these iterations of unrolled loops.
    Outside { axis: Axis, first: i128, count: u32, extent: u32, turns: Vec<Turn> },
    /// Operands whose extents do not match the accumulator's.
    Extents { sum: AccumulatorType, left: WarpFragmentType, right: WarpFragmentType },
    /// Elements that this operation cannot multiply.
    Factor { op: WarpMmaOp, element: Scalar },
    /// Two element types that cannot be multiplied with each other.
    Pair { left: Scalar, right: Scalar },
    /// Products that cannot be added to this accumulator.
    Sum { factor: Scalar, sum: Scalar },
    /// Elements whose sum of products cannot saturate.
    NotSaturating(Scalar),
}

/// A dimension of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Row,
    Column,
}

impl MmaSync {
    pub(in crate::diag::mistake) fn text(&self) -> Text {
        match self {
            Self::Warps { threads, at } => {
                let message = format!(
                    "a warp multiplies with all of its {WARP_THREADS} lanes, and a block here has {threads} threads"
                );
                Text::new(Code::PartialWarp, message)
                    .label(*at, "the threads of a block")
                    .help("take a multiple of 32 threads")
            }
            Self::AccumulatorElement(element) => {
                element_text(format!("an accumulator of a warp holds f32, f16, i32 or f64, not {element}"))
                    .help("convert when it is stored: `sum.store(tile, at)` takes tiles of other elements")
            }
            Self::AccumulatorColumns(columns) => {
                shape(format!("an accumulator of a warp has a multiple of 8 columns, not {columns}"))
                    .help("one instruction has 16 rows and 8 columns of it")
            }
            Self::OperandElement(ty) => {
                element_text(format!("a warp does not multiply elements of type `{}`", ty.element)).help(
                    "it takes f16, bf16, tf32, e4m3, e5m2, i8, u8 and f64, and the bits of unsigned integers",
                )
            }
            Self::OperandRows(ty) => {
                let (rows, band) = (ty.rows, ty.side.rows());
                shape(format!("`{ty}` has {rows} rows; an instruction has {band}"))
                    .help(format!("take a multiple of {band}"))
            }
            Self::OperandDepth(ty) => {
                let (depth, unit) = (ty.columns, ty.unit());
                shape(format!(
                    "`{ty}` is multiplied along {depth} elements, which is not a multiple of {unit}"
                ))
                .help(format!("take a multiple of {unit}; {} is the fastest", 2 * unit))
            }
            Self::OperandRegisters { ty, registers } => shape(format!(
                "`{ty}` takes {registers} registers of each thread, which has at most {THREAD_REGISTERS}"
            ))
            .help("load it in parts along K"),
            Self::LoadedElement { ty, tile } => {
                element_text(format!("`{ty}` is not loaded from a tile of {tile}"))
                    .help("the tile has the operand's elements; nothing is converted on the way")
            }
            Self::Tile(tile) => shape(format!("a warp does not load from or store to parts of `{tile}`"))
                .help("the tile has two dimensions, with a swizzle, `Panels16` or `NoSwizzle`"),
            Self::Transposed(element) => {
                element_text(format!("tensor cores transpose elements of 16 bits only, not `{element}`"))
                    .help("keep it in shared memory with the dimension that is summed last")
            }
            Self::Start { axis, at, element } => {
                let unit = 16 / element.bytes();
                Text::new(Code::FragmentStart, format!("the first {axis} {at}")).help(format!(
                    "a part of a tile begins with a chunk of 16 bytes: at a multiple of {unit} elements of \
                     `{element}` in a row of the tile"
                ))
            }
            Self::Outside { axis, first, count, extent, turns } => {
                let last = first + i128::from(*count) - 1;
                let message = format!("{axis}s {first} to {last} of a tile that has {extent}");
                in_turns(Text::new(Code::IndexRange, message), turns)
            }
            Self::Extents { sum, left, right } => {
                let message = format!("`{left}` and `{right}` are not multiplied to `{sum}`");
                shape(message).help(
                    "`WarpLeft<_, M, K>` and `WarpRight<_, N, K>` are multiplied to `WarpAccumulator<_, M, N>`",
                )
            }
            Self::Factor { op, element } => {
                let word = op.name();
                element_text(format!("`{word}` does not multiply elements of type `{element}`")).help(
                    match op {
                        WarpMmaOp::Add | WarpMmaOp::Saturating => {
                            "it takes f16, bf16, tf32, e4m3, e5m2, i8, u8 and f64"
                        }
                        WarpMmaOp::AndPopc | WarpMmaOp::XorPopc => {
                            "it takes the bits of u8, u16, u32 and u64"
                        }
                    },
                )
            }
            Self::Pair { left, right } => {
                element_text(format!("tensor cores do not multiply {left} by {right}"))
                    .help("both operands have one element type; e4m3 and e5m2 mix, and so do i8 and u8")
            }
            Self::Sum { factor, sum } => element_text(format!(
                "products of {factor} are not added to an accumulator of {sum}"
            ))
            .help("f16, e4m3 and e5m2 take f32 or f16, bf16 and tf32 take f32, integers i32, and f64 f64"),
            Self::NotSaturating(element) => {
                element_text(format!("sums of products of {element} do not saturate"))
                    .help("those of i8 and u8 do; floats become infinite with `mma_sync`")
            }
        }
    }
}

impl Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Row => "row",
            Self::Column => "column",
        })
    }
}
