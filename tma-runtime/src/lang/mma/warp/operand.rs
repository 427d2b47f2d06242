//! Operands in the registers of a warp.

use std::marker::PhantomData;

use super::WarpElement;
use crate::lang::{
    MatrixSwizzle, Shape, Shape2, Shape3, Tile, Transposed, TransposedElement, device_only, sealed::Sealed,
};

/// The left operand of a matmul of a warp, M × K, in its registers. M is a multiple of 16. A row of
/// K elements is a multiple of 16 bytes, or of 32 bytes for `f64`.
///
/// [`load`](WarpLeft::load) reads it from a tile, and [`pack`](super::WarpAccumulator::pack) makes
/// it from an accumulator. A matmul is complete when [`mma_sync`](super::WarpAccumulator::mma_sync)
/// returns, so an operand may be used again: it is `Copy`.
///
/// # Elements
///
/// Each lane holds M / 16 · K · 16 / 32 elements, in registers of 32 bits, or of 64 for `f64`. Of
/// 16 rows and 16 bytes of a row, lane `l` has the 4 bytes from `4 * (l % 4)` on, in rows `l / 4`
/// and `l / 4 + 8`, with one register for each row. Source: PTX ISA, "Matrix Fragments for
/// mma.m16n8k*".
pub struct WarpLeft<E: WarpElement, const M: u32, const K: u32>(PhantomData<E>);

/// The right operand of a matmul of a warp, N × K, in its registers: a row for each column of the
/// sum. N is a multiple of 8. Otherwise the rules of [`WarpLeft`] apply.
///
/// Its elements are in other lanes than those of a left operand, so the two are different types:
///
/// ```compile_fail,E0308
/// # use tma_runtime::prelude::*;
/// # fn kernel(a: Tile<f16, Shape2<16, 16>>, b: Tile<f16, Shape2<16, 16>>) {
/// let mut sum = WarpAccumulator::<f32, 16, 16>::zero();
/// let left = WarpLeft::<f16, 16, 16>::load(a, [0, 0]);
/// let right = WarpLeft::<f16, 16, 16>::load(b, [0, 0]);
/// sum.mma_sync(left, right); // error: expected `WarpRight`, found `WarpLeft`
/// # }
/// ```
pub struct WarpRight<E: WarpElement, const N: u32, const K: u32>(PhantomData<E>);

/// The shape of a matrix of any extents: `Shape2<ROWS, COLUMNS>`, or in a batch
/// `Shape3<1, ROWS, COLUMNS>`.
#[diagnostic::on_unimplemented(
    message = "expected a tile of two dimensions, found `{Self}`",
    label = "not a matrix",
    note = "use `tile.batch(i)` for a matrix of a batch"
)]
pub trait AnyMatrix: Shape {}

impl<const ROWS: u32, const COLUMNS: u32> AnyMatrix for Shape2<ROWS, COLUMNS> {}
impl<const ROWS: u32, const COLUMNS: u32> AnyMatrix for Shape3<1, ROWS, COLUMNS> {}

/// The source of an operand of `E`: a [`Tile`] of these elements, or [`tile.t()`](Tile::t) of
/// 16-bit ones.
#[diagnostic::on_unimplemented(
    message = "an operand of `{E}` cannot be loaded from `{Self}`",
    label = "not a source of this operand",
    note = "load it from a tile of `{E}` of two dimensions, or from `tile.t()` of one; elements are not converted"
)]
pub trait WarpSource<E>: Sealed {}

impl<E: WarpElement, S: AnyMatrix, W: MatrixSwizzle> WarpSource<E> for Tile<E, S, W> {}
impl<E: WarpElement + TransposedElement, S: AnyMatrix, W: MatrixSwizzle> WarpSource<E>
    for Transposed<Tile<E, S, W>>
{
}
impl<E: WarpElement, S: AnyMatrix, W: MatrixSwizzle> WarpSource<E> for Transposed<Tile<E, S, W>, false> {}

macro_rules! registers {
    ($($operand:ident)+) => { $(
        impl<E: WarpElement, const ROWS: u32, const K: u32> Clone for $operand<E, ROWS, K> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<E: WarpElement, const ROWS: u32, const K: u32> Copy for $operand<E, ROWS, K> {}
    )+ };
}

registers!(WarpLeft WarpRight);

impl<E: WarpElement, const M: u32, const K: u32> WarpLeft<E, M, K> {
    /// Loads M rows and K columns of `tile`, from row and column `at` on. With `tile.t()` they are
    /// rows and columns of the transposed tile. The swizzle is undone. All lanes of the warp must
    /// call it, with the same arguments.
    ///
    /// A tile is read in chunks of 16 bytes along its rows, so the part must begin at a multiple of
    /// 16 bytes of a row (docs/errors/TMA0261.md). The whole part must be within the tile.
    ///
    /// The read is synchronised like [`Tile::get`]. After a load by TMA the wait on its barrier
    /// suffices. After [`Tile::set`] the threads that wrote must have synchronised with the warp
    /// ([`sync_warp`] if the warp itself wrote).
    ///
    /// PTX: `ldmatrix.sync.aligned.m8n8.x4.shared.b16`, with `.trans` for `tile.t()`; `ld.shared`
    /// for `f64` (PTX ISA, "ldmatrix").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # type A = Tile<bf16, Shape2<64, 64>, Swizzle128>;
    /// # type B = Tile<bf16, Shape2<64, 32>, Swizzle64>; // K × N
    /// # fn kernel(a: A, b: B) {
    /// // Each warp multiplies its own 16 rows.
    /// let mut sum = WarpAccumulator::<f32, 16, 32>::zero();
    /// for step in 0..4 {
    ///     let left = WarpLeft::<bf16, 16, 16>::load(a, [warp_idx() * 16, step * 16]);
    ///     let right = WarpRight::<bf16, 32, 16>::load(b.t(), [0, step * 16]);
    ///     sum.mma_sync(left, right);
    /// }
    /// # }
    /// ```
    ///
    /// Elements of 8 or 32 bits cannot be transposed:
    ///
    /// ```compile_fail,E0277
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(b: Tile<e4m3, Shape2<32, 64>, Swizzle64>) {
    /// let right = WarpRight::<e4m3, 64, 32>::load(b.t(), [0, 0]); // error: tensor cores do not transpose a tile of `e4m3`
    /// # }
    /// ```
    ///
    /// [`sync_warp`]: crate::lang::sync_warp
    #[doc(alias = "ldmatrix")]
    #[must_use]
    pub fn load<X: WarpSource<E>>(tile: X, at: [u32; 2]) -> Self {
        device_only()
    }
}

impl<E: WarpElement, const N: u32, const K: u32> WarpRight<E, N, K> {
    /// Loads N rows and K columns of `tile`, from row and column `at` on, like [`WarpLeft::load`].
    #[doc(alias = "ldmatrix")]
    #[must_use]
    pub fn load<X: WarpSource<E>>(tile: X, at: [u32; 2]) -> Self {
        device_only()
    }
}
