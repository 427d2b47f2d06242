//! Layouts as text and as drawings: tiles in shared memory, operands of tensor cores, and matrices
//! in the registers of a warpgroup.
//!
//! [`TileLayout`] gives the offsets of a tile's elements. The others are derived from it:
//! [`TileLayout::operand`] shows what each instruction reads of the tile, and
//! [`TileLayout::accumulator`], [`TileLayout::fragment`] and [`TileLayout::metadata`] show which
//! thread holds which part of a matrix in registers. Each computes positions, prints itself as text
//! with `{}`, and draws itself with `svg()`. All of them are computed from [`tma_model`], like the
//! compiler's code and the simulator.

mod drawing;
mod fragment;
mod metadata;
mod operand;
mod tile;

pub use fragment::FragmentLayout;
pub use metadata::MetadataLayout;
pub use operand::OperandLayout;
pub use tile::TileLayout;
pub use tma_model::mma::{Descriptor, FragmentSlot as Place, Major};

/// Formats extents with crosses between them: `64 x 16`.
fn crossed(extents: &[u32]) -> String {
    extents.iter().map(u32::to_string).collect::<Vec<_>>().join(" x ")
}
