//! Operands in the registers of a warp.

use std::marker::PhantomData;

use super::WarpElement;
use crate::lang::{
    MatrixSwizzle, Shape, Shape2, Shape3, Tile, TileElement, Transposed, TransposedElement, device_only,
    e4m3, f16, sealed::Sealed,
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

/// The element of a tile that [`widen`](WarpLeft::widen) loads as an operand of `E`, which has 16
/// bits: `E` itself or, if that is `f16`, [`e4m3`].
#[diagnostic::on_unimplemented(
    message = "elements of `{Self}` cannot be widened to `{E}`",
    label = "neither `{E}` nor a narrower type with a conversion to it",
    note = "e4m3 can be widened to f16; f16 and bf16 are loaded as they are"
)]
pub trait Widen<E>: TileElement {}

impl<E: TransposedElement + TileElement> Widen<E> for E {}
impl Widen<f16> for e4m3 {}

/// The source of an operand of `E` whose elements may be narrower: a [`Tile`] of elements that
/// [`Widen`], or [`tile.t()`](Tile::t) or [`tile.t_if()`](Tile::t_if) of one.
#[diagnostic::on_unimplemented(
    message = "an operand of `{E}` cannot be widened from `{Self}`",
    label = "not a source of this operand",
    note = "use a tile of `{E}` or, for an operand of f16, of e4m3, of two dimensions"
)]
pub trait WidenSource<E>: Sealed {}

impl<E, T: Widen<E>, S: AnyMatrix, W: MatrixSwizzle> WidenSource<E> for Tile<T, S, W> {}
impl<E, T: Widen<E>, S: AnyMatrix, W: MatrixSwizzle, const B: bool> WidenSource<E>
    for Transposed<Tile<T, S, W>, B>
{
}

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

    /// Loads M rows and K columns of `tile` like [`load`](Self::load), from a tile of [`e4m3`] into an
    /// operand of `f16`. The conversion is exact. A tile of the operand's own elements is loaded as
    /// `load` does.
    ///
    /// A lane converts the elements that it has, so those of a row of a tile of `e4m3` arrive in
    /// another order:
    ///
    /// * Of each 16 columns of K, column `c` becomes column `c / 2 % 2 * 8 + c / 4 * 2 + c % 2`. A sum
    ///   does not change if both operands have this order: widen both, or write one that way.
    /// * With `tile.t_if::<true>()`, K is in order. Of each 16 rows of the operand, the tile's column
    ///   `c` becomes row `c % 2 * 8 + c / 2`: the even ones come first.
    ///
    /// K, or with a transposed tile M, must be a multiple of 16.
    ///
    /// PTX: `ldmatrix` and `cvt.rn.f16x2.e4m3x2` (PTX ISA, "cvt").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(a: Tile<e4m3, Shape2<16, 128>, Swizzle128>, b: Tile<e4m3, Shape2<32, 128>, Swizzle128>) {
    /// // Both operands have the same order of K.
    /// let mut sum = WarpAccumulator::<f32, 16, 32>::zero();
    /// let left = WarpLeft::<f16, 16, 128>::widen(a, [0, 0]);
    /// sum.mma_sync(left, WarpRight::<f16, 32, 128>::widen(b, [0, 0]));
    /// # }
    /// ```
    ///
    /// There is no instruction that converts to `bf16`:
    ///
    /// ```compile_fail,E0277
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(a: Tile<e4m3, Shape2<16, 128>, Swizzle128>) {
    /// let left = WarpLeft::<bf16, 16, 128>::widen(a, [0, 0]); // error: elements of `e4m3` cannot be widened to `bf16`
    /// # }
    /// ```
    #[doc(alias = "cvt")]
    #[must_use]
    pub fn widen<X: WidenSource<E>>(tile: X, at: [u32; 2]) -> Self {
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

    /// Loads N rows and K columns of `tile`, which may be of [`e4m3`] if `E` is `f16`, like
    /// [`WarpLeft::widen`], in the order of rows or columns that is documented there.
    #[doc(alias = "cvt")]
    #[must_use]
    pub fn widen<X: WidenSource<E>>(tile: X, at: [u32; 2]) -> Self {
        device_only()
    }
}
