//! Tensor core operations of a warpgroup.

mod sync;
mod warpgroup;

pub use sync::{Axis, MmaSync};
pub use warpgroup::{Difference, Warpgroup};

use std::fmt::{self, Display};

use tma_model::mma::{Form, FormFault, Operand, OperandFault};

use super::limits::{UnrolledIteration, with_iterations};
use crate::diag::Code;
use crate::diag::mistake::Word;
use crate::diag::text::Text;
use crate::ir::{
    AccumulatorType, FragmentType, MMA_ROWS, MmaOp, OperandType, Scalar, Span, Team, TileSwizzle, TileType,
    Type,
};
use crate::limits::{THREAD_REGISTERS, WARPGROUP_THREADS};

/// An operation that tensor cores do not support.
#[derive(Clone, Debug)]
pub enum Mma {
    /// A block whose threads, specified at `at`, are not whole warpgroups.
    IncompleteWarpgroup { word: Word, block: u64, whole: u64, rest: u64, at: Span },
    /// Elements that an accumulator cannot hold.
    AccumulatorElement(Scalar),
    /// Columns that an accumulator cannot have.
    AccumulatorColumns(u32),
    /// An accumulator that needs more registers than a thread has.
    AccumulatorRegisters { ty: AccumulatorType, registers: u64 },
    /// A matrix in registers whose rows are not a multiple of an instruction's.
    Rows { team: Team, ty: Type, rows: u32 },
    /// Elements that this operation cannot multiply.
    OpElement { op: MmaOp, element: Scalar },
    /// An operand in registers whose columns are not a multiple of an instruction's.
    FragmentDepth { ty: FragmentType, step: u32 },
    /// Elements that cannot be negated.
    Negated(Scalar),
    /// A tile that cannot be an operand.
    OperandTile(TileType),
    /// An operand in shared memory that no instruction can read.
    Operand { op: MmaOp, ty: OperandType, fault: OperandFault },
    /// A left operand that does not have the accumulator's rows.
    LeftRows { found: u32, wanted: u32 },
    /// A right operand whose rows are not the accumulator's columns.
    RightRows { found: u32, wanted: u32 },
    /// Operands with different extents along K.
    Depths { left: u32, right: u32 },
    /// A right operand that is sparse.
    SparseRight,
    /// Metadata with the wrong number of registers for a sparse operand of `rows` by `depth`.
    Metadata { element: Operand, found: u32, wanted: u32, rows: u32, depth: u32 },
    /// A right operand whose swizzle span is too narrow for a sparse left operand.
    SparseSpan(OperandType),
    /// Elements whose sum of products cannot saturate.
    NotSaturating(Operand),
    /// A multiplication with a form that no instruction has.
    Form { form: Form, fault: FormFault },
    /// A tile whose elements this accumulator cannot be stored as.
    StoredElement { sum: Scalar, tile: Scalar },
    /// A matrix in global memory whose elements this accumulator cannot be stored as.
    StoredMatrix { sum: Scalar, matrix: Scalar },
    /// Columns that cannot be stored together.
    StoredColumns { sum: AccumulatorType, columns: u32 },
    /// A tile with a shape that this accumulator cannot be stored to.
    StoredTile { sum: AccumulatorType, tile: TileType },
    /// Columns that an accumulator does not have.
    Columns { first: i128, columns: u32, sum: AccumulatorType, iterations: Vec<UnrolledIteration> },
    /// An accumulator that cannot become an operand with these elements.
    Packed { sum: AccumulatorType, element: Scalar },
    /// A fragment that cannot become an accumulator again.
    Unpacked(FragmentType),
    /// An accumulator whose columns are not a multiple of an operand's step.
    PackedColumns(AccumulatorType),
    /// An accumulator whose rows cannot be reduced.
    ReducedRows(AccumulatorType),
    /// A register count that a warpgroup cannot request.
    Registers(u32),
    /// A number that selects registers, and is not a constant.
    Unknown(RegisterIndex),
    /// A multiplication that is in flight on only one of two paths, and its location if known.
    OpenOnOnePath { open: Option<Span> },
    /// A multiplication that is never waited for.
    NeverAwaited { accumulator: String },
}

