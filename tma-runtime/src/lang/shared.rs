//! Shared memory: its declaration, plain arrays, and stages.

use std::marker::PhantomData;
use std::ops::Index;

use super::{
    Barrier, Pipeline, Scalar, Shape, SharedMap, Swizzle, Tile, TileElement, TileType, Tiles, device_only,
    sealed::Sealed,
};

/// The types of shared variables: [`Tile`], [`Barrier`], [`SharedArray`], [`Stages`] of these, and
/// [`Pipeline`](super::Pipeline).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be in shared memory",
    label = "not a barrier, tile, `SharedArray`, `Stages` or `Pipeline`",
    note = "annotate the type, as in `let tile: Tile<f16, Shape2<128, 64>> = shared();`"
)]
pub trait Shared: Sealed + Copy {}

impl<T: TileElement, S: Shape, W: Swizzle> Sealed for Tile<T, S, W> {}
impl<T: TileElement, S: Shape, W: Swizzle> Shared for Tile<T, S, W> {}
impl Sealed for Barrier {}
impl Shared for Barrier {}
impl<T: Scalar, const N: u32> Sealed for SharedArray<T, N> {}
impl<T: Scalar, const N: u32> Shared for SharedArray<T, N> {}
impl<X: TileType> Sealed for SharedMap<X> {}
impl<X: TileType> Shared for SharedMap<X> {}
impl<X: Shared, const N: u32> Sealed for Stages<X, N> {}
impl<X: Shared, const N: u32> Shared for Stages<X, N> {}

/// Declares a variable in the block's shared memory, shared by all its threads.
///
/// The call is only allowed as the value of a `let`, outside of loops and branches: each `shared()`
/// in the source is one variable, whose type comes from the `let`. Its content is undefined until
/// it is written or loaded, and a [`Barrier`] must be [initialised](Barrier::init). The compiler
/// chooses alignment and placement. The limit is 227 KiB (232448 bytes) per block (CUDA C++
/// Programming Guide, "Compute Capability 9.x: Shared Memory").
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel() {
/// let a: Stages<Tile<bf16, Shape2<128, 64>, Swizzle128>, 4> = shared();
/// let full: Stages<Barrier, 4> = shared();
/// let sums: SharedArray<f32, 32> = shared();
/// # }
/// ```
#[must_use]
pub fn shared<X: Shared>() -> X {
    device_only()
}

/// The shared variables that hold nothing but data: [`Tile`], [`SharedArray`], and [`Stages`] of
/// these. Their memory can be [reused](reuse).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be in reused memory",
    label = "not a tile, `SharedArray`, or `Stages` of one",
    note = "give barriers and pipelines memory of their own, by `shared()`"
)]
pub trait SharedData: Shared {}

impl<T: TileElement, S: Shape, W: Swizzle> SharedData for Tile<T, S, W> {}
impl<T: Scalar, const N: u32> SharedData for SharedArray<T, N> {}
impl<X: SharedData, const N: u32> SharedData for Stages<X, N> {}

/// The objects whose memory can be [reused](reuse): [`SharedData`], and a
/// [`Pipeline`], of which it is the memory of the tiles.
#[diagnostic::on_unimplemented(
    message = "the memory of `{Self}` cannot be reused",
    label = "not a tile, `SharedArray`, `Stages` of one, or a `Pipeline`"
)]
pub trait ReusableMemory: Sealed {}

impl<T: TileElement, S: Shape, W: Swizzle> ReusableMemory for Tile<T, S, W> {}
impl<T: Scalar, const N: u32> ReusableMemory for SharedArray<T, N> {}
impl<X: SharedData, const N: u32> ReusableMemory for Stages<X, N> {}
impl<T: Tiles, const N: u32> ReusableMemory for Pipeline<T, N> {}

