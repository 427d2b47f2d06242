//! Bulk copies without a tensor map: every element size, parts of arrays and of tiles, and every
//! reduction.

mod clusters;
mod copies;
mod operations;
mod reductions;

pub use copies::bulk_tile;

use crate::case::Case;

/// The cases of this module.
pub const CASES: [&[Case]; 4] = [copies::CASES, reductions::CASES, operations::CASES, clusters::CASES];
