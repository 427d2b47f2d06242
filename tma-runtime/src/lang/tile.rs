//! Tiles in shared memory, and how their rows are permuted.

use std::marker::PhantomData;

use super::{Coordinate, Shape, TileElement, device_only, sealed::Sealed};

/// How the 16-byte chunks of a [`Tile`]'s rows are permuted in shared memory.
///
/// Shared memory has 32 banks of 4 bytes. Without a permutation, threads that read down a column of a tile
/// with 128-byte rows all meet in the same banks. A swizzle of span `B` exchanges the 16-byte chunks within
/// every `B` bytes by a pattern that depends on the row, so that columns are spread over all banks. The copy
/// engine permutes as it writes and un-permutes as it reads, the tensor cores read permuted tiles, and
/// [`Tile::get`] and [`Tile::set`] apply the permutation: a kernel always names elements by their logical
/// place.
///
/// The bytes of a tile's innermost dimension may not exceed the span (CUDA driver API,
/// `cuTensorMapEncodeTiled`: `CUtensorMapSwizzle`). Pattern: PTX ISA, "Swizzling Modes".
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a swizzle",
    label = "not a layout of a tile's rows",
    note = "the third parameter of a tile is NoSwizzle, Swizzle32, Swizzle64, Swizzle128, Interleave16 or Interleave32"
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
    /// Rows lie in shared memory as they are. The default of [`Tile`].
    NoSwizzle;
    /// The 2 chunks of every 32 bytes are permuted; the pattern repeats every 256 bytes.
    Swizzle32;
    /// The 4 chunks of every 64 bytes are permuted; the pattern repeats every 512 bytes.
    Swizzle64;
    /// The 8 chunks of every 128 bytes are permuted; the pattern repeats every 1024 bytes. What `wgmma` likes
    /// best.
    Swizzle128;
    /// Rows of pixels with 16 bytes of channels each, NC/8HWC8 for `f16`; not permuted.
    ///
    /// The tensor's dimensions, and the tile's, are the images; the slices of channels; up to two of pixels; and
    /// pixels × channels of a slice, contiguous. So a tensor of 2 images with 32 channels in `f16` and 60 × 80 pixels is
    /// of shape `[2, 4, 60, 80 * 8]`, and a tile of it is a `Tile<f16, Shape4<1, 1, 4, 128>, Interleave16>`: one slice
    /// of 4 × 16 pixels. Coordinates count elements, as everywhere: along the innermost dimension they
    /// are multiples of a pixel, which a kernel tests before it copies where the compiler cannot know it.
    ///
    /// In return, rows may have up to 256 pixels, and the element stride of the innermost dimension, in pixels, may be
    /// more than 1. A copy moves one slice, so that the tile's extent there is 1; its pixels times the element's size
    /// are a multiple of 16. Source: CUDA driver API, `CUtensorMapInterleave`; PTX ISA, "Interleave layout"; seen on an H200.
    Interleave16;
    /// As [`Interleave16`], with pixels of 32 bytes, and permuted as by [`Swizzle32`], which the driver's
    /// documentation asks for. The tensor's address and strides are multiples of 32 bytes.
    Interleave32;
}

/// A tile in shared memory: elements `T`, extents `S` in row-major order, rows permuted by `W`.
///
/// Made by [`shared`](super::shared()), filled by [`TensorMap::load`](super::TensorMap::load) or by
/// [`set`](Tile::set), sent by [`TensorMap::store`](super::TensorMap::store). It starts at an address that
/// suits the copy engine and its swizzle (at least 128 bytes aligned: PTX ISA, "cp.async.bulk.tensor"); the
/// compiler lays shared memory out.
///
/// The handle is a name for that memory: `Copy`, passed by value, and two copies are the same tile.
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
    /// The bytes of the tile: what one copy of it adds to a barrier's transaction count. A constant.
    #[must_use]
    pub fn bytes(self) -> u32 {
        device_only()
    }

    /// The outermost extent, in elements. A constant.
    #[must_use]
    pub fn rows(self) -> u32 {
        device_only()
    }

    /// The innermost extent, that of the contiguous dimension, in elements. A constant.
    #[must_use]
    pub fn cols(self) -> u32 {
        device_only()
    }

    /// The coordinates of a tile, if a tensor is taken apart into tiles like this one: each index
    /// times the extent, outermost first. As [`TensorMap::tile_at`](super::TensorMap::tile_at), for
    /// a map whose own tile is a part of this one: that of a slice
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

    /// Reads one element. `at` has one coordinate for each dimension, outermost first: `[row, column]` for a
    /// [`Shape2`](super::Shape2). The swizzle is applied. Coordinates must lie inside the tile.
    ///
    /// After a TMA load, read only once [`Barrier::wait`](super::Barrier::wait) has returned for its phase.
    ///
    /// PTX: `ld.shared`.
    #[must_use]
    pub fn get<I: Coordinate>(self, at: S::At<I>) -> T {
        device_only()
    }

    /// Writes one element; `at` as for [`get`](Tile::get).
    ///
    /// Before a TMA store of what was written: [`fence_proxy_async`](super::fence_proxy_async) in every
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
}
