//! Methods of numbers, and loops.

mod loops;
mod methods;

use crate::case::Case;

/// The cases of these modules.
pub const CASES: [&[Case]; 2] = [methods::CASES, loops::CASES];
