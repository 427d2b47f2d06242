//! From a tensor and a kernel's box to the parameters of a tensor map, every rule checked on the way.
//!
//! The rules are those that the CUDA driver API documents for `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col`
//! ("Tensor Map Object Management"). The functions here are pure: whatever encodes the map, a driver or a
//! simulator, gets the same parameters.
//!
//! Not checked, because it cannot be wrong here: the rank (1 to 5, or 3 to 5, the type of tensors), the alignment of the
//! descriptor (its type), and that an interleaved layout of 32 bytes goes with a swizzle of 32 (one variant is both).

use crate::error::{Error, MapError};
use crate::layout::{Layout, MAX_RANK};
use crate::options::{Fill, L2Promotion, MapOptions, MapSource};
use crate::spec::{Element, MapMode, MapSpec, Swizzle};
use std::fmt;

mod columns;
mod overlap;

use columns::{Columns, columns};
use overlap::overlap;

/// What the address, each stride and a box's innermost dimension must be a multiple of, in bytes.
pub const ALIGNMENT: u64 = 16;
/// The greatest extent of a tensor map, in elements.
pub const MAX_EXTENT: u64 = 1 << 32;
/// What every stride of a tensor map is less than, in bytes.
pub const STRIDE_LIMIT: u64 = 1 << 40;
/// The ranks of tensors in im2col mode.
pub const IM2COL_RANKS: std::ops::RangeInclusive<usize> = 3..=MAX_RANK;
/// The greatest extent of a box, in elements.
pub const MAX_BOX_EXTENT: u32 = 256;
/// The most pixels of a column.
pub const MAX_COLUMN_PIXELS: u32 = 1024;
/// The farthest that two elements of a box can be apart, in elements of the tensor.
pub const MAX_ELEMENT_STRIDE: u32 = 8;
/// The least rank of an interleaved layout.
pub const MIN_INTERLEAVED_RANK: usize = 3;
/// The most bytes of a box. No document says so: seen with driver 580.
pub const MAX_BOX_BYTES: u64 = 228 * 1024;

/// The parameters of a tensor map, in the hardware's order: innermost dimension first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapParams {
    element: Element,
    swizzle: Swizzle,
    address: u64,
    rank: usize,
    extents: [u64; MAX_RANK],
    /// Of dimension 1 and up; dimension 0 is contiguous.
    byte_strides: [u64; MAX_RANK - 1],
    moved: Shape,
    element_strides: [u32; MAX_RANK],
    fill: Fill,
    l2_promotion: L2Promotion,
}

/// [`Moved`], with room for any rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Box([u32; MAX_RANK]),
    Columns(Columns),
}

/// Which elements one copy moves, innermost dimension first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved<'a> {
    /// A box of these extents, in elements of the tensor.
    Box(&'a [u32]),
    /// Pixels of a bounding box, each with its channels.
    Columns {
        /// The first pixel, counted from the tensor's first, for each dimension of pixels.
        lower: &'a [i32],
        /// The last pixel, counted from the tensor's last.
        upper: &'a [i32],
        /// Elements of a pixel.
        channels: u32,
        /// Pixels of a column.
        pixels: u32,
    },
}

impl MapParams {
    /// The element type.
    pub const fn element(&self) -> Element {
        self.element
    }

    /// The swizzle of the tile in shared memory.
    pub const fn swizzle(&self) -> Swizzle {
        self.swizzle
    }

    /// The address of the tensor's first element.
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Extents of the tensor, innermost first: in elements, but for pixels of an interleaved layout along the innermost.
    pub fn extents(&self) -> &[u64] {
        &self.extents[..self.rank]
    }

    /// Strides of dimension 1 and up, in bytes.
    pub fn byte_strides(&self) -> &[u64] {
        &self.byte_strides[..self.rank - 1]
    }

