//! Matmuls by one warp: every type, every layout of operands, and every use of sums.

mod integers;
mod narrow;
mod operands;
mod rows;
mod types;

use crate::case::Case;

/// The cases of this module.
pub(super) const CASES: [&[Case]; 5] =
    [types::CASES, operands::CASES, rows::CASES, integers::CASES, narrow::CASES];
