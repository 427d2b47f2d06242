//! Tiles: their sizes, and the tiles that a tensor map can move.
//!
//! Extents are row-major here, outermost first, as in the language.

use std::fmt;

use crate::limits;
use crate::scalar::Scalar;
use crate::swizzle::TileSwizzle;

/// The shape, element type and layout of a tile. A tensor map has this type too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TileType {
    /// Type of the elements.
    pub element: Scalar,
    /// Extents in elements, row-major, outermost first. There are 1 to 5.
    pub extents: Vec<u32>,
    /// Permutation of chunks within rows.
    pub swizzle: TileSwizzle,
}

impl TileType {
    /// Returns the number of dimensions.
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// Returns the extent of the contiguous dimension, in elements.
    pub fn inner_extent(&self) -> u32 {
        self.extents.last().copied().unwrap_or(1)
    }

    /// Returns the dimension along which a sliced load divides this tile: the outermost one with
    /// more than one element, so that slices are contiguous in shared memory.
    pub fn sliced_dimension(&self) -> usize {
        self.extents.iter().position(|&extent| extent > 1).unwrap_or(0)
    }

    /// Returns the elements of a pixel's slice of channels, or `None` if the layout is not
    /// interleaved.
    pub fn pixel_elements(&self) -> Option<u32> {
        self.swizzle.pixel_bytes().map(|bytes| bytes / self.element.bytes())
    }

    /// Returns the bytes of one row: the innermost extent × the size of an element.
    pub fn row_bytes(&self) -> u64 {
        u64::from(self.inner_extent()) * u64::from(self.element.bytes())
    }

    /// Returns the number of panels of the tile. A row longer than the swizzle's span is divided
    /// into parts of that length. A panel has one part of each row, and panels follow one another.
    /// Tensor cores read this layout (CUTLASS, `cute/atom/mma_traits_sm90_gmma.hpp`), and a copy
    /// moves one panel at a time.
    pub fn panels(&self) -> u64 {
        match self.swizzle.span().map(u64::from) {
            Some(span) if self.row_bytes() > span && self.row_bytes().is_multiple_of(span) => {
                self.row_bytes() / span
            }
            _ => 1,
        }
    }

    /// Returns the part of the tile that one copy moves: a panel.
    pub fn panel(&self) -> Self {
        let mut panel = self.clone();
        if let Some(inner) = panel.extents.last_mut() {
            *inner /= u32::try_from(self.panels()).unwrap_or(1);
        }
        panel
    }

    /// Returns the bytes from one row to the next in shared memory. With a swizzle this is the
    /// whole span, of which a shorter row leaves the rest unused. Undocumented: observed on an
    /// H200.
    pub fn row_pitch(&self) -> u64 {
        self.swizzle.span().map_or(0, u64::from).max(self.row_bytes() / self.panels())
    }

    /// Returns the bytes from one panel to the next in shared memory.
    pub fn panel_bytes(&self) -> u64 {
        let outer = self.extents.split_last().map_or(&[][..], |(_, outer)| outer);
        outer.iter().fold(self.row_pitch(), |bytes, &extent| bytes.saturating_mul(u64::from(extent)))
    }

    /// Returns the bytes that the tile occupies in shared memory.
    pub fn shared_bytes(&self) -> u64 {
        self.panel_bytes().saturating_mul(self.panels())
    }

    /// Returns the bytes of the tile's elements. One copy of the tile adds them to a barrier's
    /// transaction count.
    pub fn bytes(&self) -> u64 {
        self.extents
            .iter()
            .fold(u64::from(self.element.bytes()), |bytes, &extent| bytes.saturating_mul(u64::from(extent)))
    }

    /// Returns the reasons why a tensor map cannot move this tile: all rules that it breaks, with
    /// dimensions in order from the outermost.
    pub fn faults(&self, mode: TileMode) -> Vec<TileFault> {
        let mut faults = Vec::new();
        if !self.element.is_mapped() {
            faults.push(TileFault::Element);
        }
        if let Some(pixel) = self.pixel_elements() {
            return [faults, self.interleaved_faults(pixel)].concat();
        }
        // In im2col mode nothing specifies where the pixels of the next panel are.
        if mode == TileMode::Box && self.panels() > 1 {
            faults.extend(self.panel_fault());
            return [faults, self.panel().faults(mode)].concat();
        }
        for (dimension, &extent) in self.extents.iter().enumerate() {
            let most = match mode {
                TileMode::Columns if dimension == 0 => limits::COLUMN_PIXELS,
                TileMode::Columns | TileMode::Box => limits::BOX_EXTENT,
            };
            faults.extend(extent_fault(dimension, extent, most));
        }
        let bytes = self.row_bytes();
        if !bytes.is_multiple_of(limits::BOX_INNER_BYTES) {
            faults.push(TileFault::RowBytes { bytes });
        }
        if let Some(span) = self.swizzle.span()
            && bytes > u64::from(span)
        {
            faults.push(TileFault::SwizzleSpan { bytes, span });
        }
        faults.extend(self.size_fault());
        faults
    }

