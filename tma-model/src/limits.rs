//! The numbers that the hardware fixes, each with the document that states it.

use std::ops::RangeInclusive;

use crate::swizzle::{Interleave, Swizzle, TileSwizzle};

/// Maximum dynamic shared memory of one block, in bytes: 227 KiB. Source: CUDA C++ Programming
/// Guide, "Compute Capabilities", technical specifications, 9.0.
pub const SHARED_BYTES: u64 = 227 * 1024;

/// Shared memory of one multiprocessor, in bytes. Source: as above.
pub const MULTIPROCESSOR_SHARED_BYTES: u64 = 228 * 1024;

/// Shared memory that the system reserves in each block, in bytes. It precedes the block's own
/// shared memory, so the first variable is at this address. Source: Hopper Tuning Guide, "Unified
/// Shared Memory/L1/Texture Cache"; PTX ISA, "Special Registers: %reserved_smem_offset_begin".
pub const RESERVED_SHARED_BYTES: u32 = 1024;

/// Allocation granularity of shared memory, in bytes. Source: PTX ISA, "Special Registers:
/// %total_smem_size", `sm_9x`.
pub const SHARED_UNIT_BYTES: u32 = 128;

/// Maximum blocks of a grid along x, y and z. Source: CUDA C++ Programming Guide, "Compute
/// Capabilities", technical specifications.
pub const GRID_BLOCKS: [u64; 3] = [(1 << 31) - 1, 65_535, 65_535];

/// Maximum threads of one block. Source: as above.
pub const BLOCK_THREADS: u64 = 1024;

/// Maximum threads of a block along z. Along x and y it is [`BLOCK_THREADS`]. Source: as above.
pub const BLOCK_THREADS_Z: u32 = 64;

/// Maximum registers of one thread. Source: as above.
pub const THREAD_REGISTERS: u32 = 255;

/// Registers of a multiprocessor. Source: as above.
pub const MULTIPROCESSOR_REGISTERS: u32 = 65_536;

/// Returns the threads for which a block is allocated registers: those of whole warpgroups. A
/// multiprocessor has four parts, which take a block's warps in turn, so a part has room for as
/// many warps as the fullest one takes. Source: CUDA occupancy calculator, warp allocation
/// granularity; ptxas 13.0, which gives a thread as many registers with 288 threads as with 384.
pub const fn allocated_threads(threads: u64) -> u64 {
    threads.next_multiple_of(WARPGROUP_THREADS as u64)
}

/// Returns the registers of each thread if so many blocks of this size share all of a
/// multiprocessor: a multiple of 8. `None` if there are no threads.
pub fn registers_at_entry(threads: u32, blocks: u32) -> Option<u32> {
    let allocated = allocated_threads(threads.into()).checked_mul(blocks.into())?;
    let each = u64::from(MULTIPROCESSOR_REGISTERS).checked_div(allocated)?;
    Some(u32::try_from(each).ok()?.min(THREAD_REGISTERS) / 8 * 8)
}

/// Maximum blocks resident on a multiprocessor at once. Source: as above.
pub const MULTIPROCESSOR_BLOCKS: u32 = 32;

/// Maximum threads resident on a multiprocessor at once. Source: as above.
pub const MULTIPROCESSOR_THREADS: u64 = 2048;

/// Returns how many blocks of this size a multiprocessor runs at once. Threads are allocated in
/// whole warps. Registers are not considered.
pub fn resident_blocks(threads: u64, shared_bytes: u64) -> u64 {
    let by_threads = MULTIPROCESSOR_THREADS / threads.max(1).next_multiple_of(u64::from(WARP_THREADS));
    let by_shared_bytes = MULTIPROCESSOR_SHARED_BYTES / (shared_bytes + u64::from(RESERVED_SHARED_BYTES));
    u64::from(MULTIPROCESSOR_BLOCKS).min(by_threads).min(by_shared_bytes)
}

/// Returns the maximum number of blocks in a cluster. Every device with clusters supports the
/// portable size; a device may support the nonportable one on request. Source: CUDA C++ Programming
/// Guide, "Thread Block Clusters" (8); CUDA driver API,
/// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`, and Hopper Tuning Guide, "Thread Block
/// Clusters" (16).
pub const fn cluster_blocks(nonportable: bool) -> u32 {
    if nonportable { 16 } else { 8 }
}

/// Threads of a warp.
pub const WARP_THREADS: u32 = 32;

/// Threads of a warpgroup.
/// Source: PTX ISA, "Asynchronous warpgroup level matrix instructions".
pub const WARPGROUP_THREADS: u32 = 128;

/// Maximum bytes of kernel parameters. Source: CUDA C++ Programming Guide, "__global__ function
/// argument processing" (32,764 bytes since CUDA 12.1). This is the limit of older drivers, 4,096.
pub const PARAM_BYTES: u64 = 4096;

/// Maximum ranks of a team, the devices that run one kernel together: the GPUs that NVLink joins in
/// one host. Source: NVIDIA DGX H100/H200 User Guide, "Introduction to NVIDIA DGX H100/H200
/// Systems".
pub const TEAM_RANKS: u32 = 8;

/// Maximum dimensions of a tensor map. Source: CUDA driver API, `cuTensorMapEncodeTiled`,
/// `tensorRank`.
pub const MAX_RANK: usize = 5;

/// Size, and alignment, of a tensor map in memory, in bytes. Source: PTX ISA,
/// "tensormap.cp_fenceproxy" (128 bytes, in global memory at a multiple of 128).
pub const MAP_BYTES: u32 = 128;

