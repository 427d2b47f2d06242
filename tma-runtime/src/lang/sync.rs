//! Barriers for threads, and fences.

use super::device_only;

/// Synchronises all threads of the block. Writes to shared memory before it are visible to all
/// threads after it. Every thread of the block must reach it, so it must not be in a branch that
/// only some threads take.
///
/// PTX: `barrier.sync.aligned 0` (PTX ISA, "bar, barrier").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel() {
/// let values: SharedArray<u32, 128> = shared();
/// values.set(thread_idx().x, thread_idx().x);
/// sync_threads();
/// let neighbour = values.get((thread_idx().x + 1) % 128);
/// # }
/// ```
#[doc(alias = "__syncthreads")]
pub fn sync_threads() {
    device_only()
}

/// Synchronises all 32 threads of the warp, which then see each other's earlier writes.
///
/// PTX: `bar.warp.sync 0xffffffff` (PTX ISA, "bar.warp.sync").
#[doc(alias = "__syncwarp")]
pub fn sync_warp() {
    device_only()
}

/// Synchronises the 128 threads of the warpgroup, which then see each other's earlier writes. All
/// of them must reach it.
///
/// PTX: `barrier.sync id, 128` (PTX ISA, "bar, barrier"); the compiler picks a hardware barrier for
/// each warpgroup of the block.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # type C = Tile<bf16, Shape2<64, 64>, Swizzle128>;
/// # fn kernel(sum: Accumulator<f32, 64, 64>, outs: Stages<C, 2>, c: TensorMap<C>) {
/// let out = outs[warpgroup_idx()];
/// sum.store(out);
/// fence_proxy_async();
/// sync_warpgroup(); // the other warpgroup goes on
/// if thread_idx().x % 128 == 0 {
///     c.store([warpgroup_idx() * 64, 0], out);
///     bulk_commit_group();
///     bulk_wait_group_read::<0>();
/// }
/// # }
/// ```
#[doc(alias = "barrier.sync")]
pub fn sync_warpgroup() {
    device_only()
}

/// Synchronises `threads` threads, a multiple of 32, by the block's hardware barrier `id`.
/// Afterwards they see each other's earlier writes.
///
/// `id` is 1 to 15; 0 is used by [`sync_threads`]. This is for the threads of one role in a kernel
/// whose warps have different roles. Only whole warps take part.
///
/// PTX: `barrier.sync id, threads` (PTX ISA, "bar, barrier").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel() {
/// if warpgroup_idx() == 1 {
///     // Only the 128 threads of this warpgroup meet.
///     named_barrier_sync(1, 128);
/// }
/// # }
/// ```
#[doc(alias = "barrier.sync")]
pub fn named_barrier_sync(id: u32, threads: u32) {
    device_only()
}

