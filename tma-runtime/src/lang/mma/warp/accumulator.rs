//! Sums of products in the registers of a warp.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use super::{AnyMatrix, WarpElement, WarpLeft, WarpMultiply, WarpRight, WarpRows, WarpStoreAs, WarpSum};
use crate::lang::{BitElement, GlobalMatrix, MatrixSwizzle, PackAs, Scalar, Tile, TileElement, device_only};

/// M × N sums in the registers of a warp, to which [`mma_sync`](WarpAccumulator::mma_sync) adds
/// products. It covers the cases that [`Accumulator`](crate::lang::Accumulator) does not: fewer
/// than 64 rows, `f64`, chips without `wgmma`, and warps that work independently.
///
/// `T` is `f32`, `f16`, `i32` or `f64`. M is a multiple of 16, N of 8. Source: PTX ISA, "mma",
/// `.m16n8k*`.
///
/// # Elements
///
/// Each of the 32 lanes holds M · N / 32 elements, in as many registers, half as many for `f16`,
/// twice as many for `f64`. In lane `l`, element `i` is at
///
/// * row `16 * (i / (N / 2)) + l / 4 + 8 * (i / 2 % 2)`,
/// * column `8 * (i % (N / 2) / 4) + 2 * (l % 4) + i % 2`,
///
/// which [`at`](WarpAccumulator::at) returns. Source: PTX ISA, "Matrix Fragments for
/// mma.m16n8k16", matrix C.
///
/// `sum[i]` reads and writes an element. An index is a constant, such as the variable of an
/// [unrolled](crate::lang::unroll) loop, because registers have no addresses.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # type A = Tile<f16, Shape2<16, 64>, Swizzle128>;
/// # type B = Tile<f16, Shape2<64, 64>, Swizzle128>;
/// # fn kernel(a: A, b: B, c: Global<f16>) {
/// // 16 rows times 64 columns, of which each of four warps has 16.
/// let first = warp_idx() * 16;
/// let mut sum = WarpAccumulator::<f32, 16, 16>::zero();
/// let left = WarpLeft::<f16, 16, 64>::load(a, [0, 0]);
/// let right = WarpRight::<f16, 16, 64>::load(b, [first, 0]);
/// sum.mma_sync(left, right);
/// for i in unroll(0..sum.len()) {
///     sum[i] = max(sum[i], 0.0);
/// }
/// sum.store_to(c.matrix(0, [16, 64], 64), [0, first]);
/// # }
/// ```
///
/// An accumulator is neither `Copy` nor `Clone`: a copy would take as many moves as it has
/// registers.
pub struct WarpAccumulator<T: WarpSum, const M: u32, const N: u32>(PhantomData<T>);

impl<T: WarpSum, const M: u32, const N: u32> WarpAccumulator<T, M, N> {
    /// Returns an accumulator of zeros.
    #[must_use]
    pub fn zero() -> Self {
        device_only()
    }

