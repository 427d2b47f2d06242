//! Sums of products in the registers of a warpgroup.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use super::{
    AccumulatorElement, Columns, Flight, Fragment, Left, MatrixElement, MatrixShape, MatrixSwizzle, Multiply,
    PackAs, Right, Rows, StoreAs,
};
use crate::lang::{GlobalMatrix, Scalar, Tile, TileElement, device_only};

/// M × N sums in the registers of a warpgroup, to which the tensor cores add products of tiles.
///
/// `T` is `f32`, `f16` or `i32`. M is a multiple of 64. N is a multiple of 8 up to 256; for `i32`
/// it is 8, 24, or a multiple of 16. Source: PTX ISA, "wgmma.mma_async", "Matrix Shape".
///
/// # Elements
///
/// Each of the 128 threads holds M / 64 · N / 2 elements, in as many registers, or half as many for
/// `f16`. A thread has 255 registers at most: 64 × 256 and 128 × 128 in `f32` take 128 of them. In
/// thread `t` of the warpgroup, with `lane = t % 32`, element `i` is at
///
/// * row `64 * (i / (N / 2)) + 16 * (t / 32) + lane / 4 + 8 * (i / 2 % 2)`,
/// * column `8 * (i % (N / 2) / 4) + 2 * (lane % 4) + i % 2`,
///
/// which [`at`](Accumulator::at) returns. Source: PTX ISA, "Register Fragments for
/// wgmma.mma_async", matrix D.
///
/// `sum[i]` reads and writes an element. An index is a constant, such as the variable of an
/// [unrolled](crate::lang::unroll) loop, because registers have no addresses.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # type Operand = Tile<bf16, Shape2<64, 64>, Swizzle128>;
/// # fn kernel(a: Operand, b: Operand, bias: Global<f32>, out: Tile<bf16, Shape2<64, 64>, Swizzle128>) {
/// let mut sum = Accumulator::<f32, 64, 64>::zero();
/// sum.mma(a, b, ()).wait();
/// for i in unroll(0..sum.len()) {
///     let column = sum.at(i)[1];
///     sum[i] = max(sum[i] + bias.get(column), 0.0);
/// }
/// sum.store(out);
/// # }
/// ```
///
/// An accumulator is neither `Copy` nor `Clone`: a copy would take as many moves as it has
/// registers.
pub struct Accumulator<T: AccumulatorElement, const M: u32, const N: u32>(PhantomData<T>);

impl<T: AccumulatorElement, const M: u32, const N: u32> Accumulator<T, M, N> {
    /// Returns an accumulator of zeros. Before a matmul it costs nothing: that matmul overwrites
    /// the registers instead of adding to them.
    ///
    /// PTX: the first `wgmma.mma_async` has a `scale-d` of 0.
    #[must_use]
    pub fn zero() -> Self {
        device_only()
    }