/// Maximum extent of a box along each dimension. Source: CUDA driver API, `cuTensorMapEncodeTiled`,
/// `boxDim`.
pub const BOX_EXTENT: u32 = 256;

/// Maximum bytes of a box. Undocumented: driver 580 rejects larger boxes.
pub const BOX_BYTES: u64 = MULTIPROCESSOR_SHARED_BYTES;

/// Granularity of a box's innermost dimension, in bytes; also the unit in which the copy engine
/// moves bytes. Source: CUDA driver API, `cuTensorMapEncodeTiled`, `boxDim`.
pub const BOX_INNER_BYTES: u64 = 16;

/// Maximum pixels of a column in im2col mode. Source: CUDA driver API, `cuTensorMapEncodeIm2col`,
/// `pixelsPerColumn`.
pub const COLUMN_PIXELS: u32 = 1024;

/// Supported ranks of tensors in im2col mode. Source: CUDA driver API, `cuTensorMapEncodeIm2col`,
/// `tensorRank`.
pub const IM2COL_RANKS: RangeInclusive<usize> = 3..=MAX_RANK;

/// Returns the maximum im2col offset for a tensor of this rank. The offsets of all dimensions share
/// 16 bits. Source: PTX ISA, "im2col mode", "im2col offsets".
pub const fn im2col_offset(rank: usize) -> u16 {
    match rank {
        ..=3 => u16::MAX,
        4 => u8::MAX as u16,
        _ => 31,
    }
}

/// Returns the range of a bounding box's corners for a tensor of this rank. The corners of all
/// dimensions share 32 bits. Source: CUDA driver API, `cuTensorMapEncodeIm2col`,
/// `pixelBoxLowerCorner`.
pub const fn corner_range(rank: usize) -> RangeInclusive<i32> {
    let reach = match rank {
        ..=3 => 1 << 15,
        4 => 1 << 7,
        _ => 1 << 4,
    };
    -reach..=reach - 1
}

/// Minimum rank of an interleaved layout. Source: CUDA driver API, `cuTensorMapEncodeTiled`,
/// `tensorRank`.
pub const INTERLEAVED_RANK: usize = 3;

/// Maximum extent of a tensor, in elements. Source: CUDA driver API, `cuTensorMapEncodeTiled`,
/// `globalDim`.
pub const TENSOR_EXTENT: u64 = 1 << 32;

/// Exclusive upper bound of a tensor's strides, in bytes. Source: CUDA driver API,
/// `cuTensorMapEncodeTiled`, `globalStrides`.
pub const STRIDE_LIMIT: u64 = 1 << 40;

/// Returns the alignment of a tensor's address and strides, in bytes. Source: CUDA driver API,
/// `cuTensorMapEncodeTiled`, `globalAddress` and `globalStrides`.
pub const fn tensor_alignment(interleave: Interleave) -> u64 {
    match interleave {
        Interleave::None | Interleave::B16 => 16,
        Interleave::B32 => 32,
    }
}

/// Maximum distance between neighbouring elements of a box, in elements of the tensor. Source: CUDA
/// driver API, `cuTensorMapEncodeTiled`, `elementStrides`.
pub const ELEMENT_STRIDE: u32 = 8;

/// Returns the granularity of a box's start along the innermost dimension, in bytes, for loads,
/// stores, reductions and prefetches: a unit of the copy engine, or a whole pixel of an interleaved
/// layout. Source: PTX ISA, "Tiled mode", "Bounding Box" (the box's address is aligned to 16
/// bytes). An H200 stops with an illegal instruction otherwise.
pub fn box_start_bytes(swizzle: TileSwizzle) -> u32 {
    swizzle.pixel_bytes().unwrap_or(BOX_INNER_BYTES as u32)
}

/// Returns the alignment of a tile in shared memory: 128 bytes without a swizzle. With one, it is
/// the period of the swizzle's pattern in bytes. The hardware derives the pattern from address
/// bits, so this alignment makes the pattern start at the tile. Source: CUDA C++ Programming Guide,
/// "Using TMA to transfer multi-dimensional arrays" (128 bytes); PTX ISA, "Swizzling modes", the
/// boundaries at which the base offset is 0 (256, 512 and 1024 bytes).
pub const fn tile_alignment(swizzle: TileSwizzle) -> u64 {
    match swizzle.pattern() {
        Swizzle::None => 128,
        Swizzle::B32 => 256,
        Swizzle::B64 => 512,
        Swizzle::B128 => 1024,
    }
}

/// Granularity of the addresses and the size of a bulk copy without a tensor map, in bytes. Source:
/// PTX ISA, "cp.async.bulk".
pub const BULK_BYTES: u32 = 16;

/// Maximum bytes that one instruction of a thread reads or writes. The address must be a multiple
/// of the size. Source: PTX ISA, "ld" and "st", `.v2` and `.v4`; `sm_90` has no `.v8`.
pub const VECTOR_BYTES: u32 = 16;

/// Size, and alignment, of an mbarrier, in bytes. Source: PTX ISA, "Size and alignment of mbarrier
/// object".
pub const BARRIER_BYTES: u64 = 8;

/// Maximum arrival count of an mbarrier. Source: PTX ISA, "Contents of the mbarrier object".
pub const BARRIER_ARRIVALS: u32 = (1 << 20) - 1;

/// Maximum transaction count of an mbarrier, in bytes. Source: as above.
pub const BARRIER_BYTES_EXPECTED: u32 = (1 << 20) - 1;

/// Number of named barriers of a block; `sync_threads` uses number 0. Source: PTX ISA, "barrier".
pub const NAMED_BARRIERS: u32 = 16;
