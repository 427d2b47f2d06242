//! Numbers outside of limits that the hardware or the compiler imposes.

use std::fmt;

use super::Word;
use crate::diag::Code;
use crate::diag::text::Text;
use crate::diag::wording::axis;
use crate::ir::{Scalar, ShuffleOp, TileType};
use crate::limits;

/// A number that is out of range.
#[derive(Clone, Debug)]
pub enum Limits {
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
    Index { value: i128, of: Indexed, len: u32, iterations: Vec<UnrolledIteration> },
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
    UnrolledIterations(i128),
    /// An unrolled loop whose body is too large to be repeated this often.
    UnrolledSize { iterations: u64, body: u64 },
    /// A kernel that is too large.
    KernelSize { kernel: String, operations: u64 },
    /// Instances that have too many operations together, up to the first one that is rejected.
    InstancesSize { kernel: String, operations: u64 },
    /// A register array that is indexed at run time.
    LocalArray { name: String, bytes: u64 },
    /// A kernel that becomes too large while its functions are inlined.
    Growth { labels: u32 },
}

/// The object that an index selects from. The message states its length.
#[derive(Clone, Copy, Debug)]
pub enum Indexed {
    /// A dimension of a tile that has `rank` of them.
    Tile {
        dimension: usize,
        rank: usize,
    },
    Array,
    Stages,
    Registers,
}

/// An iteration of an unrolled loop: its variable and its value.
#[derive(Clone, Debug)]
pub struct UnrolledIteration {
    pub variable: String,
    pub value: i128,
}

/// Adds a note with the iterations of unrolled loops in which the mistake occurs.
pub(super) fn with_iterations(text: Text, iterations: &[UnrolledIteration]) -> Text {
    let iterations: Vec<_> = iterations
        .iter()
        .map(|UnrolledIteration { variable, value }| format!("`{variable}` is {value}"))
        .collect();
    match iterations.as_slice() {
        [] => text,
        iterations => {
            text.note(format!("in the iteration of the unrolled loop where {}", iterations.join(" and ")))
        }
    }
}

/// A count of an mbarrier.
#[derive(Clone, Copy, Debug)]
pub enum BarrierCount {
    Arrivals,
    Bytes,
}

