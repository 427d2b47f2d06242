//! Tensor maps that a kernel derives from one of its parameters, for tensors computed on the
//! device.

use std::marker::PhantomData;

use super::{
    Global, GlobalIndex, Scalar, Shape, Swizzle, TensorMap, Tile, TileElement, TileType, device_only,
};

/// A kernel's parameter: tensor maps in global memory that kernels [publish](SharedMap::publish)
/// and copy through. On the host it is a [`MapWorkspace`](crate::launch::MapWorkspace), which
/// determines the number of maps.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(maps: Maps<Tile<f32, Shape2<8, 32>>>, tile: Tile<f32, Shape2<8, 32>>, full: Barrier) {
/// maps.acquire(block_idx().x); // what another block may have published
/// maps.at(block_idx().x).load(tile, [0, 0], full);
/// # }
/// ```
pub struct Maps<X: TileType>(PhantomData<X>);

impl<X: TileType> Clone for Maps<X> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<X: TileType> Copy for Maps<X> {}

impl<X: TileType> Maps<X> {
    /// Returns map `i`, for copies. Traps if there is no such map. After the map was published, the
    /// copying thread must have acquired it, or synchronised with a thread of its block that has.
    #[must_use]
    pub fn at(self, i: u32) -> TensorMap<X> {
        device_only()
    }

    /// Makes the last published version of map `i` visible to copies of this thread, and of threads
    /// that synchronise with it. The publication must come first. That order is established by a
    /// barrier within a block, by a device-wide atomic between blocks, or by an earlier launch.
    ///
    /// PTX: `fence.proxy.tensormap::generic.acquire.gpu` (PTX ISA, "membar / fence").
    #[doc(alias = "fence.proxy.tensormap")]
    pub fn acquire(self, i: u32) {
        device_only()
    }
}

/// A tensor map in shared memory that can be modified: a copy of one of the kernel's parameters,
/// with another address, other extents and other strides. Element type, box and swizzle remain
/// those of `X`. Made by `shared()`.
///
/// One thread makes the changes. Its whole warp then synchronises, and
/// [publishes](SharedMap::publish) the map together. Dimensions are counted from the outermost.
///
/// The kernel itself must ensure the conditions that the launcher otherwise checks: address and
/// strides are multiples of 16 bytes, and the tensor is within the memory that the map points to.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(
/// #     template: TensorMap<Tile<f32, Shape2<8, 32>>>, data: Global<f32>, maps: Maps<Tile<f32, Shape2<8, 32>>>,
/// #     first: u32, rows: u32, cols: u32,
/// # ) {
/// let map: SharedMap<Tile<f32, Shape2<8, 32>>> = shared();
/// if thread_idx().x == 0 {
///     map.copy_from(template);
///     map.set_address(data, first);
///     map.set_extent::<0>(rows);
///     map.set_extent::<1>(cols);
///     map.set_stride::<0>(cols as u64 * 4);
/// }
/// if warp_idx() == 0 {
///     sync_warp();
///     map.publish(maps, block_idx().x);
/// }
/// # }
/// ```
pub struct SharedMap<X: TileType>(PhantomData<X>);

impl<X: TileType> Clone for SharedMap<X> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<X: TileType> Copy for SharedMap<X> {}

impl<X: TileType> SharedMap<X> {
    /// Copies `map`, a parameter, into this map.
    ///
    /// PTX: `ld.param` and `st.shared` of 128 bytes.
    pub fn copy_from(self, map: TensorMap<X>) {
        device_only()
    }

    /// Sets the tensor's extent along dimension `D`, in elements.
    ///
    /// PTX: `tensormap.replace.tile.global_dim` (PTX ISA, "tensormap.replace").
    #[doc(alias = "tensormap.replace")]
    pub fn set_extent<const D: usize>(self, extent: u32) {
        device_only()
    }

    /// Sets the tensor's stride along dimension `D` in bytes, a multiple of 16 below 2^40. The
    /// innermost dimension has no stride.
    ///
    /// PTX: `tensormap.replace.tile.global_stride` (PTX ISA, "tensormap.replace").
    #[doc(alias = "tensormap.replace")]
    pub fn set_stride<const D: usize>(self, bytes: u64) {
        device_only()
    }

    /// Copies this map to map `i` of `maps`, and releases it to the whole device: threads that
    /// [acquire](Maps::acquire) it then copy through it. Traps if there is no such map. All threads
    /// of a warp must call it together, after [`sync_warp`](super::sync_warp).
    ///
    /// PTX:
    /// `tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned`
    /// (PTX ISA, "tensormap.cp_fenceproxy").
    #[doc(alias = "tensormap.cp_fenceproxy")]
    pub fn publish(self, maps: Maps<X>, i: u32) {
        device_only()
    }
}

impl<T: TileElement + Scalar, S: Shape, W: Swizzle> SharedMap<Tile<T, S, W>> {
    /// Sets the tensor's address to element `i` of `global`, which must be at a multiple of 16
    /// bytes. Traps if there is no such element. The launcher requires `&mut` of `global`, since
    /// copies through the map may write to it.
    ///
    /// PTX: `tensormap.replace.tile.global_address` (PTX ISA, "tensormap.replace").
    #[doc(alias = "tensormap.replace")]
    pub fn set_address<I: GlobalIndex>(self, global: Global<T>, i: I) {
        device_only()
    }
}
