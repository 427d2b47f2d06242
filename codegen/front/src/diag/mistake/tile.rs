//! Tiles, and vectors of their elements.

use std::fmt;

use tma_model::tile::TileFault;

use super::Misalignment;
use crate::diag::Code;
use crate::diag::text::Text;
use crate::diag::wording::{axis, one_of};
use crate::ir::{Scalar, Span, TileSwizzle, TileType, Type};
use crate::limits::{BOX_BYTES, BOX_EXTENT, BOX_INNER_BYTES, VECTOR_BYTES};

/// A tile or a vector that cannot be moved.
#[derive(Clone, Debug)]
pub enum Tile {
    /// A map whose box the copy engine does not support. `others` are maps with the same fault.
    Box { map: String, tile: TileType, fault: TileFault, others: Vec<(String, Span)> },
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
    VectorStart { number: VectorNumber, at: Misalignment, len: u32 },
}

/// A number that determines the start of a vector.
#[derive(Clone, Debug)]
pub enum VectorNumber {
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
            Self::Box { map, tile, fault, others } => {
                let text = box_fault(*fault, tile, map);
                others.iter().fold(text, |text, (name, span)| {
                    text.label(*span, format!("`{name}` breaks the same rule"))
                })
            }
            Self::Interleaved { swizzle, map } => {
                let message =
                    format!("`{}` is supported only in a `TensorMap`, not in `{map}`", swizzle.name());
                Text::new(Code::Interleave, message)
                    .help("use `NoSwizzle` or a swizzle in an im2col map, and in maps that a kernel creates")
            }
            Self::NotMoved { map, moved, found, ty } => Text::new(
                Code::TileMismatch,
                format!("`{map}` moves a `{moved}`, but this tile is a `{found}`"),
            )
            .label(*ty, format!("the tile of `{map}` is specified here"))
            .help(format!(
                "use the same type in both, such as a `type` alias in a `#[tma_module]` for `{map}` and the \
                 tile"
            )),
            Self::Band { tile, rows } => {
                Text::new(Code::TilePart, format!("a `{tile}` cannot be divided into bands of {rows} rows"))
                    .help(
                        "use a tile of two dimensions, or of more with rows no longer than a panel, and a \
                         divisor of its number of rows",
                    )
            }
            Self::Columns { tile, columns } => {
                let message = format!("a `{tile}` cannot be divided into parts of {columns} columns");
                Text::new(Code::TilePart, message).help(columns_of(tile))
            }
            Self::Batch(tile) => {
                let message = format!("a `{tile}` cannot be divided into matrices");
                Text::new(Code::TilePart, message).help(match tile.rank() {
                    3 => {
                        "use a batch of 1, or rows no longer than a panel: each panel holds all matrices of \
                         the batch"
                    }
                    _ => "use a tile of three dimensions, of which the first counts the matrices",
                })
            }
            Self::PartBytes { part, bytes, alignment } => {
                let message = format!(
                    "a part of a tile must start at a multiple of {alignment} bytes, but a `{part}` has \
                     {bytes} bytes"
                );
                Text::new(Code::TilePart, message).help("use a multiple of 8 rows")
            }
            Self::VectorLength { element, len, lengths } => {
                let message = format!("a vector of `{element}` cannot have {len} elements");
                Text::new(Code::VectorAccess, message).help(format!(
                    "use {} elements of `{element}`: a vector has at most {VECTOR_BYTES} bytes",
                    one_of(lengths)
                ))
            }
            Self::VectorRows { tile, len } => {
                let message = format!(
                    "rows of {} elements cannot be divided into vectors of {len}: the last one would be \
                     incomplete, or those of the next row misaligned",
                    tile.inner_extent()
                );
                Text::new(Code::VectorAccess, message)
                    .help(format!("make the innermost extent of `{tile}` a multiple of {len}"))
            }
            Self::VectorArray { elements, len } => {
                let message = format!(
                    "an array of {elements} elements cannot be divided into vectors of {len}: the last one \
                     would be incomplete"
                );
                Text::new(Code::VectorAccess, message)
                    .help(format!("make the length of the array a multiple of {len}"))
            }
            Self::VectorStart { number, at, len } => {
                let message =
                    format!("{number} of a vector of {len} elements must be a multiple of {len}, but {at}");
                Text::new(Code::VectorAccess, message).help(format!(
                    "start the vector at a multiple of {len}, counted in elements and not in vectors"
                ))
            }
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
        "use a tile of two dimensions; `tile.batch(i)` selects a matrix of a batch".to_owned()
    } else if tile.panels() > 1 {
        format!("use one or more of its panels, which have {panel} columns each")
    } else {
        format!(
            "use a tile whose rows are divided into panels; with `Swizzle128`, a panel has {} columns",
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
            format!("a tensor map cannot have `{}` elements", tile.element),
        )
        .help(
            "use the unsigned type of the same size; tensor maps support i8, u8, u16, u32, i32, u64, i64, \
             f16, bf16, f32, f64, tf32, e4m3 and e5m2",
        ),
        TileFault::Extent { dimension, extent, most } => {
            let message = match axis(dimension, tile.rank()) {
                Some(axis) => format!("the box of `{name}` must have 1 to {most} {axis}s, not {extent}"),
                None => format!(
                    "the extent of the box of `{name}` in dimension {dimension} must be 1 to {most}, not \
                     {extent}"
                ),
            };
            Text::new(Code::BoxExtent, message).help(match extent {
                0 => "use an extent of at least 1",
                _ => "move a larger tile with several copies into parts of it",
            })
        }
        TileFault::Bytes { bytes } => {
            let message =
                format!("a copy moves at most {BOX_BYTES} bytes, but the box of `{name}` has {bytes}");
            Text::new(Code::BoxExtent, message)
                .help("move a larger tile with several copies into parts of it")
        }
        TileFault::RowBytes { bytes } => {
            let message = format!(
                "the innermost extent of `{name}` must be a multiple of {BOX_INNER_BYTES} bytes, but it is \
                 {} × {element} bytes = {bytes} bytes",
                tile.inner_extent()
            );
            let multiple = BOX_INNER_BYTES / u64::from(element);
            Text::new(Code::BoxInnerBytes, message)
                .help(format!("make the innermost extent a multiple of {multiple} elements"))
        }
        TileFault::SwizzleSpan { bytes, span } => {
            let wider = if tile.swizzle == TileSwizzle::B128 { "no swizzle" } else { "a wider swizzle" };
            let message = format!(
                "`{layout}` supports rows of at most {span} bytes, but those of `{name}` have {bytes}"
            );
            Text::new(Code::SwizzleSpan, message).help(format!(
                "make the innermost extent {0} elements or less, or a multiple of {0}, or use {wider}",
                span / element
            ))
        }
        TileFault::PanelRows { rows } => {
            let message = format!(
                "a box of several panels must have a multiple of 8 rows, but that of `{name}` has {} panels \
                 of {rows} rows",
                tile.panels()
            );
            let more = rows.next_multiple_of(8);
            Text::new(Code::PanelRows, message)
                .help(format!("use {more} rows, or a box no wider than one panel"))
        }
        TileFault::InterleavedRank => {
            let rank = tile.rank();
            let message =
                format!("`{layout}` requires 3 to 5 dimensions, but the box of `{name}` has {rank}");
            Text::new(Code::Interleave, message).help(
                "use the dimensions images, slices of channels, rows of pixels, and pixels times their \
                 channels",
            )
        }
        TileFault::Slices { slices } => {
            let message = format!(
                "a copy moves one slice of channels, but the box of `{name}` has {slices} in dimension 1"
            );
            Text::new(Code::Interleave, message)
                .help("set that extent to 1, and move each slice with a copy of its own")
        }
        TileFault::Pixels { inner, pixel, unit } => {
            let message = format!(
                "the innermost extent of `{name}` must be a multiple of {unit} pixels of {pixel} elements \
                 ({} bytes), but it is {inner}",
                pixel * element
            );
            Text::new(Code::Interleave, message).help(format!(
                "use a multiple of {unit} pixels, at most {BOX_EXTENT}: {} to {} elements",
                pixel * unit,
                pixel * BOX_EXTENT
            ))
        }
    }
}
