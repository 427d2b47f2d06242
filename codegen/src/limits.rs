//! Every number that the hardware fixes, with the document that says so.

use crate::ir::{ReduceOp, Scalar, Swizzle};

/// Dynamic shared memory of one block, in bytes: 227 KiB.
/// Source: CUDA C++ Programming Guide, "Compute Capabilities", technical specifications, 9.0.
pub const SHARED_BYTES: u64 = 227 * 1024;

/// Threads of one block. Source: as above.
pub const BLOCK_THREADS: u64 = 1024;

/// Threads of a block along z; along x and y it is [`BLOCK_THREADS`]. Source: as above.
pub const BLOCK_THREADS_Z: u32 = 64;

/// Registers of one thread. Source: as above.
pub const THREAD_REGISTERS: u32 = 255;

/// Registers of a multiprocessor. Source: as above.
pub const MULTIPROCESSOR_REGISTERS: u32 = 65_536;

/// Blocks resident on a multiprocessor at once. Source: as above.
pub const MULTIPROCESSOR_BLOCKS: u32 = 32;

/// Threads resident on a multiprocessor at once. Source: as above.
pub const MULTIPROCESSOR_THREADS: u64 = 2048;

/// Blocks of one cluster: as many as every device with clusters takes, or as a device may take on request.
/// Source: CUDA C++ Programming Guide, "Thread Block Clusters" (8); CUDA driver API,
/// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`, and Hopper Tuning Guide, "Thread Block Clusters" (16).
pub const fn cluster_blocks(nonportable: bool) -> u32 {
    if nonportable { 16 } else { 8 }
}

/// Threads of a warp.
pub const WARP_THREADS: u32 = 32;

/// Threads of a warpgroup. Source: PTX ISA, "Asynchronous warpgroup level matrix instructions".
pub const WARPGROUP_THREADS: u32 = 128;

/// Bytes of kernel parameters. Source: CUDA C++ Programming Guide, "__global__ function argument processing"
/// (32,764 bytes since CUDA 12.1; older drivers take 4,096, which is what is kept here).
pub const PARAM_BYTES: u64 = 4096;

/// Dimensions of a tensor map. Source: CUDA driver API, `cuTensorMapEncodeTiled`, `tensorRank`.
pub const MAX_RANK: usize = 5;

/// The largest extent of a box along each dimension. Source: CUDA driver API, `cuTensorMapEncodeTiled`, `boxDim`.
pub const BOX_EXTENT: u32 = 256;

/// The most pixels of a column in im2col mode. Source: CUDA driver API, `cuTensorMapEncodeIm2col`, `pixelsPerColumn`.
pub const COLUMN_PIXELS: u32 = 1024;

/// Ranks of tensors in im2col mode. Source: CUDA driver API, `cuTensorMapEncodeIm2col`, `tensorRank`.
pub const IM2COL_RANKS: std::ops::RangeInclusive<u32> = 3..=5;

/// The greatest im2col offset of a tensor of this rank: they share 16 bits. Source: PTX ISA, "im2col mode", "im2col
/// offsets".
pub const fn im2col_offset(rank: usize) -> u16 {
    match rank {
        ..=3 => u16::MAX,
        4 => u8::MAX as u16,
        _ => 31,
    }
}

/// What the bytes of a box's innermost dimension must be a multiple of.
/// Source: CUDA driver API, `cuTensorMapEncodeTiled`, `boxDim`.
pub const BOX_INNER_BYTES: u64 = 16;

/// What the bytes before a box along the innermost dimension must be a multiple of, in loads, stores, reductions
/// and prefetches. Source: PTX ISA, "Tiled mode", "Bounding Box" (its address is aligned to 16 bytes); an H200 stops with an illegal
/// instruction.
const BOX_START_BYTES: u32 = 16;

/// Likewise of maps with a layout: what is interleaved is counted in whole pixels.
pub fn box_start_bytes(swizzle: Swizzle) -> u32 {
    swizzle.pixel_bytes().unwrap_or(BOX_START_BYTES)
}

/// The least rank of an interleaved layout. Source: CUDA driver API, `cuTensorMapEncodeTiled`, `tensorRank`.
pub const INTERLEAVED_RANK: usize = 3;

