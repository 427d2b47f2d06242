//! The rules for a map's parameters: the documented ones, and others that a driver enforces.

use super::{Fill, MapFault, Mode, TensorMap};
use crate::limits;
use crate::{Interleave, Swizzle};

/// Returns the fault unless `holds`.
fn require(holds: bool, fault: MapFault) -> Result<(), MapFault> {
    if holds { Ok(()) } else { Err(fault) }
}

impl TensorMap {
    /// Checks the parameters. A launch checks them before it runs. The simulator checks them at a
    /// copy with a map that the kernel has changed.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, with the offending value.
    pub fn check(&self) -> Result<(), MapFault> {
        self.check_rank()?;
        self.check_tensor()?;
        self.check_steps()?;
        match &self.mode {
            Mode::Tiled { box_extents } => self.check_box(box_extents)?,
            Mode::Im2col { lower, upper, channels, pixels } => {
                self.check_corners(lower, upper)?;
                self.check_columns(*channels, *pixels)?;
            }
        }
        self.check_size()?;
        self.check_swizzle()?;
        require(self.fill == Fill::Zeros || self.element.is_float(), MapFault::NanFill)
    }

    fn check_rank(&self) -> Result<(), MapFault> {
        let rank = self.rank();
        let (least, mode) = match (&self.mode, self.interleave) {
            (Mode::Im2col { .. }, _) => (*limits::IM2COL_RANKS.start(), " in im2col mode"),
            (Mode::Tiled { .. }, Interleave::B16 | Interleave::B32) => {
                (limits::INTERLEAVED_RANK, " with an interleaved layout")
            }
            (Mode::Tiled { .. }, Interleave::None) => (1, ""),
        };
        require((least..=limits::MAX_RANK).contains(&rank), MapFault::Rank { rank, least, mode })?;
        let (strides, element_strides) = (self.byte_strides.len(), self.element_strides.len());
        let fault = MapFault::Lengths { rank, strides, element_strides };
        require(strides + 1 == rank && element_strides == rank, fault)
    }

    fn check_tensor(&self) -> Result<(), MapFault> {
        let unit = limits::tensor_alignment(self.interleave);
        let address = self.address;
        require(address.is_multiple_of(unit), MapFault::Address { address, unit })?;
        for (dimension, &extent) in self.extents.iter().enumerate() {
            let holds = (1..=limits::TENSOR_EXTENT).contains(&extent);
            require(holds, MapFault::Extent { dimension, extent })?;
        }
        for (dimension, &bytes) in (1..).zip(&self.byte_strides) {
            let holds = bytes.is_multiple_of(unit) && bytes < limits::STRIDE_LIMIT;
            require(holds, MapFault::Stride { dimension, bytes, unit })?;
        }
        Ok(())
    }

    fn check_steps(&self) -> Result<(), MapFault> {
        for (dimension, &stride) in self.element_strides.iter().enumerate() {
            let holds = (1..=limits::ELEMENT_STRIDE).contains(&stride);
            require(holds, MapFault::ElementStride { dimension, stride })?;
        }
        Ok(())
    }

    fn check_box(&self, box_extents: &[u32]) -> Result<(), MapFault> {
        let (rank, extents) = (self.rank(), box_extents.len());
        require(extents == rank, MapFault::BoxRank { rank, extents })?;
        for (dimension, &extent) in box_extents.iter().enumerate() {
            let holds = (1..=limits::BOX_EXTENT).contains(&extent);
            require(holds, MapFault::BoxExtent { dimension, extent })?;
        }
        self.check_row(box_extents.first().copied().unwrap_or(0))
    }

    fn check_corners(&self, lower: &[i32], upper: &[i32]) -> Result<(), MapFault> {
        let (rank, spatial) = (self.rank(), self.spatial_dimensions());
        let fault = MapFault::Corners { rank, lower: lower.len(), upper: upper.len() };
        require([lower.len(), upper.len()] == [spatial.len(); 2], fault)?;
        let range = limits::corner_range(rank);
        for (index, dimension) in spatial.enumerate() {
            for corner in [lower[index], upper[index]] {
                require(range.contains(&corner), MapFault::Corner { rank, dimension, corner })?;
            }
            let (first, last) = self.bounding_box(lower, upper, index);
            // Undocumented: a driver rejects boxes that end at 2^31 or later.
            let holds = first <= last && last <= i32::MAX.into();
            require(holds, MapFault::BoundingBox { dimension, first, last })?;
        }
        Ok(())
    }

    fn check_columns(&self, channels: u32, pixels: u32) -> Result<(), MapFault> {
        require((1..=limits::BOX_EXTENT).contains(&channels), MapFault::Channels { channels })?;
        require((1..=limits::COLUMN_PIXELS).contains(&pixels), MapFault::Pixels { pixels })?;
        self.check_row(channels)
    }

    /// A driver requires this also of interleaved layouts, for which the documentation does not.
    fn check_row(&self, elements: u32) -> Result<(), MapFault> {
        let bytes = elements * self.element.bytes();
        require(u64::from(bytes).is_multiple_of(limits::BOX_INNER_BYTES), MapFault::RowBytes { bytes })
    }

    fn check_size(&self) -> Result<(), MapFault> {
        let bytes = self.box_bytes();
        require(u64::from(bytes) <= limits::BOX_BYTES, MapFault::BoxBytes { bytes })
    }

    fn check_swizzle(&self) -> Result<(), MapFault> {
        match (self.interleave, self.swizzle.span()) {
            // The documentation requires it. A driver accepts other swizzles, with unknown effects.
            (Interleave::B32, _) => require(self.swizzle == Swizzle::B32, MapFault::InterleaveSwizzle),
            (Interleave::None, Some(span)) => {
                let bytes = self.row_bytes();
                require(bytes <= span, MapFault::SwizzleSpan { bytes, span })
            }
            (Interleave::None, None) | (Interleave::B16, _) => Ok(()),
        }
    }
}
