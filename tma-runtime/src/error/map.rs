//! Rules for tensor maps that a tensor, a tile or the options of a map break.

use super::view::along;
use crate::spec::Scalar;
use tma_model::tensor_map::MapFault;

/// The reason why a tensor and a kernel's tile cannot form a tensor map. Displays the rule;
/// [`Error`](super::Error) adds the code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// The tensor's address is not a multiple of 16 bytes.
    #[error(
        "a tensor map must start at a multiple of {unit} bytes: `{tensor}` is at {address:#x} ({} bytes \
         past one); start the view at an element whose address is a multiple of {unit}",
        .address % .unit
    )]
    MisalignedAddress {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The address of the tensor's first element.
        address: u64,
        /// The required alignment: 16, or 32 with `Interleave32`.
        unit: u64,
    },

    /// The tensor has an extent of zero or of more than 2^32.
    #[error(
        "extents of a tensor map must be 1 to 2^32: `{tensor}` has {extent} {}; {}",
        along(*.dimension, *.rank),
        if *.extent == 0 { "skip the launch for an empty tensor" } else { "split the tensor into views" }
    )]
    ExtentOutOfRange {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The tensor's rank.
        rank: usize,
        /// The extent of the dimension in elements.
        extent: u64,
    },

    /// A stride of the tensor is not a multiple of 16 bytes.
    #[error(
        "strides of a tensor map must be multiples of {unit} bytes: {} of `{tensor}` are {bytes} bytes \
         apart; pad the inner extent so that they are {} bytes apart",
        along(*.dimension, *.rank), .bytes.next_multiple_of(*.unit)
    )]
    MisalignedStride {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The tensor's rank.
        rank: usize,
        /// The stride of the dimension in bytes.
        bytes: u64,
        /// The required alignment: 16, or 32 with `Interleave32`.
        unit: u64,
    },

    /// A stride of the tensor is 2^40 bytes or more.
    #[error(
        "strides of a tensor map must be less than 2^40 bytes: {} of `{tensor}` are {bytes} bytes apart; \
         split the tensor into views",
        along(*.dimension, *.rank)
    )]
    StrideTooLarge {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The tensor's rank.
        rank: usize,
        /// The stride of the dimension in bytes: `u128`, as that of a raw view is unbounded.
        bytes: u128,
    },

    /// The innermost dimension of the tensor is not contiguous.
    #[error(
        "the innermost dimension of a tensor map must be contiguous: that of `{tensor}` has stride \
         {stride}; put the contiguous dimension last in the view's shape and strides, or copy the tensor"
    )]
    InnerStride {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The innermost stride in elements.
        stride: u64,
    },

    /// A row of a tensor that the kernel stores to ends inside a unit of the copy engine's writes.
    #[error(
        "rows that a kernel stores to must be multiples of 16 bytes: those of `{tensor}` have {bytes} \
         bytes, and the copy engine would overwrite the bytes after each row; make rows {} bytes long",
        .bytes.next_multiple_of(16)
    )]
    StoreRowBytes {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The size of the tensor's innermost dimension in bytes.
        bytes: u64,
    },

    /// Elements of a tensor that the kernel writes overlap.
    #[error(
        "elements that a kernel writes must not overlap: {first:?} and {second:?} of `{tensor}` share an \
         address; make the strides longer, or the extents smaller"
    )]
    Overlap {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The indices of one element, outermost dimension first.
        first: Vec<u64>,
        /// The indices of an element at the same address.
        second: Vec<u64>,
    },

    /// A box's elements are too far apart, or the elements of its rows are not adjacent.
    #[error(
        "{}: that of the {} of `{tensor}` is {stride}; {}",
        if *.inner {
            "the innermost element stride must be 1, except in interleaved layouts"
        } else {
            "element strides must be 1 to 8"
        },
        along(*.dimension, *.rank),
        if *.inner { "pass a stride of 1 for the innermost dimension" } else { "pass a stride of 1 to 8" }
    )]
    ElementStride {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The tensor's rank.
        rank: usize,
        /// The element stride.
        stride: u32,
        /// Whether it is the innermost dimension.
        inner: bool,
    },

    /// A strided box spans more than 256 of the tensor's elements.
    #[error(
        "a box spans at most 256 {unit} of the tensor: {tile} of `{tensor}`, {stride} apart, span {extent}; \
         reduce the tile to {most}, or reduce the stride",
        unit = if *.pixels { "pixels".to_owned() } else { along(*.dimension, *.rank) }
    )]
    StridedBox {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The tensor's rank.
        rank: usize,
        /// The tile's extent, in elements or pixels.
        tile: u32,
        /// The element stride.
        stride: u32,
        /// The extent of the box, in elements or pixels of the tensor.
        extent: u32,
        /// The maximum extent of the tile with this stride.
        most: u32,
        /// Whether these are pixels: along the innermost dimension of an interleaved layout.
        pixels: bool,
    },

    /// NaN fill was requested for an element type without NaN.
    #[error(
        "only maps of f16, bf16, f32, f64 and tf32 can fill with NaN: the elements of `{tensor}` are \
         `{element}`; remove `nan_fill` to fill with zeros"
    )]
    NanFill {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The element type of its map.
        element: Scalar,
    },

    /// A box has an extent of zero or more than 256, or a column more than 1024 pixels.
    #[error(
        "a box must have 1 to {most} {}: that of `{tensor}` has {extent}; change the tile in the kernel",
        along(*.dimension, *.rank)
    )]
    BoxExtent {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The rank of the box.
        rank: usize,
        /// The extent of the dimension in elements.
        extent: u32,
        /// The maximum extent.
        most: u32,
    },

    /// A box's innermost dimension is not a multiple of 16 bytes.
    #[error(
        "box rows must be multiples of 16 bytes: those of `{tensor}` have {bytes}; make the tile's rows \
         {} bytes long", .bytes.next_multiple_of(16)
    )]
    BoxRowBytes {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The size of the innermost dimension in bytes.
        bytes: u64,
    },

    /// A box's innermost dimension is longer than the swizzle's span.
    #[error(
        "box rows must fit the swizzle's span of {span} bytes: those of `{tensor}` have {bytes}; use {}no \
         swizzle, or a narrower tile",
        if *.span < 128 { "a wider swizzle, " } else { "" }
    )]
    BoxRowExceedsSwizzle {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The size of the innermost dimension in bytes.
        bytes: u64,
        /// The swizzle's span in bytes.
        span: u32,
    },

    /// A copy cannot move this box of an interleaved layout.
    #[error(
        "the box of an interleaved layout must have 3 to 5 dimensions, 1 slice of channels in dimension 1, \
         and innermost up to 256 whole pixels of {pixel} elements, in multiples of {unit}: that of \
         `{tensor}` has extents {extents:?}; change the tile in the kernel"
    )]
    InterleavedBox {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// Extents of the box in elements, outermost first.
        extents: &'static [u32],
        /// Number of elements in a pixel's slice of channels.
        pixel: u32,
        /// Number of elements in 16 bytes. The number of pixels must be a multiple of it.
        unit: u32,
    },

    /// The rows of a tensor in an interleaved layout do not consist of whole pixels.
    #[error(
        "rows of an interleaved layout must consist of whole pixels of {pixel} elements: the innermost \
         extent of `{tensor}` is {extent}; make it the number of pixels × {pixel}"
    )]
    PartialPixel {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The tensor's innermost extent in elements.
        extent: u64,
        /// Number of elements in a pixel's slice of channels.
        pixel: u32,
    },

    /// A box is larger than a block's shared memory can be.
    #[error(
        "a copy moves at most {most} bytes: the box of `{tensor}` has {bytes}; make the tile in the kernel \
         smaller"
    )]
    BoxBytes {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The size of the box in bytes.
        bytes: u64,
        /// The maximum that the driver accepts.
        most: u64,
    },

    /// A corner of an im2col bounding box does not fit in the bits that the map has for it.
    #[error(
        "im2col corners along dimension {dimension} must be {least} to {most}: one of `{tensor}` is \
         {corner}; start the view elsewhere, or pad less"
    )]
    Corner {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The corner, counted from the tensor's corner.
        corner: i32,
        /// The minimum for the tensor's rank.
        least: i32,
        /// The maximum for the tensor's rank.
        most: i32,
    },

    /// An im2col bounding box contains no pixel, or ends too far out.
    #[error(
        "an im2col bounding box must hold a pixel and end below 2^31: along dimension {dimension}, that of \
         `{tensor}` goes from pixel {first} to pixel {last}; count the lower corner from the tensor's \
         first pixel, and the upper from its last"
    )]
    BoundingBox {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The first pixel.
        first: i64,
        /// The last pixel.
        last: i64,
    },

    /// The bounding box of a tensor that a kernel writes in columns extends beyond the tensor.
    #[error(
        "the bounding box of an im2col store must be within the tensor: along dimension {dimension}, the \
         corners of `{tensor}` are {lower} and {upper}; make the lower 0 or more, and the upper 0 or less"
    )]
    StoreCorner {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The lower corner.
        lower: i32,
        /// The upper corner.
        upper: i32,
    },

    /// The parameters computed from tensor and tile break a rule that was already checked.
    #[error(
        "internal error: the tensor map of `{tensor}` has {fault}; please report this bug of tma-runtime"
    )]
    Internal {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The rule.
        fault: MapFault,
    },
}
