//! Shared memory and pipelines.

use crate::diag::lists::SHARED;
use crate::diag::mistake::Word;
use crate::diag::text::Text;
use crate::diag::{Code, PartialType};
use crate::ir::{Span, Type};
use crate::limits::{PIPELINE_TILES, SHARED_BYTES};

/// The types of shared variables that hold nothing but data.
const DATA: &str = "a tile, a `SharedArray`, or `Stages` of one";

/// A mistake in a kernel's shared memory.
#[derive(Clone, Debug)]
pub enum Shared {
    /// `shared()` or `reuse()` at a point that not every thread reaches exactly once, and the
    /// call that contains it, if only that is at such a point.
    InBranch { word: Word, call: Option<Span> },
    /// `shared()` of a type that cannot be in shared memory.
    NotSharable(PartialType),
    /// `shared()` or `reuse()` without a type.
    Untyped(Word),
    /// `reuse()` of a type that has more than data.
    Reusing(PartialType),
    /// `reuse()` of the memory of something that has more than data, or is not in shared memory.
    Reused(PartialType),
    /// `reuse()` of the memory of a stage, or of one of several objects.
    ReusedPart,
    /// A variable that needs more bytes than the objects whose memory it reuses have.
    ReusedBytes { name: String, bytes: u64, of: String, has: u64 },
    /// Variables that need more than the available memory, with the bytes of each.
    Budget { kernel: String, bytes: u64, shares: Vec<(String, u64)> },
    /// A variable without elements.
    Empty(String),
    /// A variable that is not used, or only initialised, at this location.
    Unused { name: String, bytes: u64, set_up: Option<Span> },
}

/// A mistake in the type of a pipeline.
#[derive(Clone, Debug)]
pub enum Pipeline {
    /// A pipeline without stages.
    NoStages,
    /// Tiles that are not a tuple.
    NoTuple(PartialType),
    /// Stages with this many tiles.
    TileCount(usize),
    /// Stages that contain something other than tiles.
    NoTile(PartialType),
}

impl Shared {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::InBranch { word, call } => {
                let text =
                    Text::new(Code::MisplacedShared, format!("`{word}()` cannot be in a loop or a branch"));
                match call {
                    Some(call) => text.label(*call, "called in a loop or a branch here").help(
                        "declare it in the kernel, and pass it as a parameter: shared memory is laid out at \
                         compile time",
                    ),
                    None => text.help(
                        "declare it at the top of the kernel, and select one of several with `Stages<_, N>`: \
                         shared memory is laid out at compile time",
                    ),
                }
            }
            Self::NotSharable(found) => {
                Text::new(Code::MisplacedShared, format!("{found} cannot be in shared memory"))
                    .help(format!("use one of {SHARED}"))
            }
            Self::Untyped(word) => Text::new(Code::MisplacedShared, format!("`{word}()` needs a type"))
                .help("annotate the variable: `let full: Barrier = shared();`"),
            Self::Reusing(found) => Text::new(Code::Reuse, format!("{found} cannot be in reused memory"))
                .help(format!("use {DATA}; give barriers and pipelines memory of their own, by `shared()`")),
            Self::Reused(found) => Text::new(Code::Reuse, format!("the memory of {found} cannot be reused"))
                .help(format!("reuse the memory of {DATA}, or of the tiles of a pipeline")),
            Self::ReusedPart => Text::new(Code::Reuse, "only the memory of a whole variable can be reused")
                .help("pass the variable: `reuse(tiles)` instead of `reuse(tiles[0])`"),
            Self::ReusedBytes { name, bytes, of, has } => {
                let message = format!("`{name}` needs {bytes} bytes, but `{of}` has {has}");
                Text::new(Code::Reuse, message).help(
                    "use a smaller type, or let the larger of the two have memory of its own, by `shared()`",
                )
            }
            Self::Budget { kernel, bytes, shares } => {
                let message = format!(
                    "`{kernel}` needs {bytes} bytes of shared memory, but a block has at most {SHARED_BYTES}"
                );
                let shares: Vec<_> = shares.iter().map(|(name, bytes)| format!("`{name}` {bytes}")).collect();
                let shares = shares.join(", ");
                Text::new(Code::SharedBudget, message)
                    .help(format!("use smaller tiles or fewer stages; bytes of each variable: {shares}"))
            }
            Self::Empty(name) => Text::new(Code::IndexRange, format!("`{name}` has no elements"))
                .help("use extents of at least 1"),
            Self::Unused { name, bytes, set_up } => {
                let message = match bytes {
                    0 => format!("unused shared memory: `{name}`"),
                    _ => format!(
                        "unused shared memory: `{name}`, which takes {bytes} bytes of every block's shared \
                         memory"
                    ),
                };
                let text =
                    Text::new(Code::UnusedShared, message).help("remove it, or prefix its name with `_`");
                match set_up {
                    Some(span) => text.label(*span, "initialised here, and never used"),
                    None => text,
                }
            }
        }
    }
}

impl Pipeline {
    pub(super) fn text(&self) -> Text {
        let (message, help) = match self {
            Self::NoStages => (
                "a pipeline must have at least one stage, not 0".to_owned(),
                "use 2 or more, so that one stage is filled while another is read".to_owned(),
            ),
            Self::NoTuple(found) => (
                "the tiles of a stage must be a tuple".to_owned(),
                match found {
                    PartialType::Known(tile @ Type::Tile(_)) => {
                        format!("write `({tile},)`, with the comma, for one tile")
                    }
                    PartialType::Known(_)
                    | PartialType::Integer
                    | PartialType::Float
                    | PartialType::Unknown
                    | PartialType::Array(..)
                    | PartialType::Tuple(_) => {
                        "write `(Tile<..>, Tile<..>)`, or `(Tile<..>,)`, with the comma, for one tile"
                            .to_owned()
                    }
                },
            ),
            Self::TileCount(count) => (
                format!("a stage must have 1 to {PIPELINE_TILES} tiles, not {count}"),
                match count {
                    0 => "write `(Tile<..>,)` for one tile".to_owned(),
                    _ => "divide the tiles among several pipelines".to_owned(),
                },
            ),
            Self::NoTile(found) => (
                format!("the stages of a pipeline must hold tiles, not {found}"),
                "declare it next to the pipeline as `Stages<_, N>`, and index it with `slot.stage()`"
                    .to_owned(),
            ),
        };
        Text::new(Code::Pipeline, message).help(help)
    }
}
