//! Values per row of an accumulator of a warp.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use super::WarpSum;
use crate::lang::device_only;

/// A value for each row of a [`WarpAccumulator`](super::WarpAccumulator) of M rows, such as its
/// maximum, its sum or a factor.
///
/// Each lane holds the values of the M / 8 rows in which it has elements of the accumulator. The
/// four lanes that share a row hold the same value. Otherwise the rules of
/// [`Rows`](crate::lang::Rows) apply.
pub struct WarpRows<T: WarpSum, const M: u32>(PhantomData<T>);

impl<T: WarpSum, const M: u32> WarpRows<T, M> {
    /// Returns the same value for every row.
    #[must_use]
    pub fn filled(value: T) -> Self {
        device_only()
    }

    /// Returns the number of values that a lane holds, M / 8. A constant.
    #[must_use]
    pub fn len(&self) -> usize {
        device_only()
    }
}

impl<T: WarpSum, const M: u32> Index<usize> for WarpRows<T, M> {
    type Output = T;

    fn index(&self, r: usize) -> &T {
        device_only()
    }
}

impl<T: WarpSum, const M: u32> IndexMut<usize> for WarpRows<T, M> {
    fn index_mut(&mut self, r: usize) -> &mut T {
        device_only()
    }
}
