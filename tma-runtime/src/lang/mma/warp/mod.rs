//! Matmuls of a warp: synchronous, with operands in registers.
//!
//! A [`WarpAccumulator`] is to a single warp what an [`Accumulator`](super::Accumulator) is to a
//! warpgroup. It has a multiple of 16 rows instead of 64, any number of columns, supports `f64`,
//! and works on every chip. Its operands, [`WarpLeft`] and [`WarpRight`], are loaded into registers
//! first. The sum is complete when [`mma_sync`](WarpAccumulator::mma_sync) returns: nothing is in
//! flight.
//!
//! Sources: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions".

mod accumulator;
mod element;
mod operand;
mod rows;

pub use accumulator::WarpAccumulator;
pub use element::{WarpElement, WarpMultiply, WarpStoreAs, WarpSum};
pub use operand::{AnyMatrix, WarpLeft, WarpRight, WarpSource, Widen, WidenSource};
pub use rows::WarpRows;
