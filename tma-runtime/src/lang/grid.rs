//! Synchronisation of a grid's blocks, and of consecutive grids.

use super::{Global, device_only};

/// Synchronises all threads of the grid. Writes to global memory before it are visible to all
/// threads after it.
///
/// `counter[0]` counts the blocks: a `u32` that must be 0 before the first launch, and that nothing
/// else may access. Each barrier leaves it ready for the next, in this launch or a later one. Traps
/// if `counter` has no element.
///
/// Every thread of the grid must reach it, as with [`sync_threads`](super::sync_threads). All
/// blocks must run at the same time. A kernel that calls it is therefore launched cooperatively,
/// and a grid with more blocks than fit on the device is rejected: `Device::resident_blocks`
/// returns the limit.
///
/// The barrier orders the accesses of threads: `get`, `set` and atomics, in global memory and on
/// shared tiles and arrays. Bulk stores and reductions are ordered before it if their thread has
/// waited for them with [`bulk_wait_group::<0>()`](super::bulk_wait_group). It does not order
/// writes of threads before later reads of global memory by the copy engine.
///
/// PTX: `atom.release.gpu.add` and `ld.acquire.gpu` between two `barrier.sync.aligned 0` (PTX ISA,
/// "Memory Consistency Model"; CUDA C++ Programming Guide, "Grid Synchronization").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(parts: Global<f32>, out: Global<f32>, counter: Global<u32>) {
/// if thread_idx().x == 0 {
///     parts.set(block_idx().x, 1.0);
/// }
/// sync_grid(counter);
/// let next = parts.get((block_idx().x + 1) % grid_dim().x);
/// # }
/// ```
#[doc(alias = "grid.sync")]
#[doc(alias = "cooperative_groups")]
pub fn sync_grid(counter: Global<u32>) {
    device_only()
}

/// Waits until the previous grids in the stream have ended. Everything that they wrote is visible
/// afterwards.
///
/// Kernels launched with `.dependent()` may start before the previous grids have ended. Each of
/// their threads must call it before it accesses memory that those grids write, or writes memory
/// that they read. Code before the call, such as the initialisation of barriers, overlaps with the
/// end of those grids. Without `.dependent()` it does nothing. A kernel that does not call it
/// cannot be launched with `.dependent()`.
///
/// PTX: `griddepcontrol.wait` (PTX ISA, "griddepcontrol"; CUDA C++ Programming Guide, "Programmatic
/// Dependent Launch and Synchronization").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(src: Global<f32>, out: Global<f32>) {
/// let i = block_idx().x * 128 + thread_idx().x; // needs nothing of the kernel before
/// grid_dependency_wait();
/// out.set(i, 2.0 * src.get(i)); // `src` is what that wrote
/// # }
/// ```
#[doc(alias = "griddepcontrol.wait")]
#[doc(alias = "cudaGridDependencySynchronize")]
pub fn grid_dependency_wait() {
    device_only()
}

/// Allows the next grid in the stream, if launched with `.dependent()`, to start once all blocks of
/// this one have called it or ended.
///
/// The call makes no writes visible: the next grid's [`grid_dependency_wait`] still waits for this
/// grid to end. One thread per block suffices. Without the call, the next grid starts when all
/// blocks have ended.
///
/// PTX: `griddepcontrol.launch_dependents` (PTX ISA, "griddepcontrol").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(out: Global<f32>) {
/// grid_dependency_launch(); // the next grid's blocks come as soon as there is room
/// out.set(block_idx().x * 128 + thread_idx().x, 1.0);
/// # }
/// ```
#[doc(alias = "griddepcontrol.launch_dependents")]
#[doc(alias = "cudaTriggerProgrammaticLaunchCompletion")]
pub fn grid_dependency_launch() {
    device_only()
}
