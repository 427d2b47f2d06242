//! Multiplications by a warp: every type, every layout of operands, and what is done with sums.

mod integers;
mod operands;
mod rows;
mod types;

use crate::case::Case;

/// What is checked here.
pub(super) const CASES: [&[Case]; 4] = [types::CASES, operands::CASES, rows::CASES, integers::CASES];
