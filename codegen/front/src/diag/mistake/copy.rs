//! Copies: their coordinates, counts, hints and reductions, and fields of tensor maps.

use std::fmt;

use super::Word;
use crate::diag::Code;
use crate::diag::text::Text;
use crate::diag::wording::{coordinate, one_of};
use crate::ir::Scalar;
use crate::limits::{BULK_BYTES, im2col_offset};

/// A copy that the copy engine does not support.
#[derive(Clone, Debug)]
pub enum Copy {
    /// A bulk copy that does not start or end at a multiple of 16 bytes.
    BulkUnit { number: BulkNumber, at: Misalignment, element: Scalar },
    /// A bulk copy beyond the end of shared memory, which has `len` elements.
    BulkRange { copied: i128, at: i128, len: u64 },
    /// A coordinate so large that it would be interpreted as negative.
    Far { value: i128, dimension: usize, rank: usize },
    /// A tile whose start exceeds the range of coordinates.
    FarTile { index: i128, extent: u32, coordinate: i128 },
    /// An innermost coordinate that is not a multiple of `start` bytes.
    Inner { at: Misalignment, element: Scalar, start: u32 },
    /// A store that starts before the tensor.
    BeforeTensor { value: i32, dimension: usize, rank: usize },
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
pub enum BulkNumber {
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
pub enum Misalignment {
    /// A known value.
    Known { value: i128 },
    /// An unknown value that is always `more` above a multiple of `multiple`.
    Always { more: u64, multiple: u32 },
}

impl Copy {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::BulkUnit { number, at, element } => {
                let unit = BULK_BYTES / element.bytes();
                let message = format!("{number} must be a multiple of {unit}, but {at}");
                Text::new(Code::BulkUnit, message).help(format!(
                    "make it a multiple of {unit}: bulk copies start at and move multiples of {BULK_BYTES} \
                     bytes, which are {unit} elements of `{element}`"
                ))
            }
            Self::BulkRange { copied, at, len } => {
                let message = format!(
                    "{copied} elements from element {at} on are out of bounds: there are {len} in shared \
                     memory"
                );
                let left = i128::from(*len) - at;
                Text::new(Code::IndexRange, message).help(match left > 0 {
                    true => format!("copy at most {left} elements from element {at} on"),
                    false => format!("start below element {len}"),
                })
            }
            Self::Far { value, dimension, rank } => {
                let message = format!(
                    "the {} must be below 2^31, but it is {value}: the copy would read it as {}",
                    coordinate(*dimension, *rank),
                    *value as u32 as i32
                );
                Text::new(Code::CoordinateRange, message).help(
                    "use a view that starts closer to the element; for a coordinate before the tensor, use \
                     an `i32`",
                )
            }
            Self::FarTile { index, extent, coordinate } => {
                let message = format!(
                    "tile {index} of {extent} elements starts at {coordinate}, which is out of range"
                );
                Text::new(Code::CoordinateRange, message)
                    .help("use a view that starts closer to the tile: coordinates are -2^31 to 2^31 - 1")
            }
            Self::Inner { at, element, start } => {
                let unit = start / element.bytes();
                Text::new(Code::InnerCoordinate, inner(*at, *element, *start)).help(format!(
                    "make it a multiple of {unit}: {unit} elements of `{element}` are {start} bytes"
                ))
            }
            Self::BeforeTensor { value, dimension, rank } => {
                let message = format!(
                    "a store cannot start before the tensor, but the {} is {value}",
                    coordinate(*dimension, *rank)
                );
                Text::new(Code::StoreCoordinate, message)
                    .help("store a smaller tile from coordinate 0 on; only loads may start before the tensor")
            }
            Self::BlockTile { rank } => {
                let message = format!(
                    "`block_tile` supports at most 3 dimensions, but the map's tiles have {rank} dimensions"
                );
                Text::new(Code::BlockTile, message).help(
                    "compute the outer indices from `block_idx().z` by division, and write `tile_at([..])`",
                )
            }
            Self::Im2colOffset { value, rank } => {
                let most = im2col_offset(*rank);
                let message =
                    format!("an offset must be 0 to {most} pixels with {rank} dimensions, not {value}");
                Text::new(Code::Im2colOffset, message)
                    .help("move the bounding box by its corners, which the launch specifies")
            }
            Self::Reduction { word, element, takes } => {
                let takes = one_of(takes.iter().map(|scalar| scalar.name()));
                let message = format!("`{word}` does not support `{element}` elements");
                Text::new(Code::ReduceElement, message).help(format!("use elements of type {takes}"))
            }
            Self::Hint { word } => Text::new(
                Code::UnsupportedExpression,
                format!("`{word}` does not accept a cache hint"),
            )
            .help(format!(
                "call `{word}` on the slice itself: hints are for plain loads and stores, and for bulk \
                         copies"
            )),
            Self::DescriptorHint => Text::new(
                Code::UnsupportedExpression,
                "the prefetch of a descriptor does not accept a cache hint",
            )
            .help("call `prefetch_descriptor` on the map itself"),
            Self::SecondHint => {
                Text::new(Code::UnsupportedExpression, "an access accepts only one cache hint")
                    .help("remove one of the hints")
            }
            Self::CacheFraction(fraction) => {
                let message = format!(
                    "the fraction of a cache policy must be above 0.0 and at most 1.0, not {fraction}"
                );
                Text::new(Code::CacheFraction, message)
                    .help("use 1.0 to apply the policy to all accesses, or a smaller fraction")
            }
            Self::CopiedMap => {
                Text::new(Code::UnsupportedExpression, "only a tensor map that is a parameter can be copied")
                    .help("add a parameter of type `TensorMap<..>`, and copy that")
            }
            Self::MapAddress { element } => {
                let unit = BULK_BYTES / element.bytes();
                Text::new(Code::MapField, "the address of a tensor must be a multiple of 16 bytes").help(
                    format!(
                        "make the index a multiple of {unit}: {unit} elements of `{element}` are 16 bytes"
                    ),
                )
            }
            Self::MapExtent => {
                Text::new(Code::MapField, "a tensor must have at least one element along each dimension")
                    .help("skip the copies of a tensor without elements")
            }
            Self::MapRow { element, unit } => {
                let message = format!(
                    "stores through this map would write past the end of its rows: they write units of 16 \
                     bytes, and a row is not a multiple of {unit} elements"
                );
                Text::new(Code::MapField, message).help(format!(
                    "make rows a multiple of {unit} elements of `{element}`, or use the map only for loads"
                ))
            }
            Self::MapStride => {
                Text::new(Code::MapField, "a stride must be a multiple of 16 bytes, below 2^40")
                    .help("multiply the number of elements by the size of an element: a stride is in bytes")
            }
            Self::MapDimension { word, end } => {
                let message = match end {
                    0 | 1 => format!("`{word}` takes only dimension 0, the outermost"),
                    _ => format!("`{word}` takes a dimension from 0, the outermost, to {}", end - 1),
                };
                Text::new(Code::IndexRange, message)
                    .help("use a dimension of the map's tile; the innermost has no stride")
            }
        }
    }
}

fn inner(at: Misalignment, element: Scalar, start: u32) -> String {
    match at {
        Misalignment::Known { value } => {
            let bytes = value * i128::from(element.bytes());
            format!(
                "a copy must start at a multiple of {start} bytes, but the innermost coordinate {value} is \
                 {bytes} bytes into a row"
            )
        }
        Misalignment::Always { more, multiple } => format!(
            "a copy must start at a multiple of {start} bytes, but the innermost coordinate is always {more} \
             more than a multiple of {multiple}"
        ),
    }
}

impl fmt::Display for BulkNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("the count"),
            Self::Index { slice } => write!(f, "the index into `{slice}`"),
            Self::Shared => f.write_str("the first element in shared memory"),
        }
    }
}

impl fmt::Display for Misalignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known { value } => write!(f, "it is {value}"),
            Self::Always { more, multiple } => {
                write!(f, "it is always {more} more than a multiple of {multiple}")
            }
        }
    }
}
