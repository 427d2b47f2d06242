//! Tiled mode: boxes, whose elements may be strided.

use tma_model::TileType;
use tma_model::limits::{BOX_EXTENT, ELEMENT_STRIDE};
use tma_model::tensor_map::Mode;

use crate::error::MapError;
use crate::map::options::MapOptions;

/// Returns the box that spans the tile's elements in the tensor, and its element strides, innermost
/// first.
///
/// Source: `elementStrides` of `cuTensorMapEncodeTiled`, which strides along dimension 0 only if
/// its elements are pixels. In that dimension a box ends before the pixel that would come next,
/// which keeps it a multiple of 16 bytes.
pub(super) fn strided_box(
    tensor: &'static str,
    tile: &TileType,
    options: &MapOptions,
) -> Result<(Mode, Vec<u32>), MapError> {
    let rank = tile.rank();
    let inner = rank - 1;
    let (mut box_extents, mut strides) = (Vec::new(), Vec::new());
    for (dimension, &extent) in tile.extents.iter().enumerate().rev() {
        let stride = options.element_strides[dimension];
        let pixel = tile.pixel_elements().filter(|_| dimension == inner);
        let (taken, steps) = (extent / pixel.unwrap_or(1), pixel.is_some() || dimension != inner);
        if !(1..=ELEMENT_STRIDE).contains(&stride) || (!steps && stride != 1) {
            return Err(MapError::ElementStride { tensor, dimension, rank, stride, inner: !steps });
        }
        let (extent, most) = match pixel {
            Some(_) => (taken * stride, BOX_EXTENT / stride / tile.pixel_unit() * tile.pixel_unit()),
            None => ((taken - 1) * stride + 1, (BOX_EXTENT - 1) / stride + 1),
        };
        if extent > BOX_EXTENT {
            let (tile, pixels) = (taken, pixel.is_some());
            return Err(MapError::StridedBox { tensor, dimension, rank, tile, stride, extent, most, pixels });
        }
        box_extents.push(extent);
        strides.push(stride);
    }
    Ok((Mode::Tiled { box_extents }, strides))
}
