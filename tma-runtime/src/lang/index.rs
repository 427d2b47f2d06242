//! Where a thread stands: in its warp, its block and the grid.

use super::device_only;

/// A place or an extent in up to three dimensions; `x` varies fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3 {
    /// The first dimension; consecutive threads of a warp differ here.
    pub x: u32,
    /// The second dimension.
    pub y: u32,
    /// The third dimension.
    pub z: u32,
}

/// This thread's place in its block. PTX: `%tid`.
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

/// This block's place in the grid. PTX: `%ctaid`.
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

/// Threads a block in each dimension: the attribute's `threads`, constants. CUDA's `blockDim`.
#[doc(alias = "blockDim")]
#[must_use]
pub fn block_dim() -> Dim3 {
    device_only()
}

/// Blocks of the grid in each dimension. PTX: `%nctaid`.
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

/// The number of this thread's warp in its block: linear thread index / 32, the same in all threads of a
/// warp.
#[must_use]
pub fn warp_idx() -> u32 {
    device_only()
}

/// This thread's number in its warp, 0 to 31. PTX: `%laneid`.
#[must_use]
pub fn lane_idx() -> u32 {
    device_only()
}

/// The number of this thread's warpgroup in its block: linear thread index / 128. Four warps make a
/// warpgroup, the unit in which `wgmma` works.
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

/// `true` in exactly one thread of the warp, the same one in the whole launch. All 32 threads must call it together.
///
/// Which thread it is, is not said. It need not be lane 0: what the elected thread does is not ordered with what
/// lane 0 does by being the same thread. The simulator picks one by its seed.
///
/// The cheap way to pick the thread that issues copies: the compiler of the driver knows that one thread is
/// left.
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