/// A number that selects registers.
#[derive(Clone, Copy, Debug)]
pub enum RegisterIndex {
    Element,
    FirstColumn,
}

impl Mma {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::IncompleteWarpgroup { word, block, whole, rest, at } => {
                let message = match whole {
                    0 => format!(
                        "`{word}` must be executed by all {WARPGROUP_THREADS} threads of a warpgroup, but the \
                         block has only {block} threads"
                    ),
                    _ => format!(
                        "`{word}` must be executed by all {WARPGROUP_THREADS} threads of a warpgroup, but the \
                         last {rest} threads of the block reach it, too"
                    ),
                };
                let text = Text::new(Code::Warpgroups, message);
                match whole {
                    0 => text
                        .label(*at, "the threads of a block")
                        .help(format!("use a multiple of {WARPGROUP_THREADS} threads")),
                    _ => text
                        .label(*at, format!("{block} threads: {}, and {rest} threads", warpgroups(*whole)))
                        .help(format!(
                            "execute it only `if warpgroup_idx() < {whole}`, or use a multiple of \
                             {WARPGROUP_THREADS} threads"
                        )),
                }
            }
            Self::AccumulatorElement(element) => {
                element_text(format!("an accumulator must hold f32, f16 or i32, not {element}"))
                    .help("convert when storing it: `sum.store(tile)` accepts tiles of other elements")
            }
            Self::AccumulatorColumns(columns) => {
                shape(format!("an accumulator must have 8 to 256 columns, a multiple of 8, not {columns}"))
                    .help("use a multiple of 8 columns, and several accumulators for more than 256")
            }
            Self::AccumulatorRegisters { ty, registers } => shape(format!(
                "a thread has at most {THREAD_REGISTERS} registers, but `{ty}` needs {registers}"
            ))
            .help("divide the rows among more warpgroups"),
            Self::Rows { team, ty, rows } => {
                let band = team.rows();
                shape(format!("tensor cores need a multiple of {band} rows, but `{ty}` has {rows} rows"))
                    .help(match team {
                        Team::Warpgroup => "use 64 or 128 rows per warpgroup",
                        Team::Warp => "use 16 or 32 rows per warp",
                    })
            }
            Self::OpElement { op: MmaOp::Add | MmaOp::Saturating, element } => {
                element_text(format!("tensor cores cannot multiply `{element}` elements")).help(
                    "use f16, bf16, tf32, e4m3, e5m2, i8 or u8; convert `f32` to `tf32` when storing it to \
                     the tile",
                )
            }
            Self::OpElement { op: MmaOp::AndPopc, element } => {
                element_text(format!("tensor cores cannot multiply the bits of `{element}` elements"))
                    .help("use tiles of u8, u16, u32 or u64, or a fragment of u8 as the left operand")
            }
            Self::FragmentDepth { ty, step } => depth(ty.columns, *step, "elements", ty),
            Self::Negated(element) => element_text(format!("tensor cores cannot negate `{element}`"))
                .help("negate integers before storing them to the tile: only floats are negated on the way"),
            Self::OperandTile(tile) => {
                shape(format!("tensor cores cannot read `{tile}`")).help(readable(tile.swizzle))
            }
            Self::Operand { op, ty, fault } => operand_fault(*fault, *op, ty),
            Self::LeftRows { found, wanted } => {
                shape(format!("the left operand has {found} rows, but the accumulator has {wanted}"))
                    .help("select the rows of the warpgroup: `tile.band::<64>(i)`")
            }
            Self::RightRows { found, wanted } => shape(format!(
                "the right operand has {found} rows, but the accumulator has {wanted} columns"
            ))
            .help(
                "store B as N × K, with one row for each column of the accumulator, or use `.t()` of K × N",
            ),
            Self::Depths { left, right } => {
                shape(format!("the operands differ in K: {left} on the left, but {right} on the right"))
                    .help("use the same K: the last dimension of a tile, or the first one with `.t()`")
            }
            Self::SparseRight => {
                element_text("only the left operand of a multiplication can be sparse".to_owned())
                    .help("swap the operands, and multiply the transposed matrices")
            }
            Self::Metadata { element, found, wanted, rows, depth } => {
                let message = format!(
                    "metadata of {rows} rows of {depth} elements needs {wanted} registers, not {found}"
                );
                Text::new(Code::SparseMetadata, message).help(format!(
                    "use an array of {wanted}, with a register for each {MMA_ROWS} rows of {} elements",
                    64 * 16 / element.bits().max(16)
                ))
            }
            Self::SparseSpan(ty) => shape(format!("a sparse operand cannot be multiplied by `{ty}`")).help(
                "use `Swizzle64`, `Swizzle128` or `Panels16`: one instruction reads 64 bytes of its rows",
            ),
            Self::NotSaturating(element) => {
                element_text(format!("sums of products of {} cannot saturate", in_rust(element)))
                    .help("use i8 or u8, or `mma`, with which floats become infinite")
            }
            Self::Form { form, fault } => form_fault(*form, *fault),
            Self::StoredElement { sum, tile } => {
                element_text(format!("an accumulator of {sum} cannot be stored to a tile of {tile}"))
                    .help(stored_as(*sum))
            }
            Self::StoredMatrix { sum, matrix } => {
                element_text(format!("an accumulator of {sum} cannot be stored to a matrix of {matrix}"))
                    .help(stored_as(*sum))
            }
            Self::StoredColumns { sum, columns } => {
                shape(format!("columns are stored in multiples of 8, not {columns} of `{sum}`"))
                    .help("use a multiple of 8 columns")
            }
            Self::StoredTile { sum, tile } => {
                shape(format!("`{sum}` cannot be stored to a `{tile}`")).help(format!(
                    "use a tile of the accumulator's {} rows and a multiple of 8 columns; \
                     `sum.columns::<64>(j).store(tile)` stores some of the columns",
                    sum.rows
                ))
            }
            Self::Columns { first, columns, sum, iterations } => {
                let last = first + i128::from(*columns) - 1;
                let message = format!(
                    "columns {first} to {last} are out of bounds: `{sum}` has {} columns",
                    sum.columns
                );
                let text = Text::new(Code::IndexRange, message)
                    .help(format!("store columns from 0 to {}", sum.columns.saturating_sub(1)));
                with_iterations(text, iterations)
            }
            Self::Packed { sum, element } => {
                element_text(format!("`{sum}` cannot be packed into an operand of {element}")).help(
                    "pack f32 as f16 or bf16, or f16 as f16, which have the accumulator's register layout; \
                     pass other elements through a tile",
                )
            }
            Self::Unpacked(fragment) => element_text(format!("`{fragment}` cannot be unpacked")).help(
                "unpack f16 or bf16, whose threads hold the elements of an accumulator; read other elements \
                 from their tile",
            ),
            Self::PackedColumns(sum) => {
                shape(format!("a packed operand needs a multiple of 16 columns, which `{sum}` does not have"))
                    .help("use a multiple of 16 columns")
            }
            Self::ReducedRows(sum) => {
                element_text(format!("only rows of f32 can be reduced, not those of `{sum}`"))
                    .help("accumulate in f32")
            }
            Self::Registers(registers) => {
                let message =
                    format!("a warpgroup must request 24 to 256 registers, a multiple of 8, not {registers}");
                Text::new(Code::Registers, message).help(
                    "use, for example, 40 for a warpgroup that copies and 232 for each of two that multiply",
                )
            }
            Self::Unknown(index) => {
                let message = format!("{index} must be a constant: registers cannot be indexed at run time");
                Text::new(Code::AccumulatorIndex, message).help(match index {
                    RegisterIndex::Element => "use an unrolled loop: `for i in unroll(0..sum.len())`",
                    RegisterIndex::FirstColumn => "use an unrolled loop, such as `for j in unroll(0..4)`",
                })
            }
            Self::OpenOnOnePath { open } => {
                let message = "a multiplication is in flight on one path to the end of this statement, but \
                               not on the other";
                let text = Text::new(Code::OpenFlight, message).help(
                    "wait for it in the branch or iteration that starts it, or start one on both paths",
                );
                match open {
                    Some(span) => text.label(*span, "started here"),
                    None => text,
                }
            }
            Self::NeverAwaited { accumulator } => {
                let message = format!("this multiplication of `{accumulator}` is never waited for");
                Text::new(Code::OpenFlight, message)
                    .help("keep the flight that `mma` returns, and call its `wait()` before the kernel ends")
            }
        }
    }
}