/// Declares a variable in the shared memory of another one, so that two phases of a kernel can use
/// the same bytes as different types.
///
/// Like [`shared`], the call is only allowed as the value of a `let`, outside of loops and
/// branches. The new variable begins where `object` begins, and must not need more bytes than
/// `object` has. `object` is a whole variable, not a stage of one; of a [`Pipeline`] it is the
/// memory of all its tiles, and its barriers keep theirs.
///
/// Both variables stay usable, and name the same bytes: what is written by one name is read by the
/// other, in the layout that PTX defines for its type. Accesses by one name are ordered with those
/// by the other like accesses to one variable. The compiler and the simulator report those that no
/// barrier orders, and the fence that is missing between threads' accesses and copies.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
/// let tile: Tile<f32, Shape2<32, 32>> = shared();
/// let sums: SharedArray<f32, 32> = reuse(tile);
/// // ...
/// let row = thread_idx().x;
/// let mut sum = 0.0;
/// for column in 0..32 {
///     sum += tile.get([row, column]);
/// }
/// sync_threads(); // no thread reads `tile` any more
/// sums.set(row, sum);
/// # }
/// ```
#[must_use]
pub fn reuse<X: SharedData>(object: impl ReusableMemory) -> X {
    device_only()
}

/// A contiguous array of `N` scalars in shared memory.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(out: Global<f32>) {
/// let sums: SharedArray<f32, 128> = shared();
/// let i = thread_idx().x;
/// sums.set(i, i as f32);
/// sync_threads();
/// if i == 0 {
///     let mut total = 0.0;
///     for k in 0..sums.len() {
///         total += sums.get(k);
///     }
///     out.set(block_idx().x, total);
/// }
/// # }
/// ```
pub struct SharedArray<T: Scalar, const N: u32>(PhantomData<T>);

impl<T: Scalar, const N: u32> Clone for SharedArray<T, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Scalar, const N: u32> Copy for SharedArray<T, N> {}

impl<T: Scalar, const N: u32> SharedArray<T, N> {
    /// Reads element `i`, which must be below `N`.
    ///
    /// PTX: `ld.shared`.
    #[must_use]
    pub fn get(self, i: u32) -> T {
        device_only()
    }

    /// Writes element `i`, which must be below `N`.
    ///
    /// PTX: `st.shared`.
    pub fn set(self, i: u32, value: T) {
        device_only()
    }

    /// Reads the `V` elements from `i` on by one instruction. All of them must exist. The array's
    /// length and `i` must be multiples of `V`. Otherwise the rules of [`Tile::get_vec`] apply.
    ///
    /// PTX: `ld.shared.v2` or `.v4`, or one wider element (PTX ISA, "ld").
    #[must_use]
    pub fn get_vec<const V: usize>(self, i: u32) -> [T; V] {
        device_only()
    }

    /// Writes the elements of `value` to those from `i` on, by one instruction. The rules for `i`
    /// and `V` are those of [`get_vec`](SharedArray::get_vec).
    ///
    /// PTX: `st.shared.v2` or `.v4`, or one wider element (PTX ISA, "st").
    pub fn set_vec<const V: usize>(self, i: u32, value: [T; V]) {
        device_only()
    }

    /// Returns the number of elements, `N`. A constant.
    #[must_use]
    pub fn len(self) -> u32 {
        device_only()
    }
}

/// `N` tiles, barriers or shared arrays of one type, selected by a `u32` index: the buffers of a
/// pipeline.
///
/// An index must be below `N`; it need not be a constant. Each stage is aligned like a separate
/// variable.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(src: TensorMap<Tile<f16, Shape2<64, 64>>>) {
/// let tiles: Stages<Tile<f16, Shape2<64, 64>>, 4> = shared();
/// let full: Stages<Barrier, 4> = shared();
/// for k in 0..32 {
///     let stage = k % tiles.len();
///     let parity = (k / tiles.len()) & 1;
///     full[stage].wait(parity);
///     let first = tiles[stage].get([0, 0]);
/// }
/// # }
/// ```
pub struct Stages<X: Shared, const N: u32>(PhantomData<X>);

impl<X: Shared, const N: u32> Clone for Stages<X, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<X: Shared, const N: u32> Copy for Stages<X, N> {}

impl<X: Shared, const N: u32> Stages<X, N> {
    /// Returns the number of stages, `N`. A constant.
    #[must_use]
    pub fn len(self) -> u32 {
        device_only()
    }
}

impl<X: Shared, const N: u32> Index<u32> for Stages<X, N> {
    type Output = X;

    fn index(&self, stage: u32) -> &X {
        device_only()
    }
}