/// Arrives at the block's hardware barrier `id` and continues without waiting. Threads that wait at
/// the barrier ([`named_barrier_sync`]) see the earlier writes of this thread.
///
/// `threads` counts all participants, those that arrive and those that wait, and is the same in all
/// calls: a multiple of 32. `id` is 1 to 15. Only whole warps take part. A warp that has arrived
/// must know that the barrier is complete before it arrives there again.
///
/// PTX: `barrier.arrive id, threads` (PTX ISA, "bar, barrier").
///
/// One warpgroup can thereby pass its turn to another:
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel() {
/// if warpgroup_idx() == 0 {
///     // .. multiplies, then
///     named_barrier_arrive(1, 256); // the other warpgroup's turn
///     // .. stores
/// } else {
///     named_barrier_sync(1, 256); // my turn
///     // .. multiplies
/// }
/// # }
/// ```
#[doc(alias = "barrier.arrive")]
pub fn named_barrier_arrive(id: u32, threads: u32) {
    device_only()
}

/// Orders accesses to shared memory before later accesses through the *async proxy*, by the copy
/// engine and the tensor cores. The ordered accesses are this thread's, and those of other threads
/// that barriers have ordered before the fence.
///
/// Ordinary reads and writes go through the generic proxy, TMA and `wgmma` through the async proxy.
/// Accesses to the same memory through both need this fence in between, unless both are reads:
///
/// * between [`Tile::set`](super::Tile::set) and a [`store`](super::TensorMap::store) of that tile;
/// * between [`Tile::get`](super::Tile::get) and the next [`load`](super::TensorMap::load) into
///   that tile. [`FullSlot::release`](super::FullSlot::release) includes it.
///
/// By convention every thread that wrote or read executes the fence, *before* the barrier that
/// orders the thread with the copy. Within a block the thread that starts the copy may execute it
/// instead, *after* that barrier: a proxy fence composes with the synchronisation before it (PTX
/// ISA, "membar, fence").
///
/// The fence is not needed after a load, since [`Barrier::wait`](super::Barrier::wait) orders the
/// load. Nor is it needed between a store of a tile and the next load into it, since both use the
/// async proxy.
///
/// In kernels with clusters the fence includes writes to [`remote`](super::remote) blocks. For
/// global memory, use [`fence_proxy_async_global`].
///
/// PTX: `fence.proxy.async.shared::cta`, or `shared::cluster` in kernels with accesses to remote
/// tiles or arrays (PTX ISA, "membar, fence", and "Async proxy").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(dst: TensorMap<Tile<f32, Shape2<32, 32>>>, tile: Tile<f32, Shape2<32, 32>>) {
/// tile.set([warp_idx(), lane_idx()], 1.0);
/// fence_proxy_async(); // all threads: my writes, before async reads
/// sync_threads(); // all have fenced
/// if thread_idx().x == 0 {
///     dst.store([0, 0], tile);
///     bulk_commit_group();
///     bulk_wait_group_read::<0>();
/// }
/// # }
/// ```
#[doc(alias = "fence.proxy.async")]
pub fn fence_proxy_async() {
    device_only()
}

/// Orders this thread's accesses to global memory before later accesses through the *async proxy*,
/// by copies.
///
/// Without it, a write by [`Global::set`](super::Global::set) or an atomic need not be visible to a
/// later copy in the same kernel: a [`bulk_load`](super::Global::bulk_load), a
/// [`load`](super::TensorMap::load), or a reduction into that memory. Call it in every thread that
/// wrote, *before* they synchronise. Writes of an earlier kernel do not need it.
///
/// PTX: `fence.proxy.async.global` (PTX ISA, "membar, fence", and "Async proxy").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(values: Global<f32>, row: SharedArray<f32, 128>, full: Barrier) {
/// values.set(thread_idx().x, 1.0);
/// fence_proxy_async_global(); // all threads: my writes, before async reads
/// sync_threads(); // all have fenced
/// if thread_idx().x == 0 {
///     full.arrive_expect_tx(128 * 4);
///     values.bulk_load(row, 0, 128, 0, full);
/// }
/// # }
/// ```
#[doc(alias = "fence.proxy.async.global")]
pub fn fence_proxy_async_global() {
    device_only()
}

/// Orders this thread's accesses to memory for the whole device. Together with an atomic, it passes
/// values between blocks.
///
/// Atomics of a [`Global`](super::Global) without an [`Order`](super::Order) are relaxed: they do
/// not order other accesses. A fence does. Writes of a thread before its fence and a subsequent
/// atomic are visible to a thread that reads the atomic's value and then executes a fence. The
/// order is transitive through barriers: it includes writes of the block's other threads before
/// [`sync_threads`], and after another one these threads see what this thread sees. A fence does
/// not wait; the atomic's value shows whether the other side has reached it.
///
/// The fence orders accesses of threads. For data that copies read, [`fence_proxy_async_global`]
/// must follow.
///
/// PTX: `fence.acq_rel.gpu` (PTX ISA, "membar, fence", and "Release and acquire patterns").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(parts: Global<f32>, finished: Global<u32>, part: f32) {
/// parts.set(block_idx().x, part);
/// fence(); // my part, before the count
/// let before = finished.atomic_add(0, 1);
/// fence(); // the count, before the parts of others
/// if before == grid_dim().x - 1 {
///     // All other blocks have counted: their parts are there.
/// }
/// # }
/// ```
#[doc(alias = "__threadfence")]
#[doc(alias = "fence.acq_rel.gpu")]
pub fn fence() {
    device_only()
}

/// Makes this thread's [`Barrier::init`](super::Barrier::init) visible to the copy engine and to
/// the cluster. Call it after the last `init`, in the same thread. [`sync_threads`] then makes the
/// barriers visible to the block.
///
/// PTX: `fence.mbarrier_init.release.cluster` (PTX ISA, "membar, fence").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel() {
/// let full: Stages<Barrier, 4> = shared();
/// if thread_idx().x == 0 {
///     for stage in 0..full.len() {
///         full[stage].init(1);
///     }
///     fence_barrier_init();
/// }
/// sync_threads();
/// # }
/// ```
#[doc(alias = "fence.mbarrier_init")]
pub fn fence_barrier_init() {
    device_only()
}