impl Display for RegisterIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Element => "this index",
            Self::FirstColumn => "the first column",
        })
    }
}

fn warpgroups(count: u64) -> String {
    if count == 1 { "a warpgroup".to_owned() } else { format!("{count} warpgroups") }
}

pub(super) fn shape(message: String) -> Text {
    Text::new(Code::MmaShape, message)
}

pub(super) fn element_text(message: String) -> Text {
    Text::new(Code::MmaElement, message)
}

/// Suggests a replacement for a tile that cannot be an operand.
fn readable(swizzle: TileSwizzle) -> &'static str {
    match swizzle {
        TileSwizzle::None => {
            "use `Swizzle128`, which is the fastest, another swizzle, or `Panels16`, which permutes nothing: \
             the rows of an operand must be divided into panels"
        }
        TileSwizzle::Panels16
        | TileSwizzle::B32
        | TileSwizzle::B64
        | TileSwizzle::B128
        | TileSwizzle::Interleave16
        | TileSwizzle::Interleave32 => {
            "use a tile of two dimensions with `Swizzle32`, `Swizzle64`, `Swizzle128` or `Panels16`, whose \
             rows are no longer than a panel, or a multiple of it; `tile.batch(i)` selects a matrix of a \
             batch"
        }
    }
}

/// Lists the elements that an accumulator of `sum` is stored as.
fn stored_as(sum: Scalar) -> String {
    if sum == Scalar::F32 {
        "store f32 as f32, f16, bf16, e4m3 or e5m2".to_owned()
    } else {
        format!("store {sum} as {sum}: only f32 is converted")
    }
}