    /// Which elements one copy moves.
    pub fn moved(&self) -> Moved<'_> {
        match &self.moved {
            Shape::Box(extents) => Moved::Box(&extents[..self.rank]),
            Shape::Columns(Columns { lower, upper, channels, pixels }) => Moved::Columns {
                lower: &lower[..self.rank - 2],
                upper: &upper[..self.rank - 2],
                channels: *channels,
                pixels: *pixels,
            },
        }
    }

    /// How far apart the elements of a box are along each dimension, innermost first.
    pub fn element_strides(&self) -> &[u32] {
        &self.element_strides[..self.rank]
    }

    /// What a load brings for elements outside of the tensor.
    pub const fn fill(&self) -> Fill {
        self.fill
    }

    /// How much is brought into L2 at a time.
    pub const fn l2_promotion(&self) -> L2Promotion {
        self.l2_promotion
    }
}

impl fmt::Display for MapParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "of `{}` at {:#x}, and, innermost first, extents {:?}, strides {:?} bytes, {:?}, element strides {:?}, \
             swizzle {:?}, fill {:?}",
            self.element,
            self.address,
            self.extents(),
            self.byte_strides(),
            self.moved(),
            self.element_strides(),
            self.swizzle,
            self.fill
        )
    }
}

/// The tensor map that moves the box or the columns of `spec` over the tensor of `source`; `tensor` names it in errors.
///
/// # Errors
///
/// One error a rule, from [`MapError::MisalignedAddress`] to [`Error::ElementMismatch`]. The box is checked first, then
/// the options, then the tensor from its address outwards.
pub fn map_params(tensor: &'static str, source: &MapSource, spec: &MapSpec) -> Result<MapParams, Error> {
    let MapSource { layout, options } = source;
    let found = layout.shape().len();
    let wanted = match spec.mode {
        MapMode::Tiled => spec.box_extents.len(),
        MapMode::Im2col { rank } if !IM2COL_RANKS.contains(&rank) => {
            return Err(Error::RankMismatch { tensor, found: rank, wanted: rank.clamp(3, MAX_RANK) });
        }
        MapMode::Im2col { rank } => rank,
    };
    if spec.mode != MapMode::Tiled && spec.box_extents.len() != 2 {
        return Err(Error::RankMismatch { tensor, found: spec.box_extents.len(), wanted: 2 });
    }
    if layout.element() != spec.element {
        return Err(Error::ElementMismatch { tensor, found: layout.element(), wanted: spec.element });
    }
    if found != wanted {
        return Err(Error::RankMismatch { tensor, found, wanted });
    }
    let address = layout.address();
    let tile = tile_extents(tensor, spec)?;
    let (moved, element_strides) = match spec.mode {
        MapMode::Tiled => {
            let (extents, strides) = strided_box(tensor, tile, spec, options)?;
            (Shape::Box(extents), strides)
        }
        MapMode::Im2col { .. } => {
            // Corners are counted from the tensor's, which must have some first.
            extents(tensor, layout.shape())?;
            let (columns, strides) =
                columns(tensor, [tile[1], tile[0]], layout.shape(), spec.written, options)?;
            (Shape::Columns(columns), strides)
        }
    };
    fill(tensor, spec.element, options.fill)?;
    let unit = alignment(spec.swizzle);
    if !address.is_multiple_of(unit) {
        return Err(MapError::MisalignedAddress { tensor, address, unit }.into());
    }
    let mut extents = extents(tensor, layout.shape())?;
    whole_units(tensor, extents[0], spec)?;
    extents[0] = whole_pixels(tensor, extents[0], spec)?;
    let byte_strides = byte_strides(tensor, layout, unit)?;
    if spec.written
        && let Some([first, second]) = overlap(layout)
    {
        return Err(MapError::Overlap { tensor, first, second }.into());
    }
    Ok(MapParams {
        element: spec.element,
        swizzle: spec.swizzle,
        address,
        rank: found,
        extents,
        byte_strides,
        moved,
        element_strides,
        fill: options.fill,
        l2_promotion: options.l2_promotion,
    })
}

/// What addresses and strides are multiples of. Source: `globalAddress` and `globalStrides` of `cuTensorMapEncodeTiled`.
fn alignment(swizzle: Swizzle) -> u64 {
    swizzle.pixel_bytes().map_or(ALIGNMENT, u64::from)
}

/// Elements along dimension 0 that count as one: those of a pixel, with an interleaved layout.
fn pixel_elements(spec: &MapSpec) -> Option<u32> {
    spec.swizzle.pixel_bytes().map(|bytes| bytes / spec.element.bytes())
}

