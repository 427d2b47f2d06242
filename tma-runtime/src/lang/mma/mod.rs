//! Tensor cores: products of tiles, accumulated in the registers of a warpgroup.
//!
//! An [`Accumulator`] is M × N numbers in the registers of a warpgroup's 128 threads.
//! [`mma`](Accumulator::mma) starts adding `a · bᵀ`, where `a` is M × K and `b` is N × K, and
//! returns at once: the tensor cores work while the threads continue. The [`Flight`] that it
//! returns borrows the accumulator, and owns whatever must not be reused before the matmul is
//! complete. rustc thereby rejects mistakes that would produce wrong numbers on a GPU:
//!
//! | mistake | error |
//! | --- | --- |
//! | reading an accumulator in flight | E0502 |
//! | writing it, or starting a second product other than by [`Flight::mma`] | E0499 |
//! | releasing a pipeline's slot that is being read | E0382 |
//! | using a [`Fragment`] again | E0382 |
//! | extents, element types or layouts that do not fit | E0277 |
//!
//! | operand | as `a` (M × K) | as `b` (N × K) |
//! | --- | --- | --- |
//! | `Tile<E, Shape2<M, K>, W>` and `Tile<E, Shape2<N, K>, W>`, or `Shape3` with an outermost extent of 1 | yes | yes |
//! | parts of these: [`band`](super::Tile::band), [`columns`](super::Tile::columns), [`batch`](super::Tile::batch) | yes | yes |
//! | [`tile.t()`](super::Tile::t) of a K × M or K × N tile, 16-bit elements only | yes | yes |
//! | [`tile.t_if::<B>()`](super::Tile::t_if), which is `tile.t()` or the tile, by a constant | yes | yes |
//! | `-tile`, floats only | yes | yes |
//! | [`tile.sparse(metadata)`](super::Tile::sparse) of an M × K / 2 tile | yes | no |
//! | [`Fragment<E, M, K>`](Fragment), in registers | yes | no |
//!
//! All four warps of a warpgroup must make these calls together, outside of branches that only some
//! of their threads take, with the same operands. A `printf!` anywhere in a kernel would make the
//! driver's compiler serialise its matmuls, so a kernel cannot have both.
//!
//! Single warps handle the cases that warpgroups cannot: fewer rows, `f64`, and chips without
//! `wgmma`. A [`WarpAccumulator`] is M × N numbers in the registers of a warp's 32 threads, to
//! which [`mma_sync`](WarpAccumulator::mma_sync) adds the product of a [`WarpLeft`] and a
//! [`WarpRight`].
//!
//! Sources: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions", "Warp
//! Level Matrix Multiply-Accumulate Instructions".

mod accumulator;
mod columns;
mod element;
mod flight;
mod fragment;
mod integer;
mod operand;
mod registers;
mod rows;
mod sparse;
#[cfg(test)]
mod tests;
mod warp;

pub use accumulator::Accumulator;
pub use columns::Columns;
pub use element::{
    AccumulatorElement, MatrixElement, MatrixFloat, Multiply, PackAs, StoreAs, TransposedElement,
};
pub use flight::Flight;
pub use fragment::Fragment;
pub use integer::{BitElement, BitsLeft};
pub use operand::{Left, MatrixShape, MatrixSwizzle, Negated, Right, Transposed};
pub use registers::{setmaxnreg_dec, setmaxnreg_inc};
pub use rows::Rows;
pub use sparse::Sparse;
pub use warp::{
    AnyMatrix, WarpAccumulator, WarpElement, WarpLeft, WarpMultiply, WarpRight, WarpRows, WarpSource,
    WarpStoreAs, WarpSum, Widen, WidenSource,
};
