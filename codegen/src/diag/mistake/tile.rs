//! Tiles, and vectors of their elements.

use std::fmt;

use tma_model::tile::TileFault;

use super::Beside;
use crate::diag::Code;
use crate::diag::text::Text;
use crate::ir::{Scalar, Span, TileSwizzle, TileType, Type};
use crate::limits::{BOX_BYTES, BOX_EXTENT, BOX_INNER_BYTES, VECTOR_BYTES};

/// A tile or a vector that cannot be moved.
#[derive(Clone, Debug)]
pub(crate) enum Tile {
    /// A map whose box the copy engine does not support.
    Box { map: String, tile: TileType, fault: TileFault },
    /// An interleaved tile of a map that does not support it.
    Interleaved { swizzle: TileSwizzle, map: Type },
    /// A tile that the map does not move. `ty` is the location of the map's type.
    NotMoved { map: String, moved: TileType, found: TileType, ty: Span },
    /// A tile that cannot be divided into bands of this many rows.
    Band { tile: TileType, rows: u32 },
    /// A tile that cannot be divided into parts of this many columns.
    Columns { tile: TileType, columns: u32 },
    /// A tile that cannot be divided into matrices.
    Batch(TileType),
    /// A part whose size is not a multiple of the alignment of tiles.
    PartBytes { part: TileType, bytes: u64, alignment: u64 },
    /// A vector of an unsupported length. `lengths` are the supported ones.
    VectorLength { element: Scalar, len: u32, lengths: Vec<u32> },
    /// Rows of a tile that cannot be divided into vectors.
    VectorRows { tile: TileType, len: u32 },
    /// An array that cannot be divided into vectors.
    VectorArray { elements: u32, len: u32 },
    /// A vector that does not start at a multiple of its length.
    VectorStart { number: VectorNumber, at: Beside, len: u32 },
}

/// A number that determines the start of a vector.
#[derive(Clone, Debug)]
pub(crate) enum VectorNumber {
    Index,
    /// Index into this slice.
    GlobalIndex {
        slice: String,
    },
    Coordinate,
}

impl Tile {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Box { map, tile, fault } => box_fault(*fault, tile, map),
            Self::Interleaved { swizzle, map } => {
                let message =
                    format!("`{}` is for the tile of a `TensorMap`, not of `{map}`", swizzle.name());
                Text::new(Code::Interleave, message).help(
                    "take `NoSwizzle` or a swizzle for columns of pixels, and for maps that a kernel makes",
                )
            }
            Self::NotMoved { map, moved, found, ty } => Text::new(
                Code::TileMismatch,
                format!("`{map}` moves a `{moved}`, but this is a `{found}`"),
            )
            .label(*ty, format!("the type of `{map}` says what it moves"))
            .help(format!(
                "make both one type: a `type` alias in a `#[tma_module]` keeps `{map}` and the tile alike"
            )),
            Self::Band { tile, rows } => {
                Text::new(Code::TilePart, format!("a `{tile}` has no bands of {rows} rows"))
                    .help("take a tile of two dimensions, and a number of rows that divides its own")
            }
            Self::Columns { tile, columns } => {
                let message = format!("the columns of a `{tile}` are not divided into parts of {columns}");
                Text::new(Code::TilePart, message).help(columns_of(tile))
            }
            Self::Batch(tile) => {
                let message = format!("a `{tile}` is not divided into matrices");
                Text::new(Code::TilePart, message).help(match tile.rank() {
                    3 => {
                        "a panel has all matrices of the batch: take a batch of 1, or rows no longer than a panel"
                    }
                    _ => "take a tile of three dimensions, of which the first counts matrices",
                })
            }
            Self::PartBytes { part, bytes, alignment } => {
                let message =
                    format!("a `{part}` has {bytes} bytes, but its tiles begin at multiples of {alignment}");
                Text::new(Code::TilePart, message).help("take 8 rows or a multiple of them")
            }
            Self::VectorLength { element, len, lengths } => {
                let lengths: Vec<_> = lengths.iter().map(ToString::to_string).collect();
                let message = format!("there is no vector of {len} elements of `{element}`");
                Text::new(Code::VectorAccess, message).help(format!(
                    "a vector has at most {VECTOR_BYTES} bytes: {} elements of `{element}`",
                    lengths.join(" or ")
                ))
            }
            Self::VectorRows { tile, len } => {
                let message = format!(
                    "rows of {} elements are no vectors of {len}: the last one would not be whole, or the next row's \
                     not aligned",
                    tile.inner_extent()
                );
                Text::new(Code::VectorAccess, message)
                    .help(format!("make the innermost extent of `{tile}` a multiple of {len}"))
            }
            Self::VectorArray { elements, len } => {
                let message = format!(
                    "an array of {elements} elements is no vectors of {len}: the last one would not be whole"
                );
                Text::new(Code::VectorAccess, message)
                    .help(format!("make the length of the array a multiple of {len}"))
            }
            Self::VectorStart { number, at, len } => Text::new(Code::VectorAccess, format!("{number} {at}"))
                .help(format!(
                    "a vector of {len} elements begins at a multiple of {len}, counted in elements"
                )),
        }
    }
}