/// What a copy brings to shared memory, innermost first. Source: `boxDim` and `swizzle` of `cuTensorMapEncodeTiled`;
/// `channelsPerPixel` and `pixelsPerColumn` of `cuTensorMapEncodeIm2col`.
fn tile_extents(tensor: &'static str, spec: &MapSpec) -> Result<[u32; MAX_RANK], MapError> {
    let mut reversed = [0; MAX_RANK];
    let inner = spec.box_extents.len().saturating_sub(1);
    for (dimension, &extent) in spec.box_extents.iter().enumerate() {
        let most = match spec.mode {
            MapMode::Im2col { .. } if dimension == 0 => MAX_COLUMN_PIXELS,
            MapMode::Im2col { .. } | MapMode::Tiled => MAX_BOX_EXTENT,
        };
        let counted = if dimension == inner { extent / pixel_elements(spec).unwrap_or(1) } else { extent };
        if counted == 0 || counted > most {
            return Err(MapError::BoxExtent { tensor, dimension, extent, most });
        }
        reversed[inner - dimension] = counted;
    }
    let all: u64 = spec.box_extents.iter().map(|&extent| u64::from(extent)).product();
    let all = all * u64::from(spec.element.bytes());
    if all > MAX_BOX_BYTES {
        return Err(MapError::BoxBytes { tensor, bytes: all, most: MAX_BOX_BYTES });
    }
    if let Some(pixel) = pixel_elements(spec) {
        return interleaved_box(tensor, reversed, spec, pixel);
    }
    let bytes = u64::from(reversed[0]) * u64::from(spec.element.bytes());
    if !bytes.is_multiple_of(ALIGNMENT) {
        return Err(MapError::BoxRowBytes { tensor, bytes });
    }
    match spec.swizzle.span() {
        Some(span) if bytes > u64::from(span) => Err(MapError::BoxRowExceedsSwizzle { tensor, bytes, span }),
        Some(_) | None => Ok(reversed),
    }
}

/// The box of an interleaved layout, in pixels along dimension 0. One copy moves one slice of channels, and a driver wants
/// pixels times the element's size to be a multiple of 16: seen on an H200.
fn interleaved_box(
    tensor: &'static str,
    extents: [u32; MAX_RANK],
    spec: &MapSpec,
    pixel: u32,
) -> Result<[u32; MAX_RANK], MapError> {
    let rank = spec.box_extents.len();
    let unit = ALIGNMENT as u32 / spec.element.bytes();
    let whole = spec.box_extents.last().is_some_and(|inner| inner.is_multiple_of(pixel * unit));
    if rank < MIN_INTERLEAVED_RANK || spec.box_extents[1] != 1 || !whole {
        return Err(MapError::InterleavedBox { tensor, extents: spec.box_extents, pixel, unit });
    }
    Ok(extents)
}

/// The box, and how far apart its elements are, innermost first: from the first to the last of `tile` elements that are
/// `stride` apart. Source: `elementStrides` of `cuTensorMapEncodeTiled`, which steps along dimension 0 only if that is of
/// pixels; a box there goes up to the pixel that would be next, so that it stays a multiple of 16.
fn strided_box(
    tensor: &'static str,
    tile: [u32; MAX_RANK],
    spec: &MapSpec,
    options: &MapOptions,
) -> Result<([u32; MAX_RANK], [u32; MAX_RANK]), MapError> {
    let (mut extents, mut strides) = (tile, [1; MAX_RANK]);
    let (rank, pixels) = (spec.box_extents.len(), spec.swizzle.pixel_bytes().is_some());
    for (dimension, &stride) in options.element_strides[..rank].iter().enumerate() {
        let inner = dimension == rank - 1;
        element_stride(tensor, dimension, stride, inner && !pixels)?;
        let at = rank - 1 - dimension;
        let extent = if inner { tile[at] * stride } else { (tile[at] - 1) * stride + 1 };
        if extent > MAX_BOX_EXTENT {
            return Err(MapError::StridedBox { tensor, dimension, tile: tile[at], stride, extent });
        }
        (extents[at], strides[at]) = (extent, stride);
    }
    Ok((extents, strides))
}

