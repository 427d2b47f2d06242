//! Conversion of the model's faults to the host's errors, which have the parameter's name, count
//! dimensions from the outermost, and suggest a fix.

use tma_model::TileType;
use tma_model::limits::{BOX_BYTES, BOX_EXTENT, STRIDE_LIMIT, corner_range};
use tma_model::tensor_map::MapFault;
use tma_model::tile::{TileFault, TileMode};

use crate::error::MapError;
use crate::layout::Layout;
use crate::spec::{MapMode, MapSpec};

/// Returns the error of a tile that a map cannot move, if it breaks a rule.
pub(super) fn tile_error(tensor: &'static str, tile: &TileType, spec: &MapSpec) -> Option<MapError> {
    let mode = match spec.mode {
        MapMode::Tiled => TileMode::Box,
        MapMode::Im2col { .. } => TileMode::Columns,
    };
    tile.faults(mode).into_iter().find_map(|fault| tile_fault(tensor, fault, tile, spec))
}

/// Converts a fault of a tile.
fn tile_fault(tensor: &'static str, fault: TileFault, tile: &TileType, spec: &MapSpec) -> Option<MapError> {
    Some(match fault {
        // The language has no such maps, but copies move the bits of any type.
        TileFault::Element => return None,
        TileFault::Extent { dimension, extent, most } => {
            MapError::BoxExtent { tensor, dimension, rank: tile.rank(), extent, most }
        }
        TileFault::RowBytes { bytes } => MapError::BoxRowBytes { tensor, bytes },
        TileFault::SwizzleSpan { bytes, span } => MapError::BoxRowExceedsSwizzle { tensor, bytes, span },
        // A map's box is one panel, so only a hand-written specification has several.
        TileFault::PanelRows { .. } => return None,
        TileFault::Bytes { bytes } => MapError::BoxBytes { tensor, bytes, most: BOX_BYTES },
        TileFault::Pixels { inner, pixel, .. } if !(1..=BOX_EXTENT).contains(&(inner / pixel)) => {
            let rank = spec.box_extents.len();
            MapError::BoxExtent { tensor, dimension: rank - 1, rank, extent: inner, most: BOX_EXTENT }
        }
        TileFault::InterleavedRank | TileFault::Slices { .. } | TileFault::Pixels { .. } => {
            let (pixel, unit) = (tile.pixel_elements().unwrap_or_default(), tile.pixel_unit());
            MapError::InterleavedBox { tensor, extents: spec.box_extents, pixel, unit }
        }
    })
}

/// Converts a hardware rule that the map breaks into an error about the tensor at `layout`.
pub(super) fn map_error(tensor: &'static str, fault: MapFault, layout: &Layout, tile: &TileType) -> MapError {
    let rank = layout.shape().len();
    let outermost_first = |dimension: usize| rank.saturating_sub(1 + dimension);
    match fault {
        MapFault::Address { address, unit } => MapError::MisalignedAddress { tensor, address, unit },
        MapFault::Extent { dimension, extent } => {
            MapError::ExtentOutOfRange { tensor, dimension: outermost_first(dimension), rank, extent }
        }
        MapFault::Stride { dimension, bytes, unit } => {
            let dimension = outermost_first(dimension);
            if bytes < STRIDE_LIMIT {
                return MapError::MisalignedStride { tensor, dimension, rank, bytes, unit };
            }
            let element = u128::from(layout.element().bytes());
            let bytes = u128::from(layout.strides()[dimension]) * element;
            MapError::StrideTooLarge { tensor, dimension, rank, bytes }
        }
        MapFault::ElementStride { dimension, stride } => {
            let dimension = outermost_first(dimension);
            MapError::ElementStride { tensor, dimension, rank, stride, inner: false }
        }
        MapFault::NanFill => MapError::NanFill { tensor, element: tile.element },
        MapFault::Corner { dimension, corner, .. } => {
            let (least, most) = corner_range(rank).into_inner();
            let dimension = outermost_first(dimension);
            MapError::Corner { tensor, dimension, corner, least, most }
        }
        MapFault::BoundingBox { dimension, first, last } => {
            MapError::BoundingBox { tensor, dimension: outermost_first(dimension), first, last }
        }
        MapFault::Rank { .. }
        | MapFault::Lengths { .. }
        | MapFault::BoxRank { .. }
        | MapFault::Corners { .. }
        | MapFault::BoxExtent { .. }
        | MapFault::Channels { .. }
        | MapFault::Pixels { .. }
        | MapFault::RowBytes { .. }
        | MapFault::BoxBytes { .. }
        | MapFault::SwizzleSpan { .. }
        | MapFault::InterleaveSwizzle => MapError::Internal { tensor, fault },
    }
}
