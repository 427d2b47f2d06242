//! Im2col mode: columns of the pixels of a bounding box. Source: `cuTensorMapEncodeIm2col`.

use super::element_stride;
use crate::error::MapError;
use crate::layout::MAX_RANK;
use crate::options::MapOptions;
use std::ops::RangeInclusive;

/// The most dimensions of pixels.
const MAX_PIXEL_RANK: usize = MAX_RANK - 2;

/// What one copy takes, innermost dimension first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) lower: [i32; MAX_PIXEL_RANK],
    pub(super) upper: [i32; MAX_PIXEL_RANK],
    pub(super) channels: u32,
    pub(super) pixels: u32,
}

/// The columns of a tile of so many pixels of so many channels, and the element strides of the map.
pub(super) fn columns(
    tensor: &'static str,
    [pixels, channels]: [u32; 2],
    shape: &[u64],
    written: bool,
    options: &MapOptions,
) -> Result<(Columns, [u32; MAX_RANK]), MapError> {
    let corners = options.corners.unwrap_or_default();
    let (rank, count) = (shape.len(), shape.len() - 2);
    let mut columns = Columns { lower: [0; MAX_PIXEL_RANK], upper: [0; MAX_PIXEL_RANK], channels, pixels };
    let mut strides = [1; MAX_RANK];
    for index in 0..count {
        // Images come before the dimensions of pixels.
        let dimension = index + 1;
        let [lower, upper] = [corners.lower[index], corners.upper[index]];
        bounding_box(tensor, dimension, [lower, upper], corner_range(rank), shape[dimension])?;
        if written && (lower < 0 || upper > 0) {
            return Err(MapError::StoreCorner { tensor, dimension, lower, upper });
        }
        let stride = options.element_strides[dimension];
        element_stride(tensor, dimension, stride, false)?;
        (columns.lower[count - 1 - index], columns.upper[count - 1 - index]) = (lower, upper);
        strides[rank - 1 - dimension] = stride;
    }
    Ok((columns, strides))
}

/// Source: `pixelBoxLowerCorner`, `pixelBoxUpperCorner`. That it ends below 2^31 no document says: a driver refuses others.
fn bounding_box(
    tensor: &'static str,
    dimension: usize,
    corners: [i32; 2],
    range: RangeInclusive<i32>,
    extent: u64,
) -> Result<(), MapError> {
    if let Some(&corner) = corners.iter().find(|corner| !range.contains(corner)) {
        let (least, most) = range.into_inner();
        return Err(MapError::Corner { tensor, dimension, corner, least, most });
    }
    let [first, last] = [i64::from(corners[0]), extent as i64 - 1 + i64::from(corners[1])];
    if first > last || last > i64::from(i32::MAX) {
        return Err(MapError::BoundingBox { tensor, dimension, first, last });
    }
    Ok(())
}

/// The corners that a map of this rank has room for.
const fn corner_range(rank: usize) -> RangeInclusive<i32> {
    let reach = match rank {
        ..=3 => 1 << 15,
        4 => 1 << 7,
        _ => 1 << 4,
    };
    -reach..=reach - 1
}
