//! Where threads meet, and fences.

use super::device_only;

/// All threads of the block meet here; what each wrote to shared memory before is seen by all after. Every
/// thread of the block must come: not under a condition that only some fulfil.
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

/// All 32 threads of the warp meet here, and see what the others wrote before.
///
/// PTX: `bar.warp.sync 0xffffffff` (PTX ISA, "bar.warp.sync").
#[doc(alias = "__syncwarp")]
pub fn sync_warp() {
    device_only()
}

/// `threads` threads, a multiple of 32, meet at the block's hardware barrier `id`, and see what the others
/// wrote before.
///
/// `id` is 1 to 15: number 0 is [`sync_threads`]. For the threads of one role in a kernel whose warps do
/// different things. Warps take part as wholes.
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

/// Orders this thread's accesses to shared memory before later ones of the *async proxy*: copy engine and
/// tensor cores.
///
/// Ordinary reads and writes go through the generic proxy, TMA and `wgmma` through the async proxy, and accesses of
/// the two to the same memory need this fence between them, unless both read:
///
/// * between [`Tile::set`](super::Tile::set) and a [`store`](super::TensorMap::store) of that tile, in every thread that
///   wrote, *before* they meet;
/// * between [`Tile::get`](super::Tile::get) and the next [`load`](super::TensorMap::load) into that tile, in every thread
///   that read, *before* they meet or arrive where the producer waits. [`FullSlot::release`](super::FullSlot::release)
///   does it by itself.
///
/// Not needed after a load: [`Barrier::wait`](super::Barrier::wait) does it. Nor between a store of a tile and the next
/// load into it: both are of the async proxy.
///
/// In kernels with clusters also what was written to [`remote`](super::remote) blocks. For global memory there is
/// [`fence_proxy_async_global`].
///
/// PTX: `fence.proxy.async.shared::cta`, with clusters `shared::cluster` (PTX ISA, "membar, fence", and "Async proxy").
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

/// Orders this thread's accesses to global memory before later ones of the *async proxy*, which copies make.
///
/// What [`Global::set`](super::Global::set) or an atomic wrote need not be seen by a copy that reads it afterwards in the
/// same kernel: a [`bulk_load`](super::Global::bulk_load), a [`load`](super::TensorMap::load), or a reduction into it. The
/// fence stands in every thread that wrote, *before* they meet. Not needed for what an earlier kernel wrote.
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

/// Orders this thread's accesses to memory, for the whole device: with an atomic, blocks hand values over.
///
/// Atomics of a [`Global`](super::Global) are relaxed: they order nothing but themselves. What a thread wrote before its
/// fence and an atomic after it is seen by a thread that reads that atomic's value and then fences. The order goes on
/// through meetings: what the other threads of the block wrote before [`sync_threads`] belongs to it, and after one they
/// see what this thread sees. It waits for nobody; the atomic tells whether the other side has come by.
///
/// It is for accesses of threads. For what copies read, [`fence_proxy_async_global`] has to follow.
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

/// Makes this thread's [`Barrier::init`](super::Barrier::init) visible to the copy engine and to the cluster.
/// After the last `init`, in the thread that did them; [`sync_threads`] then tells the block.
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
