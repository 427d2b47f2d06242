//! Views of the heads within rows.

use std::ops::Range;

use tma_runtime::prelude::*;

/// Heads within rows.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// The number of sequences.
    pub sequences: usize,
    /// The rows of a sequence.
    pub tokens: usize,
    /// The first head of a row.
    pub first: usize,
    /// The number of heads.
    pub count: usize,
    /// The elements of a head.
    pub depth: usize,
}

impl Heads {
    /// Returns a view of sequences × heads × tokens × depth.
    ///
    /// # Errors
    ///
    /// [`Error::View`] if the rows have other extents.
    pub fn view(self, rows: &DeviceTensor<bf16, 2>) -> Result<TensorView<'_, bf16, 4>, Error> {
        let [_, columns] = rows.shape();
        rows.view().slice(self.part())?.with_strides(self.shape(), self.strides(columns))
    }

    /// Returns the same, to be written.
    ///
    /// # Errors
    ///
    /// [`Error::View`] if the rows have other extents.
    pub fn view_mut(self, rows: TensorViewMut<'_, bf16, 2>) -> Result<TensorViewMut<'_, bf16, 4>, Error> {
        let [_, columns] = rows.shape();
        rows.slice(self.part())?.with_strides(self.shape(), self.strides(columns))
    }

    /// Returns a view of rows × heads × depth, to be written.
    ///
    /// # Errors
    ///
    /// [`Error::View`] if the rows have other extents.
    pub fn rows_mut(self, rows: &mut DeviceTensor<bf16, 2>) -> Result<TensorViewMut<'_, bf16, 3>, Error> {
        let [count, columns] = rows.shape();
        let (shape, strides) = ([count, self.count, self.depth], [columns, self.depth, 1]);
        rows.view_mut().slice(self.part())?.with_strides(shape, strides)
    }

    /// Returns the rows and columns of the heads.
    fn part(self) -> [Range<usize>; 2] {
        let columns = self.first * self.depth..(self.first + self.count) * self.depth;
        [0..self.sequences * self.tokens, columns]
    }

    fn shape(self) -> [usize; 4] {
        [self.sequences, self.count, self.tokens, self.depth]
    }

    fn strides(self, columns: usize) -> [usize; 4] {
        [self.tokens * columns, self.depth, columns, 1]
    }
}
