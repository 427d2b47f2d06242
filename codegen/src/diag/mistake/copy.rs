//! Copies: their coordinates, counts, hints and reductions, and fields of tensor maps.

use std::fmt;

use super::Word;
use crate::diag::Code;
use crate::diag::text::Text;
use crate::ir::Scalar;
use crate::limits::{BULK_BYTES, im2col_offset};

/// A copy that the copy engine does not support.
#[derive(Clone, Debug)]
pub(crate) enum Copy {
    /// A bulk copy that does not start or end at a multiple of 16 bytes.
    BulkUnit { number: BulkNumber, at: Beside, element: Scalar },
    /// A bulk copy beyond the end of shared memory, which has `len` elements.
    BulkRange { copied: i128, at: i128, len: u64 },
    /// A coordinate so large that it would be interpreted as negative.
    Far { value: i128, dimension: usize },
    /// A tile whose start exceeds the range of coordinates.
    FarTile { index: i128, extent: u32, coordinate: i128 },
    /// An innermost coordinate that is not a multiple of `start` bytes.
    Inner { at: Beside, element: Scalar, start: u32 },
    /// A store that starts before the tensor.
    BeforeTensor { value: i32, dimension: usize },
    /// The block's tile of a map whose tiles have `rank` dimensions.
    BlockTile { rank: usize },
    /// An im2col offset that does not fit its bits.
    Im2colOffset { value: i128, rank: usize },
    /// A reduction that does not support these elements. It supports `takes`.
    Reduction { word: Word, element: Scalar, takes: Vec<Scalar> },
    /// A hint for an operation that takes none.
    Hint { word: Word },
    /// A hint for the prefetch of a descriptor.
    DescriptorHint,
    /// A second hint.
    SecondHint,
    /// A cache policy with an invalid fraction.
    CacheFraction(f64),
    /// A copy of a tensor map that is not a parameter.
    CopiedMap,
    /// A tensor whose address is not a multiple of 16 bytes.
    MapAddress { element: Scalar },
    /// A tensor without elements.
    MapExtent,
    /// A row that is not a multiple of `unit` elements, so that stores write beyond its end.
    MapRow { element: Scalar, unit: u32 },
    /// An invalid stride of a tensor map.
    MapStride,
    /// A dimension without this field in a map. The valid ones are below `end`.
    MapDimension { word: Word, end: usize },
}

/// A number of a bulk copy, in elements.
#[derive(Clone, Debug)]
pub(crate) enum BulkNumber {
    Count,
    /// Index into this slice at which it starts.
    Index {
        slice: String,
    },
    /// Element of shared memory at which it starts.
    Shared,
}

/// A number that is not a required multiple.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Beside {
    /// A known value, which is not a multiple of `unit`.
    Known { value: i128, unit: u32 },
    /// An unknown value that is always `more` above a multiple of `multiple`.
    Always { more: u64, multiple: u32 },
}