    /// Returns the faults of an interleaved tile. Its innermost dimension has pixels, and its
    /// second dimension, the last but one in the hardware's order, has slices of channels.
    ///
    /// Source: CUDA driver API, `cuTensorMapEncodeTiled`, `tensorRank`, `boxDim` and `interleave`.
    /// Observed on an H200: a copy moves one slice, and the driver requires pixels × element size
    /// to be a multiple of 16.
    fn interleaved_faults(&self, pixel: u32) -> Vec<TileFault> {
        let mut faults = Vec::new();
        if self.rank() < limits::INTERLEAVED_RANK {
            return vec![TileFault::InterleavedRank];
        }
        let slices = self.extents[1];
        if slices != 1 {
            faults.push(TileFault::Slices { slices });
        }
        let (inner, unit) = (self.inner_extent(), self.pixel_unit());
        if !inner.is_multiple_of(pixel * unit) || !(1..=limits::BOX_EXTENT).contains(&(inner / pixel)) {
            faults.push(TileFault::Pixels { inner, pixel, unit });
        }
        for (dimension, &extent) in self.extents.iter().enumerate().take(self.rank() - 1) {
            if dimension != 1 {
                faults.extend(extent_fault(dimension, extent, limits::BOX_EXTENT));
            }
        }
        faults.extend(self.size_fault());
        faults
    }

    /// Returns the number of pixels of which an interleaved tile's innermost extent must be a
    /// multiple.
    pub fn pixel_unit(&self) -> u32 {
        limits::BOX_INNER_BYTES as u32 / self.element.bytes()
    }

    /// Returns a fault if a panel starts at an address where no tile may start.
    fn panel_fault(&self) -> Option<TileFault> {
        let rows = self.panel_bytes() / self.row_pitch();
        let begins = self.panel_bytes().is_multiple_of(limits::tile_alignment(self.swizzle));
        (!begins).then_some(TileFault::PanelRows { rows })
    }

    fn size_fault(&self) -> Option<TileFault> {
        let bytes = self.bytes();
        (bytes > limits::BOX_BYTES).then_some(TileFault::Bytes { bytes })
    }
}

fn extent_fault(dimension: usize, extent: u32, most: u32) -> Option<TileFault> {
    (!(1..=most).contains(&extent)).then_some(TileFault::Extent { dimension, extent, most })
}

/// The elements of a tensor that a tile contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileMode {
    /// A box of the tensor.
    Box,
    /// A column of pixels, in im2col mode. Its tile is pixels by channels.
    Columns,
}

/// A rule of tensor maps that a tile breaks. Dimensions count from the outermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileFault {
    /// Elements of a type that tensor maps lack. Source: CUDA driver API, `CUtensorMapDataType`.
    Element,
    /// An extent outside of 1 to `most`.
    #[allow(missing_docs)]
    Extent { dimension: usize, extent: u32, most: u32 },
    /// Rows whose size is not a multiple of [`limits::BOX_INNER_BYTES`].
    #[allow(missing_docs)]
    RowBytes { bytes: u64 },
    /// Rows that are longer than the swizzle's span, and not a multiple of it. Source: CUDA driver
    /// API, `cuTensorMapEncodeTiled`, `swizzle`.
    #[allow(missing_docs)]
    SwizzleSpan { bytes: u64, span: u32 },
    /// Several panels whose number of rows is not a multiple of 8, so that a panel starts where no
    /// tile may. Source: [`limits::tile_alignment`].
    #[allow(missing_docs)]
    PanelRows { rows: u64 },
    /// More bytes than [`limits::BOX_BYTES`].
    #[allow(missing_docs)]
    Bytes { bytes: u64 },
    /// An interleaved layout with fewer dimensions than [`limits::INTERLEAVED_RANK`].
    InterleavedRank,
    /// A number of slices of channels other than 1 in an interleaved layout.
    #[allow(missing_docs)]
    Slices { slices: u32 },
    /// An innermost extent other than 1 to 256 whole pixels of `pixel` elements, in multiples of
    /// `unit` pixels.
    #[allow(missing_docs)]
    Pixels { inner: u32, pixel: u32, unit: u32 },
}

