//! Layouts as text and as drawings: tiles in shared memory, operands of tensor cores, and the
//! registers of a warpgroup.
//!
//! [`TileLayout`] says where the elements of a tile are. From it come the other two:
//! [`TileLayout::operand`], what each instruction reads of the tile, and
//! [`TileLayout::accumulator`], [`TileLayout::fragment`] and [`TileLayout::metadata`], which thread
//! holds what of a matrix in registers. Each computes a place, prints itself as text with `{}`, and
//! draws itself with `svg()`. All follow from [`tma_model`], as the compiler's code and the
//! simulator do.

mod drawing;
mod fragment;
mod metadata;
mod operand;
mod tile;

pub use fragment::FragmentLayout;
pub use metadata::MetadataLayout;
pub use operand::OperandLayout;
pub use tile::TileLayout;
pub use tma_model::mma::{Descriptor, Major, Place};

/// Extents with crosses between them: `64 x 16`.
fn crossed(extents: &[u32]) -> String {
    extents.iter().map(u32::to_string).collect::<Vec<_>>().join(" x ")
}
