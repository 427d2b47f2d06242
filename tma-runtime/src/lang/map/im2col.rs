//! Tensor maps of images: columns of pixels, in the order in which convolutions read them.

use std::marker::PhantomData;

use crate::lang::{
    Barrier, CachePolicy, Coordinate, Shape2, Swizzle, Tile, TileElement, TileType, device_only,
    sealed::Sealed,
};

/// The rank of a tensor of images.
pub struct Rank<const N: usize>;

/// The tensor ranks of im2col mode: 3, 4 and 5.
#[diagnostic::on_unimplemented(
    message = "im2col mode needs a tensor of 3 to 5 dimensions",
    label = "not a rank of 3 to 5",
    note = "the dimensions are images, one to three dimensions of pixels, and channels"
)]
pub trait Im2colRank: Sealed {
    /// The type of the offsets: one per spatial dimension, outermost first.
    type Offsets;
}

macro_rules! ranks {
    ($($rank:literal $pixels:literal)+) => { $(
        impl Sealed for Rank<$rank> {}
        impl Im2colRank for Rank<$rank> {
            type Offsets = [u16; $pixels];
        }
    )+ };
}

ranks!(3 1  4 2  5 3);

/// A kernel's parameter: a tensor of images in global memory. One copy moves `PIXELS` pixels with
/// their channels, in im2col mode. `X` is `Tile<T, Shape2<PIXELS, CHANNELS>, W>`. `RANK` is the
/// rank of the tensor: images, one to three spatial dimensions, channels, outermost first.
///
/// # Selection of pixels
///
/// The launch sets two corners, which define a bounding box, and a stride for each spatial
/// dimension ([`tensor.im2col(..)`](crate::launch::Im2colExt::im2col)). A copy starts at pixel `at`
/// of the bounding box and steps by the strides from pixel to pixel. At the end of a row of the box
/// it continues with the next row, and after the last row with the next image. The pixel that is
/// loaded is `offsets` further: the filter's tap. Out-of-bounds pixels read as zero. The tile then
/// holds the input of one tap, for as many positions of the filter as it has rows.
///
/// A copy moves up to 1024 pixels and 256 channels. The size of the channels must be a multiple of
/// 16 bytes, and fit in the swizzle's span. Coordinates must be in the bounding box. The channel
/// coordinate times the element's size must be a multiple of 16 bytes.
///
/// Source: PTX ISA, "Im2col mode"; CUDA driver API, `cuTensorMapEncodeIm2col`.
pub struct Im2colMap<X: TileType, const RANK: usize>(PhantomData<X>);

impl<X: TileType, const RANK: usize> Clone for Im2colMap<X, RANK> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<X: TileType, const RANK: usize> Copy for Im2colMap<X, RANK> {}

impl<X: TileType, const RANK: usize> Im2colMap<X, RANK> {
    /// Fetches the descriptor into its cache, like
    /// [`TensorMap::prefetch_descriptor`](crate::lang::TensorMap::prefetch_descriptor).
    pub fn prefetch_descriptor(self) {
        device_only()
    }

    /// Returns the same map, with `policy` as the L2 cache policy of its copies, like
    /// [`TensorMap::hint`](crate::lang::TensorMap::hint).
    #[must_use]
    pub fn hint(self, policy: CachePolicy) -> Self {
        device_only()
    }
}

impl<T: TileElement, const PIXELS: u32, const CHANNELS: u32, W: Swizzle, const RANK: usize>
    Im2colMap<Tile<T, Shape2<PIXELS, CHANNELS>, W>, RANK>
where
    Rank<RANK>: Im2colRank,
{
    /// Starts copying the column that begins at `at`, shifted by `offsets`, into `tile`, and
    /// returns at once. `at` is an image, a pixel and the first channel. The barrier receives the
    /// bytes of the whole tile. Apart from this it is like
    /// [`TensorMap::load`](crate::lang::TensorMap::load).
    ///
    /// Offsets are at most 65535 with one spatial dimension, 255 with two, and 31 with three.
    ///
    /// PTX:
    /// `cp.async.bulk.tensor.{3..5}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes`
    /// (PTX ISA, "cp.async.bulk.tensor").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(images: Im2colMap<Tile<f16, Shape2<64, 32>>, 4>, tap: Tile<f16, Shape2<64, 32>>, full: Barrier) {
    /// // The input of tap [2, 1] for the first 64 places of the filter in image 0.
    /// images.load(tap, [0, -1, -1, 0], [2, 1], full);
    /// # }
    /// ```
    #[doc(alias = "cp.async.bulk.tensor")]
    pub fn load<I: Coordinate>(
        self,
        tile: Tile<T, Shape2<PIXELS, CHANNELS>, W>,
        at: [I; RANK],
        offsets: <Rank<RANK> as Im2colRank>::Offsets,
        barrier: Barrier,
    ) {
        device_only()
    }

    /// Loads like [`load`](Im2colMap::load), but to the same offset in each block of the cluster
    /// whose bit is set in `mask`, like
    /// [`TensorMap::load_multicast`](crate::lang::TensorMap::load_multicast).
    ///
    /// PTX:
    /// `cp.async.bulk.tensor.{3..5}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster`
    /// (PTX ISA, "cp.async.bulk.tensor").
    #[doc(alias = "cp.async.bulk.tensor")]
    pub fn load_multicast<I: Coordinate>(
        self,
        tile: Tile<T, Shape2<PIXELS, CHANNELS>, W>,
        at: [I; RANK],
        offsets: <Rank<RANK> as Im2colRank>::Offsets,
        barrier: Barrier,
        mask: u16,
    ) {
        device_only()
    }

    /// Starts fetching a column into the L2 cache, like
    /// [`TensorMap::prefetch`](crate::lang::TensorMap::prefetch).
    ///
    /// PTX: `cp.async.bulk.prefetch.tensor.{3..5}d.L2.global.im2col` (PTX ISA,
    /// "cp.async.bulk.prefetch.tensor").
    #[doc(alias = "cp.async.bulk.prefetch.tensor")]
    pub fn prefetch<I: Coordinate>(self, at: [I; RANK], offsets: <Rank<RANK> as Im2colRank>::Offsets) {
        device_only()
    }

    /// Starts copying `tile` to the pixels from `at` on, without offsets. The bounding box must be
    /// within the tensor. Apart from this it is like
    /// [`TensorMap::store`](crate::lang::TensorMap::store).
    ///
    /// PTX: `cp.async.bulk.tensor.{3..5}d.global.shared::cta.im2col_no_offs.bulk_group` (PTX ISA,
    /// "cp.async.bulk.tensor").
    #[doc(alias = "cp.async.bulk.tensor")]
    pub fn store<I: Coordinate>(self, at: [I; RANK], tile: Tile<T, Shape2<PIXELS, CHANNELS>, W>) {
        device_only()
    }
}
