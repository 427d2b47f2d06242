//! Tensor maps: tensors in global memory that the copy engine moves in tiles.

mod im2col;

pub use im2col::{Im2colMap, Im2colRank, Rank};

use std::marker::PhantomData;

use super::{
    Barrier, CachePolicy, ClusterAxis, Coordinate, Shape, Swizzle, Tile, TileElement, device_only,
    sealed::Sealed,
};

/// The type parameter of a [`TensorMap`]: the [`Tile`] that it moves.
#[diagnostic::on_unimplemented(
    message = "a tensor map is typed by the tile that it moves, not by `{Self}`",
    label = "not a tile",
    note = "write `TensorMap<Tile<f16, Shape2<128, 64>>>`"
)]
pub trait TileType: Sealed {}

impl<T: TileElement, S: Shape, W: Swizzle> TileType for Tile<T, S, W> {}

/// A kernel's parameter: a tensor in global memory, moved by the tensor memory accelerator in boxes
/// of the tile `X`.
///
/// On the device it is a 128-byte descriptor (`CUtensorMap`) in parameter space. The launcher
/// encodes it from the tensor's address, shape and strides, and from the element type, extents and
/// swizzle of `X`, so that tile and descriptor cannot disagree. Only a parameter can be a tensor
/// map.
///
/// The launch checks the tensor: base address a multiple of 16 bytes, strides multiples of 16 bytes
/// and below 2^40, extents up to 2^32 (CUDA driver API, `cuTensorMapEncodeTiled`).
///
/// # Coordinates
///
/// `at` is the position of the tile's first element in the tensor: one coordinate per dimension, in
/// elements (not in tiles), outermost first. Boxes may extend past the tensor's end or lie beyond
/// it: out-of-bounds elements read as zero and are skipped on store. Loads may also start before
/// the tensor, with negative `i32` coordinates. The copy engine rejects, with an
/// illegal-instruction error, a store with a negative coordinate, and a load or store whose
/// innermost coordinate is not a multiple of 16 bytes (observed on an H200). If constants show it,
/// this is a compile error; a checked kernel (docs/language, "Checks") tests it before each copy
/// and stops with a message; the simulator always finds it.
pub struct TensorMap<X: TileType>(PhantomData<X>);

impl<X: TileType> Clone for TensorMap<X> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<X: TileType> Copy for TensorMap<X> {}

impl<X: TileType> TensorMap<X> {
    /// Fetches the descriptor into its cache, which speeds up the first copy. A hint, for one
    /// thread at the kernel's start.
    ///
    /// PTX: `prefetch.tensormap` (PTX ISA, "prefetch, prefetchu").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(src: TensorMap<Tile<f16, Shape2<128, 64>>>) {
    /// if thread_idx().x == 0 {
    ///     src.prefetch_descriptor();
    /// }
    /// # }
    /// ```
    pub fn prefetch_descriptor(self) {
        device_only()
    }

    /// The same map, with `policy` as the L2 cache policy of its loads, stores, reductions and
    /// prefetches. A hint, which changes no result.
    ///
    /// PTX: the qualifier `.L2::cache_hint` and the operand `cache-policy`.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(src: TensorMap<Tile<f16, Shape2<128, 64>>>, tile: Tile<f16, Shape2<128, 64>>, full: Barrier) {
    /// src.hint(l2_evict_first(1.0)).load(tile, [block_idx().x * 128, 0], full);
    /// # }
    /// ```
    #[doc(alias = "cache_hint")]
    #[must_use]
    pub fn hint(self, policy: CachePolicy) -> Self {
        device_only()
    }
}

impl<T: TileElement, S: Shape, W: Swizzle> TensorMap<Tile<T, S, W>> {
    /// The coordinates of a tile if the tensor is divided into tiles from its first element on:
    /// each index times the tile's extent, outermost first.
    ///
    /// Element strides, which a launch may set, are not known here and not considered. For the map
    /// of a slice ([`load_sliced`](TensorMap::load_sliced)) it counts slices; [`Tile::tile_at`]
    /// counts whole tiles.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(a: TensorMap<Tile<bf16, Shape2<128, 64>>>, x: Tile<bf16, Shape2<128, 64>>, full: Barrier) {
    /// for k in 0..8 {
    ///     a.load(x, a.tile_at([block_idx().y, k]), full); // at [block_idx().y * 128, k * 64]
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn tile_at<I: Coordinate>(self, index: S::At<I>) -> S::At<I> {
        device_only()
    }

