//! Values per row of an accumulator.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use super::AccumulatorElement;
use crate::lang::device_only;

/// A value for each row of an [`Accumulator`](super::Accumulator) of M rows, such as its maximum,
/// its sum or a factor.
///
/// Each thread holds the values of the M / 32 rows in which it has elements of the accumulator. The
/// four threads that share a row hold the same value. Index it by
/// [`row(i)`](super::Accumulator::row), or in a loop over [`unroll`](crate::lang::unroll): the
/// index must be a constant, because registers have no addresses.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(mut sum: Accumulator<f32, 64, 128>) {
/// let mut factor = Rows::<f32, 64>::filled(1.0);
/// let total = sum.row_sum();
/// for r in unroll(0..total.len()) {
///     factor[r] = recip(total[r]);
/// }
/// for i in unroll(0..sum.len()) {
///     sum[i] *= factor[sum.row(i)];
/// }
/// # }
/// ```
pub struct Rows<T: AccumulatorElement, const M: u32>(PhantomData<T>);

impl<T: AccumulatorElement, const M: u32> Rows<T, M> {
    /// Returns the same value for every row.
    #[must_use]
    pub fn filled(value: T) -> Self {
        device_only()
    }

    /// Returns the number of values that a thread holds, M / 32. A constant.
    #[must_use]
    pub fn len(&self) -> usize {
        device_only()
    }
}

impl<T: AccumulatorElement, const M: u32> Index<usize> for Rows<T, M> {
    type Output = T;

    fn index(&self, r: usize) -> &T {
        device_only()
    }
}

impl<T: AccumulatorElement, const M: u32> IndexMut<usize> for Rows<T, M> {
    fn index_mut(&mut self, r: usize) -> &mut T {
        device_only()
    }
}
