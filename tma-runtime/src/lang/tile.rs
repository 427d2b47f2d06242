//! Tiles in shared memory, and their swizzles.

use std::marker::PhantomData;

use super::{Coordinate, Coordinates, Shape, TileElement, device_only, sealed::Sealed};

/// The permutation of the 16-byte chunks of a [`Tile`]'s rows in shared memory.
///
/// Shared memory has 32 banks of 4 bytes. Without a permutation, threads that read a column of a
/// tile with 128-byte rows all access the same banks. A swizzle of span `B` permutes the 16-byte
/// chunks within every `B` bytes by a pattern that depends on the row, which spreads columns over
/// all banks. The copy engine permutes on writes and un-permutes on reads, the tensor cores read
/// permuted tiles, and [`Tile::get`] and [`Tile::set`] apply the permutation. A kernel always uses
/// logical indices.
///
/// The size of a tile's innermost dimension must not exceed the span (CUDA driver API,
/// `cuTensorMapEncodeTiled`: `CUtensorMapSwizzle`). Pattern: PTX ISA, "Swizzling Modes".
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a swizzle",
    label = "not a tile layout",
    note = "the third parameter of a tile must be NoSwizzle, Panels16, Swizzle32, Swizzle64, Swizzle128, Interleave16 or Interleave32"
)]
pub trait Swizzle: Sealed + Copy {}

