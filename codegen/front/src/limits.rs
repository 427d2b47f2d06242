//! The compiler's own limits, in addition to those of the hardware: they bound the size of its
//! output.

pub use tma_model::limits::*;

/// The maximum number of tiles in a stage of a pipeline. It is the maximum length of tuples of
/// tiles in `tma_runtime::lang::Tiles`.
pub const PIPELINE_TILES: usize = 6;

/// The maximum number of elements of a register array: four times the registers of a thread. A
/// larger array would be in local memory anyway, and takes long to compile.
pub const REGISTER_ARRAY_ELEMENTS: u64 = 1024;

/// The maximum number of statements that the evaluation of one constant may run.
pub const CONSTANT_STEPS: u64 = 100_000;

/// The maximum number of iterations of a loop with `unroll`. Longer code fits in no instruction
/// cache.
pub const MAX_UNROLLED_ITERATIONS: i128 = 1024;

/// The maximum number of operations in a kernel after inlining and unrolling: statements, and the
/// nodes of their expressions. LLVM takes some minutes for this many, and its time grows faster
/// than linearly.
pub const KERNEL_OPERATIONS: u64 = 100_000;

/// The maximum number of operations in all instances of a kernel together. At about 30 microseconds
/// each, LLVM takes two minutes for this many. The largest kernel of this repository has a million.
pub const INSTANCES_OPERATIONS: u64 = 40 * KERNEL_OPERATIONS;

/// The maximum size in bytes of a kernel's LLVM IR for full optimisation. Several passes take time
/// quadratic in a kernel's size: at 3 MiB, one pass takes seven seconds.
pub const OPTIMISED_BYTES: usize = 1 << 20;

/// The same limit for kernels with tensor core multiplications. Without it, operands are in local
/// memory, and ptxas serialises those of warpgroups. The largest of this repository has half this size.
pub const OPTIMISED_MMA_BYTES: usize = 5 << 20;

/// The maximum number of instances from the products in one kernel's attribute. LLVM compiles each
/// of them in every build, so a few lists of ten values would be a mistake.
pub const PRODUCT_INSTANCES: usize = 256;

/// The maximum number of elements of a tile to print. This many 8-byte arguments take half of the
/// GPU's print buffer, and their text fits in the simulator's. Source: CUDA C++ Programming Guide,
/// "Formatted Output", limitations: 1 MiB.
pub const PRINTED_ELEMENTS: u64 = 1 << 16;

/// The alignment of scalar arrays in shared memory, which allows vector accesses.
pub const ARRAY_ALIGNMENT: u64 = 16;

/// Converts the number of things in a kernel, which the limits on a kernel keep far below 2³².
pub(crate) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or_else(|_| bug!("{n} things in one kernel"))
}