    /// The coordinates of this block's tile in a grid with one block per tile of the tensor: the
    /// innermost dimension goes along x, the next along y, the outermost of three along z.
    ///
    /// That is the grid that the kernel's launcher computes from the tensor's shape:
    /// `kernel::tiles_of_dst(shape)` for a map called `dst`. It is
    /// `tile_at([block_idx().y, block_idx().x])` of a map of two dimensions. It is not available
    /// for tiles of more than three dimensions (`TMA0238`): a grid has three axes.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(dst: TensorMap<Tile<f32, Shape2<32, 64>>>, tile: Tile<f32, Shape2<32, 64>>) {
    /// if thread_idx().x == 0 {
    ///     dst.store(dst.block_tile(), tile); // at [block_idx().y * 32, block_idx().x * 64]
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn block_tile(self) -> S::At<u32> {
        device_only()
    }

    /// Starts copying the tensor's box at `at` into `tile`, and returns at once.
    ///
    /// Every byte that lands lowers the transaction count of `barrier`'s current phase: announce
    /// [`tile.bytes()`](Tile::bytes) with [`arrive_expect_tx`](Barrier::arrive_expect_tx) first,
    /// and read the tile only after [`wait`](Barrier::wait). Each thread that calls it issues its
    /// own copy: call it in one thread.
    ///
    /// If threads read or wrote the tile before, they must have synchronised with that thread since
    /// (a [`sync_threads`](super::sync_threads), or arrivals at an "empty" barrier); after writes
    /// they also need [`fence_proxy_async`](super::fence_proxy_async).
    ///
    /// PTX: `cp.async.bulk.tensor.{1..5}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes`
    /// (PTX ISA, "cp.async.bulk.tensor").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(
    /// #     a: TensorMap<Tile<bf16, Shape2<128, 64>, Swizzle128>>,
    /// #     b: TensorMap<Tile<bf16, Shape2<64, 64>, Swizzle128>>,
    /// # ) {
    /// let x: Tile<bf16, Shape2<128, 64>, Swizzle128> = shared();
    /// let y: Tile<bf16, Shape2<64, 64>, Swizzle128> = shared();
    /// let full: Barrier = shared();
    /// if thread_idx().x == 0 {
    ///     full.init(1);
    ///     fence_barrier_init();
    ///     full.arrive_expect_tx(x.bytes() + y.bytes()); // two copies, one phase
    ///     a.load(x, [block_idx().y * 128, 0], full);
    ///     b.load(y, [block_idx().x * 64, 0], full);
    /// }
    /// sync_threads();
    /// full.wait(0);
    /// # }
    /// ```
    #[doc(alias = "cp.async.bulk.tensor")]
    pub fn load<I: Coordinate>(self, tile: Tile<T, S, W>, at: S::At<I>, barrier: Barrier) {
        device_only()
    }

    /// As [`load`](TensorMap::load), but reads global memory once and writes `tile` in every block
    /// of the cluster whose bit in `mask` is set: bit i is the block of [rank](super::cluster_rank)
    /// i.
    ///
    /// In each of them the bytes lower the count of *its* `barrier`: each block announces
    /// [`tile.bytes()`](Tile::bytes) and waits by itself. Before the copy starts, all barriers must
    /// be initialised and all tiles free: [`sync_cluster`](super::sync_cluster).
    ///
    /// PTX:
    /// `cp.async.bulk.tensor.{1..5}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster`
    /// (PTX ISA, "cp.async.bulk.tensor").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(src: TensorMap<Tile<f16, Shape2<64, 64>>>) {
    /// let tile: Tile<f16, Shape2<64, 64>> = shared();
    /// let full: Barrier = shared();
    /// if thread_idx().x == 0 {
    ///     full.init(1);
    ///     fence_barrier_init();
    ///     full.arrive_expect_tx(tile.bytes());
    /// }
    /// sync_cluster(); // every block's barrier is ready
    /// if cluster_rank() == 0 && thread_idx().x == 0 {
    ///     src.load_multicast(tile, [0, 0], full, 0b11); // blocks 0 and 1
    /// }
    /// full.wait(0);
    /// # }
    /// ```
    #[doc(alias = "multicast::cluster")]
    pub fn load_multicast<I: Coordinate>(
        self,
        tile: Tile<T, S, W>,
        at: S::At<I>,
        barrier: Barrier,
        mask: u16,
    ) {
        device_only()
    }