/// Whether the copy engine reduces elements of this type so. Source: PTX ISA, "cp.reduce.async.bulk.tensor", the
/// table of operations and element types. Of the bits that it allows (`.b32`, `.b64`) those of integers are meant here;
/// not those of i64, at which an H200 stops with an illegal instruction.
pub const fn reduces(op: ReduceOp, element: Scalar) -> bool {
    match op {
        ReduceOp::Add => matches!(
            element,
            Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::F16 | Scalar::Bf16 | Scalar::F32
        ),
        ReduceOp::Min | ReduceOp::Max => matches!(
            element,
            Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::I64 | Scalar::F16 | Scalar::Bf16
        ),
        ReduceOp::Inc | ReduceOp::Dec => matches!(element, Scalar::U32),
        ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => {
            matches!(element, Scalar::U32 | Scalar::I32 | Scalar::U64)
        }
    }
}

/// What the addresses and the size of a bulk copy without a tensor map must be multiples of, in bytes.
/// Source: PTX ISA, "cp.async.bulk".
pub const BULK_BYTES: u32 = 16;

/// Whether the copy engine reduces elements of this type so in global memory, without a tensor map. Source: PTX ISA,
/// "cp.reduce.async.bulk", the table of operations and types. Bits (`.b32`, `.b64`) are those of integers here.
pub const fn bulk_reduces(op: ReduceOp, element: Scalar) -> bool {
    match (op, element) {
        (ReduceOp::Add, Scalar::F64) => true,
        (ReduceOp::And | ReduceOp::Or | ReduceOp::Xor, Scalar::I64) => true,
        (_, Scalar::Usize) => reduces(op, Scalar::U64),
        _ => reduces(op, element),
    }
}

/// Whether the copy engine reduces elements of this type so in another block's shared memory. Source: PTX ISA,
/// "cp.reduce.async.bulk", the table of operations and types.
pub const fn remote_reduces(op: ReduceOp, element: Scalar) -> bool {
    match op {
        ReduceOp::Add => {
            matches!(element, Scalar::U32 | Scalar::I32 | Scalar::U64 | Scalar::Usize)
        }
        ReduceOp::Inc | ReduceOp::Dec => matches!(element, Scalar::U32),
        ReduceOp::Min | ReduceOp::Max | ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => {
            matches!(element, Scalar::U32 | Scalar::I32)
        }
    }
}

/// Bytes, and alignment, of a tensor map in memory. Source: PTX ISA, "tensormap.cp_fenceproxy" (128 bytes, in global memory
/// at a multiple of 128).
pub const MAP_BYTES: u32 = 128;

/// Bytes, and alignment, of an mbarrier. Source: PTX ISA, "Size and alignment of mbarrier object".
pub const BARRIER_BYTES: u64 = 8;

/// The greatest arrival count of an mbarrier. Source: PTX ISA, "Contents of the mbarrier object".
pub const BARRIER_ARRIVALS: i128 = (1 << 20) - 1;

/// The greatest transaction count of an mbarrier, in bytes. Source: as above.
pub const BARRIER_BYTES_EXPECTED: i128 = (1 << 20) - 1;

/// The most tiles in a stage of a pipeline: as many as tuples of tiles are known to rustc (`tma_runtime::lang::Tiles`).
pub const PIPELINE_TILES: usize = 6;

/// Named barriers of a block; `sync_threads` is number 0. Source: PTX ISA, "barrier".
pub const NAMED_BARRIERS: u32 = 16;

/// The most elements of an array of a thread's own. Four times as many as a thread has registers: what is larger
/// lies in local memory in any case, and takes the compiler long.
pub const REGISTER_ARRAY_ELEMENTS: u64 = 1024;

/// The most turns of a loop that `unroll` writes out. No instruction cache holds what is longer.
pub const UNROLLED_TURNS: i128 = 1024;

/// The most operations that a kernel has when its functions are inlined and its loops unrolled: statements, and the nodes of their
/// expressions. LLVM takes some minutes for so many, and its time grows faster than they do.
pub const KERNEL_OPERATIONS: u64 = 100_000;

/// Alignment given to scalar arrays in shared memory, so that vector access is possible.
pub const ARRAY_ALIGNMENT: u64 = 16;

/// The alignment in shared memory of a tile: 128 bytes without a swizzle; with one, the bytes after which its
/// pattern repeats, so that the hardware's pattern, which is taken from address bits, starts at the tile.
/// Source: CUDA C++ Programming Guide, "Using TMA to transfer multi-dimensional arrays" (128 bytes); PTX ISA, "Swizzling modes", the
/// boundaries at which the base offset is 0 (256, 512 and 1024 bytes).
pub const fn tile_alignment(swizzle: Swizzle) -> u64 {
    match swizzle {
        Swizzle::None | Swizzle::Interleave16 => 128,
        Swizzle::B32 | Swizzle::Interleave32 => 256,
        Swizzle::B64 => 512,
        Swizzle::B128 => 1024,
    }
}
