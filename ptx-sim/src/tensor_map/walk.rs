//! The 16-byte units of a tile, each with its location in shared memory and in the tensor.

use super::columns::pixel;
use super::{MAX_RANK, Mode, TensorMap, UNIT};

/// The elements that one copy moves: a map at given coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'m> {
    map: &'m TensorMap,
    at: [i32; MAX_RANK],
    offsets: [u16; 3],
    /// Units of a row, and the bytes between the starts of rows in shared memory.
    units_in_row: u32,
    row_pitch: u32,
}

/// Up to 16 bytes of a row of the tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The offset of the unit in shared memory.
    pub(crate) shared: u32,
    /// The address of the first byte in global memory; `None` if the whole unit is outside the
    /// tensor.
    pub(crate) global: Option<u64>,
    /// The start of the range of bytes that lie in the tensor.
    pub(crate) from: u32,
    /// The end of that range, exclusive. A load fills all other bytes.
    pub(crate) to: u32,
}

impl<'m> Walk<'m> {
    /// Returns the elements of `map` from coordinates `at`. In im2col mode the filter tap at
    /// `offsets` shifts them.
    pub(crate) fn new(map: &'m TensorMap, at: [i32; MAX_RANK], offsets: [u16; 3]) -> Self {
        let (units_in_row, row_pitch) = (map.units_in_row(), map.row_pitch());
        Self { map, at, offsets, units_in_row, row_pitch }
    }

    /// Returns the number of units of the tile.
    pub(crate) fn units(&self) -> u32 {
        self.map.rows().saturating_mul(self.units_in_row)
    }

    /// Returns whether the copy lies wholly outside the tensor. For a column in im2col mode the
    /// pixels do not count, because the mode exists for filters that read beyond the edge.
    pub(crate) fn is_outside(&self) -> bool {
        let is_out = |dimension: usize| {
            let index = i64::from(self.at[dimension]);
            let extent = i64::try_from(self.map.extents[dimension]).unwrap_or(i64::MAX);
            let (taken, step) = (i64::from(self.map.taken(dimension)), i64::from(self.map.step(dimension)));
            match &self.map.mode {
                Mode::Tiled { .. } => {
                    // The number of elements before the first one of the tensor.
                    let before = (-index.min(0) + step - 1) / step;
                    before >= taken || index + before * step >= extent
                }
                Mode::Im2col { .. } => !self.map.spatial_dimensions().contains(&dimension) && index >= extent,
            }
        };
        (0..self.map.rank()).any(is_out)
    }

    /// Returns unit `number` of a tile whose first byte is at shared offset `tile`.
    pub(crate) fn unit(&self, number: u32, tile: u32) -> Unit {
        let (row, column) = (number / self.units_in_row, number % self.units_in_row);
        let shared = self.map.swizzle.permute(tile + row * self.row_pitch + column * UNIT);
        let indices = match &self.map.mode {
            Mode::Tiled { .. } => self.row(row),
            Mode::Im2col { lower, upper, .. } => pixel(self.map, lower, upper, self.at, self.offsets, row),
        };
        let (from, to, start) = self.columns(column, indices[0]);
        match self.address(&indices).filter(|_| from < to) {
            Some(address) => Unit { shared, global: Some(address.wrapping_add_signed(start)), from, to },
            None => Unit { shared, global: None, from: 0, to: 0 },
        }
    }

    /// Returns the indices of the first element of row `row` of the box.
    fn row(&self, mut row: u32) -> [i64; MAX_RANK] {
        let mut indices = self.at.map(i64::from);
        for (dimension, index) in indices.iter_mut().enumerate().take(self.map.rank()).skip(1) {
            let taken = self.map.taken(dimension);
            *index += i64::from(row % taken * self.map.step(dimension));
            row /= taken;
        }
        indices
    }

    /// Returns the address of the row with these indices; `None` if it is outside the tensor.
    fn address(&self, indices: &[i64; MAX_RANK]) -> Option<u64> {
        let dimensions = indices.iter().zip(&self.map.extents).skip(1).zip(&self.map.byte_strides);
        dimensions.into_iter().try_fold(self.map.address, |address, ((&index, &extent), &stride)| {
            let index = u64::try_from(index).ok().filter(|&index| index < extent)?;
            Some(address.wrapping_add(index.wrapping_mul(stride)))
        })
    }

    /// Returns, for the unit `column` of a row that starts at index `first` of dimension 0, the
    /// range of bytes that lie in the tensor, and the offset of its first byte in the tensor's row.
    fn columns(&self, column: u32, first: i64) -> (u32, u32, i64) {
        let inner = i64::from(self.map.inner_bytes());
        let end = i64::try_from(self.map.extents[0]).unwrap_or(i64::MAX).saturating_mul(inner);
        let within = i64::from(column * UNIT);
        // Only slices have strides between them, and they are whole units.
        let skipped = within / inner * (i64::from(self.map.step(0)) - 1) * inner;
        let start = first * inner + within + skipped;
        let clip = |byte: i64| (byte - start).clamp(0, i64::from(UNIT)) as u32;
        (clip(0), clip(end), start)
    }
}
