//! Tensor maps that a kernel makes: of one that it was given, for tensors that only it knows.

use std::marker::PhantomData;

use super::{
    Global, GlobalIndex, Scalar, Shape, Swizzle, TensorMap, Tile, TileElement, TileType, device_only,
};

/// A kernel's parameter: tensor maps in global memory that kernels [publish](SharedMap::publish) there and copy by. On
/// the host it is a [`MapWorkspace`](crate::launch::MapWorkspace), which says how many there are.
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
    /// The map `i`, for copies. Traps if there is no such map. The thread that copies has acquired it, or
    /// has met one of its block that has, since it was published.
    #[must_use]
    pub fn at(self, i: u32) -> TensorMap<X> {
        device_only()
    }

    /// Makes map `i`, as it was last published, visible to the copies that this thread and those that it meets ask
    /// for. That it has been published is known by a barrier within a block, by an atomic of the device between
    /// blocks, or because an earlier launch did it.
    ///
    /// PTX: `fence.proxy.tensormap::generic.acquire.gpu` (PTX ISA, "membar / fence").
    #[doc(alias = "fence.proxy.tensormap")]
    pub fn acquire(self, i: u32) {
        device_only()
    }
}

/// A tensor map in shared memory, to be changed: one that the kernel was given, with another address, other extents and
/// other strides. The element type, the box and the swizzle stay those of `X`. Made by `shared()`.
///
/// One thread makes the changes. Then its warp, which has met since, [publishes](SharedMap::publish) the map all
/// together. Dimensions are counted from the outermost.
///
/// What the launcher checks of a tensor is here the kernel's to keep: the address and the strides are multiples of 16
/// bytes, and the tensor lies within the memory that it is pointed at.
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
    /// Makes it equal to `map`, a parameter.
    ///
    /// PTX: `ld.param`, `st.shared`, of 128 bytes.
    pub fn copy_from(self, map: TensorMap<X>) {
        device_only()
    }

    /// The tensor has so many elements along dimension `D`.
    ///
    /// PTX: `tensormap.replace.tile.global_dim` (PTX ISA, "tensormap.replace").
    #[doc(alias = "tensormap.replace")]
    pub fn set_extent<const D: usize>(self, extent: u32) {
        device_only()
    }

    /// From one index to the next along dimension `D` there are so many bytes, a multiple of 16 below 2^40. The
    /// innermost dimension has no stride.
    ///
    /// PTX: `tensormap.replace.tile.global_stride` (PTX ISA, "tensormap.replace").
    #[doc(alias = "tensormap.replace")]
    pub fn set_stride<const D: usize>(self, bytes: u64) {
        device_only()
    }

    /// Copies it to map `i` of `maps`, and releases that to copies of the whole device: who has
    /// [acquired](Maps::acquire) it then copies by it. Traps if there is no such map. All threads of a warp call it
    /// together, after [`sync_warp`](super::sync_warp).
    ///
    /// PTX: `tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned` (PTX ISA,
    /// "tensormap.cp_fenceproxy").
    #[doc(alias = "tensormap.cp_fenceproxy")]
    pub fn publish(self, maps: Maps<X>, i: u32) {
        device_only()
    }
}

impl<T: TileElement + Scalar, S: Shape, W: Swizzle> SharedMap<Tile<T, S, W>> {
    /// The tensor begins at element `i` of `global`, whose address is a multiple of 16 bytes; traps if there is no
    /// such element. The launcher asks for `&mut` of `global`, for copies by the map may write to it.
    ///
    /// PTX: `tensormap.replace.tile.global_address` (PTX ISA, "tensormap.replace").
    #[doc(alias = "tensormap.replace")]
    pub fn set_address<I: GlobalIndex>(self, global: Global<T>, i: I) {
        device_only()
    }
}
