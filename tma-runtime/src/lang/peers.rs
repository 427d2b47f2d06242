//! Teams: kernels that run on several GPUs, and reach the memory of all of them.

use std::marker::PhantomData;

use super::{
    AtomicLane, Barrier, Global, GlobalIndex, Order, Scalar, Scope, Sequence, TensorMap, TileType,
    device_only, sealed::Sealed,
};

/// A kernel's parameter: the memory of every rank of a team. `Peers<Global<T>>` has a slice of each
/// rank, all of the same length, and `Peers<TensorMap<X>>` a tensor map.
///
/// A *team* is 1 to 8 GPUs of one host that run the same kernel at the same time. Each has a
/// [rank](rank()). A rank writes its own memory, reads it, and does the same with the memory of the
/// others, which takes longer. Nothing orders the ranks but accesses with an [order](Order) and
/// [`Scope::System`].
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn all_gather(part: Peers<Global<f32>>, all: Peers<Global<f32>>) {
/// // Each rank writes its part to the same place of every rank.
/// let i = block_idx().x * 256 + thread_idx().x;
/// if (i as u64) < part.own().len() {
///     let x = part.own().get(i);
///     for r in 0..ranks() {
///         all.of(r).set(rank() as u64 * part.own().len() + i as u64, x);
///     }
/// }
/// # }
/// ```
///
/// The memory of another rank is no `Global`, so that device functions for memory of this GPU
/// cannot get it:
///
/// ```compile_fail,E0308
/// # use tma_runtime::prelude::*;
/// fn count(counters: Global<u32>) {
///     counters.atomic_add(0, 1);
/// }
/// fn kernel(counters: Peers<Global<u32>>) {
///     count(counters.of(0));
/// }
/// ```
pub struct Peers<X: PeerMemory>(PhantomData<X>);

impl<X: PeerMemory> Clone for Peers<X> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<X: PeerMemory> Copy for Peers<X> {}

/// A slice of global memory of a rank, which need not be this one. It is made by
/// [`of`](Peers::of), and has the methods of [`Global`] that work across GPUs.
///
/// PTX defines the order of accesses by several GPUs for the scope `.sys` alone. An access with a
/// narrower [`Scope`] is an error (docs/errors/TMA0247.md).
pub struct Peer<X: PeerMemory>(PhantomData<X>);

impl<X: PeerMemory> Clone for Peer<X> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<X: PeerMemory> Copy for Peer<X> {}

/// Memory that each rank of a team has: `Global<T>` or `TensorMap<X>`.
#[diagnostic::on_unimplemented(
    message = "a team has no `{Self}` of each rank",
    label = "not a slice or a tensor map",
    note = "`Peers<Global<T>>` and `Peers<TensorMap<Tile<..>>>` are the memory of all ranks"
)]
pub trait PeerMemory: Sealed + Copy {}

impl<T: Scalar> Sealed for Global<T> {}
impl<T: Scalar> PeerMemory for Global<T> {}
impl<X: TileType> Sealed for TensorMap<X> {}
impl<X: TileType> PeerMemory for TensorMap<X> {}

/// Returns the rank of this GPU in its team: 0 for the first one, up to [`ranks`]` - 1`. It is the
/// same in all threads of the grid.
#[must_use]
pub fn rank() -> u32 {
    device_only()
}

/// Returns the number of ranks of the team: 1 to 8.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(x: Peers<Global<f32>>) {
/// // Each rank begins with another one, so that not all of them read from one at a time.
/// let mut sum = 0.0;
/// for k in 0..ranks() {
///     sum += x.of((rank() + k) % ranks()).get(thread_idx().x);
/// }
/// # }
/// ```
#[must_use]
pub fn ranks() -> u32 {
    device_only()
}

impl<T: Scalar> Peers<Global<T>> {
    /// Returns the slice of a rank. The team must have it: a checked kernel stops otherwise, when
    /// it accesses the slice. In any other kernel the access goes to the slice of some rank.
    #[must_use]
    pub fn of(self, rank: u32) -> Peer<Global<T>> {
        device_only()
    }

