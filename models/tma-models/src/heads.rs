//! Views of the heads within rows.

use std::ops::Range;

use tma_runtime::prelude::*;

use crate::ModelError;

/// Heads within rows.
#[derive(Clone, Copy)]
pub(crate) struct Heads {
    pub(crate) sequences: usize,
    pub(crate) tokens: usize,
    /// The first head of a row.
    pub(crate) first: usize,
    /// The number of heads.
    pub(crate) count: usize,
    pub(crate) depth: usize,
}

impl Heads {
    /// Returns a view of sequences × heads × tokens × depth.
    pub(crate) fn view(self, rows: &DeviceTensor<bf16, 2>) -> Result<TensorView<'_, bf16, 4>, ModelError> {
        let [_, columns] = rows.shape();
        Ok(rows.view().slice(self.part())?.with_strides(self.shape(), self.strides(columns))?)
    }

    pub(crate) fn view_mut(
        self,
        rows: &mut DeviceTensor<bf16, 2>,
    ) -> Result<TensorViewMut<'_, bf16, 4>, ModelError> {
        let [_, columns] = rows.shape();
        Ok(rows.view_mut().slice(self.part())?.with_strides(self.shape(), self.strides(columns))?)
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
