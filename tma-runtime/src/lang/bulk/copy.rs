//! Bulk copies: contiguous elements that the copy engine moves without a tensor map.

use crate::lang::{
    Barrier, CachePolicy, Global, GlobalIndex, NoSwizzle, Remote, Scalar, Shape, Shared, SharedArray, Tile,
    TileElement, device_only, sealed::Sealed,
};

/// Shared memory with contiguous elements of type `T`: a [`SharedArray`], or a [`Tile`] without a
/// swizzle, whose elements are numbered in row-major order.
#[diagnostic::on_unimplemented(
    message = "a bulk copy of `{T}` cannot read or write `{Self}`",
    label = "not a `SharedArray`, or a `Tile` without a swizzle, of these elements",
    note = "use a tensor map to copy swizzled tiles"
)]
pub trait Sequence<T: Scalar>: Sealed + Copy {}

impl<T: Scalar, const N: u32> Sequence<T> for SharedArray<T, N> {}
impl<T: TileElement, S: Shape> Sequence<T> for Tile<T, S, NoSwizzle> {}

/// # Bulk copies
///
/// One thread issues the copy, and the copy engine moves `count` elements, without registers and
/// without a tensor map. Source, destination and size must be multiples of 16 bytes. An index,
/// offset or count that provably is not is a compile error. Any other stops the grid with a
/// hardware error, or with a message in a checked kernel (docs/language/kernels.md, "Checks"). The
/// launcher rejects tensors that do not begin at a multiple of 16 bytes. Out-of-bounds elements, on
/// either side, stop the grid, as with [`get`](Global::get).
impl<T: Scalar> Global<T> {
    /// Starts copying the `count` elements from `i` on to `array`, from its element `at` on, and
    /// returns at once.
    ///
    /// Every byte that arrives lowers the transaction count of `barrier`'s current phase, as with
    /// [`TensorMap::load`](crate::lang::TensorMap::load). Announce `count` times the element's size
    /// with [`arrive_expect_tx`](Barrier::arrive_expect_tx) first, and read the array only after
    /// [`wait`](Barrier::wait). The rules of that method for memory that was in use before apply
    /// here as well.
    ///
    /// PTX: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes` (PTX ISA,
    /// "cp.async.bulk").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(src: Global<f32>) {
    /// let part: SharedArray<f32, 1024> = shared();
    /// let full: Barrier = shared();
    /// if thread_idx().x == 0 {
    ///     full.init(1);
    ///     fence_barrier_init();
    ///     full.arrive_expect_tx(1024 * 4);
    ///     src.bulk_load(part, 0, 1024, block_idx().x * 1024, full);
    /// }
    /// sync_threads();
    /// full.wait(0);
    /// # }
    /// ```
    #[doc(alias = "cp.async.bulk")]
    pub fn bulk_load<I: GlobalIndex>(
        self,
        array: impl Sequence<T>,
        at: u32,
        count: u32,
        i: I,
        barrier: Barrier,
    ) {
        device_only()
    }

    /// Copies like [`bulk_load`](Global::bulk_load), but to the same offset in each block of the
    /// cluster whose bit is set in `mask`, where bit `i` is the block of rank `i`. The bytes count
    /// on the barrier at the same offset in each of these blocks, and each of them announces the
    /// bytes.
    ///
    /// PTX: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster`
    /// (PTX ISA, "cp.async.bulk").
    #[doc(alias = "cp.async.bulk")]
    pub fn bulk_load_multicast<I: GlobalIndex>(
        self,
        array: impl Sequence<T>,
        at: u32,
        count: u32,
        i: I,
        barrier: Barrier,
        mask: u16,
    ) {
        device_only()
    }

