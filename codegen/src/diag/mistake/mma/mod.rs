//! Tensor core operations of a warpgroup.

mod sync;

pub(crate) use sync::{Axis, MmaSync};

use std::fmt::{self, Display};

use tma_model::mma::{Form, FormFault, Operand, OperandFault};

use super::Word;
use super::limits::{Turn, in_turns};
use crate::diag::Code;
use crate::diag::text::Text;
use crate::ir::{
    AccumulatorType, FragmentType, MMA_ROWS, MmaOp, OperandType, Scalar, Span, Team, TileSwizzle, TileType,
    Type,
};
use crate::limits::{NAMED_BARRIERS, THREAD_REGISTERS, WARPGROUP_THREADS};

/// An operation that tensor cores do not support.
#[derive(Clone, Debug)]
pub(crate) enum Mma {
    /// A block whose threads, specified at `at`, are not whole warpgroups.
    Warpgroups { threads: u64, at: Span },
    /// `printf!` in a kernel with multiplications.
    Printf,
    /// `print_tile` in a kernel with multiplications.
    PrintTile,
    /// Elements that an accumulator cannot hold.
    AccumulatorElement(Scalar),
    /// Columns that an accumulator cannot have.
    AccumulatorColumns(u32),
    /// An accumulator that needs more registers than a thread has.
    AccumulatorRegisters { ty: AccumulatorType, registers: u64 },
    /// A matrix in registers whose rows are not a multiple of an instruction's.
    Rows { team: Team, ty: Type, rows: u32 },
    /// Elements that this operation cannot multiply.
    Factor { op: MmaOp, element: Scalar },
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
    Columns { first: i128, columns: u32, sum: AccumulatorType, turns: Vec<Turn> },
    /// An accumulator that cannot become an operand with these elements.
    Packed { sum: AccumulatorType, element: Scalar },
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
pub(crate) enum RegisterIndex {
    Element,
    FirstColumn,
}

impl Mma {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Warpgroups { threads, at } => {
                let message =
                    format!("a warpgroup is {WARPGROUP_THREADS} threads, and a block here has {threads}");
                Text::new(Code::Warpgroups, message)
                    .label(*at, "the threads of a block")
                    .help("take a multiple of 128 threads")
            }
            Self::Printf => {
                call("printf!").help("write what is to be seen to a `Global`, or print in another kernel")
            }
            Self::PrintTile => call("print_tile")
                .help("store the tile to a tensor, and load and print it in another kernel"),
            Self::AccumulatorElement(element) => {
                element_text(format!("an accumulator holds f32, f16 or i32, not {element}"))
                    .help("convert when it is stored: `sum.store(tile)` takes tiles of other elements")
            }
            Self::AccumulatorColumns(columns) => {
                shape(format!("an accumulator has 8 to 256 columns, a multiple of 8, not {columns}"))
                    .help("take several accumulators, or fewer columns a warpgroup")
            }
            Self::AccumulatorRegisters { ty, registers } => shape(format!(
                "`{ty}` takes {registers} registers of each thread, which has at most {THREAD_REGISTERS}"
            ))
            .help("share the rows out among more warpgroups"),
            Self::Rows { team, ty, rows } => {
                let band = team.rows();
                shape(format!("`{ty}` has {rows} rows; tensor cores work on multiples of {band}")).help(
                    match team {
                        Team::Warpgroup => "take 64 or 128 rows a warpgroup",
                        Team::Warp => "take 16 or 32 rows a warp",
                    },
                )
            }
            Self::Factor { op: MmaOp::Add | MmaOp::Saturating, element } => {
                element_text(format!("tensor cores do not multiply elements of type `{element}`")).help(
                    "they take f16, bf16, tf32, e4m3, e5m2, i8 and u8; make `f32` a `tf32` when it is stored to the \
                     tile",
                )
            }
            Self::Factor { op: MmaOp::AndPopc, element } => {
                element_text(format!("tensor cores do not multiply the bits of elements of type `{element}`"))
                    .help("`mma_and_popc` takes tiles of u8, u16, u32 and u64, and a fragment of u8 on the left")
            }
            Self::FragmentDepth { ty, step } => depth((ty.columns, *step, "elements"), ty),
            Self::Negated(element) => element_text(format!("tensor cores do not negate `{element}`"))
                .help("only floats are negated on the way; negate integers before they are stored"),
            Self::OperandTile(tile) => {
                shape(format!("tensor cores do not read `{tile}`")).help(readable(tile.swizzle))
            }
            Self::Operand { op, ty, fault } => operand_fault(*fault, *op, ty),
            Self::LeftRows { found, wanted } => {
                shape(format!("the left operand has {found} rows, and the accumulator {wanted}"))
                    .help("a warpgroup multiplies its own rows: `tile.band::<64>(i)`")
            }
            Self::RightRows { found, wanted } => {
                shape(format!("the right operand has {found} rows, and the accumulator {wanted} columns")).help(
                    "the right operand has a row for each column: B is stored N × K, or `.t()` takes K × N",
                )
            }
            Self::Depths { left, right } => {
                shape(format!("the left operand has {left} elements a row, and the right one {right}"))
                    .help("both are summed along their last dimension, or with `.t()` along the first")
            }
            Self::SparseRight => {
                element_text("only the left operand of a multiplication is sparse".to_owned()).help(
                    "the right one has all of its elements: multiply the transposed matrices the other way round",
                )
            }
            Self::Metadata { element, found, wanted, rows, depth } => {
                let message = format!(
                    "metadata of {found} registers, but that of {rows} rows of {depth} elements has {wanted}"
                );
                Text::new(Code::SparseMetadata, message).help(format!(
                    "a register is for {MMA_ROWS} rows and {} elements of each: an array of {wanted}",
                    64 * 16 / element.bits().max(16)
                ))
            }
            Self::SparseSpan(ty) => shape(format!("a sparse operand is not multiplied by `{ty}`")).help(
                "one instruction takes 64 bytes of its rows: take `Swizzle64`, `Swizzle128` or `Panels16`",
            ),
            Self::NotSaturating(element) => {
                element_text(format!("sums of products of {} do not saturate", in_rust(element)))
                    .help("those of i8 and u8 do; floats become infinite with `mma`")
            }
            Self::Form { form, fault } => form_fault(*form, *fault),
            Self::StoredElement { sum, tile } => {
                element_text(format!("an accumulator of {sum} is not stored to a tile of {tile}")).help(
                    "f32 is converted to f32, f16, bf16, e4m3 and e5m2; others are stored as they are",
                )
            }
            Self::StoredMatrix { sum, matrix } => {
                element_text(format!("an accumulator of {sum} is not stored to a matrix of {matrix}")).help(
                    "f32 is converted to f32, f16, bf16, e4m3 and e5m2; others are stored as they are",
                )
            }
            Self::StoredColumns { sum, columns } => {
                shape(format!("{columns} columns of `{sum}` are not stored together"))
                    .help("take a multiple of 8 columns")
            }
            Self::StoredTile { sum, tile } => {
                shape(format!("`{sum}` is not stored to a `{tile}`")).help(format!(
                    "the tile has the accumulator's {} rows, and a multiple of 8 columns: \
                     `sum.columns::<64>(j).store(tile)` stores some of them",
                    sum.rows
                ))
            }
            Self::Columns { first, columns, sum, turns } => {
                let last = first + i128::from(*columns) - 1;
                let message = format!("columns {first} to {last} of `{sum}`, which has {}", sum.columns);
                let text = Text::new(Code::IndexRange, message).help("store as many columns as there are");
                in_turns(text, turns)
            }
            Self::Packed { sum, element } => {
                element_text(format!("`{sum}` does not become an operand of {element}")).help(
                    "f32 becomes f16 or bf16, whose fragments lie in the threads as accumulators do; others go \
                     through a tile",
                )
            }
            Self::PackedColumns(sum) => {
                shape(format!("`{sum}` becomes an operand of whole steps of 16 columns only"))
                    .help("take a multiple of 16 columns")
            }
            Self::ReducedRows(sum) => {
                element_text(format!("rows of `{sum}` are not reduced; those of f32 are"))
                    .help("accumulate in f32")
            }
            Self::Registers(registers) => {
                let message =
                    format!("a warpgroup asks for 24 to 256 registers, a multiple of 8, not {registers}");
                Text::new(Code::Registers, message)
                    .help("40 for a warpgroup that copies and 232 for two that multiply are a common choice")
            }
            Self::Unknown(index) => {
                let message = format!(
                    "{index} is not known when the kernel is compiled, and registers are picked then"
                );
                Text::new(Code::AccumulatorIndex, message)
                    .help("count with a loop that is unrolled: `for i in unroll(0..sum.len())`")
            }
            Self::OpenOnOnePath { open } => {
                let message =
                    "multiplications are under way on one path to the end of this, and not on the other";
                let text = Text::new(Code::OpenFlight, message).help(
                    "wait for it in the branch or the turn that starts it, or start one on both paths",
                );
                match open {
                    Some(span) => text.label(*span, "this one"),
                    None => text,
                }
            }
            Self::NeverAwaited { accumulator } => {
                let message = format!("nobody waits for this multiplication of `{accumulator}`");
                Text::new(Code::OpenFlight, message)
                    .help("keep what `mma` gives, and call its `wait()` before the kernel ends")
            }
        }
    }
}

