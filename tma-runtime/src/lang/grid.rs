//! All blocks of a grid, and the grids before and after it.

use super::{Global, device_only};

/// All threads of the grid meet here; what each wrote to global memory before is seen by all after.
///
/// `counter[0]` counts the blocks: one `u32` that is 0 before the first launch, and that nothing else touches. Each
/// meeting leaves it ready for the next, in this launch or a later one. Traps if `counter` has no element.
///
/// Every thread of the grid must come, as to [`sync_threads`](super::sync_threads). All blocks must run at the same time,
/// so a kernel with this word is launched cooperatively, and a grid with more blocks than fit the device is refused:
/// `Device::resident_blocks` says how many do.
///
/// It orders the accesses of threads: `get`, `set` and atomics, in global memory and on shared tiles and arrays. Bulk
/// stores and reductions come before it if their thread has waited for them with
/// [`bulk_wait_group::<0>()`](super::bulk_wait_group). It does not order what threads wrote before what the copy engine
/// reads from global memory after.
///
/// PTX: `atom.release.gpu.add` and `ld.acquire.gpu` between two `barrier.sync.aligned 0` (PTX ISA, "Memory Consistency
/// Model"; CUDA C++ Programming Guide, "Grid Synchronization").
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

/// Waits until the grids before this one in its stream have ended, and sees all that they wrote.
///
/// For kernels launched with `.dependent()`, which may start before those have ended: each thread says this before it
/// touches what they write, or writes what they read. What comes before it in the kernel, such as preparing barriers, then
/// runs beside their end. Launched otherwise, it does nothing. A kernel without it cannot be launched so.
///
/// PTX: `griddepcontrol.wait` (PTX ISA, "griddepcontrol"; CUDA C++ Programming Guide, "Programmatic Dependent Launch and
/// Synchronization").
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

/// Lets the next grid of the stream start, if it is launched with `.dependent()`, once all blocks of this one have said
/// so or ended.
///
/// It promises nothing about what this kernel has written: the next one's [`grid_dependency_wait`] still waits for the
/// end. One thread of a block speaks for it. Without this word the next grid starts when all blocks have ended.
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
