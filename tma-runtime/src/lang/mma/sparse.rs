//! Left operands of which half the elements are zero, and not stored.

use std::marker::PhantomData;
use std::ops::Neg;

use super::{Fragment, Left, MatrixElement, MatrixFloat, MatrixSwizzle, Negated};
use crate::lang::{Shape, Shape2, Shape3, Swizzle, Tile, TileElement, device_only, sealed::Sealed};

/// A left operand with rows of K elements, half of which are stored in a tile or a fragment:
/// [`tile.sparse(metadata)`](Tile::sparse), [`fragment.sparse(metadata)`](Fragment::sparse). If
/// made from a tile, it is a handle like the tile. If made from a fragment, it can be multiplied
/// once, like the fragment.
pub struct Sparse<X, const K: u32>(PhantomData<X>);

impl<X: Copy, const K: u32> Clone for Sparse<X, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<X: Copy, const K: u32> Copy for Sparse<X, K> {}
impl<X, const K: u32> Sealed for Sparse<X, K> {}

impl<E, W, const M: u32, const HALF: u32, const K: u32> Left<M, K> for Sparse<Tile<E, Shape2<M, HALF>, W>, K>
where
    E: MatrixElement,
    W: MatrixSwizzle,
{
    type Element = E;
}

impl<E, W, const M: u32, const HALF: u32, const K: u32> Left<M, K>
    for Sparse<Tile<E, Shape3<1, M, HALF>, W>, K>
where
    E: MatrixElement,
    W: MatrixSwizzle,
{
    type Element = E;
}

impl<E, const M: u32, const HALF: u32, const K: u32> Left<M, K> for Sparse<Fragment<E, M, HALF>, K>
where
    E: MatrixElement,
{
    type Element = E;
}

impl<T: MatrixFloat, S: Shape, W: Swizzle, const K: u32> Neg for Sparse<Tile<T, S, W>, K> {
    type Output = Negated<Self>;

    fn neg(self) -> Negated<Self> {
        device_only()
    }
}

/// # Sparse operands
impl<T: TileElement, S: Shape, W: Swizzle> Tile<T, S, W> {
    /// Returns this tile, M × K / 2, as a left operand M × K with half of its elements stored: two
    /// of each group of four elements of a row, in order, or for `tf32` one of each two. The others
    /// are zero. The right operand has all K. A matmul takes half as many instructions.
    ///
    /// `metadata` selects the stored elements. Each group has four bits: the position of its first
    /// element in the low two, and that of its second, which is greater, in the high two. For
    /// `tf32`, `0b0100` is the first element and `0b1110` the second. Register `metadata[i]` of
    /// thread `t` of the warpgroup, with `lane = t % 32`, has the bits of eight groups:
    ///
    /// * for 16-bit elements, for each 64 rows and each 64 elements along K: the low half has the
    ///   bits of row `16 * (t / 32) + lane / 4`, and the high half those of the row 8 below, each
    ///   for the 16 elements from `16 * (lane % 4)` on;
    /// * for `tf32`, the same for each 32 elements along K, and the 8 elements from
    ///   `8 * (lane % 4)` on;
    /// * for 8-bit elements, for each 64 rows and each 64 elements along K: the bits of row
    ///   `16 * (t / 32) + lane / 4 + 8 * (lane % 2)`, for the 32 elements from
    ///   `32 * (lane % 4 / 2)` on.
    ///
    /// Registers are ordered along K first, then by the next 64 rows. The matmul takes a copy of
    /// them. Metadata with two equal positions is undefined behaviour.
    ///
    /// PTX: `wgmma.mma_async.sp`; the compiler picks the sparsity selector, so that each thread's
    /// registers are used (PTX ISA, "wgmma.mma_async.sp", "Sparse matrix storage").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(
    /// #     a: Tile<f16, Shape2<64, 64>, Swizzle128>,
    /// #     b: Tile<f16, Shape2<64, 128>, Swizzle128>,
    /// #     metadata: Global<u32>,
    /// # ) {
    /// // Rows of 128 elements, of which 64 are in `a`.
    /// let t = thread_idx().x;
    /// let places = [metadata.get(t), metadata.get(128 + t)];
    /// let mut sum = Accumulator::<f32, 64, 64>::zero();
    /// sum.mma(a.sparse(places), b, ()).wait();
    /// # }
    /// ```
    #[must_use]
    pub fn sparse<const C: usize, const K: u32>(self, metadata: [u32; C]) -> Sparse<Self, K> {
        device_only()
    }
}

/// # Sparse operands
impl<E: MatrixElement, const M: u32, const HALF: u32> Fragment<E, M, HALF> {
    /// Returns this fragment, M × K / 2, as a left operand M × K with half of its elements stored:
    /// two of each group of four elements of a row, in order. The others are zero. The right
    /// operand has all K.
    ///
    /// `metadata` is that of [`Tile::sparse`], for the fragment's elements. The fragment keeps the
    /// layout of a dense one of K / 2 columns: column `j` of the accumulator that was packed, or of
    /// the tile that was loaded, is the `j`-th stored element.
    ///
    /// PTX: `wgmma.mma_async.sp` with A in registers (PTX ISA, "wgmma.mma_async.sp", "Register
    /// Fragments for wgmma.mma_async.sp.m64nNk*").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(
    /// #     scores: Accumulator<f32, 64, 64>,
    /// #     values: Tile<bf16, Shape2<64, 128>, Swizzle128>,
    /// #     metadata: Global<u32>,
    /// # ) {
    /// // Rows of 128 weights, of which 64 are not zero.
    /// let t = thread_idx().x;
    /// let places = [metadata.get(t), metadata.get(128 + t)];
    /// let mut out = Accumulator::<f32, 64, 64>::zero();
    /// out.mma(scores.pack::<bf16>().sparse(places), values, ()).wait();
    /// # }
    /// ```
    ///
    /// Like a fragment, it can be multiplied only once:
    ///
    /// ```compile_fail,E0382
    /// # use tma_runtime::prelude::*;
    /// # type Value = Tile<bf16, Shape2<64, 128>, Swizzle128>;
    /// # fn kernel(scores: Accumulator<f32, 64, 64>, left: Value, right: Value, places: [u32; 2]) {
    /// let weights = scores.pack::<bf16>().sparse(places);
    /// let mut out = Accumulator::<f32, 64, 64>::zero();
    /// let mut flight = out.mma(weights, left, ());
    /// flight.mma(weights, right, ()); // error: use of moved value
    /// flight.wait();
    /// # }
    /// ```
    pub fn sparse<const C: usize, const K: u32>(self, metadata: [u32; C]) -> Sparse<Self, K> {
        device_only()
    }
}