    /// Starts adding `a · bᵀ`, where `a` is M × K and `b` is N × K, and returns at once. `keep` is
    /// a value that must not be released before the matmul is complete: usually the slot of a
    /// pipeline that holds the tiles, otherwise `()`. The [`Flight`] returns it.
    ///
    /// Operands: [`Left`], [`Right`]. Elements: [`Multiply`]. K is a multiple of 32 bytes.
    ///
    /// An instruction adds 32 bytes of K at once. On an H200 its sum is truncated to `f32`, and
    /// rounded to nearest, ties to even, to `f16`.
    ///
    /// PTX: `wgmma.fence.sync.aligned`; for each 64 rows and each 32 bytes of K, a
    /// `wgmma.mma_async.sync.aligned.m64nNkK`; `wgmma.commit_group.sync.aligned` (PTX ISA,
    /// "wgmma.fence", "wgmma.mma_async", "wgmma.commit_group").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # type A = Tile<e4m3, Shape2<64, 128>, Swizzle128>;
    /// # type B = Tile<e5m2, Shape2<256, 128>, Swizzle128>;
    /// # fn kernel(ring: Pipeline<(A, B), 4>) {
    /// let mut consumer = ring.consumer();
    /// let mut sum = Accumulator::<f32, 64, 256>::zero();
    /// let slot = consumer.wait();
    /// let flight = sum.mma(slot.0, slot.1, slot);
    /// // Whatever does not need the sum goes here.
    /// let slot = flight.wait();
    /// slot.release();
    /// # }
    /// ```
    // `EA` and `EB` are parameters, and the bound `Multiply` is on the right element, to improve
    // rustc's errors: they point at the operand that does not fit, and state the reason.
    #[doc(alias = "wgmma.mma_async")]
    pub fn mma<'a, A, B, Keep, EA, EB, const K: u32>(
        &'a mut self,
        a: A,
        b: B,
        keep: Keep,
    ) -> Flight<'a, T, M, N, Keep>
    where
        A: Left<M, K, Element = EA>,
        B: Right<N, K, Element = EB>,
        EB: Multiply<EA, T>,
    {
        device_only()
    }

    /// Returns the number of elements that a thread holds, M / 64 · N / 2. A constant.
    #[must_use]
    pub fn len(&self) -> usize {
        device_only()
    }

    /// Returns the index in [`Rows`] of the row of this thread's element `i`:
    /// `2 * (i / (N / 2)) + i / 2 % 2`. A constant for a constant `i`.
    #[must_use]
    pub fn row(&self, i: usize) -> usize {
        device_only()
    }

    /// Returns row and column of this thread's element `i` within the accumulator.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(mut scores: Accumulator<f32, 64, 128>, query: u32, key: u32) {
    /// // A causal mask: this tile of scores begins at row `query` and column `key`.
    /// for i in unroll(0..scores.len()) {
    ///     let at = scores.at(i);
    ///     if key + at[1] > query + at[0] {
    ///         scores[i] = f32::NEG_INFINITY;
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn at(&self, i: usize) -> [u32; 2] {
        device_only()
    }

    /// Returns the `j`-th group of `C` columns: columns `j * C` to `j * C + C`. `C` divides N and
    /// is a multiple of 8; `j` is a constant, such as the variable of an
    /// [unrolled](crate::lang::unroll) loop.
    pub fn columns<const C: u32>(&self, j: u32) -> Columns<'_, T, M, C> {
        device_only()
    }

    /// Converts the elements to the tile's type and writes them to `tile`, M × N, at their rows and
    /// columns. The swizzle is applied. All threads of the warpgroup must call it.
    ///
    /// Conversions round to nearest, ties to even; numbers outside of an 8-bit float's range
    /// saturate.
    ///
    /// Before a TMA store of the tile: [`fence_proxy_async`](crate::lang::fence_proxy_async) in
    /// every thread, then [`sync_warpgroup`](crate::lang::sync_warpgroup), then the store.
    ///
    /// PTX: `cvt.rn`, `stmatrix.sync.aligned.m8n8.x4.shared.b16` for 16-bit elements, `st.shared`
    /// for others (PTX ISA, "cvt", "stmatrix").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # type C = Tile<f16, Shape2<64, 64>, Swizzle128>;
    /// # fn kernel(sum: Accumulator<f32, 64, 64>, c: TensorMap<C>) {
    /// let out: C = shared();
    /// sum.store(out);
    /// fence_proxy_async();
    /// sync_warpgroup();
    /// if thread_idx().x == 0 {
    ///     c.store(c.block_tile(), out);
    ///     bulk_commit_group();
    ///     bulk_wait_group_read::<0>();
    /// }
    /// # }
    /// ```
    #[doc(alias = "stmatrix")]
    pub fn store<E, S, W>(&self, tile: Tile<E, S, W>)
    where
        T: StoreAs<E>,
        E: TileElement,
        S: MatrixShape<M, N>,
        W: MatrixSwizzle,
    {
        device_only()
    }

    /// Converts the elements and writes them to rows of global memory, from row and column `at` of
    /// `matrix` on. Elements outside of the matrix are not written, so the last tiles of a ragged
    /// matrix need no special case.
    ///
    /// Two adjacent columns are written by one instruction if both are inside and their address is
    /// a multiple of their size. Each thread writes its own elements, so the threads of a warpgroup
    /// need not call it together. No shared memory is used. For large outputs, a tile and a TMA
    /// store are better, since they write whole lines.
    ///
    /// PTX: `cvt.rn`, `st.global`.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(sum: Accumulator<f32, 64, 128>, c: Global<bf16>, m: u32, n: u32) {
    /// let all = c.matrix(0, [m, n], n);
    /// sum.store_to(all, [block_idx().y * 64, block_idx().x * 128]);
    /// # }
    /// ```
    pub fn store_to<E: Scalar>(&self, matrix: GlobalMatrix<E>, at: [u32; 2])
    where
        T: StoreAs<E>,
    {
        device_only()
    }

    /// Converts the elements to 16 bits, as the left operand of another matmul: M × K, where this
    /// accumulator's N is its K. Each thread keeps its elements.
    ///
    /// PTX: `cvt.rn.{f16x2|bf16x2}.f32` for each pair.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # type Value = Tile<bf16, Shape2<128, 64>, Swizzle128>;
    /// # fn kernel(scores: Accumulator<f32, 64, 128>, value: Value) {
    /// let weights = scores.pack::<bf16>();
    /// let mut out = Accumulator::<f32, 64, 64>::zero();
    /// out.mma(weights, value.t(), ()).wait(); // the values have K rows: one per key
    /// # }
    /// ```
    pub fn pack<E: MatrixElement>(&self) -> Fragment<E, M, N>
    where
        T: PackAs<E>,
    {
        device_only()
    }

    /// Returns the maximum of each row. The four threads that share a row exchange theirs, so all
    /// threads of the warp must call it. The maximum of a NaN and a number is the number.
    ///
    /// PTX: `max`, and two `shfl.sync.bfly` for each row of a thread.
    #[doc(alias = "shfl.sync")]
    #[must_use]
    pub fn row_max(&self) -> Rows<T, M> {
        device_only()
    }

    /// Returns the sum of each row, in an unspecified order. All threads of the warp must call it.
    /// Integers wrap.
    ///
    /// PTX: `add`, and two `shfl.sync.bfly` for each row of a thread.
    #[doc(alias = "shfl.sync")]
    #[must_use]
    pub fn row_sum(&self) -> Rows<T, M> {
        device_only()
    }
}

impl<T: AccumulatorElement, const M: u32, const N: u32> Index<usize> for Accumulator<T, M, N> {
    type Output = T;

    fn index(&self, i: usize) -> &T {
        device_only()
    }
}

impl<T: AccumulatorElement, const M: u32, const N: u32> IndexMut<usize> for Accumulator<T, M, N> {
    fn index_mut(&mut self, i: usize) -> &mut T {
        device_only()
    }
}
