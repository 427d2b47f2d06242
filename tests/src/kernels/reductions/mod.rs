//! Reductions on store: every operation with every element type that it supports, at every rank, by
//! blocks that reduce into the same elements, over tensors that end within tiles.

mod elements;
mod ranks;

use crate::case::Case;

/// The cases of this module.
pub const CASES: [&[Case]; 2] = [elements::CASES, ranks::CASES];