    /// Starts copying `count` elements of `array`, from its element `at` on, to those from `i` on,
    /// and returns at once.
    ///
    /// The copy joins the thread's next bulk group. If threads wrote to the array, it needs
    /// [`fence_proxy_async`](crate::lang::fence_proxy_async) first, as with
    /// [`TensorMap::store`](crate::lang::TensorMap::store). The launcher requires `&mut` of the
    /// tensor.
    ///
    /// PTX: `cp.async.bulk.global.shared::cta.bulk_group` (PTX ISA, "cp.async.bulk").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(dst: Global<u8>, bytes: SharedArray<u8, 4096>) {
    /// fence_proxy_async(); // every thread has written its part
    /// sync_threads();
    /// if thread_idx().x == 0 {
    ///     dst.bulk_store(block_idx().x * 4096, bytes, 0, 4096);
    ///     bulk_commit_group();
    ///     bulk_wait_group_read::<0>();
    /// }
    /// # }
    /// ```
    #[doc(alias = "cp.async.bulk")]
    pub fn bulk_store<I: GlobalIndex>(self, i: I, array: impl Sequence<T>, at: u32, count: u32) {
        device_only()
    }

    /// Starts fetching the `count` elements from `i` on into the L2 cache. This is a hint: nothing
    /// waits for it, and no result depends on it.
    ///
    /// PTX: `cp.async.bulk.prefetch.L2.global` (PTX ISA, "cp.async.bulk.prefetch").
    #[doc(alias = "cp.async.bulk.prefetch")]
    pub fn bulk_prefetch<I: GlobalIndex>(self, i: I, count: u32) {
        device_only()
    }

    /// Returns the same slice, with `policy` as the L2 cache policy of its plain loads and stores
    /// and its bulk copies. This is a hint, and changes no result.
    ///
    /// It is for methods whose names begin with `get`, `set` or `bulk_`. Accesses with an order,
    /// and atomics, carry no policy. Unlike other plain accesses, those with a policy are neither
    /// moved nor merged by the compiler.
    ///
    /// PTX: the qualifier `.L2::cache_hint` and the operand `cache-policy` (PTX ISA, "ld", "st").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(src: Global<f32>, part: SharedArray<f32, 1024>, full: Barrier) {
    /// src.hint(l2_evict_first(1.0)).bulk_load(part, 0, 1024, block_idx().x * 1024, full);
    /// let weight = src.hint(l2_evict_last(1.0)).get(0);
    /// # }
    /// ```
    #[doc(alias = "cache_hint")]
    #[must_use]
    pub fn hint(self, policy: CachePolicy) -> Self {
        device_only()
    }
}

/// Another block's shared memory with contiguous elements of type `T`: a [`Remote`] array or tile.
#[diagnostic::on_unimplemented(
    message = "a bulk copy of `{T}` to another block cannot write `{Self}`",
    label = "not another block's `SharedArray`, or `Tile` without a swizzle, of these elements",
    note = "pass `remote(array, rank)`"
)]
pub trait RemoteSequence<T: Scalar>: Copy {}

impl<T: Scalar, X: Sequence<T> + Shared> RemoteSequence<T> for Remote<X> {}

macro_rules! remote_copies {
    ($([$($generic:tt)*] $ty:ty;)+) => { $(
        /// # Copies to other blocks
        ///
        /// These methods copy `count` elements, from element `at` on, to the same elements in
        /// another block of the cluster. Their bytes count on `barrier`, which belongs to that
        /// block. The other block announces the bytes, and reads the elements after its wait. If
        /// threads wrote to the array, the copy needs
        /// [`fence_proxy_async`](crate::lang::fence_proxy_async) first. Offset and count follow the
        /// rules of [bulk copies](Global#bulk-copies).
        impl<$($generic)*> $ty {
            /// Starts copying to a block other than this one.
            ///
            /// PTX: `cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes` (PTX
            /// ISA, "cp.async.bulk").
            #[doc(alias = "cp.async.bulk")]
            pub fn bulk_copy_to(
                self,
                to: impl RemoteSequence<T>,
                at: u32,
                count: u32,
                barrier: Remote<Barrier>,
            ) {
                device_only()
            }
        }
    )+ };
}

remote_copies! {
    [T: Scalar, const N: u32] SharedArray<T, N>;
    [T: TileElement, S: Shape] Tile<T, S, NoSwizzle>;
}
