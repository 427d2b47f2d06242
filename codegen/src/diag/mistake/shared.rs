//! Shared memory and pipelines.

use crate::diag::lists::SHARED;
use crate::diag::text::Text;
use crate::diag::{Code, PartialType};
use crate::ir::Span;
use crate::limits::{PIPELINE_TILES, SHARED_BYTES};

/// A mistake in a kernel's shared memory.
#[derive(Clone, Debug)]
pub(crate) enum Shared {
    /// `shared()` at a point that not every thread reaches exactly once.
    InBranch,
    /// `shared()` of a type that cannot be in shared memory.
    NotHeld(PartialType),
    /// `shared()` without a type.
    Untyped,
    /// Variables that need more than the available memory, with the bytes of each.
    Budget { kernel: String, bytes: u64, shares: Vec<(String, u64)> },
    /// A variable without elements.
    Empty(String),
    /// A variable that is not used, or only initialised, at this location.
    Unused { name: String, bytes: u64, set_up: Option<Span> },
}

/// A mistake in the type of a pipeline.
#[derive(Clone, Debug)]
pub(crate) enum Pipeline {
    /// A pipeline without stages.
    NoStages,
    /// Tiles that are not a tuple.
    NoTuple,
    /// Stages with this many tiles.
    TileCount(usize),
    /// Stages that contain something other than tiles.
    NoTile(PartialType),
}

impl Shared {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::InBranch => Text::new(Code::SharedPlace, "`shared()` stands in a loop or a branch").help(
                "shared memory is laid out at compile time: declare it at the top of the kernel, and pick one of \
                 several with `Stages<_, N>`",
            ),
            Self::NotHeld(found) => {
                Text::new(Code::SharedPlace, format!("{found} does not live in shared memory"))
                    .help(format!("what can: {SHARED}"))
            }
            Self::Untyped => Text::new(Code::SharedPlace, "`shared()` is not told what to hold")
                .help("give the variable a type: `let full: Barrier = shared();`"),
            Self::Budget { kernel, bytes, shares } => {
                let message = format!(
                    "`{kernel}` needs {bytes} bytes of shared memory, but a block has at most {SHARED_BYTES}"
                );
                let shares: Vec<_> = shares.iter().map(|(name, bytes)| format!("`{name}` {bytes}")).collect();
                Text::new(Code::SharedBudget, message)
                    .help(format!("make tiles smaller or stages fewer; bytes now: {}", shares.join(", ")))
            }
            Self::Empty(name) => Text::new(Code::IndexRange, format!("`{name}` holds nothing"))
                .help("an extent of 0 has no element to index"),
            Self::Unused { name, bytes, set_up } => {
                let message = format!(
                    "nothing accesses `{name}`, which takes {bytes} bytes of every block's shared memory"
                );
                let text = Text::new(Code::UnusedShared, message)
                    .help("remove it, or give it a name that begins with `_`");
                match set_up {
                    Some(span) => text.label(*span, "all that is done with it is to initialise it"),
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
                "a pipeline has one stage at least, not 0".to_owned(),
                "take 2 or more, so that one is filled while another is read",
            ),
            Self::NoTuple => (
                "a stage's tiles are a tuple, and this is none".to_owned(),
                "write `(Tile<..>, Tile<..>)`, and `(Tile<..>,)` for one, with the comma",
            ),
            Self::TileCount(count) => (
                format!("a stage has 1 to {PIPELINE_TILES} tiles, not {count}"),
                "write `(Tile<..>,)`, or share the tiles out among several pipelines",
            ),
            Self::NoTile(found) => (
                format!("a pipeline's stages hold tiles, not {found}"),
                "keep it beside the pipeline, in `Stages<_, N>`, and index it with `slot.stage()`",
            ),
        };
        Text::new(Code::Pipeline, message).help(help)
    }
}