/// Source: `elementStrides` of `cuTensorMapEncodeTiled`.
fn element_stride(tensor: &'static str, dimension: usize, stride: u32, inner: bool) -> Result<(), MapError> {
    if stride == 0 || stride > MAX_ELEMENT_STRIDE || (inner && stride != 1) {
        return Err(MapError::ElementStride { tensor, dimension, stride, inner });
    }
    Ok(())
}

/// Source: `oobFill` of `cuTensorMapEncodeTiled`.
fn fill(tensor: &'static str, element: Element, fill: Fill) -> Result<(), MapError> {
    let has_nan =
        matches!(element, Element::F16 | Element::Bf16 | Element::F32 | Element::F64 | Element::Tf32);
    match fill {
        Fill::Nan if !has_nan => Err(MapError::NanFill { tensor, element }),
        Fill::Nan | Fill::Zeros => Ok(()),
    }
}

/// The tensor's extents, innermost first. Source: `globalDim` of `cuTensorMapEncodeTiled`.
fn extents(tensor: &'static str, shape: &[u64]) -> Result<[u64; MAX_RANK], MapError> {
    let mut reversed = [0; MAX_RANK];
    for (dimension, &extent) in shape.iter().enumerate() {
        if extent == 0 || extent > MAX_EXTENT {
            return Err(MapError::ExtentOutOfRange { tensor, dimension, extent });
        }
        reversed[shape.len() - 1 - dimension] = extent;
    }
    Ok(reversed)
}

/// What is stored to must end where a unit of the copy engine does.
///
/// Loads see a tensor's end to the element; stores do not. No document says so: seen on an H200 with driver 580, where a
/// row of 5 bytes is stored as 16, and one of 37 as 48.
fn whole_units(tensor: &'static str, inner_extent: u64, spec: &MapSpec) -> Result<(), MapError> {
    let bytes = inner_extent * u64::from(spec.element.bytes());
    if spec.written && !bytes.is_multiple_of(ALIGNMENT) {
        return Err(MapError::StoreRowBytes { tensor, bytes });
    }
    Ok(())
}

/// The innermost extent as the hardware counts it: pixels of an interleaved layout.
fn whole_pixels(tensor: &'static str, extent: u64, spec: &MapSpec) -> Result<u64, MapError> {
    match pixel_elements(spec) {
        Some(pixel) if !extent.is_multiple_of(u64::from(pixel)) => {
            Err(MapError::PartialPixel { tensor, extent, pixel })
        }
        pixel => Ok(extent / pixel.map_or(1, u64::from)),
    }
}

/// The tensor's strides in bytes, from the second innermost dimension outwards.
/// Source: `globalStrides` of `cuTensorMapEncodeTiled`.
///
/// A dimension of extent 1 is never stepped along, so its stride does not matter to the copy; but the driver checks it
/// like any other. It is given one that passes: the longest step or row inside it, in whole multiples of `unit` bytes.
fn byte_strides(tensor: &'static str, layout: &Layout, unit: u64) -> Result<[u64; MAX_RANK - 1], MapError> {
    let element = u64::from(layout.element().bytes());
    let (shape, strides) = (layout.shape(), layout.strides());
    let inner = shape.len() - 1;
    if shape[inner] > 1 && strides[inner] != 1 {
        return Err(MapError::InnerStride { tensor, stride: strides[inner] });
    }
    let mut reversed = [0; MAX_RANK - 1];
    let mut placeholder = (shape[inner] * element).next_multiple_of(unit);
    for dimension in (0..inner).rev() {
        let bytes = u128::from(strides[dimension]) * u128::from(element);
        let stride = match u64::try_from(bytes) {
            _ if shape[dimension] == 1 => placeholder,
            Ok(bytes) if bytes < STRIDE_LIMIT => bytes,
            _ => return Err(MapError::StrideTooLarge { tensor, dimension, bytes }),
        };
        if !stride.is_multiple_of(unit) {
            return Err(MapError::MisalignedStride { tensor, dimension, bytes: stride, unit });
        }
        reversed[inner - 1 - dimension] = stride;
        placeholder = placeholder.max(stride);
    }
    Ok(reversed)
}

#[cfg(test)]
mod tests;
