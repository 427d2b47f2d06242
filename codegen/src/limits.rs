//! The compiler's own bounds, on top of the hardware's: how much it is willing to write out.

pub use tma_model::limits::*;

/// The most tiles in a stage of a pipeline: as many as tuples of tiles are known to rustc
/// (`tma_runtime::lang::Tiles`).
pub const PIPELINE_TILES: usize = 6;

/// The most elements of an array of a thread's own. Four times as many as a thread has registers:
/// what is larger lies in local memory in any case, and takes the compiler long.
pub const REGISTER_ARRAY_ELEMENTS: u64 = 1024;

/// The most turns of a loop that `unroll` writes out. No instruction cache holds what is longer.
pub const UNROLLED_TURNS: i128 = 1024;

/// The most operations that a kernel has when its functions are inlined and its loops unrolled:
/// statements, and the nodes of their expressions. LLVM takes some minutes for so many, and its
/// time grows faster than they do.
pub const KERNEL_OPERATIONS: u64 = 100_000;

/// The most operations that all instances of a kernel have together: at some 30 microseconds each,
/// LLVM takes two minutes for so many. The largest kernel of this repository has a million.
pub const INSTANCES_OPERATIONS: u64 = 40 * KERNEL_OPERATIONS;

/// The most bytes of LLVM IR of a kernel that is optimised in full. Several passes take time in
/// proportion to the square of a kernel's size: at 3 MiB one pass takes seven seconds.
pub const OPTIMISED_BYTES: usize = 1 << 20;

/// The same limit for kernels with tensor cores, whose multiplications ptxas serialises unless LLVM
/// leaves accumulators in registers of their own. The largest of this repository has half as many.
pub const OPTIMISED_MMA_BYTES: usize = 5 << 20;

/// The most instances that the products of one kernel's attribute make. LLVM compiles each of them
/// in every build, for which a few lists of ten values would be a mistake.
pub const PRODUCT_INSTANCES: usize = 256;

/// The most elements of a tile that is printed. So many arguments of 8 bytes take half of the
/// buffer that a GPU prints to, and their text fits the simulator's. Source: CUDA C++ Programming
/// Guide, "Formatted Output", limitations: 1 MiB.
pub const PRINTED_ELEMENTS: u64 = 1 << 16;

/// Alignment given to scalar arrays in shared memory, so that vector access is possible.
pub const ARRAY_ALIGNMENT: u64 = 16;