impl BarrierCount {
    /// Returns the smallest and the largest valid value.
    pub fn range(self) -> (i128, i128) {
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
                    "a block has 1 to {} threads, and at most {} along z, not {x} × {y} × {z}",
                    limits::BLOCK_THREADS,
                    limits::BLOCK_THREADS_Z
                );
                Text::new(Code::ThreadCount, message).help(if [x, y, z].contains(&&0) {
                    "use at least one thread in each dimension"
                } else if *z > limits::BLOCK_THREADS_Z {
                    "use fewer threads along z"
                } else {
                    "let each thread do more work, or launch more blocks"
                })
            }
            Self::Registers(registers) => {
                let most = limits::THREAD_REGISTERS;
                Text::new(Code::LaunchBounds, format!("a thread has 1 to {most} registers, not {registers}"))
                    .help(format!("set `max_registers` to a number from 1 to {most}"))
            }
            Self::BlockRegisters { threads, registers } => {
                let allocated = limits::allocated_threads(*threads);
                let (needed, there) = (u64::from(*registers) * allocated, limits::MULTIPROCESSOR_REGISTERS);
                let message = format!(
                    "a multiprocessor has {there} registers, but {allocated} threads with {registers} \
                     registers need {needed}"
                );
                let text = Text::new(Code::LaunchBounds, message);
                let text = match allocated == *threads {
                    true => text,
                    false => text.note(format!(
                        "a block of {threads} threads is allocated the registers of whole warpgroups"
                    )),
                };
                text.help("lower `max_registers`, or use fewer threads")
            }
            Self::Blocks { blocks, threads, most } => {
                let message =
                    format!("a multiprocessor holds 1 to {most} blocks of {threads} threads, not {blocks}");
                Text::new(Code::LaunchBounds, message).help(match blocks {
                    0 => "remove `min_blocks`, or set it to 1 or more",
                    _ => "lower `min_blocks`, or use fewer threads",
                })
            }
            Self::Parameters { bytes } => {
                let most = limits::PARAM_BYTES;
                Text::new(
                    Code::ParameterBytes,
                    format!("the parameters take {bytes} bytes, but a launch passes at most {most}"),
                )
                .help("pass less by value: move scalars into a `Global<T>`")
            }
            Self::Index { value, of, len, iterations } => {
                let message = format!("index {value} is out of bounds: {}", of.length(*len));
                with_iterations(Text::new(Code::IndexRange, message), iterations)
            }
            Self::PrintedTile { tile, elements } => {
                let most = limits::PRINTED_ELEMENTS;
                let message =
                    format!("at most {most} elements can be printed at a time, but `{tile}` has {elements}");
                Text::new(Code::PrintedTile, message).help(
                    "print a part of it, `print_tile(tile.band::<64>(i))`, or single values with `printf!`",
                )
            }
            Self::Barrier { count, value } => {
                let (least, most) = count.range();
                let message = format!("the {count} of a barrier must be {least} to {most}, not {value}");
                Text::new(Code::BarrierCount, message)
            }
            Self::Parity(value) => {
                Text::new(Code::Parity, format!("the parity of a phase must be 0 or 1, not {value}")).help(
                    "use `n & 1` for the n-th phase, counted from 0: the parities of a barrier alternate",
                )
            }
            Self::NamedBarrier(id) => {
                let last = limits::NAMED_BARRIERS - 1;
                let message = format!("the number of a named barrier must be 1 to {last}, not {id}");
                Text::new(Code::NamedBarrier, message)
                    .help(format!("use a number from 1 to {last}; for all threads, call `sync_threads()`"))
            }
            Self::NamedBarrierThreads(count) => {
                let warp = limits::WARP_THREADS;
                let message = format!(
                    "a named barrier synchronises whole warps, but {count} threads are not a multiple of \
                     {warp}"
                );
                Text::new(Code::NamedBarrier, message).help("count all threads of each warp")
            }
            Self::Lane { op, value } => {
                let what = match op {
                    ShuffleOp::Xor => "the lane mask",
                    ShuffleOp::Up | ShuffleOp::Down => "the lane distance",
                    ShuffleOp::Idx => "the lane",
                };
                let lanes = limits::WARP_THREADS;
                let last = lanes - 1;
                Text::new(Code::IndexRange, format!("{what} of a shuffle must be 0 to {last}, not {value}"))
                    .help(format!("use a number from 0 to {last}: a warp has {lanes} lanes"))
            }
            Self::PartialWarp { word, scalar, threads } => {
                let lanes = limits::WARP_THREADS;
                let message = format!(
                    "`{word}` of `{scalar}` needs all {lanes} lanes of a warp, but with {threads} threads \
                     the block's last warp has {}",
                    threads % u64::from(lanes)
                );
                Text::new(Code::PartialWarp, message)
                    .note(format!("the kernel has {threads} threads per block"))
                    .help(format!(
                        "use a multiple of {lanes} threads; let those without data reduce a value that does \
                         not change the result"
                    ))
            }
            Self::Step => Text::new(Code::ConstantValue, "a loop with a step of 0 never ends")
                .help("use a step of 1 or more"),
            Self::UnrolledBounds => Text::new(Code::NotConstant, "the bounds of `unroll` must be constants")
                .help("use constants, or remove `unroll`"),
            Self::UnrolledIterations(iterations) => {
                let most = limits::MAX_UNROLLED_ITERATIONS;
                Text::new(
                    Code::UnsupportedExpression,
                    format!("`unroll` supports at most {most} iterations, not {iterations}"),
                )
                .help("remove `unroll`, or unroll an inner loop instead")
            }
            Self::UnrolledSize { iterations, body } => {
                let (found, most) = (body.saturating_mul(*iterations), limits::KERNEL_OPERATIONS);
                let message = format!(
                    "a kernel has at most {most} operations, but this loop has {found} when unrolled: \
                     {iterations} iterations of {body}"
                );
                Text::new(Code::KernelSize, message).help(
                    "remove `unroll` here or from an inner loop: each iteration contains all iterations of \
                     inner loops",
                )
            }
            Self::KernelSize { kernel, operations } => {
                let message = format!(
                    "a kernel has at most {} operations, but `{kernel}` has {operations} after inlining and \
                     unrolling",
                    limits::KERNEL_OPERATIONS
                );
                Text::new(Code::KernelSize, message)
                    .help("unroll fewer loops, call device functions in loops, or split the kernel")
            }
            Self::InstancesSize { kernel, operations } => {
                let message = format!(
                    "the instances of a kernel have at most {} operations in total, but those of `{kernel}` \
                     have {operations} up to this one",
                    limits::INSTANCES_OPERATIONS
                );
                Text::new(Code::KernelSize, message)
                    .help("list fewer instances, unroll fewer loops, or split the kernel")
            }
            Self::LocalArray { name, bytes } => {
                let message = format!(
                    "an array in local memory: `{name}` is indexed by a value that is not known at compile \
                     time, and takes {bytes} bytes of each thread's local memory"
                );
                Text::new(Code::LocalArray, message).note("registers have no addresses").help(
                    "use `for i in unroll(..)` and constant indices, or a `SharedArray`; if it is intended, \
                     write `#[tma_kernel(.., local_arrays)]`",
                )
            }
            Self::Growth { labels } => {
                let message = format!(
                    "this kernel has more than {labels} loops and inlined calls, or more than {} statements",
                    limits::KERNEL_OPERATIONS
                );
                Text::new(Code::KernelSize, message)
                    .help("call device functions in loops, or less often: each call is inlined")
            }
        }
    }
}

impl Indexed {
    /// States the length.
    fn length(self, len: u32) -> String {
        match self {
            Self::Tile { dimension, rank } => match axis(dimension, rank) {
                Some(axis) => format!("the tile has {len} {axis}s"),
                None => format!("the tile's extent in dimension {dimension} is {len}"),
            },
            Self::Array => format!("the array has {len} elements"),
            Self::Stages => format!("there are {len} stages"),
            Self::Registers => format!("a thread holds {len} elements"),
        }
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
