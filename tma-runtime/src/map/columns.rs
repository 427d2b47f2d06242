//! Im2col mode: columns of the pixels of a bounding box. Source: `cuTensorMapEncodeIm2col`.

use tma_model::TileType;
use tma_model::limits::ELEMENT_STRIDE;
use tma_model::tensor_map::Mode;

use crate::error::MapError;
use crate::map::options::MapOptions;

/// Returns the im2col mode of a tile of pixels by channels over a tensor of this rank, and the
/// map's element strides, innermost first. Images and channels are never strided.
pub(super) fn columns(
    tensor: &'static str,
    rank: usize,
    tile: &TileType,
    options: &MapOptions,
) -> Result<(Mode, Vec<u32>), MapError> {
    let corners = options.corners.unwrap_or_default();
    let mut strides = vec![1; rank];
    // Images precede the dimensions of pixels; channels follow them.
    for dimension in 1..rank - 1 {
        let stride = options.element_strides[dimension];
        if !(1..=ELEMENT_STRIDE).contains(&stride) {
            return Err(MapError::ElementStride { tensor, dimension, rank, stride, inner: false });
        }
        strides[rank - 1 - dimension] = stride;
    }
    let innermost_first = |corners: &[i32]| corners[..rank - 2].iter().rev().copied().collect();
    let mode = Mode::Im2col {
        lower: innermost_first(&corners.lower),
        upper: innermost_first(&corners.upper),
        channels: tile.inner_extent(),
        pixels: tile.extents.first().copied().unwrap_or(0),
    };
    Ok((mode, strides))
}
