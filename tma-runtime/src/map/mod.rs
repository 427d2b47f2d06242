//! Derives the parameters of a tensor map from a tensor and a kernel's tile, and checks every rule.
//!
//! [`tma_model`] has the rules: which tiles a map can move, and which parameters a driver accepts.
//! This module adds the checks that need a launch: whether tensor and tile match, whether the
//! elements of a written tensor overlap, and the parameter's name for errors. The functions are
//! pure, so driver and simulator get the same parameters.

mod boxes;
mod columns;
mod descriptor;
mod faults;
pub(crate) mod options;
mod overlap;
pub mod picture;

use tma_model::tensor_map::Mode;
use tma_model::{Interleave, TensorMap, TileType};

use crate::error::{Error, MapError};
use crate::layout::{Layout, MAX_RANK};
use crate::map::options::{L2Promotion, MapSource};
use crate::spec::{MapMode, MapSpec};
use boxes::strided_box;
use columns::columns;
pub use descriptor::Descriptor;
use faults::{map_error, tile_error};
use overlap::overlap;
use tma_model::limits::{IM2COL_RANKS, tensor_alignment};

/// The parameters of a tensor map, in the hardware's order, and its use of the L2 cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapParams {
    /// The tensor, and the elements of it that a copy moves.
    pub map: TensorMap,
    /// The number of bytes fetched into L2 at a time.
    pub l2_promotion: L2Promotion,
}

/// Returns the tensor map that moves the tile of `spec` over the tensor of `source`. `tensor` is
/// its name in errors.
///
/// # Errors
///
/// One error per rule, from [`MapError::MisalignedAddress`] to [`Error::ElementMismatch`]. The tile
/// is checked first, then the options, then the tensor.
pub fn map_params(tensor: &'static str, source: &MapSource, spec: &MapSpec) -> Result<MapParams, Error> {
    let MapSource { layout, options } = source;
    matches_tile(tensor, layout, spec)?;
    let tile = TileType { element: spec.element, extents: spec.box_extents.to_vec(), swizzle: spec.swizzle };
    tile_error(tensor, &tile, spec).map_or(Ok(()), Err)?;
    // A wider tile is moved panel by panel.
    let tile = tile.panel();
    let (mode, element_strides) = match spec.mode {
        MapMode::Tiled => strided_box(tensor, &tile, options)?,
        MapMode::Im2col { .. } => columns(tensor, layout.shape().len(), &tile, options)?,
    };
    let interleave = spec.swizzle.interleave();
    let map = TensorMap {
        element: spec.element.data_type(),
        address: layout.address(),
        extents: extents(tensor, layout, &tile)?,
        byte_strides: byte_strides(tensor, layout, interleave)?,
        mode,
        element_strides,
        interleave,
        swizzle: spec.swizzle.pattern(),
        fill: options.fill,
    };
    map.check().map_err(|fault| map_error(tensor, fault, layout, &tile))?;
    if spec.written {
        can_be_written(tensor, layout, &map, options.overlap)?;
    }
    Ok(MapParams { map, l2_promotion: options.l2_promotion })
}

/// Checks that the tensor has the element type and the rank that the kernel's map expects.
fn matches_tile(tensor: &'static str, layout: &Layout, spec: &MapSpec) -> Result<(), Error> {
    let (found, tile) = (layout.shape().len(), spec.box_extents.len());
    let (wanted, tile_rank) = match spec.mode {
        MapMode::Tiled => (tile, tile),
        MapMode::Im2col { rank } if !IM2COL_RANKS.contains(&rank) => {
            return Err(Error::RankMismatch { tensor, found: rank, wanted: rank.clamp(3, MAX_RANK) });
        }
        MapMode::Im2col { rank } => (rank, 2),
    };
    if tile != tile_rank {
        return Err(Error::RankMismatch { tensor, found: tile, wanted: tile_rank });
    }
    if layout.element() != spec.element {
        return Err(Error::ElementMismatch { tensor, found: layout.element(), wanted: spec.element });
    }
    if found != wanted {
        return Err(Error::RankMismatch { tensor, found, wanted });
    }
    Ok(())
}

/// Returns the tensor's extents, innermost first. In an interleaved layout the hardware counts the
/// innermost extent in pixels.
fn extents(tensor: &'static str, layout: &Layout, tile: &TileType) -> Result<Vec<u64>, MapError> {
    let mut extents: Vec<u64> = layout.shape().iter().rev().copied().collect();
    if let (Some(pixel), Some(inner)) = (tile.pixel_elements(), extents.first_mut()) {
        if !inner.is_multiple_of(u64::from(pixel)) {
            return Err(MapError::PartialPixel { tensor, extent: *inner, pixel });
        }
        *inner /= u64::from(pixel);
    }
    Ok(extents)
}

/// Returns the tensor's strides in bytes, from the second innermost dimension outwards. A stride
/// that does not fit in a `u64` saturates, and no map accepts it.
///
/// A dimension of extent 1 is never stepped along, so its stride does not matter to the copy, but
/// the driver checks it like any other. It is therefore replaced by one that passes: the longest
/// stride or row inside it, rounded up to the required alignment.
fn byte_strides(tensor: &'static str, layout: &Layout, interleave: Interleave) -> Result<Vec<u64>, MapError> {
    let element = u64::from(layout.element().bytes());
    let (shape, strides) = (layout.shape(), layout.strides());
    let inner = shape.len() - 1;
    if shape[inner] > 1 && strides[inner] != 1 {
        return Err(MapError::InnerStride { tensor, stride: strides[inner] });
    }
    let unit = tensor_alignment(interleave);
    let row = shape[inner].saturating_mul(element);
    let mut placeholder = row.checked_next_multiple_of(unit).unwrap_or(u64::MAX);
    let outer = shape[..inner].iter().zip(&strides[..inner]).rev();
    Ok(outer
        .map(|(&extent, stride)| {
            let bytes = if extent == 1 { placeholder } else { stride.saturating_mul(element) };
            placeholder = placeholder.max(bytes);
            bytes
        })
        .collect())
}

/// Checks that copies can write the tensor.
fn can_be_written(
    tensor: &'static str,
    layout: &Layout,
    map: &TensorMap,
    may_overlap: bool,
) -> Result<(), MapError> {
    if let Some(bytes) = map.ragged_row() {
        return Err(MapError::StoreRowBytes { tensor, bytes });
    }
    if let Mode::Im2col { lower, upper, .. } = &map.mode {
        // Corners are innermost first, and images precede the dimensions of pixels.
        for (dimension, (&lower, &upper)) in (1..).zip(lower.iter().zip(upper).rev()) {
            if lower < 0 || upper > 0 {
                return Err(MapError::StoreCorner { tensor, dimension, lower, upper });
            }
        }
    }
    if may_overlap {
        return Ok(());
    }
    match overlap(layout) {
        Some([first, second]) => Err(MapError::Overlap { tensor, first, second }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
