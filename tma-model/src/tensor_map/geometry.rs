//! How large a tile is, and how it lies in shared memory.

use std::ops::Range;

use super::{Mode, TensorMap};
use crate::limits::BOX_INNER_BYTES;

impl TensorMap {
    /// The dimension that counts slices of channels, with an interleaved layout: the last but one,
    /// before the images. A copy moves one slice.
    ///
    /// Its strides and extents are those of NC/8DHWC8 as the driver's documentation and the PTX
    /// ISA, "Interleave layout", name it, read from the right: pixels of 16 or 32 bytes in W, H and
    /// D, then slices, then images. Seen on an H200.
    #[inline]
    pub fn slice_dimension(&self) -> Option<usize> {
        self.interleave.slice().and(self.rank().checked_sub(2))
    }

    /// The dimensions of pixels, in im2col mode: as many as the bounding box has corners' numbers.
    #[inline]
    pub fn spatial_dimensions(&self) -> Range<usize> {
        let first = usize::from(self.interleave.slice().is_none());
        first..(first + self.rank().saturating_sub(2))
    }

    /// The first and last index of the bounding box with these corners, in the dimension that is
    /// the `spatial`th of pixels.
    ///
    /// Source: PTX ISA, "Im2col mode", "Bounding box": the corners are counted from the tensor's
    /// own.
    #[inline]
    pub fn bounding_box(&self, lower: &[i32], upper: &[i32], spatial: usize) -> (i64, i64) {
        let corner = |corners: &[i32]| i64::from(corners.get(spatial).copied().unwrap_or(0));
        let extent = self.extents.get(self.spatial_dimensions().start + spatial).copied().unwrap_or(1);
        let end = i64::try_from(extent).unwrap_or(i64::MAX).saturating_add(corner(upper));
        (corner(lower), end - 1)
    }

    /// How many elements a copy moves along `dimension`, in tiled mode; of a whole pixel or slice,
    /// one.
    #[inline]
    pub fn taken(&self, dimension: usize) -> u32 {
        let Mode::Tiled { box_extents } = &self.mode else { return 1 };
        // Whatever the box says. No document says so: seen on an H200 with driver 580.
        if self.slice_dimension() == Some(dimension) {
            return 1;
        }
        let extent = box_extents.get(dimension).copied().unwrap_or(1);
        // Source: `elementStrides` of `cuTensorMapEncodeTiled`.
        extent.div_ceil(self.step(dimension))
    }

    /// The element stride of `dimension`. Dimension 0 has one only with an interleaved layout.
    ///
    /// Source: `elementStrides` of `cuTensorMapEncodeTiled`.
    #[inline]
    pub fn step(&self, dimension: usize) -> u32 {
        if dimension == 0 && self.interleave.slice().is_none() {
            return 1;
        }
        self.element_strides.get(dimension).copied().unwrap_or(1).max(1)
    }

    /// Bytes of an index along dimension 0: an element, or a pixel's slice.
    #[inline]
    pub fn inner_bytes(&self) -> u32 {
        self.interleave.slice().unwrap_or(self.element.bytes())
    }

    /// Bytes of a row of the tensor, if that is no multiple of 16 bytes. Loads are exact to the
    /// element, but a store through such a map writes the rest of the unit that a row ends in.
    ///
    /// Undocumented: on an H200 with driver 580 a row of 5 bytes is stored as 16, one of 37 as 48.
    pub fn ragged_row(&self) -> Option<u64> {
        let bytes = self.extents.first()? * u64::from(self.inner_bytes());
        (!bytes.is_multiple_of(BOX_INNER_BYTES)).then_some(bytes)
    }

    /// Bytes of a row of the tile: of the box, or of a pixel.
    #[inline]
    pub fn row_bytes(&self) -> u32 {
        match &self.mode {
            Mode::Tiled { .. } => self.taken(0).saturating_mul(self.inner_bytes()),
            Mode::Im2col { channels, .. } => {
                self.interleave.slice().unwrap_or(channels.saturating_mul(self.element.bytes()))
            }
        }
    }

    /// Bytes from one row to the next in shared memory.
    ///
    /// With a swizzle, shorter rows are padded to the span; those of slices are not. No document
    /// says so: seen on an H200 with driver 580.
    #[inline]
    pub fn row_pitch(&self) -> u32 {
        let span = self.swizzle.span().filter(|_| self.interleave.slice().is_none());
        span.unwrap_or(0).max(self.row_bytes())
    }

    /// Rows of the tile.
    #[inline]
    pub fn rows(&self) -> u32 {
        match &self.mode {
            Mode::Tiled { .. } => {
                (1..self.rank()).fold(1, |rows: u32, dimension| rows.saturating_mul(self.taken(dimension)))
            }
            Mode::Im2col { pixels, .. } => *pixels,
        }
    }

    /// 16-byte units of a row.
    #[inline]
    pub fn units_in_row(&self) -> u32 {
        self.row_bytes().div_ceil(BOX_INNER_BYTES as u32).max(1)
    }

    /// Bytes that a copy moves, and that a load's mbarrier gets: without the padding, with what is
    /// outside of the tensor.
    #[inline]
    pub fn box_bytes(&self) -> u32 {
        self.rows().saturating_mul(self.row_bytes())
    }

    /// Bytes from the tile's first to its last, with the padding.
    ///
    /// A swizzle moves units within its span: of slices that do not fill the last one, some lie
    /// behind what the box has.
    #[inline]
    pub fn tile_bytes(&self) -> u32 {
        let bytes = self.rows().saturating_mul(self.row_pitch());
        bytes.checked_next_multiple_of(self.swizzle.span().unwrap_or(1)).unwrap_or(u32::MAX)
    }
}
