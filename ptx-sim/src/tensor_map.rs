//! Tensor maps: what a descriptor says, and which bytes of the tensor go where in a tile.
//!
//! The parameters are those of `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` (CUDA Driver API, "Tensor Map Object
//! Management"), innermost dimension first. No document describes a descriptor's bits: `descriptor` has bits of our own,
//! which hold all parameters, so that a kernel can copy them, change them and use them where they are.

mod check;
mod columns;
mod descriptor;
mod element;
mod layout;
mod walk;

pub use check::MapError;
pub(crate) use descriptor::{Descriptor, Field, replace};
pub use element::Element;
pub(crate) use walk::{Unit, Walk};

#[cfg(test)]
mod tests;

/// Size of a descriptor in bytes.
pub const DESCRIPTOR_BYTES: usize = 128;
/// The greatest rank.
pub const MAX_RANK: usize = 5;
/// The unit of the copy engine, in bytes.
pub(crate) const UNIT: u32 = 16;

/// How the 16-byte units of a tile's rows are permuted in shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// Row after row.
    #[default]
    None,
    /// Within spans of 32 bytes.
    B32,
    /// Within spans of 64 bytes.
    B64,
    /// Within spans of 128 bytes.
    B128,
}

impl Swizzle {
    /// The span in bytes, if any: what a row may have at most.
    pub const fn span(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::B32 => Some(32),
            Self::B64 => Some(64),
            Self::B128 => Some(128),
        }
    }

    /// Where the byte at shared offset `at` of the plain layout really is.
    ///
    /// Source: PTX ISA, "Swizzling Modes": the bits that number the 128-byte line are added, without carry, to those that
    /// number the 16-byte unit in the span.
    pub const fn permute(self, at: u32) -> u32 {
        let units = match self {
            Self::None => 0,
            Self::B32 => 1,
            Self::B64 => 3,
            Self::B128 => 7,
        };
        at ^ ((at >> 7 & units) << 4)
    }
}

/// How the tensor's innermost elements lie in global memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interleave {
    /// One after the other.
    #[default]
    None,
    /// In slices of 16 bytes, as NC/8HWC8 has 8 channels of 2 bytes.
    B16,
    /// In slices of 32 bytes, as NC/16HWC16 has 16 channels of 2 bytes.
    B32,
}

impl Interleave {
    /// Bytes of a slice, if there are slices.
    pub const fn slice(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::B16 => Some(16),
            Self::B32 => Some(32),
        }
    }
}

/// What a load brings for elements outside of the tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fill {
    /// Zeros.
    #[default]
    Zeros,
    /// A NaN; for floating-point elements only.
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
    /// Pixels of a bounding box in the dimensions between the first, the channels, and the last, the images.
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
    pub element: Element,
    /// The tensor's global address.
    pub address: u64,
    /// The tensor's extents in elements; as many as its rank. With an interleaved layout the first counts pixels of a
    /// slice each, the last but one slices.
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
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// 16 bytes of what a load brings from outside of the tensor.
    pub(crate) fn fill_unit(&self) -> [u8; 16] {
        match self.fill {
            Fill::Zeros => [0; 16],
            Fill::Nan => self.element.nan_unit(),
        }
    }
}