/// A mistake in the collective operations or the shared resources of a warpgroup.
#[derive(Clone, Debug)]
pub(crate) enum Warpgroup {
    /// A collective operation at a point where threads may have diverged, and the cause.
    Parted { word: Word, of_warp: bool, why: Option<(Difference, Span)> },
    /// A collective operation with an argument that differs among its threads, and the cause.
    Given { word: Word, of_warp: bool, why: Option<(Difference, Span)> },
    /// More warpgroups to synchronise than there are free barriers. `named` and `greatest` are the
    /// count and the largest number of the barriers that the kernel names. `computed` is the
    /// location of a number that is computed.
    Barriers { warpgroups: usize, named: usize, greatest: u32, computed: Option<Span> },
    /// A change of a warpgroup's register count in the wrong direction.
    Direction { increases: bool, registers: u32, has: u32, begins: u32 },
    /// The warpgroups' final register counts exceed those they begin with. `fits` registers would
    /// fit here. `given` is a warpgroup that releases some.
    Pool { ends: Vec<u32>, begins: u32, fits: u32, given: Option<(u32, Span)> },
}

/// The cause of a difference between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    Thread,
    Lane,
    Warp,
    Elected,
    Atomic,
    Elements,
    Lanes,
    Asked,
}

impl Warpgroup {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Parted { word, of_warp, why } => {
                let who = threads_of(*of_warp);
                let message = format!("`{word}` where not all {who} may come, which do it together");
                because(Text::new(Code::Divergent, message), "here they part", *why)
                    .help("let conditions around it depend on `warpgroup_idx()`, or on what all threads have")
            }
            Self::Given { word, of_warp, why } => {
                let who = threads_of(*of_warp);
                let message = format!("`{word}` is given what differs among the {who}, which do it together");
                because(Text::new(Code::Divergent, message), "here it begins to differ", *why)
                    .help("compute it from `warpgroup_idx()` and from what all threads have")
            }
            Self::Barriers { warpgroups, named, greatest, computed } => {
                let all = NAMED_BARRIERS - 1;
                let help =
                    "name fewer barriers, from 1 on, or let warpgroups meet at barriers that are named";
                match computed {
                    None => {
                        let message = format!(
                            "the {warpgroups} warpgroups need a barrier each, but of {all} the kernel names {named}"
                        );
                        Text::new(Code::WarpgroupBarriers, message).help(help)
                    }
                    Some(span) => {
                        let message = format!(
                            "the {warpgroups} warpgroups take the last of the {all} barriers, but the kernel names \
                             number {greatest} itself"
                        );
                        Text::new(Code::WarpgroupBarriers, message)
                            .label(*span, "this number is computed, so that it may be any of the others")
                            .help(help)
                    }
                }
            }
            Self::Direction { increases, registers, has, begins } => {
                let (word, other) = if *increases { ("inc", "fewer") } else { ("dec", "more") };
                let message = format!(
                    "`setmaxnreg_{word}::<{registers}>` of a warpgroup whose threads have {has} registers, which is \
                     {other}"
                );
                Text::new(Code::RegisterPool, message)
                    .note(format!("the block's threads begin with {begins} registers each"))
                    .help(
                        "a warpgroup that multiplies takes more with `setmaxnreg_inc`, one that copies gives some \
                         back with `setmaxnreg_dec`",
                    )
            }
            Self::Pool { ends, begins, fits, given } => {
                let message = format!(
                    "the threads of all warpgroups ask for {} registers, but they begin with {}: this increase would \
                     wait forever",
                    sum(ends),
                    sum(&vec![*begins; ends.len()])
                );
                let text = Text::new(Code::RegisterPool, message)
                    .help(format!("take {fits} here, or let warpgroups that copy keep fewer"));
                match given {
                    Some((registers, span)) => {
                        text.label(*span, format!("this leaves {registers} to each thread of its warpgroup"))
                    }
                    None => text,
                }
            }
        }
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Thread => "it differs from thread to thread",
            Self::Lane => "each lane has a number of its own",
            Self::Warp => "each warp has a number of its own",
            Self::Elected => "it is true in one thread of each warp",
            Self::Atomic => "each thread gets what was there before it",
            Self::Elements => "each thread has elements of its own",
            Self::Lanes => "each warp has a result of its own",
            Self::Asked => "each thread asks at a time of its own",
        })
    }
}

