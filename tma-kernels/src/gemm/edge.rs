//! Rows of C that the copy engine cannot store completely.
//!
//! The copy engine writes whole units of 16 bytes, at multiples of 16 bytes
//! (`docs/errors/TMA0518.md`). If rows of C begin or end elsewhere, threads store the rest.

use tma_runtime::prelude::*;
use tma_runtime::{Scalar, ViewError};

/// Number of bytes that the copy engine writes as a unit.
const UNIT: usize = 16;

/// The division of a batch's rows between the copy engine and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// The first column that threads store. The copy engine stores those before it.
    pub(super) column: usize,
    /// The number of columns.
    columns: usize,
    /// Elements from one matrix to the next, and from one row to the next.
    strides: [usize; 2],
}

impl Edge {
    /// Returns the edge of `c`, whose columns must be contiguous: otherwise the launch rejects its
    /// map.
    pub(super) fn of<C: Scalar>(c: &TensorViewMut<'_, C, 3>) -> Self {
        let unit = UNIT / size_of::<C>();
        let ([batches, rows, columns], [matrix, row, step]) = (c.shape(), c.strides());
        let begins = c.as_ptr().is_multiple_of(UNIT as u64)
            && (rows == 1 || row.is_multiple_of(unit))
            && (batches == 1 || matrix.is_multiple_of(unit));
        // Without elements, or with such columns, the launch reports the error.
        let is_refused = batches == 0 || rows == 0 || columns > 1 && step != 1;
        let column = match (is_refused, begins) {
            (true, _) => columns,
            (false, true) => columns / unit * unit,
            (false, false) => 0,
        };
        Self { column, columns, strides: [matrix, row] }
    }

    /// Returns whether threads store anything.
    pub(super) const fn is_reached(self) -> bool {
        self.column < self.columns
    }

    /// Divides C. `placeholder` holds the tensor of the map if the copy engine stores nothing and C
    /// has no unit at a multiple of 16 bytes, and `nothing` the rows if threads store nothing.
    pub(super) fn parts<'a, C: Scalar>(
        self,
        device: &Device,
        c: TensorViewMut<'a, C, 3>,
        placeholder: &'a mut Option<DeviceTensor<C, 3>>,
        nothing: &'a mut DeviceTensor<C, 1>,
    ) -> Result<Parts<'a, C>, Error> {
        let [matrix_stride, row_stride] = self.strides.map(|stride| stride as u64);
        if !self.is_reached() {
            let rows = nothing.view_mut();
            return Ok(Parts { copied: c, rows, row_stride, matrix_stride, edge: u32::MAX });
        }
        let [batches, height, _] = c.shape();
        // SAFETY: each element is written through one of the two views: those before the edge by
        // copies, and the others by threads.
        let [c, rows] = unsafe { c.alias() };
        let rows = flat(device, rows)?;
        if self.column > 0 {
            let copied = c.slice([0..batches, 0..height, 0..self.column])?;
            return Ok(Parts { copied, rows, row_stride, matrix_stride, edge: self.column as u32 });
        }
        // SAFETY: nothing is stored through the map.
        let [rows, unit] = unsafe { rows.alias() };
        let copied = match aligned(unit)? {
            Some(unit) => unit,
            None => placeholder.insert(device.zeros([1, 1, UNIT / size_of::<C>()])?).view_mut(),
        };
        Ok(Parts { copied, rows, row_stride, matrix_stride, edge: self.column as u32 })
    }
}

/// Returns the first unit of C at a multiple of 16 bytes, if there is one: a tensor map begins
/// there, even if nothing is stored through it.
fn aligned<C: Scalar>(c: TensorViewMut<'_, C, 1>) -> Result<Option<TensorViewMut<'_, C, 3>>, Error> {
    let before = c.as_ptr().next_multiple_of(UNIT as u64) - c.as_ptr();
    let first = before as usize / size_of::<C>();
    let unit = UNIT / size_of::<C>();
    let elements = first..first + unit;
    if elements.end > c.shape()[0] {
        return Ok(None);
    }
    c.slice([elements])?.with_strides([1, 1, unit], [unit, unit, 1]).map(Some)
}

/// C, divided at an edge: arguments of `full`.
pub(super) struct Parts<'a, C: Scalar> {
    /// The columns that the copy engine stores.
    pub(super) copied: TensorViewMut<'a, C, 3>,
    /// The memory that contains those that threads store.
    pub(super) rows: TensorViewMut<'a, C, 1>,
    /// Elements from one row to the next.
    pub(super) row_stride: u64,
    /// Elements from one matrix to the next.
    pub(super) matrix_stride: u64,
    /// The first column that threads store.
    pub(super) edge: u32,
}

/// Returns all of the memory of C, from the first element to the last.
pub(super) fn flat<'a, C: Scalar>(
    device: &Device,
    c: TensorViewMut<'a, C, 3>,
) -> Result<TensorViewMut<'a, C, 1>, Error> {
    let address = c.as_ptr();
    let ([batches, rows, columns], [matrix, row, _]) = (c.shape(), c.strides());
    let reach = (batches - 1) * matrix + (rows - 1) * row + columns;
    match c.with_strides([reach], [1]) {
        Err(Error::View(ViewError::UnknownMemory)) => {
            // SAFETY: the code that made `c` from an address vouches for its elements, and no
            // others are accessed.
            Ok(unsafe { TensorViewMut::from_raw(device, address, [reach], [1]) })
        }
        view => view,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge<C: Scalar>(shape: [usize; 3], strides: [usize; 3]) -> usize {
        let device = Device::simulator();
        // SAFETY: the view is never dereferenced.
        let view = unsafe { TensorViewMut::<C, 3>::from_raw(&device, 0x100, shape, strides) };
        Edge::of(&view).column
    }

    #[test]
    fn the_copy_engine_stores_whole_units_at_multiples_of_units() {
        assert_eq!(edge::<bf16>([1, 4, 64], [256, 64, 1]), 64);
        assert_eq!(edge::<bf16>([1, 4, 470], [2048, 512, 1]), 464);
        assert_eq!(edge::<f32>([1, 4, 470], [2048, 512, 1]), 468);
        assert_eq!(edge::<bf16>([1, 4, 65], [260, 65, 1]), 0);
        assert_eq!(edge::<bf16>([1, 1, 65], [65, 65, 1]), 64);
        assert_eq!(edge::<bf16>([2, 1, 65], [65, 65, 1]), 0);
        assert_eq!(edge::<f32>([1, 4, 3], [16, 4, 1]), 0);
    }

    #[test]
    fn a_map_of_nothing_begins_in_c_if_it_can() {
        let device = Device::simulator();
        let aligned = |address, len| {
            // SAFETY: the view is never dereferenced.
            let view = unsafe { TensorViewMut::<bf16, 1>::from_raw(&device, address, [len], [1]) };
            let found = aligned(view).expect("a view");
            found.map(|view| (view.as_ptr(), view.shape()))
        };
        assert_eq!(aligned(0x100, 65), Some((0x100, [1, 1, 8])));
        assert_eq!(aligned(0x102, 65), Some((0x110, [1, 1, 8])));
        assert_eq!(aligned(0x10e, 9), Some((0x110, [1, 1, 8])));
        assert_eq!(aligned(0x10e, 8), None);
        assert_eq!(aligned(0x102, 7), None);
    }

    #[test]
    fn invalid_stores_are_left_to_the_launch() {
        assert_eq!(edge::<bf16>([1, 4, 65], [260, 1, 4]), 65);
        assert_eq!(edge::<bf16>([0, 4, 65], [260, 65, 1]), 65);
    }
}
