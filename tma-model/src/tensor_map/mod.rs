//! The parameters of a tensor map.
//!
//! The parameters are those of `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` (CUDA driver
//! API, "Tensor Map Object Management"), innermost dimension first. [`TensorMap::check`] implements
//! their rules.

mod check;
mod fault;
mod geometry;

pub use fault::MapFault;

use std::fmt;

use crate::{DataType, Interleave, Swizzle};

/// The value that a load delivers for elements outside of the tensor. Each variant has its number
/// in the driver's API. Source: CUDA driver API, `CUtensorMapFloatOOBfill`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fill {
    /// Zeros.
    #[default]
    Zeros,
    /// NaNs. Only for floating-point elements, except 8-bit ones, which are moved as bytes.
    Nan,
}

/// The elements that one copy moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A box with an extent in each dimension, in elements of the tensor.
    Tiled {
        /// Extents of the box.
        box_extents: Vec<u32>,
    },
    /// Pixels of a bounding box. It spans the dimensions between the first, which has the channels,
    /// and the last, which has the images.
    Im2col {
        /// First pixel of the bounding box, relative to the tensor's first pixel.
        lower: Vec<i32>,
        /// Last pixel of the bounding box, relative to the tensor's last pixel.
        upper: Vec<i32>,
        /// Number of elements of each pixel.
        channels: u32,
        /// Total number of pixels. After the end of a row of the bounding box, they continue in its
        /// next row.
        pixels: u32,
    },
}

/// A tensor, and the elements of it that one copy moves. Dimension 0 is the innermost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Type of the elements.
    pub element: DataType,
    /// Global address of the tensor.
    pub address: u64,
    /// Extents of the tensor in elements, one for each dimension. In an interleaved layout the
    /// first extent counts pixels of one slice each, and the last but one counts slices.
    pub extents: Vec<u64>,
    /// Bytes from one index to the next, for dimensions 1 and up.
    pub byte_strides: Vec<u64>,
    /// Elements that a copy moves.
    pub mode: Mode,
    /// Element stride of each dimension: 1 takes every element, 2 every second, and so on.
    pub element_strides: Vec<u32>,
    /// Layout of the innermost elements in global memory.
    pub interleave: Interleave,
    /// Permutation of the tile.
    pub swizzle: Swizzle,
    /// Value for elements outside of the tensor.
    pub fill: Fill,
}

impl TensorMap {
    /// Returns the rank.
    #[inline]
    pub fn rank(&self) -> usize {
        self.extents.len()
    }
}

impl fmt::Display for TensorMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "of {:?} at {:#x}, and, innermost first, extents {:?}, strides {:?} bytes, {:?}, element strides {:?}, \
             interleave {:?}, swizzle {:?}, fill {:?}",
            self.element,
            self.address,
            self.extents,
            self.byte_strides,
            self.mode,
            self.element_strides,
            self.interleave,
            self.swizzle,
            self.fill
        )
    }
}
