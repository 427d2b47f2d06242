//! The rules of `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col`, as faults with the
//! offending values.

use std::fmt;

use crate::limits;

/// A rule that the parameters of a tensor map break. Dimensions count from the innermost.
#[allow(missing_docs)] // each variant's own line names its fields
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapFault {
    /// A rank outside of `least` to 5. `mode` names the reason for the lower bound.
    Rank { rank: usize, least: usize, mode: &'static str },
    /// The number of strides or of element strides does not match the rank.
    Lengths { rank: usize, strides: usize, element_strides: usize },
    /// The number of box extents does not match the rank.
    BoxRank { rank: usize, extents: usize },
    /// The number of corners does not match the number of pixel dimensions.
    Corners { rank: usize, lower: usize, upper: usize },
    /// An address that is not a multiple of `unit` bytes.
    Address { address: u64, unit: u64 },
    /// An extent of the tensor outside of 1 to 2^32.
    Extent { dimension: usize, extent: u64 },
    /// A stride that is not a multiple of `unit` bytes below 2^40.
    Stride { dimension: usize, bytes: u64, unit: u64 },
    /// An element stride outside of 1 to 8.
    ElementStride { dimension: usize, stride: u32 },
    /// An extent of the box outside of 1 to 256.
    BoxExtent { dimension: usize, extent: u32 },
    /// A number of channels per pixel outside of 1 to 256.
    Channels { channels: u32 },
    /// A number of pixels per column outside of 1 to 1024.
    Pixels { pixels: u32 },
    /// Rows of the box whose size is not a multiple of 16 bytes.
    RowBytes { bytes: u32 },
    /// A box larger than the shared memory of a multiprocessor.
    BoxBytes { bytes: u32 },
    /// Rows that are longer than the swizzle's span.
    SwizzleSpan { bytes: u32, span: u32 },
    /// An interleaved layout of 32 bytes without the 32-byte swizzle.
    InterleaveSwizzle,
    /// A corner that does not fit in a map of this rank.
    Corner { rank: usize, dimension: usize, corner: i32 },
    /// A bounding box that contains no pixels, or ends at 2^31 or later.
    BoundingBox { dimension: usize, first: i64, last: i64 },
    /// NaN fill for elements that have no NaN.
    NanFill,
}

impl fmt::Display for MapFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Rank { rank, least, mode } => {
                write!(f, "a rank of {rank}; it is {least} to {}{mode}", limits::MAX_RANK)
            }
            Self::Lengths { rank, strides, element_strides } => {
                write!(f, "rank {rank}, but {strides} strides, {element_strides} element strides")
            }
            Self::BoxRank { rank, extents } => write!(f, "rank {rank}, but {extents} box extents"),
            Self::Corners { rank, lower, upper } => write!(
                f,
                "rank {rank} has {} dimensions of pixels, but {lower} lower and {upper} upper corners",
                rank.saturating_sub(2)
            ),
            Self::Address { address, unit } => {
                write!(f, "the address {address:#x} is not a multiple of {unit}")
            }
            Self::Extent { dimension, extent } => {
                write!(f, "extent {extent} of dimension {dimension}; it is 1 to 2^32")
            }
            Self::Stride { dimension, bytes, unit } => {
                write!(f, "stride {bytes} of dimension {dimension}; it is a multiple of {unit} below 2^40")
            }
            Self::ElementStride { dimension, stride } => {
                write!(f, "element stride {stride} of dimension {dimension}; it is 1 to 8")
            }
            Self::BoxExtent { dimension, extent } => {
                write!(f, "box extent {extent} of dimension {dimension}; it is 1 to 256")
            }
            Self::Channels { channels } => {
                write!(f, "{channels} channels of a pixel; they are 1 to {}", limits::BOX_EXTENT)
            }
            Self::Pixels { pixels } => {
                write!(f, "{pixels} pixels of a column; they are 1 to {}", limits::COLUMN_PIXELS)
            }
            Self::RowBytes { bytes } => write!(f, "rows of {bytes} bytes in the box, not a multiple of 16"),
            Self::BoxBytes { bytes } => write!(
                f,
                "a box of {bytes} bytes; {}, a multiprocessor's shared memory, is the most",
                limits::BOX_BYTES
            ),
            Self::SwizzleSpan { bytes, span } => {
                write!(f, "rows of {bytes} bytes exceed the swizzle's span of {span}")
            }
            Self::InterleaveSwizzle => {
                f.write_str("an interleaved layout of 32 bytes without a swizzle of 32")
            }
            Self::Corner { rank, corner, .. } => {
                let range = limits::corner_range(rank);
                write!(f, "a corner at {corner}; with rank {rank} it is {} to {}", range.start(), range.end())
            }
            Self::BoundingBox { dimension, first, last } if first > last => {
                write!(f, "an empty bounding box: from {first} to {last} in dimension {dimension}")
            }
            Self::BoundingBox { dimension, last, .. } => {
                write!(f, "a bounding box to {last} in dimension {dimension}; it ends below 2^31")
            }
            Self::NanFill => f.write_str("elements that are not floating-point cannot be filled with NaN"),
        }
    }
}

impl std::error::Error for MapFault {}