macro_rules! swizzles {
    ($($(#[$doc:meta])* $swizzle:ident;)+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $swizzle {}
        impl Sealed for $swizzle {}
        impl Swizzle for $swizzle {}
    )+ };
}

swizzles! {
    /// Rows that are not permuted. The default of [`Tile`].
    NoSwizzle;
    /// Rows that are divided into parts of 16 bytes, without a permutation. The tile consists of
    /// consecutive panels, each with 16 bytes of every row. Tensor cores, [`get`](Tile::get),
    /// [`set`](Tile::set) and copies support this layout too.
    ///
    /// Rows are multiples of 16 bytes. A copy moves one panel, so a tile with rows of 128 bytes
    /// takes 8 copies. A tile of several panels that is moved by a map has a multiple of 8 rows.
    /// [`Swizzle128`] takes one copy and has no bank conflicts: prefer it unless the layout is
    /// prescribed.
    ///
    /// PTX: the layout without a swizzle (PTX ISA, "Core Matrices", "Matrix Descriptor Format").
    Panels16;
    /// Rows with the 2 chunks of every 32 bytes permuted. The pattern repeats every 256 bytes.
    Swizzle32;
    /// Rows with the 4 chunks of every 64 bytes permuted. The pattern repeats every 512 bytes.
    Swizzle64;
    /// Rows with the 8 chunks of every 128 bytes permuted. The pattern repeats every 1024 bytes.
    /// This is the best choice for `wgmma`.
    Swizzle128;
    /// Rows of pixels with 16 bytes of channels each, NC/8HWC8 for `f16`; not permuted.
    ///
    /// The dimensions of tensor and tile are, in order: images; slices of channels; up to two
    /// dimensions of pixels; and the contiguous dimension, pixels × channels of a slice. For
    /// example, 2 images of 60 × 80 pixels with 32 channels in `f16` are a tensor of shape
    /// `[2, 4, 60, 80 * 8]`, and a `Tile<f16, Shape4<1, 1, 4, 128>, Interleave16>` is one slice of
    /// 4 × 16 pixels. Coordinates count elements, as everywhere. Along the innermost dimension they
    /// must be multiples of a pixel, which the kernel tests before the copy unless the compiler can
    /// prove it.
    ///
    /// In return, rows may have up to 256 pixels, and the element stride of the innermost
    /// dimension, in pixels, may be more than 1. A copy moves one slice, so the tile's extent in
    /// that dimension must be 1. Its pixels times the element's size must be a multiple of 16.
    /// Source: CUDA driver API, `CUtensorMapInterleave`; PTX ISA, "Interleave layout"; observed on
    /// an H200.
    Interleave16;
    /// Rows like those of [`Interleave16`], with pixels of 32 bytes, and permuted like by
    /// [`Swizzle32`], which the driver's documentation requires. The tensor's address and strides
    /// are multiples of 32 bytes.
    Interleave32;
}

/// A tile in shared memory: elements `T`, extents `S` in row-major order, rows permuted by `W`.
///
/// A tile is declared by [`shared`](super::shared()), filled by
/// [`TensorMap::load`](super::TensorMap::load) or [`set`](Tile::set), and stored by
/// [`TensorMap::store`](super::TensorMap::store). The compiler aligns it as the copy engine and the
/// swizzle require (to at least 128 bytes: PTX ISA, "cp.async.bulk.tensor").
///
/// The handle names that memory. It is `Copy`: copies of it are the same tile.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel() {
/// let tile: Tile<f32, Shape2<64, 32>, Swizzle128> = shared();
/// let column = lane_idx();
/// for row in 0..tile.rows() {
///     tile.set([row, column], 0.0);
/// }
/// sync_threads();
/// # }
/// ```
pub struct Tile<T: TileElement, S: Shape, W: Swizzle = NoSwizzle>(PhantomData<(T, S, W)>);

impl<T: TileElement, S: Shape, W: Swizzle> Clone for Tile<T, S, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: TileElement, S: Shape, W: Swizzle> Copy for Tile<T, S, W> {}

impl<T: TileElement, S: Shape, W: Swizzle> Tile<T, S, W> {
    /// Returns the tile's size in bytes, which one copy of it delivers to a barrier. A constant.
    #[must_use]
    pub fn bytes(self) -> u32 {
        device_only()
    }

    /// Returns the outermost extent, in elements. A constant.
    #[must_use]
    pub fn rows(self) -> u32 {
        device_only()
    }

    /// Returns the innermost extent, of the contiguous dimension, in elements. A constant.
    #[must_use]
    pub fn cols(self) -> u32 {
        device_only()
    }

    /// Returns the coordinates of a tile if a tensor is divided into tiles like this one: each
    /// index times the extent, outermost first. It is
    /// [`TensorMap::tile_at`](super::TensorMap::tile_at) for a map of slices of this tile
    /// ([`load_sliced`](super::TensorMap::load_sliced)).
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(src: TensorMap<Tile<f16, Shape2<32, 64>>>, full: Barrier, k: u32) {
    /// let tile: Tile<f16, Shape2<64, 64>> = shared(); // two slices of 32 rows
    /// src.load_sliced(tile, tile.tile_at([cluster_idx().x, k]), full, ClusterAxis::X);
    /// # }
    /// ```
    #[must_use]
    pub fn tile_at<I: Coordinate>(self, index: S::At<I>) -> S::At<I> {
        device_only()
    }

    /// Reads one element. `at` has one coordinate per dimension, outermost first: `[row, column]`
    /// for a [`Shape2`](super::Shape2). The swizzle is applied. Coordinates must be within the
    /// tile.
    ///
    /// After a TMA load, read only once [`Barrier::wait`](super::Barrier::wait) has returned for
    /// its phase.
    ///
    /// PTX: `ld.shared`.
    #[must_use]
    pub fn get<I: Coordinate>(self, at: S::At<I>) -> T {
        device_only()
    }

    /// Writes one element. The rules for `at` are those of [`get`](Tile::get).
    ///
    /// Before a TMA store of the tile: [`fence_proxy_async`](super::fence_proxy_async) in every
    /// thread that wrote, then [`sync_threads`](super::sync_threads), then the store.
    ///
    /// PTX: `st.shared`.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(dst: TensorMap<Tile<u32, Shape2<32, 32>>>) {
    /// let tile: Tile<u32, Shape2<32, 32>> = shared();
    /// let row = thread_idx().x;
    /// for column in 0..tile.cols() {
    ///     tile.set([row, column], row * tile.cols() + column);
    /// }
    /// fence_proxy_async();
    /// sync_threads();
    /// if thread_idx().x == 0 {
    ///     dst.store([0, 0], tile);
    ///     bulk_commit_group();
    ///     bulk_wait_group_read::<0>();
    /// }
    /// # }
    /// ```
    pub fn set<I: Coordinate>(self, at: S::At<I>, value: T) {
        device_only()
    }

    /// Reads `N` elements of a row, from `at` on, by one instruction. The swizzle is applied: it
    /// moves 16 bytes at a time.
    ///
    /// A vector has 2 or more elements, a power of two, and at most 16 bytes: 4 of `f32`, 8 of
    /// `f16`. The innermost coordinate and extent must be multiples of `N`
    /// (docs/errors/TMA0244.md). Coordinates must be within the tile, as for [`get`](Tile::get).
    ///
    /// PTX: `ld.shared.v2` or `.v4`, or one wider element (PTX ISA, "ld").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(tile: Tile<f16, Shape2<64, 64>, Swizzle128>, out: Global<f16>) {
    /// let (row, column) = (thread_idx().x / 8, thread_idx().x % 8 * 8);
    /// out.set_vec(row * 64 + column, tile.get_vec::<8>([row, column]));
    /// # }
    /// ```
    #[must_use]
    pub fn get_vec<const N: usize>(self, at: impl Coordinates<S>) -> [T; N] {
        device_only()
    }

    /// Writes the elements of `value` to a row, from `at` on, by one instruction. The rules for
    /// `at` and `N` are those of [`get_vec`](Tile::get_vec), and those for stores and fences are
    /// those of [`set`](Tile::set).
    ///
    /// PTX: `st.shared.v2` or `.v4`, or one wider element (PTX ISA, "st").
    pub fn set_vec<const N: usize>(self, at: impl Coordinates<S>, value: [T; N]) {
        device_only()
    }
}
