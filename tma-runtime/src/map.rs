//! From a tensor and a kernel's box to the parameters of a tensor map, every rule checked on the way.
//!
//! The rules are those that the CUDA driver API documents for `cuTensorMapEncodeTiled` ("Tensor Map Object
//! Management"), for maps without interleaving. The functions here are pure: whatever encodes the map, a driver or a
//! simulator, gets the same parameters.
//!
//! Not checked, because it cannot be wrong here: the rank (1 to 5, the type of tensors), the element strides (always
//! 1), the alignment of the descriptor (its type), and interleaving and fill (always none, and zeros).

use crate::error::Error;
use crate::layout::{Layout, MAX_RANK};
use crate::spec::{Element, MapSpec, Swizzle};
use std::fmt;

/// What the address, each stride and a box's innermost dimension must be a multiple of, in bytes.
pub const ALIGNMENT: u64 = 16;
/// The greatest extent of a tensor map, in elements.
pub const MAX_EXTENT: u64 = 1 << 32;
/// What every stride of a tensor map is less than, in bytes.
pub const STRIDE_LIMIT: u64 = 1 << 40;
/// The greatest extent of a box, in elements.
pub const MAX_BOX_EXTENT: u32 = 256;

/// The parameters of a tensor map, in the hardware's order: innermost dimension first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TiledMap {
    element: Element,
    swizzle: Swizzle,
    address: u64,
    rank: usize,
    extents: [u64; MAX_RANK],
    /// Of dimension 1 and up; dimension 0 is contiguous.
    byte_strides: [u64; MAX_RANK - 1],
    box_extents: [u32; MAX_RANK],
}

impl TiledMap {
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

    /// Extents of the tensor in elements, innermost first.
    pub fn extents(&self) -> &[u64] {
        &self.extents[..self.rank]
    }

    /// Strides of dimension 1 and up, in bytes.
    pub fn byte_strides(&self) -> &[u64] {
        &self.byte_strides[..self.rank - 1]
    }

    /// Extents of the box in elements, innermost first.
    pub fn box_extents(&self) -> &[u32] {
        &self.box_extents[..self.rank]
    }
}

impl fmt::Display for TiledMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "of `{}` at {:#x}, and, innermost first, extents {:?}, strides {:?} bytes, box {:?}, swizzle {:?}",
            self.element,
            self.address,
            self.extents(),
            self.byte_strides(),
            self.box_extents(),
            self.swizzle
        )
    }
}

/// The tensor map that moves the box of `spec` over the tensor at `layout`; `tensor` names it in errors.
///
/// # Errors
///
/// One error a rule, from [`Error::MisalignedAddress`] to [`Error::ElementMismatch`]. The box is checked first, then
/// the tensor from its address outwards.
pub fn tiled_map(tensor: &'static str, layout: &Layout, spec: &MapSpec) -> Result<TiledMap, Error> {
    let (found, wanted) = (layout.shape().len(), spec.box_extents.len());
    if layout.element() != spec.element {
        return Err(Error::ElementMismatch { tensor, found: layout.element(), wanted: spec.element });
    }
    if found != wanted {
        return Err(Error::RankMismatch { tensor, found, wanted });
    }
    let address = layout.address();
    let box_extents = box_extents(tensor, spec)?;
    if !address.is_multiple_of(ALIGNMENT) {
        return Err(Error::MisalignedAddress { tensor, address });
    }
    let extents = extents(tensor, layout.shape())?;
    whole_units(tensor, extents[0], spec)?;
    let byte_strides = byte_strides(tensor, layout)?;
    Ok(TiledMap {
        element: spec.element,
        swizzle: spec.swizzle,
        address,
        rank: found,
        extents,
        byte_strides,
        box_extents,
    })
}

/// The box, innermost first. Source: `boxDim` and `swizzle` of `cuTensorMapEncodeTiled`.
fn box_extents(tensor: &'static str, spec: &MapSpec) -> Result<[u32; MAX_RANK], Error> {
    let mut reversed = [0; MAX_RANK];
    for (dimension, &extent) in spec.box_extents.iter().enumerate() {
        if extent == 0 || extent > MAX_BOX_EXTENT {
            return Err(Error::BoxExtent { tensor, dimension, extent });
        }
        reversed[spec.box_extents.len() - 1 - dimension] = extent;
    }
    let bytes = u64::from(reversed[0]) * u64::from(spec.element.bytes());
    if !bytes.is_multiple_of(ALIGNMENT) {
        return Err(Error::BoxRowBytes { tensor, bytes });
    }
    match spec.swizzle.span() {
        Some(span) if bytes > u64::from(span) => Err(Error::BoxRowExceedsSwizzle { tensor, bytes, span }),
        Some(_) | None => Ok(reversed),
    }
}

/// The tensor's extents, innermost first. Source: `globalDim` of `cuTensorMapEncodeTiled`.
fn extents(tensor: &'static str, shape: &[u64]) -> Result<[u64; MAX_RANK], Error> {
    let mut reversed = [0; MAX_RANK];
    for (dimension, &extent) in shape.iter().enumerate() {
        if extent == 0 || extent > MAX_EXTENT {
            return Err(Error::ExtentOutOfRange { tensor, dimension, extent });
        }
        reversed[shape.len() - 1 - dimension] = extent;
    }
    Ok(reversed)
}

/// What is stored to must end where a unit of the copy engine does.
///
/// Loads see a tensor's end to the element; stores do not. No document says so: seen on an H200 with driver 580, where a
/// row of 5 bytes is stored as 16, and one of 37 as 48.
fn whole_units(tensor: &'static str, inner_extent: u64, spec: &MapSpec) -> Result<(), Error> {
    let bytes = inner_extent * u64::from(spec.element.bytes());
    if spec.written && !bytes.is_multiple_of(ALIGNMENT) {
        return Err(Error::StoreRowBytes { tensor, bytes });
    }
    Ok(())
}

/// The tensor's strides in bytes, from the second innermost dimension outwards.
/// Source: `globalStrides` of `cuTensorMapEncodeTiled`.
///
/// A dimension of extent 1 is never stepped along, so its stride does not matter to the copy; but the driver checks it
/// like any other. It is given one that passes: the longest step or row inside it, in whole multiples of 16 bytes.
fn byte_strides(tensor: &'static str, layout: &Layout) -> Result<[u64; MAX_RANK - 1], Error> {
    let element = u64::from(layout.element().bytes());
    let (shape, strides) = (layout.shape(), layout.strides());
    let inner = shape.len() - 1;
    if shape[inner] > 1 && strides[inner] != 1 {
        return Err(Error::InnerStride { tensor, stride: strides[inner] });
    }
    let mut reversed = [0; MAX_RANK - 1];
    let mut placeholder = (shape[inner] * element).next_multiple_of(ALIGNMENT);
    for dimension in (0..inner).rev() {
        let bytes = u128::from(strides[dimension]) * u128::from(element);
        let stride = match u64::try_from(bytes) {
            _ if shape[dimension] == 1 => placeholder,
            Ok(bytes) if bytes < STRIDE_LIMIT => bytes,
            _ => return Err(Error::StrideTooLarge { tensor, dimension, bytes }),
        };
        if !stride.is_multiple_of(ALIGNMENT) {
            return Err(Error::MisalignedStride { tensor, dimension, bytes: stride });
        }
        reversed[inner - 1 - dimension] = stride;
        placeholder = placeholder.max(stride);
    }
    Ok(reversed)
}

#[cfg(test)]
mod tests;
