//! Indices of a thread in its warp, its block and the grid.

use super::device_only;

/// An index or an extent in up to three dimensions. The `x` index varies fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3 {
    /// The first dimension, in which consecutive threads of a warp differ.
    pub x: u32,
    /// The second dimension.
    pub y: u32,
    /// The third dimension.
    pub z: u32,
}

/// Returns this thread's index in its block. PTX: `%tid`.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel() {
/// let leader = thread_idx().x == 0;
/// # }
/// ```
#[doc(alias = "threadIdx")]
#[must_use]
pub fn thread_idx() -> Dim3 {
    device_only()
}

/// Returns this block's index in the grid. PTX: `%ctaid`.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel() {
/// let at = [block_idx().y * 128, block_idx().x * 64]; // row, column of this block's tile
/// # }
/// ```
#[doc(alias = "blockIdx")]
#[must_use]
pub fn block_idx() -> Dim3 {
    device_only()
}

/// Returns the threads per block in each dimension, as constants: the attribute's `threads`. CUDA's
/// `blockDim`.
#[doc(alias = "blockDim")]
#[must_use]
pub fn block_dim() -> Dim3 {
    device_only()
}

/// Returns the blocks per grid in each dimension. PTX: `%nctaid`.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(tiles: u32) {
/// // A persistent block takes every `grid_dim().x`-th tile.
/// for tile in (block_idx().x..tiles).step_by(grid_dim().x as usize) {
///     printf!("block {} takes tile {}\n", block_idx().x, tile);
/// }
/// # }
/// ```
#[doc(alias = "gridDim")]
#[must_use]
pub fn grid_dim() -> Dim3 {
    device_only()
}

/// Returns the index of this thread's warp in its block: linear thread index / 32. It is the same
/// in all threads of a warp.
#[must_use]
pub fn warp_idx() -> u32 {
    device_only()
}

/// Returns this thread's index in its warp, 0 to 31. PTX: `%laneid`.
#[must_use]
pub fn lane_idx() -> u32 {
    device_only()
}

/// Returns the index of this thread's warpgroup in its block: linear thread index / 128. A
/// warpgroup is four warps, the unit of `wgmma`. In a block whose threads are not a multiple of
/// 128, the last warps are not a whole warpgroup, and cannot execute operations of one.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel() {
/// if warpgroup_idx() == 0 {
///     // copies
/// } else {
///     // computes
/// }
/// # }
/// ```
#[must_use]
pub fn warpgroup_idx() -> u32 {
    device_only()
}

/// Returns `true` in exactly one thread of the warp, which is the same one in the whole launch. All
/// 32 threads must call it together.
///
/// The elected thread is unspecified. It need not be lane 0, so its accesses are not ordered with
/// those of lane 0 as if they were the same thread. The simulator picks one by its seed.
///
/// This is the cheap way to pick the thread that issues copies: the driver's compiler knows that
/// only one thread remains.
///
/// PTX: `elect.sync` (PTX ISA, "elect.sync").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(full: Barrier) {
/// if warp_idx() == 0 {
///     if elect_one() {
///         full.arrive_expect_tx(1024);
///     }
/// }
/// # }
/// ```
#[doc(alias = "elect.sync")]
#[must_use]
pub fn elect_one() -> bool {
    device_only()
}
