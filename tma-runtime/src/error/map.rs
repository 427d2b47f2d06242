//! Rules of tensor maps that a tensor, a tile or the options of a map break.

use crate::spec::Scalar;
use tma_model::tensor_map::MapFault;

/// Why no tensor map can be made of a tensor and a kernel's tile. Displays the rule;
/// [`Error`](super::Error) adds the code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// A tensor map's tensor does not start at a multiple of 16 bytes.
    #[error(
        "a tensor map's address must be a multiple of {unit} bytes, but `{tensor}` is at \
         {address:#x} ({} bytes past one): start the view at an element whose address is a \
         multiple of {unit}", .address % .unit
    )]
    MisalignedAddress {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The address of the tensor's first element.
        address: u64,
        /// The required alignment: 16, or 32 with `Interleave32`.
        unit: u64,
    },

    /// A tensor map's tensor has an extent of zero or more than 2^32.
    #[error(
        "each extent of a tensor map must be between 1 and 2^32, but dimension {dimension} of \
         `{tensor}` has {extent} elements: {}",
        if *.extent == 0 { "do not launch on a tensor without elements" } else { "split the tensor into views" }
    )]
    ExtentOutOfRange {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// Its extent in elements.
        extent: u64,
    },

    /// A tensor map's stride is not a multiple of 16 bytes.
    #[error(
        "each stride of a tensor map but the innermost must be a multiple of {unit} bytes, but \
         stepping along dimension {dimension} of `{tensor}` takes {bytes} bytes: pad the inner \
         extent, so that the step takes {} bytes", .bytes.next_multiple_of(*.unit)
    )]
    MisalignedStride {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// Its stride in bytes.
        bytes: u64,
        /// The required alignment: 16, or 32 with `Interleave32`.
        unit: u64,
    },

    /// A tensor map's stride is 2^40 bytes or more.
    #[error(
        "each stride of a tensor map must be less than 2^40 bytes, but stepping along dimension \
         {dimension} of `{tensor}` takes {bytes} bytes: split the tensor into views"
    )]
    StrideTooLarge {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// Its stride in bytes; `u128`, as a raw view may have any.
        bytes: u128,
    },

    /// A tensor map's innermost dimension is not contiguous.
    #[error(
        "the innermost dimension of a tensor map must have stride 1, but that of `{tensor}` has \
         stride {stride}: put the contiguous dimension last in the view's shape and strides, or \
         copy the tensor"
    )]
    InnerStride {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The innermost stride in elements.
        stride: u64,
    },

    /// A tensor that a kernel stores to ends inside one of the units that the copy engine writes.
    #[error(
        "the copy engine stores whole units of 16 bytes, but the rows of `{tensor}` have {bytes} \
         bytes: what follows each row would be overwritten. Make rows a multiple of 16 bytes long"
    )]
    StoreRowBytes {
        /// The kernel's parameter.
        tensor: &'static str,
        /// Bytes of the tensor's innermost dimension.
        bytes: u64,
    },

    /// Elements of a tensor that a kernel writes overlap.
    #[error(
        "the kernel writes `{tensor}`, so each of its elements needs a place of its own, but \
         {first:?} and {second:?} share one: make the strides longer, or the extents smaller"
    )]
    Overlap {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The indices of one element, outermost dimension first.
        first: Vec<u64>,
        /// The indices of another.
        second: Vec<u64>,
    },

    /// A box's elements are too far apart, or those of its rows are not neighbours.
    #[error(
        "the elements of a box are 1 to 8 apart along each dimension, and neighbours along the \
         innermost unless they are pixels of an interleaved layout, but those of `{tensor}` are \
         {stride} apart along dimension {dimension}: {}",
        if *.inner { "pass a stride of 1 for the innermost dimension" } else { "pass a stride of 1 to 8" }
    )]
    ElementStride {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The element stride.
        stride: u32,
        /// Whether it is the innermost dimension.
        inner: bool,
    },

    /// A strided box spans more than 256 of the tensor's elements.
    #[error(
        "a box spans at most 256 elements of the tensor along each dimension, but {tile} elements \
         of `{tensor}`, {stride} apart along dimension {dimension}, span {extent}: make the tile \
         {} or the stride less", 255 / .stride + 1
    )]
    StridedBox {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The tile's extent in elements.
        tile: u32,
        /// The element stride.
        stride: u32,
        /// What the box would span, in elements of the tensor.
        extent: u32,
    },

    /// NaN fill was requested for elements that have no NaN.
    #[error(
        "maps of f16, bf16, f32, f64 and tf32 can fill what is outside with NaN, but the elements \
         of `{tensor}` are `{element}`: leave `nan_fill` out, which fills with zeros"
    )]
    NanFill {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The element type of its map.
        element: Scalar,
    },

    /// A box has an extent of zero or more than 256, or a column more than 1024 pixels.
    #[error(
        "this extent of a box must be between 1 and {most}, but dimension {dimension} of the box \
         of `{tensor}` has {extent} elements: change the tile in the kernel"
    )]
    BoxExtent {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// Its extent in elements.
        extent: u32,
        /// The maximum.
        most: u32,
    },

    /// A box's innermost dimension is not a multiple of 16 bytes.
    #[error(
        "the innermost dimension of a box must be a multiple of 16 bytes, but that of `{tensor}` \
         has {bytes}: make the tile's rows {} bytes long", .bytes.next_multiple_of(16)
    )]
    BoxRowBytes {
        /// The kernel's parameter.
        tensor: &'static str,
        /// Bytes of the innermost dimension.
        bytes: u64,
    },

    /// A box's innermost dimension is longer than the swizzle's span.
    #[error(
        "the innermost dimension of a box must not be longer than the swizzle's span of {span} \
         bytes, but that of `{tensor}` has {bytes}: use a wider swizzle, none, or a narrower tile"
    )]
    BoxRowExceedsSwizzle {
        /// The kernel's parameter.
        tensor: &'static str,
        /// Bytes of the innermost dimension.
        bytes: u64,
        /// The swizzle's span in bytes.
        span: u32,
    },

    /// A copy cannot move this box of an interleaved layout.
    #[error(
        "the box of an interleaved layout has 3 to 5 dimensions, 1 slice of channels in dimension \
         1, and innermost up to 256 whole pixels of {pixel} elements, in multiples of {unit}; that \
         of `{tensor}` has extents {extents:?}: change the tile in the kernel"
    )]
    InterleavedBox {
        /// The kernel's parameter.
        tensor: &'static str,
        /// Extents of the box in elements, outermost first.
        extents: &'static [u32],
        /// Elements of a pixel's slice of channels.
        pixel: u32,
        /// Elements in 16 bytes, which the pixels must be a multiple of.
        unit: u32,
    },

    /// The rows of a tensor in an interleaved layout do not consist of whole pixels.
    #[error(
        "a row of an interleaved layout is of pixels with {pixel} elements each, but the innermost \
         extent of `{tensor}` is {extent}: make it pixels × {pixel}"
    )]
    PartialPixel {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The tensor's innermost extent in elements.
        extent: u64,
        /// Elements of a pixel's slice of channels.
        pixel: u32,
    },

    /// A box is larger than the shared memory of any block.
    #[error(
        "a copy moves at most {most} bytes, but the box of `{tensor}` has {bytes}: make the tile \
         in the kernel smaller"
    )]
    BoxBytes {
        /// The kernel's parameter.
        tensor: &'static str,
        /// Bytes of the box.
        bytes: u64,
        /// The maximum that the driver accepts.
        most: u64,
    },

    /// A corner of an im2col bounding box does not fit the map's bits.
    #[error(
        "the corners of `{tensor}` along dimension {dimension} must be from {least} to {most}, but \
         one is {corner}: start the view elsewhere, or pad less"
    )]
    Corner {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The corner, counted from the tensor's.
        corner: i32,
        /// The minimum for the tensor's rank.
        least: i32,
        /// The greatest.
        most: i32,
    },

    /// An im2col bounding box holds no pixel, or ends too far out.
    #[error(
        "the bounding box of `{tensor}` along dimension {dimension} goes from pixel {first} to \
         pixel {last}, but it must hold a pixel and end below 2^31: the upper corner is counted \
         from the tensor's last pixel, the lower from its first"
    )]
    BoundingBox {
        /// The kernel's parameter.
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
        "the kernel writes the columns of `{tensor}`, so its bounding box must lie within the \
         tensor, but along dimension {dimension} the corners are {lower} and {upper}: make the \
         lower one 0 or more, the upper one 0 or less"
    )]
    StoreCorner {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The dimension, counted from the outermost.
        dimension: usize,
        /// The lower corner.
        lower: i32,
        /// The upper corner.
        upper: i32,
    },

    /// The parameters computed from tensor and tile break a rule that was checked before.
    #[error("the tensor map of `{tensor}` has {fault}: this is a mistake of this library, please report it")]
    Internal {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The rule.
        fault: MapFault,
    },
}