impl fmt::Display for VectorNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index => f.write_str("the index"),
            Self::GlobalIndex { slice } => write!(f, "the index into `{slice}`"),
            Self::Coordinate => f.write_str("the innermost coordinate"),
        }
    }
}

/// Suggests how to divide the columns of a tile.
fn columns_of(tile: &TileType) -> String {
    let panel = tile.panel().inner_extent();
    if tile.rank() != 2 {
        "take a tile of two dimensions; `tile.batch(i)` is a matrix of a batch".to_owned()
    } else if tile.panels() > 1 {
        format!("a part is one or more of its panels, which have {panel} columns each")
    } else {
        format!(
            "its rows are not divided into panels; of a tile with `Swizzle128` panels have {} columns each",
            128 / tile.element.bytes()
        )
    }
}

/// Returns the text for a fault of the tile of map `name`.
fn box_fault(fault: TileFault, tile: &TileType, name: &str) -> Text {
    let element = tile.element.bytes();
    let layout = tile.swizzle.name();
    match fault {
        TileFault::Element => Text::new(
            Code::ElementType,
            format!("a tensor map has no elements of type `{}`", tile.element),
        )
        .help(
            "tensor maps hold i8, u8, u16, u32, i32, u64, i64, f16, bf16, f32, f64, tf32, e4m3 and e5m2; use the \
                     unsigned type of the same size",
        ),
        TileFault::Extent { dimension, extent, most } => {
            let message = format!(
                "the box of `{name}` has extent {extent} in dimension {dimension}; it must be 1 to {most}"
            );
            Text::new(Code::BoxExtent, message).help("move a larger tile by several copies into parts of it")
        }
        TileFault::Bytes { bytes } => {
            let message = format!("the box of `{name}` has {bytes} bytes; a copy moves at most {BOX_BYTES}");
            Text::new(Code::BoxExtent, message).help("move a larger tile by several copies into parts of it")
        }
        TileFault::RowBytes { bytes } => {
            let message = format!(
                "the innermost extent of `{name}` is {} × {element} bytes = {bytes} bytes; it must be a multiple of \
                 {BOX_INNER_BYTES}",
                tile.inner_extent()
            );
            let multiple = BOX_INNER_BYTES / u64::from(element);
            Text::new(Code::BoxInnerBytes, message)
                .help(format!("make the innermost extent a multiple of {multiple}"))
        }
        TileFault::SwizzleSpan { bytes, span } => {
            let wider = if tile.swizzle == TileSwizzle::B128 { "no swizzle" } else { "a wider swizzle" };
            let message = format!(
                "the innermost extent of `{name}` is {bytes} bytes, but `{layout}` takes rows of at most {span}"
            );
            Text::new(Code::SwizzleSpan, message).help(format!(
                "make the innermost extent {0} or less, or a multiple of {0}, or take {wider}",
                span / element
            ))
        }
        TileFault::PanelRows { rows } => {
            let message = format!(
                "the box of `{name}` lies in {} panels of {rows} rows; in several there is a multiple of 8 rows",
                tile.panels()
            );
            let more = rows.next_multiple_of(8);
            Text::new(Code::PanelRows, message)
                .help(format!("make it {more} rows, or no wider than one panel"))
        }
        TileFault::InterleavedRank => {
            let rank = tile.rank();
            let message = format!("`{layout}` is for 3 to 5 dimensions, but the box of `{name}` has {rank}");
            Text::new(Code::Interleave, message).help(
                "the dimensions are images, slices of channels, rows of pixels, and pixels times their channels",
            )
        }
        TileFault::Slices { slices } => {
            let message = format!(
                "one copy moves 1 slice of channels, but the box of `{name}` has {slices} in dimension 1"
            );
            Text::new(Code::Interleave, message).help("make that extent 1, and move slices by a copy each")
        }
        TileFault::Pixels { inner, pixel, unit } => {
            let message = format!(
                "the innermost extent of `{name}` is {inner}; a pixel has {pixel} elements ({} bytes)",
                pixel * element
            );
            Text::new(Code::Interleave, message).help(format!(
                "take a multiple of {unit} pixels, at most {BOX_EXTENT}: {} to {} elements",
                pixel * unit,
                pixel * BOX_EXTENT
            ))
        }
    }
}