impl fmt::Display for TileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents: Vec<_> = self.extents.iter().map(u32::to_string).collect();
        write!(f, "Tile<{}, Shape{}<{}>", self.element, self.rank(), extents.join(", "))?;
        match self.swizzle {
            TileSwizzle::None => f.write_str(">"),
            swizzle @ (TileSwizzle::Panels16
            | TileSwizzle::B32
            | TileSwizzle::B64
            | TileSwizzle::B128
            | TileSwizzle::Interleave16
            | TileSwizzle::Interleave32) => write!(f, ", {}>", swizzle.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(element: Scalar, extents: &[u32], swizzle: TileSwizzle) -> TileType {
        TileType { element, extents: extents.to_vec(), swizzle }
    }

    #[track_caller]
    fn faults(tile: TileType, expected: &[TileFault]) {
        assert_eq!(tile.faults(TileMode::Box), expected, "{tile}");
    }

    #[test]
    fn extents_are_1_to_256() {
        faults(tile(Scalar::F16, &[256, 64], TileSwizzle::None), &[]);
        let fault = |extent| TileFault::Extent { dimension: 0, extent, most: 256 };
        faults(tile(Scalar::F16, &[257, 64], TileSwizzle::None), &[fault(257)]);
        faults(tile(Scalar::F16, &[0, 64], TileSwizzle::None), &[fault(0)]);
    }

    #[test]
    fn columns_have_up_to_1024_pixels() {
        let column = |pixels| tile(Scalar::F16, &[pixels, 64], TileSwizzle::B128).faults(TileMode::Columns);
        assert_eq!(column(1024), []);
        assert_eq!(column(1025), [TileFault::Extent { dimension: 0, extent: 1025, most: 1024 }]);
    }

    #[test]
    fn rows_are_whole_chunks_within_the_span() {
        faults(tile(Scalar::F32, &[8, 4], TileSwizzle::None), &[]);
        faults(tile(Scalar::F32, &[8, 3], TileSwizzle::None), &[TileFault::RowBytes { bytes: 12 }]);
        faults(tile(Scalar::F32, &[8, 32], TileSwizzle::B128), &[]);
        let fault = TileFault::SwizzleSpan { bytes: 144, span: 128 };
        faults(tile(Scalar::F32, &[8, 36], TileSwizzle::B128), &[fault]);
    }

    #[test]
    fn longer_rows_are_split_into_panels() {
        let wide = tile(Scalar::F16, &[8, 192], TileSwizzle::B128);
        assert_eq!((wide.panels(), wide.row_pitch(), wide.panel_bytes()), (3, 128, 1024));
        assert_eq!((wide.shared_bytes(), wide.bytes()), (3072, 3072));
        assert_eq!(wide.panel(), tile(Scalar::F16, &[8, 64], TileSwizzle::B128));
        faults(wide, &[]);
        faults(
            tile(Scalar::F16, &[264, 128], TileSwizzle::B128),
            &[TileFault::Extent { dimension: 0, extent: 264, most: 256 }],
        );
        let column = tile(Scalar::F16, &[8, 128], TileSwizzle::B128).faults(TileMode::Columns);
        assert_eq!(column, [TileFault::SwizzleSpan { bytes: 256, span: 128 }]);
    }

    #[test]
    fn panels_begin_where_tiles_may() {
        for swizzle in [TileSwizzle::Panels16, TileSwizzle::B32, TileSwizzle::B128] {
            faults(tile(Scalar::F16, &[24, 128], swizzle), &[]);
            faults(tile(Scalar::F16, &[3, 8, 128], swizzle), &[]);
            faults(tile(Scalar::F16, &[12, 128], swizzle), &[TileFault::PanelRows { rows: 12 }]);
        }
        // A single panel starts where the tile does.
        faults(tile(Scalar::F16, &[12, 64], TileSwizzle::B128), &[]);
    }

    #[test]
    fn panels_of_chunks_are_not_permuted() {
        let chunks = tile(Scalar::F16, &[64, 32], TileSwizzle::Panels16);
        assert_eq!((chunks.panels(), chunks.row_pitch(), chunks.panel_bytes()), (4, 16, 1024));
        assert_eq!((chunks.shared_bytes(), chunks.bytes()), (4096, 4096));
        assert_eq!(chunks.panel(), tile(Scalar::F16, &[64, 8], TileSwizzle::Panels16));
        assert_eq!(chunks.to_string(), "Tile<f16, Shape2<64, 32>, Panels16>");
    }

    #[test]
    fn interleaved_tiles_have_one_slice_of_whole_pixels() {
        faults(tile(Scalar::F16, &[1, 1, 64], TileSwizzle::Interleave16), &[]);
        faults(tile(Scalar::F16, &[1, 64], TileSwizzle::Interleave16), &[TileFault::InterleavedRank]);
        faults(tile(Scalar::F16, &[1, 2, 64], TileSwizzle::Interleave16), &[TileFault::Slices { slices: 2 }]);
        let fault = TileFault::Pixels { inner: 72, pixel: 8, unit: 8 };
        faults(tile(Scalar::F16, &[1, 1, 72], TileSwizzle::Interleave16), &[fault]);
    }

    #[test]
    fn a_box_fits_a_multiprocessor() {
        faults(tile(Scalar::U8, &[12, 76, 256], TileSwizzle::None), &[]);
        let fault = TileFault::Bytes { bytes: 12 * 77 * 256 };
        faults(tile(Scalar::U8, &[12, 77, 256], TileSwizzle::None), &[fault]);
    }
}
