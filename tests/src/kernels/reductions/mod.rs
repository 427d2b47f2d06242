//! Reductions on store: every operation with every element type that it has, at every rank, by
//! blocks that meet in the same elements, over tensors that end within tiles.

mod elements;
mod ranks;

use crate::case::Case;

/// What is checked here.
pub const CASES: [&[Case]; 2] = [elements::CASES, ranks::CASES];
