//! Numbers outside of limits that the hardware or the compiler imposes.

use std::fmt;

use super::Word;
use crate::diag::Code;
use crate::diag::text::Text;
use crate::ir::{Scalar, ShuffleOp, TileType};
use crate::limits;

/// A number that is out of range.
#[derive(Clone, Debug)]
pub(crate) enum Limits {
    /// Threads of a block.
    Threads([u32; 3]),
    /// Registers of a thread.
    Registers(u32),
    /// Registers of a block with this many threads.
    BlockRegisters { threads: u64, registers: u32 },
    /// Blocks per multiprocessor, of which at most `most` fit.
    Blocks { blocks: u32, threads: u64, most: u64 },
    /// Bytes of a kernel's parameters.
    Parameters { bytes: u64 },
    /// An index.
    Index { value: i128, of: Indexed, len: u32, turns: Vec<Turn> },
    /// A printed tile with this many elements.
    PrintedTile { tile: TileType, elements: u64 },
    /// A count of an mbarrier.
    Barrier { count: BarrierCount, value: i128 },
    /// A parity of a phase.
    Parity(i128),
    /// Number of a named barrier.
    NamedBarrier(i128),
    /// Number of threads that synchronise at a named barrier.
    NamedBarrierThreads(i128),
    /// Operand of a shuffle.
    Lane { op: ShuffleOp, value: i128 },
    /// A warp reduction in a block whose last warp is incomplete.
    PartialWarp { word: Word, scalar: Scalar, threads: u64 },
    /// A step of 0.
    Step,
    /// An unrolled loop whose bounds are not known.
    UnrolledBounds,
    /// An unrolled loop with this many iterations.
    UnrolledTurns(i128),
    /// An unrolled loop whose body is too large to be repeated this often.
    UnrolledSize { turns: u64, body: u64 },
    /// A kernel that is too large.
    KernelSize { kernel: String, operations: u64 },
    /// Instances that have too many operations together, up to the first one that is rejected.
    InstancesSize { kernel: String, operations: u64 },
    /// A kernel that becomes too large while its functions are inlined.
    Growth { labels: u32 },
}

/// The object that an index selects from. The message states its length.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Indexed {
    Tile,
    Array,
    Stages,
    Registers,
}

/// An iteration of an unrolled loop: its variable and its value.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) variable: String,
    pub(crate) value: i128,
}

/// Adds a note with the iterations of unrolled loops in which the mistake occurs.
pub(super) fn in_turns(text: Text, turns: &[Turn]) -> Text {
    let turns: Vec<_> =
        turns.iter().map(|Turn { variable, value }| format!("`{variable}` is {value}")).collect();
    match turns.as_slice() {
        [] => text,
        turns => text.note(format!("in the turn of the unrolled loop in which {}", turns.join(" and "))),
    }
}

/// A count of an mbarrier.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BarrierCount {
    Arrivals,
    Bytes,
}

impl BarrierCount {
    /// Returns the smallest and the largest valid value.
    pub(crate) fn range(self) -> (i128, i128) {
        match self {
            Self::Arrivals => (1, limits::BARRIER_ARRIVALS.into()),
            Self::Bytes => (0, limits::BARRIER_BYTES_EXPECTED.into()),
        }
    }
}