fn threads_of(of_warp: bool) -> &'static str {
    if of_warp { "threads of a warp" } else { "threads of a warpgroup" }
}

fn because(text: Text, what: &str, why: Option<(Difference, Span)>) -> Text {
    match why {
        Some((difference, span)) => text.label(span, format!("{what}: {difference}")),
        None => text,
    }
}

/// Formats a sum, with equal terms combined: `40 + 2 × 232 = 504`.
fn sum(numbers: &[u32]) -> String {
    let mut terms: Vec<(u32, u32)> = vec![];
    for &number in numbers {
        match terms.iter_mut().find(|(known, _)| *known == number) {
            Some((_, times)) => *times += 1,
            None => terms.push((number, 1)),
        }
    }
    let term = |(number, times): &(u32, u32)| match times {
        1 => number.to_string(),
        _ => format!("{times} × {number}"),
    };
    let written: Vec<_> = terms.iter().map(term).collect();
    match terms.as_slice() {
        [(only, 1)] => only.to_string(),
        _ => format!("{} = {}", written.join(" + "), numbers.iter().sum::<u32>()),
    }
}

impl Display for RegisterIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Element => "the index",
            Self::FirstColumn => "the first of the columns",
        })
    }
}

/// Returns the text for a call of this word.
fn call(word: &str) -> Text {
    let message = format!(
        "`{word}` in a kernel with tensor cores: the call would make each multiplication wait for itself"
    );
    Text::new(Code::MmaCall, message)
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
            "its rows lie one after the other, and an operand's in panels: take `Swizzle128`, which is the fastest, \
             another swizzle, or `Panels16`, which permutes nothing"
        }
        TileSwizzle::Panels16
        | TileSwizzle::B32
        | TileSwizzle::B64
        | TileSwizzle::B128
        | TileSwizzle::Interleave16
        | TileSwizzle::Interleave32 => {
            "an operand is a tile of two dimensions with `Swizzle32`, `Swizzle64`, `Swizzle128` or `Panels16`, whose \
             rows are no longer than a panel, or a multiple of it; `tile.batch(i)` is a matrix of a batch"
        }
    }
}