impl Copy {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::BulkUnit { number, at, element } => {
                let unit = BULK_BYTES / element.bytes();
                Text::new(Code::BulkUnit, format!("{number} {at}")).help(format!(
                    "bulk copies move whole units of {BULK_BYTES} bytes from and to multiples of {BULK_BYTES} bytes: \
                     {unit} elements of `{element}`"
                ))
            }
            Self::BulkRange { copied, at, len } => Text::new(
                Code::IndexRange,
                format!("{copied} elements from element {at} on, but there are {len} in shared memory"),
            ),
            Self::Far { value, dimension } => {
                let message = format!(
                    "the coordinate {value} in dimension {dimension} is 2^31 or more, and copies would take it for {}",
                    *value as u32 as i32
                );
                Text::new(Code::CoordinateRange, message).help(
                    "start the view nearer to the element; for a coordinate before the tensor, take an `i32`",
                )
            }
            Self::FarTile { index, extent, coordinate } => {
                let message = format!(
                    "tile {index} of {extent} elements begins at {coordinate}, which no coordinate is"
                );
                Text::new(Code::CoordinateRange, message)
                    .help("coordinates are -2^31 to 2^31 - 1: start the view nearer to the tile")
            }
            Self::Inner { at, element, start } => {
                let unit = start / element.bytes();
                Text::new(Code::InnerCoordinate, inner(*at, *element, *start)).help(format!(
                    "make it a multiple of {unit}: {unit} elements of `{element}` are {start} bytes"
                ))
            }
            Self::BeforeTensor { value, dimension } => {
                let message =
                    format!("a box to write starts at {value} in dimension {dimension}, before the tensor");
                Text::new(Code::StoreCoordinate, message)
                    .help("only loads may start before the tensor; write a smaller tile from coordinate 0 on")
            }
            Self::BlockTile { rank } => {
                let message =
                    format!("a block has a place along 3 axes, but the map's tiles have {rank} dimensions");
                Text::new(Code::BlockTile, message).help(
                    "take the indices of the outer dimensions from `block_idx().z` by division, and write \
                     `tile_at([..])`",
                )
            }
            Self::Im2colOffset { value, rank } => {
                let most = im2col_offset(*rank);
                let message =
                    format!("an offset of {value} pixels; with {rank} dimensions it is 0 to {most}");
                Text::new(Code::Im2colOffset, message)
                    .help("move the bounding box by its corners, which the launch gives")
            }
            Self::Reduction { word, element, takes } => {
                let takes: Vec<_> = takes.iter().map(|scalar| scalar.name()).collect();
                let message = format!("the copy engine has no `{word}` of elements of type `{element}`");
                Text::new(Code::ReduceElement, message).help(format!("it is for {}", takes.join(", ")))
            }
            Self::Hint { word } => Text::new(Code::UnsupportedExpression, format!("`{word}` takes no hint"))
                .help("hints are for bulk copies; call this on the slice itself"),
            Self::DescriptorHint => {
                Text::new(Code::UnsupportedExpression, "the prefetch of a descriptor takes no hint")
                    .help("call it on the map itself")
            }
            Self::SecondHint => Text::new(Code::UnsupportedExpression, "this has a hint already")
                .help("give each copy one policy"),
            Self::CacheFraction(fraction) => {
                let message = format!(
                    "a policy is for more than none and at most all of the accesses, not for {fraction}"
                );
                Text::new(Code::CacheFraction, message).help("give a fraction above 0.0 and up to 1.0")
            }
            Self::CopiedMap => Text::new(Code::UnsupportedExpression, "only a parameter is copied")
                .help("take a `TensorMap<..>` as a parameter, and copy that"),
            Self::MapAddress { element } => {
                let unit = BULK_BYTES / element.bytes();
                Text::new(Code::MapField, "a tensor begins at a multiple of 16 bytes, and this does not")
                    .help(format!(
                        "make it a multiple of {unit}: {unit} elements of `{element}` are 16 bytes"
                    ))
            }
            Self::MapExtent => {
                Text::new(Code::MapField, "a tensor has at least one element along each dimension")
                    .help("do not copy by a map of a tensor without elements")
            }
            Self::MapRow { element, unit } => {
                let message = format!(
                    "stores through this map write beyond its rows: they write whole units of 16 bytes, and a row \
                     is no multiple of {unit} elements"
                );
                Text::new(Code::MapField, message).help(format!(
                    "make rows a multiple of {unit} elements of `{element}`, or only load through the map"
                ))
            }
            Self::MapStride => Text::new(Code::MapField, "a stride is a multiple of 16 bytes, below 2^40")
                .help("a stride is in bytes: elements times the element's size"),
            Self::MapDimension { word, end } => {
                let last = end.saturating_sub(1);
                let message = format!("`{word}` is for dimensions 0 to {last}, outermost first");
                Text::new(Code::IndexRange, message)
                    .help("the innermost dimension has no stride, and a map the dimensions of its tile")
            }
        }
    }
}

fn inner(at: Beside, element: Scalar, start: u32) -> String {
    match at {
        Beside::Known { value, .. } => {
            let bytes = value * i128::from(element.bytes());
            format!(
                "the innermost coordinate {value} is {bytes} bytes into a row; copies start at multiples of {start}"
            )
        }
        Beside::Always { more, multiple } => format!(
            "the innermost coordinate is always {more} more than a multiple of {multiple}, but copies start at \
             multiples of {start} bytes"
        ),
    }
}

impl fmt::Display for BulkNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("the count"),
            Self::Index { slice } => write!(f, "the index into `{slice}`"),
            Self::Shared => f.write_str("the element of shared memory to begin at"),
        }
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known { value, unit } => write!(f, "is {value}, which is not a multiple of {unit}"),
            Self::Always { more, multiple } => {
                write!(f, "is always {more} more than a multiple of {multiple}")
            }
        }
    }
}
