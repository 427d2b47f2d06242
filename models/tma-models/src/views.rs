//! Views of the first elements or rows of tensors that have room for more.

#![allow(clippy::single_range_in_vec_init, reason = "views of one dimension are sliced by one range")]

use tma_runtime::prelude::*;

use crate::ModelError;

/// Returns the first elements.
pub(crate) fn first<T: Scalar>(
    all: &DeviceTensor<T, 1>,
    count: usize,
) -> Result<TensorView<'_, T, 1>, ModelError> {
    Ok(all.view().slice([0..count])?)
}

/// Returns the first elements, to be written.
pub(crate) fn first_mut<T: Scalar>(
    all: &mut DeviceTensor<T, 1>,
    count: usize,
) -> Result<TensorViewMut<'_, T, 1>, ModelError> {
    Ok(all.view_mut().slice([0..count])?)
}

/// Returns the first rows.
pub(crate) fn first_rows<T: Scalar>(
    all: &DeviceTensor<T, 2>,
    rows: usize,
) -> Result<TensorView<'_, T, 2>, ModelError> {
    let [_, columns] = all.shape();
    Ok(all.view().slice([0..rows, 0..columns])?)
}

/// Returns the first rows, to be written.
pub(crate) fn first_rows_mut<T: Scalar>(
    all: &mut DeviceTensor<T, 2>,
    rows: usize,
) -> Result<TensorViewMut<'_, T, 2>, ModelError> {
    let [_, columns] = all.shape();
    Ok(all.view_mut().slice([0..rows, 0..columns])?)
}