    /// Adds `a · bᵀ`, where `a` is M × K and `b` is N × K. All lanes of the warp must call it. The
    /// sum is complete when it returns.
    ///
    /// Elements: [`WarpMultiply`]. An instruction adds up to 32 bytes of K at once, or 128 bytes
    /// for `f64`. On an H200 its sum is truncated to `f32`, and rounded to nearest, ties to even,
    /// to `f16`.
    ///
    /// PTX: `mma.sync.aligned.m16n8kK.row.col`, for each 16 rows, 8 columns and step of K (PTX ISA,
    /// "mma").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(
    /// #     a: Tile<f64, Shape2<16, 16>, Swizzle128>,
    /// #     b: Tile<f64, Shape2<8, 16>, Swizzle128>,
    /// # ) {
    /// let mut sum = WarpAccumulator::<f64, 16, 8>::zero();
    /// sum.mma_sync(WarpLeft::<f64, 16, 16>::load(a, [0, 0]), WarpRight::<f64, 8, 16>::load(b, [0, 0]));
    /// # }
    /// ```
    ///
    /// K must be the same in both operands:
    ///
    /// ```compile_fail,E0308
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(a: WarpLeft<f16, 16, 32>, b: WarpRight<f16, 8, 16>) {
    /// let mut sum = WarpAccumulator::<f32, 16, 8>::zero();
    /// sum.mma_sync(a, b); // error: expected `32`, found `16`
    /// # }
    /// ```
    // `EA` and `EB` are parameters, and the bound `WarpMultiply` is on the right element, to
    // improve rustc's errors: they point at the operand that does not fit, and state the reason.
    #[doc(alias = "mma.sync")]
    pub fn mma_sync<EA, EB, const K: u32>(&mut self, a: WarpLeft<EA, M, K>, b: WarpRight<EB, N, K>)
    where
        EA: WarpElement,
        EB: WarpMultiply<EA, T>,
    {
        device_only()
    }

    /// Returns the number of elements that a lane holds, M · N / 32. A constant.
    #[must_use]
    pub fn len(&self) -> usize {
        device_only()
    }

    /// Returns the index in [`WarpRows`] of the row of this lane's element `i`:
    /// `2 * (i / (N / 2)) + i / 2 % 2`. A constant for a constant `i`.
    #[must_use]
    pub fn row(&self, i: usize) -> usize {
        device_only()
    }

    /// Returns row and column of this lane's element `i` within the accumulator.
    #[must_use]
    pub fn at(&self, i: usize) -> [u32; 2] {
        device_only()
    }

    /// Converts the elements to the tile's type and writes them to M rows and N columns of `tile`,
    /// from row and column `at` on. The swizzle is applied. All lanes of the warp must call it,
    /// with the same arguments.
    ///
    /// The first column must be at a multiple of 16 bytes of a row (docs/errors/TMA0261.md), and
    /// the whole part within the tile. Conversions and fences are those of
    /// [`Accumulator::store`](crate::lang::Accumulator::store). A warp that reads what it stored
    /// calls [`sync_warp`](crate::lang::sync_warp) in between.
    ///
    /// PTX: `cvt.rn`, `stmatrix.sync.aligned.m8n8.x4.shared.b16` for 16-bit elements, `st.shared`
    /// for others (PTX ISA, "cvt", "stmatrix").
    #[doc(alias = "stmatrix")]
    pub fn store<E, S, W>(&self, tile: Tile<E, S, W>, at: [u32; 2])
    where
        T: WarpStoreAs<E>,
        E: TileElement,
        S: AnyMatrix,
        W: MatrixSwizzle,
    {
        device_only()
    }

    /// Converts the elements and writes those that are inside to rows of global memory, from row
    /// and column `at` of `matrix` on, like
    /// [`Accumulator::store_to`](crate::lang::Accumulator::store_to).
    pub fn store_to<E: Scalar>(&self, matrix: GlobalMatrix<E>, at: [u32; 2])
    where
        T: WarpStoreAs<E>,
    {
        device_only()
    }

    /// Converts the elements to 16 bits, as the left operand of another matmul: M × K, where this
    /// accumulator's N is its K, a multiple of 16. Each lane keeps its elements.
    ///
    /// PTX: `cvt.rn.{f16x2|bf16x2}.f32` for each pair.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(scores: WarpAccumulator<f32, 16, 64>, values: Tile<bf16, Shape2<64, 32>, Swizzle64>) {
    /// let mut out = WarpAccumulator::<f32, 16, 32>::zero();
    /// out.mma_sync(scores.pack::<bf16>(), WarpRight::<bf16, 32, 64>::load(values.t(), [0, 0]));
    /// # }
    /// ```
    pub fn pack<E: WarpElement>(&self) -> WarpLeft<E, M, N>
    where
        T: PackAs<E>,
    {
        device_only()
    }

    /// Returns the maximum of each row, for `f32`, like
    /// [`Accumulator::row_max`](crate::lang::Accumulator::row_max).
    #[doc(alias = "shfl.sync")]
    #[must_use]
    pub fn row_max(&self) -> WarpRows<T, M> {
        device_only()
    }

    /// Returns the sum of each row, for `f32`, in an unspecified order, like
    /// [`Accumulator::row_sum`](crate::lang::Accumulator::row_sum).
    #[doc(alias = "shfl.sync")]
    #[must_use]
    pub fn row_sum(&self) -> WarpRows<T, M> {
        device_only()
    }
}

/// # Integers
impl<const M: u32, const N: u32> WarpAccumulator<i32, M, N> {
    /// Adds like [`mma_sync`](WarpAccumulator::mma_sync), for `i8` and `u8`, but sums do not wrap:
    /// if an instruction's sum does not fit in an `i32`, it becomes `i32::MIN` or `i32::MAX`.
    ///
    /// PTX: `mma.sync` with `.satfinite` (PTX ISA, "mma").
    #[doc(alias = "satfinite")]
    pub fn mma_sync_saturating<EA, EB, const K: u32>(&mut self, a: WarpLeft<EA, M, K>, b: WarpRight<EB, N, K>)
    where
        EA: WarpElement,
        EB: WarpMultiply<EA, i32>,
    {
        device_only()
    }

    /// Adds, for each row of `a` and each row of `b`, the number of bits that are set in both. K
    /// counts the unsigned integers that contain the bits.
    ///
    /// PTX: `mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc` (PTX ISA, "mma").
    #[doc(alias = "b1")]
    pub fn mma_sync_and_popc<E, const K: u32>(&mut self, a: WarpLeft<E, M, K>, b: WarpRight<E, N, K>)
    where
        E: BitElement + WarpElement,
    {
        device_only()
    }

    /// Adds, for each row of `a` and each row of `b`, the number of bits that differ: their Hamming
    /// distance. K is that of [`mma_sync_and_popc`](WarpAccumulator::mma_sync_and_popc).
    ///
    /// PTX: `mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc` (PTX ISA, "mma").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(queries: Tile<u32, Shape2<16, 32>, Swizzle128>, keys: Tile<u32, Shape2<64, 32>, Swizzle128>) {
    /// // In how many of 1024 bits each of 16 queries and 64 keys differ.
    /// let mut distance = WarpAccumulator::<i32, 16, 64>::zero();
    /// distance.mma_sync_xor_popc(
    ///     WarpLeft::<u32, 16, 32>::load(queries, [0, 0]),
    ///     WarpRight::<u32, 64, 32>::load(keys, [0, 0]),
    /// );
    /// # }
    /// ```
    #[doc(alias = "b1")]
    pub fn mma_sync_xor_popc<E, const K: u32>(&mut self, a: WarpLeft<E, M, K>, b: WarpRight<E, N, K>)
    where
        E: BitElement + WarpElement,
    {
        device_only()
    }
}

impl<T: WarpSum, const M: u32, const N: u32> Index<usize> for WarpAccumulator<T, M, N> {
    type Output = T;

    fn index(&self, i: usize) -> &T {
        device_only()
    }
}

impl<T: WarpSum, const M: u32, const N: u32> IndexMut<usize> for WarpAccumulator<T, M, N> {
    fn index_mut(&mut self, i: usize) -> &mut T {
        device_only()
    }
}