fn depth(found: u32, step: u32, unit: &str, of: &dyn Display) -> Text {
    shape(format!("K must be a multiple of {step} {unit}, but `{of}` has {found}"))
        .help(format!("use a multiple of {step}: one instruction reads 32 bytes of a row"))
}

fn operand_fault(fault: OperandFault, op: MmaOp, ty: &OperandType) -> Text {
    let (what, unit) = match op {
        MmaOp::Add | MmaOp::Saturating => (format!("`{}`", ty.tile.element), "elements"),
        MmaOp::AndPopc => ("single bits".to_owned(), "bits"),
    };
    match fault {
        OperandFault::Transposed => {
            element_text(format!("tensor cores can transpose only elements of 16 bits, not {what}"))
                .help("store it in shared memory with K as its last dimension")
        }
        OperandFault::Depth { k, step } => depth(k, step, unit, ty),
        OperandFault::Extent { extent, step } => shape(format!(
            "the dimension of `{ty}` other than K must be a multiple of {step}, but it is {extent}"
        ))
        .help(format!("use a multiple of {step}")),
        OperandFault::Offset => shape(format!("`{ty}` is too large for one descriptor"))
            .help("multiply parts of it: `tile.band::<64>(i)`"),
    }
}

fn form_fault(form: Form, fault: FormFault) -> Text {
    let [a, b, d] = [&form.a as &dyn Display, &form.b, &form.d].map(in_rust);
    match fault {
        FormFault::OperandTypes => element_text(format!("tensor cores cannot multiply {a} by {b}"))
            .help("use the same element type for both operands; e4m3 and e5m2 can be mixed, and i8 and u8"),
        FormFault::AccumulatorType => element_text(format!(
            "products of {a} cannot be added to an accumulator of {d}"
        ))
        .help("accumulate f16, e4m3 and e5m2 in f32 or f16, bf16 and tf32 in f32, and integers in i32"),
        FormFault::Width => shape(format!("no instruction for {a} has {} columns", form.n))
            .help("use a multiple of 8 up to 256 for floats; 8, 16, 24, 32 or a multiple of 16 for integers"),
        FormFault::Sparse => element_text(format!("an operand of {a} cannot be sparse"))
            .help("use floats or integers of 8 bits"),
    }
}

/// Returns the Rust name of a type. The model has its PTX name.
pub(super) fn in_rust(ty: &dyn Display) -> String {
    let name = ty.to_string();
    name.strip_prefix('s').map_or(name.clone(), |bits| format!("i{bits}"))
}