    /// Loads `tile` into all blocks along `axis`, each of which loads one slice and multicasts it.
    ///
    /// The map's type is the slice; `tile` consists of as many slices as there are blocks along
    /// `axis`, stacked along the outermost dimension of `tile` that has more than one element. `at`
    /// is the origin of the whole tile ([`tile.tile_at`](Tile::tile_at)), which must be the same in
    /// all of these blocks, and all of them must call. The tile is thus read from global memory
    /// once. Each block's `barrier` receives the bytes of the whole tile, from all of them:
    /// announce [`tile.bytes()`](Tile::bytes) in each. As with
    /// [`load_multicast`](TensorMap::load_multicast), all barriers and tiles must be ready.
    ///
    /// The attribute must fix the cluster's size. A slice must begin where the swizzle's pattern
    /// does. CuTe calls this the partition of a multicast TMA load by the block's rank in the
    /// cluster.
    ///
    /// PTX: as [`load_multicast`](TensorMap::load_multicast).
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// // #[tma_kernel(threads = 128, cluster = 2)]
    /// # fn kernel(src: TensorMap<Tile<f16, Shape2<32, 64>>>) {
    /// let tile: Tile<f16, Shape2<64, 64>> = shared(); // two slices of 32 rows
    /// let full: Barrier = shared();
    /// if thread_idx().x == 0 {
    ///     full.init(1);
    ///     fence_barrier_init();
    ///     full.arrive_expect_tx(tile.bytes());
    /// }
    /// sync_cluster();
    /// if thread_idx().x == 0 {
    ///     src.load_sliced(tile, [0, 0], full, ClusterAxis::X);
    /// }
    /// full.wait(0);
    /// # }
    /// ```
    #[doc(alias = "multicast::cluster")]
    pub fn load_sliced<I: Coordinate, P: Shape>(
        self,
        tile: Tile<T, P, W>,
        at: S::At<I>,
        barrier: Barrier,
        axis: ClusterAxis,
    ) {
        device_only()
    }

    /// Starts fetching the tensor's box at `at` into the L2 cache, for a later load of any block. A
    /// hint: nothing waits for it, and no result depends on it. Call it in one thread.
    ///
    /// PTX: `cp.async.bulk.prefetch.tensor.{1..5}d.L2.global.tile` (PTX ISA,
    /// "cp.async.bulk.prefetch.tensor").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(src: TensorMap<Tile<f16, Shape2<128, 64>>>, k: u32) {
    /// if thread_idx().x == 0 {
    ///     src.prefetch([block_idx().y * 128, (k + 1) * 64]);
    /// }
    /// # }
    /// ```
    #[doc(alias = "cp.async.bulk.prefetch.tensor")]
    pub fn prefetch<I: Coordinate>(self, at: S::At<I>) {
        device_only()
    }

    /// Starts copying `tile` to the tensor's box at `at`, and returns at once. Out-of-bounds
    /// elements are skipped.
    ///
    /// The copy joins the thread's next bulk group:
    /// [`bulk_commit_group`](super::bulk_commit_group), then
    /// [`bulk_wait_group_read`](super::bulk_wait_group_read) before the tile is overwritten or the
    /// block ends. If threads wrote the tile: [`fence_proxy_async`](super::fence_proxy_async) in
    /// each of them, then [`sync_threads`](super::sync_threads), then the store, in one thread. The
    /// launcher requires `&mut` of the tensor.
    ///
    /// PTX: `cp.async.bulk.tensor.{1..5}d.global.shared::cta.tile.bulk_group` (PTX ISA,
    /// "cp.async.bulk.tensor").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(dst: TensorMap<Tile<f32, Shape2<32, 32>>>, tile: Tile<f32, Shape2<32, 32>>) {
    /// fence_proxy_async();
    /// sync_threads();
    /// if thread_idx().x == 0 {
    ///     dst.store([block_idx().y * 32, block_idx().x * 32], tile);
    ///     bulk_commit_group();
    ///     bulk_wait_group_read::<0>();
    /// }
    /// # }
    /// ```
    #[doc(alias = "cp.async.bulk.tensor")]
    pub fn store<I: Coordinate>(self, at: S::At<I>, tile: Tile<T, S, W>) {
        device_only()
    }
}
