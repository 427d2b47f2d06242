//! The size of a tile, and its layout in shared memory.

use std::ops::Range;

use super::{Mode, TensorMap};
use crate::limits::BOX_INNER_BYTES;

impl TensorMap {
    /// Returns the dimension that counts slices of channels in an interleaved layout: the last but
    /// one, before the images. A copy moves one slice.
    ///
    /// Its strides and extents are those of NC/8DHWC8, the name in the driver's documentation and
    /// in the PTX ISA, "Interleave layout", read from right to left: pixels of 16 or 32 bytes in W,
    /// H and D, then slices, then images. Observed on an H200.
    #[inline]
    pub fn slice_dimension(&self) -> Option<usize> {
        self.interleave.slice().and(self.rank().checked_sub(2))
    }

    /// Returns the pixel dimensions in im2col mode. Each corner of the bounding box has one number
    /// for each of them.
    #[inline]
    pub fn spatial_dimensions(&self) -> Range<usize> {
        let first = usize::from(self.interleave.slice().is_none());
        first..(first + self.rank().saturating_sub(2))
    }

    /// Returns the first and the last index of the bounding box with these corners, in the pixel
    /// dimension number `spatial`.
    ///
    /// Source: PTX ISA, "Im2col mode", "Bounding box": the corners are relative to the corners of
    /// the tensor.
    #[inline]
    pub fn bounding_box(&self, lower: &[i32], upper: &[i32], spatial: usize) -> (i64, i64) {
        let corner = |corners: &[i32]| i64::from(corners.get(spatial).copied().unwrap_or(0));
        let extent = self.extents.get(self.spatial_dimensions().start + spatial).copied().unwrap_or(1);
        let end = i64::try_from(extent).unwrap_or(i64::MAX).saturating_add(corner(upper));
        (corner(lower), end - 1)
    }

    /// Returns the number of elements that a copy moves along `dimension` in tiled mode: one for a
    /// dimension of slices, and in im2col mode.
    #[inline]
    pub fn taken(&self, dimension: usize) -> u32 {
        let Mode::Tiled { box_extents } = &self.mode else { return 1 };
        // Independent of the box. Undocumented: observed on an H200 with driver 580.
        if self.slice_dimension() == Some(dimension) {
            return 1;
        }
        let extent = box_extents.get(dimension).copied().unwrap_or(1);
        // Source: `elementStrides` of `cuTensorMapEncodeTiled`.
        extent.div_ceil(self.step(dimension))
    }

    /// Returns the element stride of `dimension`. Dimension 0 has one only in an interleaved
    /// layout.
    ///
    /// Source: `elementStrides` of `cuTensorMapEncodeTiled`.
    #[inline]
    pub fn step(&self, dimension: usize) -> u32 {
        if dimension == 0 && self.interleave.slice().is_none() {
            return 1;
        }
        self.element_strides.get(dimension).copied().unwrap_or(1).max(1)
    }

    /// Returns the bytes of one index along dimension 0: an element, or a pixel's slice.
    #[inline]
    pub fn inner_bytes(&self) -> u32 {
        self.interleave.slice().unwrap_or(self.element.bytes())
    }

    /// Returns the bytes of a row of the tensor if they are not a multiple of 16. Loads from such a
    /// tensor are exact to the element, but a store writes the rest of the 16-byte unit in which a
    /// row ends.
    ///
    /// Undocumented: on an H200 with driver 580, a row of 5 bytes is stored as 16, and one of 37 as
    /// 48.
    pub fn ragged_row(&self) -> Option<u64> {
        let bytes = self.extents.first()? * u64::from(self.inner_bytes());
        (!bytes.is_multiple_of(BOX_INNER_BYTES)).then_some(bytes)
    }

    /// Returns the bytes of a row of the tile: a row of the box, or a pixel.
    #[inline]
    pub fn row_bytes(&self) -> u32 {
        match &self.mode {
            Mode::Tiled { .. } => self.taken(0).saturating_mul(self.inner_bytes()),
            Mode::Im2col { channels, .. } => {
                self.interleave.slice().unwrap_or(channels.saturating_mul(self.element.bytes()))
            }
        }
    }

    /// Returns the bytes from one row to the next in shared memory.
    ///
    /// With a swizzle, shorter rows are padded to the span, except in interleaved layouts.
    /// Undocumented: observed on an H200 with driver 580.
    #[inline]
    pub fn row_pitch(&self) -> u32 {
        let span = self.swizzle.span().filter(|_| self.interleave.slice().is_none());
        span.unwrap_or(0).max(self.row_bytes())
    }

    /// Returns the number of rows of the tile.
    #[inline]
    pub fn rows(&self) -> u32 {
        match &self.mode {
            Mode::Tiled { .. } => {
                (1..self.rank()).fold(1, |rows: u32, dimension| rows.saturating_mul(self.taken(dimension)))
            }
            Mode::Im2col { pixels, .. } => *pixels,
        }
    }

    /// Returns the number of 16-byte units in a row.
    #[inline]
    pub fn units_in_row(&self) -> u32 {
        self.row_bytes().div_ceil(BOX_INNER_BYTES as u32).max(1)
    }

    /// Returns the bytes that a copy moves, which a load adds to its mbarrier. They exclude
    /// padding, and include elements outside of the tensor.
    #[inline]
    pub fn box_bytes(&self) -> u32 {
        self.rows().saturating_mul(self.row_bytes())
    }

    /// Returns the bytes from the tile's first to its last, including padding.
    ///
    /// A swizzle permutes units within its span. If slices do not fill the last span, some of their
    /// units are beyond the bytes of the box.
    #[inline]
    pub fn tile_bytes(&self) -> u32 {
        let bytes = self.rows().saturating_mul(self.row_pitch());
        bytes.checked_next_multiple_of(self.swizzle.span().unwrap_or(1)).unwrap_or(u32::MAX)
    }
}
