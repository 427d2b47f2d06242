//! Left operands in registers.

use std::marker::PhantomData;

use super::{Accumulator, MatrixElement, PackAs, WarpSource, WidenSource};
use crate::lang::{device_only, sealed::Sealed};

/// A left operand of M × K elements in the registers of a warpgroup, packed from an accumulator by
/// [`Accumulator::pack`](super::Accumulator::pack) or loaded from a tile by
/// [`load`](Fragment::load). M is a multiple of 64; K is a multiple of 32 bytes of elements.
///
/// # Elements
///
/// Each thread holds M / 64 · K · 8 / 32 bytes in registers of 32 bits. Of each 64 rows, warp `w`
/// of the warpgroup holds the 16 from `16 * w` on, in the layout of a
/// [`WarpLeft`](super::WarpLeft): of 32 bytes of a row, lane `l` holds the 4 bytes from
/// `4 * (l % 4)` on, and the 4 bytes that are 16 further, in rows `l / 4` and `l / 4 + 8`. For
/// 16-bit elements these are the elements that the thread holds of an accumulator, so `pack`
/// exchanges nothing between threads. Source: PTX ISA, "Register Fragments for
/// wgmma.mma_async.m64nNk*".
///
/// # Single use
///
/// The tensor cores read the registers while the matmul is in flight, so
/// [`mma`](super::Accumulator::mma) consumes the fragment, which is not `Copy`. For the next
/// matmul, pack or load again.
///
/// ```compile_fail,E0382
/// # use tma_runtime::prelude::*;
/// # type Value = Tile<bf16, Shape2<128, 64>, Swizzle128>;
/// # fn kernel(scores: Accumulator<f32, 64, 128>, left: Value, right: Value) {
/// let weights = scores.pack::<bf16>();
/// let mut out = Accumulator::<f32, 64, 64>::zero();
/// let mut flight = out.mma(weights, left.t(), ());
/// flight.mma(weights, right.t(), ()); // error: use of moved value
/// flight.wait();
/// # }
/// ```
#[must_use = "a fragment does nothing unless it is multiplied: `acc.mma(fragment, ..)`"]
pub struct Fragment<E: MatrixElement, const M: u32, const K: u32>(PhantomData<E>);

impl<E: MatrixElement, const M: u32, const K: u32> Sealed for Fragment<E, M, K> {}

/// # Conversion
impl<E: MatrixElement, const M: u32, const K: u32> Fragment<E, M, K> {
    /// Returns the elements as `f32`. Each thread keeps its elements.
    ///
    /// It is the inverse of [`Accumulator::pack`](super::Accumulator::pack), except for its
    /// rounding. Two elements share a register in a fragment, so a kernel that needs the values
    /// both as an operand and in later arithmetic has 32-bit copies only where it computes.
    ///
    /// PTX: shifts for `bf16`, `cvt.f32.f16` for `f16`.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # type Value = Tile<bf16, Shape2<128, 64>, Swizzle128>;
    /// # fn kernel(scores: Accumulator<f32, 64, 128>, mut factors: Accumulator<f32, 64, 128>, value: Value) {
    /// let weights = scores.pack::<bf16>();
    /// let rounded = weights.unpack();
    /// let mut out = Accumulator::<f32, 64, 64>::zero();
    /// let flight = out.mma(weights, value.t(), ());
    /// for i in unroll(0..factors.len()) {
    ///     factors[i] *= rounded[i];
    /// }
    /// flight.wait();
    /// # }
    /// ```
    pub fn unpack(&self) -> Accumulator<f32, M, K>
    where
        f32: PackAs<E>,
    {
        device_only()
    }
}

/// # Loads
impl<E: MatrixElement, const M: u32, const K: u32> Fragment<E, M, K> {
    /// Loads M rows and K columns of `tile`, from row and column `at` on. With `tile.t()` they are
    /// rows and columns of the transposed tile. The swizzle is undone. All threads of the warpgroup
    /// must call it, with the same arguments.
    ///
    /// The tensor cores can read a left operand from shared memory by themselves. A load is useful
    /// if the operand is used for several matmuls while its tile is filled again, or if its layout
    /// is one that the tensor cores do not read. The tile is read like by
    /// [`WarpLeft::load`](super::WarpLeft::load), with the same rules for `at`.
    ///
    /// PTX: `ldmatrix.sync.aligned.m8n8.x4.shared.b16`, with `.trans` for `tile.t()` (PTX ISA,
    /// "ldmatrix").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # type A = Tile<e4m3, Shape2<64, 128>, Swizzle128>;
    /// # type B = Tile<e4m3, Shape2<64, 64>, Swizzle64>;
    /// # fn kernel(a: A, b: Stages<B, 2>) {
    /// let mut sum = Accumulator::<f32, 64, 64>::zero();
    /// let mut flight = sum.mma(Fragment::<e4m3, 64, 64>::load(a, [0, 0]), b[0], ());
    /// flight.mma(Fragment::<e4m3, 64, 64>::load(a, [0, 64]), b[1], ());
    /// flight.wait();
    /// # }
    /// ```
    #[doc(alias = "ldmatrix")]
    pub fn load<X: WarpSource<E>>(tile: X, at: [u32; 2]) -> Self {
        device_only()
    }

    /// Loads M rows and K columns of `tile`, which may be of `e4m3` if `E` is `f16`, like
    /// [`WarpLeft::widen`](super::WarpLeft::widen), in the order of rows or columns that is documented
    /// there.
    #[doc(alias = "cvt")]
    pub fn widen<X: WidenSource<E>>(tile: X, at: [u32; 2]) -> Self {
        device_only()
    }
}
