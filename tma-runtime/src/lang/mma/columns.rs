//! Groups of an accumulator's columns.

use std::marker::PhantomData;

use super::{AccumulatorElement, MatrixShape, MatrixSwizzle, StoreAs};
use crate::lang::{GlobalMatrix, Scalar, Tile, TileElement, device_only};

/// `C` adjacent columns of an [`Accumulator`](super::Accumulator) of M rows, made by
/// [`columns`](super::Accumulator::columns). It borrows the accumulator and costs nothing.
///
/// With column groups, an accumulator is stored through buffers that are smaller than itself:
///
/// ```
/// # use tma_runtime::prelude::*;
/// # type C = Tile<bf16, Shape2<64, 64>, Swizzle128>;
/// # fn kernel(sum: Accumulator<f32, 64, 256>, c: TensorMap<C>, row: u32) {
/// let out: C = shared();
/// for j in unroll(0..4u32) {
///     sum.columns::<64>(j).store(out);
///     fence_proxy_async();
///     sync_warpgroup();
///     if thread_idx().x == 0 {
///         c.store([row, j * 64], out);
///         bulk_commit_group();
///         bulk_wait_group_read::<0>();
///     }
///     sync_warpgroup(); // the buffer is free again
/// }
/// # }
/// ```
#[must_use = "borrowed columns do nothing unless they are stored"]
pub struct Columns<'a, T: AccumulatorElement, const M: u32, const C: u32>(PhantomData<&'a T>);

impl<T: AccumulatorElement, const M: u32, const C: u32> Columns<'_, T, M, C> {
    /// Converts these columns to the tile's element type and writes them to `tile`, M × C, like
    /// [`Accumulator::store`](super::Accumulator::store).
    #[doc(alias = "stmatrix")]
    pub fn store<E, S, W>(&self, tile: Tile<E, S, W>)
    where
        T: StoreAs<E>,
        E: TileElement,
        S: MatrixShape<M, C>,
        W: MatrixSwizzle,
    {
        device_only()
    }

    /// Converts these columns to the slice's element type and writes those that are inside to rows
    /// of global memory, like [`Accumulator::store_to`](super::Accumulator::store_to).
    pub fn store_to<E: Scalar>(&self, matrix: GlobalMatrix<E>, at: [u32; 2])
    where
        T: StoreAs<E>,
    {
        device_only()
    }

    /// Returns how many of these elements a thread holds, M / 64 · C / 2. A constant.
    #[must_use]
    pub fn len(&self) -> usize {
        device_only()
    }

    /// Returns row and column of this thread's element `i` within these columns. Both count from 0.
    /// The order is that of an accumulator of M × C.
    #[must_use]
    pub fn at(&self, i: usize) -> [u32; 2] {
        device_only()
    }
}