fn depth((found, step, unit): (u32, u32, &str), of: &dyn Display) -> Text {
    shape(format!("`{of}` is multiplied along {found} {unit}, which is not a multiple of {step}"))
        .help(format!("one instruction takes 32 bytes of a row: make it {step} or more"))
}

fn operand_fault(fault: OperandFault, op: MmaOp, ty: &OperandType) -> Text {
    let (what, unit) = match op {
        MmaOp::Add | MmaOp::Saturating => (format!("`{}`", ty.tile.element), "elements"),
        MmaOp::AndPopc => ("single bits".to_owned(), "bits"),
    };
    match fault {
        OperandFault::Transposed => {
            element_text(format!("tensor cores transpose elements of 16 bits only, not {what}"))
                .help("keep it in shared memory with the dimension that is summed last")
        }
        OperandFault::Depth { k, step } => depth((k, step, unit), ty),
        OperandFault::Extent { extent, step } => shape(format!(
            "`{ty}` has {extent} rows along which is not summed, which is not a multiple of {step}"
        ))
        .help(format!("make it a multiple of {step}")),
        OperandFault::Offset => shape(format!("`{ty}` is too large for one descriptor"))
            .help("multiply parts of it: `tile.band::<64>(i)`"),
    }
}

fn form_fault(form: Form, fault: FormFault) -> Text {
    let [a, b, d] = [&form.a as &dyn Display, &form.b, &form.d].map(in_rust);
    match fault {
        FormFault::Pair => element_text(format!("tensor cores do not multiply {a} by {b}"))
            .help("both operands have one element type; e4m3 and e5m2 mix, and so do i8 and u8"),
        FormFault::Accumulated => {
            element_text(format!("products of {a} are not added to an accumulator of {d}"))
                .help("f16, e4m3 and e5m2 take f32 or f16, bf16 and tf32 take f32, integers take i32")
        }
        FormFault::Width => shape(format!("no instruction for {a} has {} columns", form.n))
            .help("floats take every multiple of 8 up to 256; integers 8, 16, 24, 32 and multiples of 16"),
        FormFault::Sparse => {
            element_text(format!("an operand of {a} is not sparse")).help("floats and integers of 8 bits are")
        }
    }
}

/// Returns the Rust name of a type. The model has its PTX name.
pub(super) fn in_rust(ty: &dyn Display) -> String {
    let name = ty.to_string();
    name.strip_prefix('s').map_or(name.clone(), |bits| format!("i{bits}"))
}