impl Limits {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Threads([x, y, z]) => {
                let message = format!(
                    "a block of {x} × {y} × {z} threads; there may be 1 to {}, and at most {} along z",
                    limits::BLOCK_THREADS,
                    limits::BLOCK_THREADS_Z
                );
                Text::new(Code::ThreadCount, message).help("let each thread do more, or launch more blocks")
            }
            Self::Registers(registers) => {
                let most = limits::THREAD_REGISTERS;
                Text::new(Code::LaunchBounds, format!("a thread has 1 to {most} registers, not {registers}"))
                    .help("lower `max_registers`, or take fewer threads")
            }
            Self::BlockRegisters { threads, registers } => {
                let (needed, there) = (u64::from(*registers) * threads, limits::MULTIPROCESSOR_REGISTERS);
                let message = format!(
                    "{threads} threads with {registers} registers need {needed}, but there are {there}"
                );
                Text::new(Code::LaunchBounds, message).help("lower `max_registers`, or take fewer threads")
            }
            Self::Blocks { blocks, threads, most } => {
                let message =
                    format!("{blocks} blocks of {threads} threads on a multiprocessor; 1 to {most} fit");
                Text::new(Code::LaunchBounds, message).help("lower `min_blocks`")
            }
            Self::Parameters { bytes } => {
                let most = limits::PARAM_BYTES;
                Text::new(
                    Code::ParameterBytes,
                    format!("the parameters take {bytes} bytes; a launch carries {most}"),
                )
                .help("pass less by value: put scalars into a `Global<T>`")
            }
            Self::Index { value, of, len, turns } => in_turns(
                Text::new(Code::IndexRange, format!("index {value} is out of range: {of} is {len}")),
                turns,
            ),
            Self::PrintedTile { tile, elements } => {
                let most = limits::PRINTED_ELEMENTS;
                let message =
                    format!("`{tile}` has {elements} elements, and at most {most} are printed at a time");
                Text::new(Code::PrintedTile, message).help(
                    "print a part of it: `print_tile(tile.band::<64>(i))`, or single values with `printf!`",
                )
            }
            Self::Barrier { count, value } => {
                let (least, most) = count.range();
                let message = format!("the {count} of a barrier is {least} to {most}, not {value}");
                Text::new(Code::BarrierCount, message)
            }
            Self::Parity(value) => {
                Text::new(Code::Parity, format!("the parity of a phase is 0 or 1, not {value}"))
                    .help("a barrier's phases alternate: the n-th one, from 0, has parity `n & 1`")
            }
            Self::NamedBarrier(id) => {
                let message = format!("named barriers are 1 to {}, not {id}", limits::NAMED_BARRIERS - 1);
                Text::new(Code::NamedBarrier, message).help("number 0 is `sync_threads()`")
            }
            Self::NamedBarrierThreads(count) => {
                let warp = limits::WARP_THREADS;
                let message =
                    format!("whole warps meet at a barrier: {count} threads are not a multiple of {warp}");
                Text::new(Code::NamedBarrier, message).help("count every thread of each warp")
            }
            Self::Lane { op, value } => {
                let what = match op {
                    ShuffleOp::Xor => "a mask of lanes",
                    ShuffleOp::Up | ShuffleOp::Down => "a distance between lanes",
                    ShuffleOp::Idx => "a lane",
                };
                let lanes = limits::WARP_THREADS;
                Text::new(Code::IndexRange, format!("{what} is 0 to {}, not {value}", lanes - 1))
                    .help(format!("a warp has {lanes} lanes"))
            }
            Self::PartialWarp { word, scalar, threads } => {
                let lanes = limits::WARP_THREADS;
                let message = format!(
                    "`{word}` of `{scalar}` reads all {lanes} lanes, but with {threads} threads the block's last warp \
                     has {}",
                    threads % u64::from(lanes)
                );
                Text::new(Code::PartialWarp, message)
                    .note(format!("the kernel has `threads` of {threads} in all"))
                    .help(format!(
                        "take a multiple of {lanes} threads; those without data reduce a value that changes nothing"
                    ))
            }
            Self::Step => Text::new(Code::ConstantValue, "a step of 0 never ends").help("step by 1 or more"),
            Self::UnrolledBounds => {
                Text::new(Code::NotConstant, "`unroll` needs bounds known at compile time")
                    .help("use constants, or leave `unroll` out")
            }
            Self::UnrolledTurns(turns) => {
                let most = limits::UNROLLED_TURNS;
                Text::new(
                    Code::UnsupportedExpression,
                    format!("`unroll` writes out at most {most} turns, not {turns}"),
                )
                .help("leave `unroll` out, or unroll an inner loop")
            }
            Self::UnrolledSize { turns, body } => {
                let (found, most) = (body.saturating_mul(*turns), limits::KERNEL_OPERATIONS);
                let message = format!(
                    "unrolled, this loop is {turns} times {body} operations, {found} in all; a kernel has at most \
                     {most}"
                );
                Text::new(Code::KernelSize, message).help(
                    "leave `unroll` out here or in a loop inside: each turn holds all turns of the loops in it",
                )
            }
            Self::KernelSize { kernel, operations } => {
                let message = format!(
                    "`{kernel}` has {operations} operations, with its functions inlined and its loops unrolled; a \
                     kernel has at most {}",
                    limits::KERNEL_OPERATIONS
                );
                Text::new(Code::KernelSize, message)
                    .help("unroll fewer loops, call device functions in loops, or make several kernels of it")
            }
            Self::InstancesSize { kernel, operations } => {
                let message = format!(
                    "the instances of `{kernel}` are too large together: {operations} operations so far, of at most \
                     {}",
                    limits::INSTANCES_OPERATIONS
                );
                Text::new(Code::KernelSize, message)
                    .help("list fewer instances, unroll fewer loops, or make several kernels of it")
            }
            Self::Growth { labels } => {
                let message = format!(
                    "this kernel has grown to more than {labels} loops and inlined calls, or {} statements",
                    limits::KERNEL_OPERATIONS
                );
                Text::new(Code::KernelSize, message)
                    .help("device functions are inlined at each call: call them in loops, or fewer times")
            }
        }
    }
}

impl fmt::Display for Indexed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tile => "the tile's extent here",
            Self::Array => "the array's length",
            Self::Stages => "the number of stages",
            Self::Registers => "the number of elements that a thread holds",
        })
    }
}

impl fmt::Display for BarrierCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Arrivals => "arrival count",
            Self::Bytes => "transaction count",
        })
    }
}
