//! Tensor core operations of a warp.

use std::fmt::{self, Display};

use super::{element_text, shape};
use crate::diag::Code;
use crate::diag::mistake::copy::Misalignment;
use crate::diag::mistake::limits::{UnrolledIteration, with_iterations};
use crate::diag::text::Text;
use crate::ir::{AccumulatorType, LoadedType, Scalar, Span, TileType, WarpFragmentType, WarpMmaOp};
use crate::limits::{THREAD_REGISTERS, WARP_THREADS};

/// An operation that a warp's tensor core instructions do not support.
#[derive(Clone, Debug)]
pub enum MmaSync {
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
    /// An operand whose elements are not those of the tile. Those of a `narrow` one can be widened.
    LoadedElement { ty: LoadedType, tile: Scalar, narrow: bool },
    /// An operand that has not a multiple of `unit` elements along the rows of the tile, whose
    /// elements are widened.
    Widened { ty: LoadedType, axis: Axis, extent: u32, unit: u32 },
    /// A tile that is not a matrix whose rows consist of whole 16-byte chunks.
    Tile(TileType),
    /// A tile whose elements cannot be transposed.
    Transposed(Scalar),
    /// A part of a tile that does not start at a 16-byte chunk.
    Start { axis: Axis, at: Misalignment, element: Scalar },
    /// A part that exceeds the tile, in these iterations of unrolled loops.
    Outside { axis: Axis, first: i128, count: u32, extent: u32, iterations: Vec<UnrolledIteration> },
    /// Operands whose extents do not match the accumulator's.
    Extents { sum: AccumulatorType, left: WarpFragmentType, right: WarpFragmentType },
    /// Elements that this operation cannot multiply.
    OpElement { op: WarpMmaOp, element: Scalar },
    /// Two element types that cannot be multiplied with each other.
    Pair { left: Scalar, right: Scalar },
    /// Products that cannot be added to this accumulator.
    Sum { factor: Scalar, sum: Scalar },
    /// Elements whose sum of products cannot saturate.
    NotSaturating(Scalar),
}

/// A dimension of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    Row,
    Column,
}

impl MmaSync {
    pub(in crate::diag::mistake) fn text(&self) -> Text {
        match self {
            Self::Warps { threads, at } => {
                let message = format!(
                    "a warp multiplies with all of its {WARP_THREADS} lanes, but the block has {threads} \
                     threads"
                );
                Text::new(Code::PartialWarp, message)
                    .label(*at, "the threads of a block")
                    .help("use a multiple of 32 threads")
            }
            Self::AccumulatorElement(element) => element_text(format!(
                "an accumulator of a warp must hold f32, f16, i32 or f64, not {element}"
            ))
            .help("convert when storing it: `sum.store(tile, at)` accepts tiles of other elements"),
            Self::AccumulatorColumns(columns) => {
                shape(format!("an accumulator of a warp must have a multiple of 8 columns, not {columns}"))
                    .help("use a multiple of 8 columns: one instruction computes 16 rows and 8 columns")
            }
            Self::OperandElement(ty) => {
                element_text(format!("a warp cannot multiply `{}` elements", ty.element))
                    .help("use f16, bf16, tf32, e4m3, e5m2, i8, u8 or f64, or the bits of unsigned integers")
            }
            Self::OperandRows(ty) => {
                let (rows, band) = (ty.rows, ty.side.rows());
                shape(format!("an operand must have a multiple of {band} rows, but `{ty}` has {rows} rows"))
                    .help(format!("use a multiple of {band} rows"))
            }
            Self::OperandDepth(ty) => {
                let (depth, unit) = (ty.columns, ty.unit());
                shape(format!("K must be a multiple of {unit} elements, but `{ty}` has {depth}"))
                    .help(format!("use a multiple of {unit}; {} is the fastest", 2 * unit))
            }
            Self::OperandRegisters { ty, registers } => shape(format!(
                "a thread has at most {THREAD_REGISTERS} registers, but `{ty}` needs {registers}"
            ))
            .help("load it in parts along K"),
            Self::LoadedElement { ty, tile, narrow } => {
                let text = element_text(format!("`{ty}` cannot be loaded from a tile of {tile}"));
                if *narrow {
                    text.help("use `widen` instead of `load`, and mind its order of rows or columns")
                } else {
                    text.help("use a tile of the operand's elements: loads do not convert")
                }
            }
            Self::Widened { ty, axis, extent, unit } => shape(format!(
                "a widened operand must have a multiple of {unit} {axis}s, but `{ty}` has {extent}"
            ))
            .help(format!("use a multiple of {unit}: a row of the tile is read by 16 bytes")),
            Self::Tile(tile) => shape(format!("a warp cannot load from or store to parts of `{tile}`"))
                .help("use a tile of two dimensions with a swizzle, `Panels16` or `NoSwizzle`"),
            Self::Transposed(element) => {
                element_text(format!("tensor cores can transpose only elements of 16 bits, not `{element}`"))
                    .help("store it in shared memory with K as its last dimension")
            }
            Self::Start { axis, at, element } => {
                let unit = 16 / element.bytes();
                let message = format!("the first {axis} must be a multiple of {unit}, but {at}");
                Text::new(Code::FragmentStart, message).help(format!(
                    "start the part at a chunk of 16 bytes, a multiple of {unit} elements of `{element}` in \
                     a row of the tile"
                ))
            }
            Self::Outside { axis, first, count, extent, iterations } => {
                let last = first + i128::from(*count) - 1;
                let message =
                    format!("{axis}s {first} to {last} are out of bounds: the tile has {extent} {axis}s");
                with_iterations(Text::new(Code::IndexRange, message), iterations)
            }
            Self::Extents { sum, left, right } => {
                let message = format!("`{left}` and `{right}` cannot be multiplied into `{sum}`");
                shape(message).help(
                    "multiply `WarpLeft<_, M, K>` and `WarpRight<_, N, K>` into `WarpAccumulator<_, M, N>`",
                )
            }
            Self::OpElement { op, element } => {
                let word = op.name();
                element_text(format!("`{word}` cannot multiply `{element}` elements")).help(match op {
                    WarpMmaOp::Add | WarpMmaOp::Saturating => {
                        "use f16, bf16, tf32, e4m3, e5m2, i8, u8 or f64"
                    }
                    WarpMmaOp::AndPopc | WarpMmaOp::XorPopc => "use the bits of u8, u16, u32 or u64",
                })
            }
            Self::Pair { left, right } => element_text(format!(
                "tensor cores cannot multiply {left} by {right}"
            ))
            .help("use the same element type for both operands; e4m3 and e5m2 can be mixed, and i8 and u8"),
            Self::Sum { factor, sum } => element_text(format!(
                "products of {factor} cannot be added to an accumulator of {sum}"
            ))
            .help(
                "accumulate f16, e4m3 and e5m2 in f32 or f16, bf16 and tf32 in f32, integers in i32, and f64 \
                 in f64",
            ),
            Self::NotSaturating(element) => {
                element_text(format!("sums of products of {element} cannot saturate"))
                    .help("use i8 or u8, or `mma_sync`, with which floats become infinite")
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
