//! Products of a warp: operands in registers, multiplied at once.
//!
//! What [`Accumulator`](super::Accumulator) is to a warpgroup, [`WarpAccumulator`] is to a single
//! warp: of 16 rows instead of 64, of any number of columns, also of `f64`, and on every chip. Its
//! operands are loaded into registers first, [`WarpLeft`] and [`WarpRight`], and
//! [`mma_sync`](WarpAccumulator::mma_sync) has the sum when it returns: nothing is under way.
//!
//! Sources: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions".

mod accumulator;
mod element;
mod operand;
mod rows;

pub use accumulator::WarpAccumulator;
pub use element::{WarpElement, WarpMultiply, WarpStoreAs, WarpSum};
pub use operand::{AnyMatrix, WarpLeft, WarpRight, WarpSource};
pub use rows::WarpRows;
