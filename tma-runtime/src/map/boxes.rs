//! Boxes of a tensor, whose elements may be some steps apart.

use tma_model::TileType;
use tma_model::limits::{BOX_EXTENT, ELEMENT_STRIDE};
use tma_model::tensor_map::Mode;

use crate::error::MapError;
use crate::map::options::MapOptions;

/// The box, and how far apart its elements are, innermost first: from the first to the last of the
/// tile's elements.
///
/// Source: `elementStrides` of `cuTensorMapEncodeTiled`, which steps along dimension 0 only if that is of
/// pixels; a box there goes up to the pixel that would be next, so that it stays a multiple of 16.
pub(super) fn strided_box(
    tensor: &'static str,
    tile: &TileType,
    options: &MapOptions,
) -> Result<(Mode, Vec<u32>), MapError> {
    let inner = tile.rank() - 1;
    let (mut box_extents, mut strides) = (Vec::new(), Vec::new());
    for (dimension, &extent) in tile.extents.iter().enumerate().rev() {
        let stride = options.element_strides[dimension];
        let (taken, steps) = match tile.pixel_elements() {
            Some(pixel) if dimension == inner => (extent / pixel, true),
            Some(_) | None => (extent, dimension != inner),
        };
        if !(1..=ELEMENT_STRIDE).contains(&stride) || (!steps && stride != 1) {
            return Err(MapError::ElementStride { tensor, dimension, stride, inner: !steps });
        }
        let extent = if dimension == inner { taken * stride } else { (taken - 1) * stride + 1 };
        if extent > BOX_EXTENT {
            return Err(MapError::StridedBox { tensor, dimension, tile: taken, stride, extent });
        }
        box_extents.push(extent);
        strides.push(stride);
    }
    Ok((Mode::Tiled { box_extents }, strides))
}
