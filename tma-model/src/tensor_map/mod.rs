//! The parameters of a tensor map.
//!
//! They are those of `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` (CUDA driver API,
//! "Tensor Map Object Management"), innermost dimension first. [`TensorMap::check`] has the rules
//! for them.

mod check;
mod fault;
mod geometry;

pub use fault::MapFault;

use std::fmt;

use crate::{DataType, Interleave, Swizzle};

/// What a load brings for elements outside of the tensor, each at its number in the driver's API.
/// Source: CUDA driver API, `CUtensorMapFloatOOBfill`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fill {
    /// Zeros.
    #[default]
    Zeros,
    /// NaNs; for floating-point elements only, and not for 8-bit ones, which travel as bytes.
    Nan,
}

/// Which elements one copy moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A box with an extent in each dimension, in elements of the tensor.
    Tiled {
        /// The box's extents.
        box_extents: Vec<u32>,
    },
    /// Pixels of a bounding box in the dimensions between the first, the channels, and the last,
    /// the images.
    Im2col {
        /// The bounding box's first pixel, counted from the tensor's first.
        lower: Vec<i32>,
        /// The bounding box's last pixel, counted from the tensor's last.
        upper: Vec<i32>,
        /// Elements of each pixel.
        channels: u32,
        /// Pixels in all; those after the end of a row of the bounding box come from its next one.
        pixels: u32,
    },
}

/// A tensor and the elements of it that one copy moves. Dimension 0 is the innermost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The elements' type.
    pub element: DataType,
    /// The tensor's global address.
    pub address: u64,
    /// The tensor's extents in elements; as many as its rank. With an interleaved layout the first
    /// counts pixels of a slice each, the last but one slices.
    pub extents: Vec<u64>,
    /// Bytes from one index to the next, of dimension 1 and up.
    pub byte_strides: Vec<u64>,
    /// Which elements a copy moves.
    pub mode: Mode,
    /// Of each dimension, which elements are taken: each, each second, and so on.
    pub element_strides: Vec<u32>,
    /// How the innermost elements lie in global memory.
    pub interleave: Interleave,
    /// How the tile is permuted.
    pub swizzle: Swizzle,
    /// What is brought from outside.
    pub fill: Fill,
}

impl TensorMap {
    /// The rank.
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