    /// Returns the slice of this rank, which is memory of this GPU.
    #[must_use]
    pub fn own(self) -> Global<T> {
        device_only()
    }
}

impl<X: TileType> Peers<TensorMap<X>> {
    /// Returns the map of a rank's tensor, with the rules of [`of`](Peers::of) for slices. Copies by
    /// it are like those by any other map: a load completes on a barrier of this block, and a store
    /// joins a bulk group of this thread.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(x: Peers<TensorMap<Tile<f32, Shape2<32, 32>>>>, tile: Tile<f32, Shape2<32, 32>>, full: Barrier) {
    /// full.arrive_expect_tx(tile.bytes());
    /// x.of((rank() + 1) % ranks()).load(tile, [block_idx().x * 32, 0], full);
    /// # }
    /// ```
    #[must_use]
    pub fn of(self, rank: u32) -> TensorMap<X> {
        device_only()
    }

    /// Returns the map of this rank's tensor.
    #[must_use]
    pub fn own(self) -> TensorMap<X> {
        device_only()
    }
}

impl<T: Scalar> Peer<Global<T>> {
    /// Returns the number of elements, which is the same for all ranks.
    #[must_use]
    pub fn len(self) -> u64 {
        device_only()
    }

    /// Reads element `i`. Traps if there is none. Nothing orders it after a write by another rank
    /// but an acquire, so a loop must not wait for it.
    ///
    /// PTX: `ld.global`.
    #[must_use]
    pub fn get<I: GlobalIndex>(self, i: I) -> T {
        device_only()
    }

    /// Writes element `i`. Traps if there is none.
    ///
    /// PTX: `st.global`.
    pub fn set<I: GlobalIndex>(self, i: I, value: T) {
        device_only()
    }

    /// Reads the `N` elements from `i` on by one instruction, with the rules of
    /// [`Global::get_vec`].
    ///
    /// PTX: `ld.global.v2` or `.v4`, or one wider element (PTX ISA, "ld").
    #[must_use]
    pub fn get_vec<const N: usize>(self, i: impl GlobalIndex) -> [T; N] {
        device_only()
    }

    /// Writes the elements of `value` to those from `i` on by one instruction, with the rules of
    /// [`Global::set_vec`].
    ///
    /// PTX: `st.global.v2` or `.v4`, or one wider element (PTX ISA, "st").
    pub fn set_vec<const N: usize>(self, i: impl GlobalIndex, value: [T; N]) {
        device_only()
    }

    /// Adds the elements of `value` to those from `i` on, each atomically, with the rules of
    /// [`Global::add_vec`].
    ///
    /// PTX: `red.{order}.sys.global.add.v2`, `.v4` or `.v8` (PTX ISA, "red").
    pub fn add_vec<const N: usize>(self, i: impl GlobalIndex, value: [T; N], order: Order, scope: Scope)
    where
        T: AtomicLane,
    {
        device_only()
    }
}

/// # Bulk copies
///
/// Those of [`Global`], with the same rules.
impl<T: Scalar> Peer<Global<T>> {
    /// Starts copying the `count` elements from `i` on to `array`, as [`Global::bulk_load`] does.
    ///
    /// PTX: `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes` (PTX ISA,
    /// "cp.async.bulk").
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

    /// Copies like [`bulk_load`](Peer::bulk_load), but to several blocks of the cluster, as
    /// [`Global::bulk_load_multicast`] does.
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
    /// as [`Global::bulk_store`] does.
    ///
    /// PTX: `cp.async.bulk.global.shared::cta.bulk_group` (PTX ISA, "cp.async.bulk").
    #[doc(alias = "cp.async.bulk")]
    pub fn bulk_store<I: GlobalIndex>(self, i: I, array: impl Sequence<T>, at: u32, count: u32) {
        device_only()
    }
}
