//! Matmuls of integers that saturate, and of bits.

use super::{Accumulator, Flight, Fragment, Left, MatrixShape, MatrixSwizzle, Multiply, Right};
use crate::lang::{Tile, TileElement, device_only, sealed::Sealed};

/// The element types whose bits are multiplied: `u8`, `u16`, `u32` and `u64`.
#[diagnostic::on_unimplemented(
    message = "tensor cores cannot multiply the bits of `{Self}`",
    label = "not a tile of unsigned integers",
    note = "supported are the bits of tiles of u8, u16, u32 and u64"
)]
pub trait BitElement: TileElement + Sealed {}

macro_rules! bits {
    ($($scalar:ty)+) => { $(impl BitElement for $scalar {})+ };
}

bits!(u8 u16 u32 u64);

/// The left operand of a matmul of bits, with M rows of K integers: a [`Tile`], or a [`Fragment`]
/// of `u8`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a left operand of bits with {M} rows of {K} integers",
    label = "not a left operand of this multiplication",
    note = "a left operand has the rows of the accumulator and the integers per row of the right operand: a tile of u8, u16, u32 or u64, or a fragment of u8"
)]
pub trait BitsLeft<const M: u32, const K: u32>: Sealed {
    /// The type of the integers.
    type Element: BitElement;
}

impl<E, S, W, const M: u32, const K: u32> BitsLeft<M, K> for Tile<E, S, W>
where
    E: BitElement,
    S: MatrixShape<M, K>,
    W: MatrixSwizzle,
{
    type Element = E;
}

impl<const M: u32, const K: u32> BitsLeft<M, K> for Fragment<u8, M, K> {
    type Element = u8;
}

/// # Integers
impl<const M: u32, const N: u32> Accumulator<i32, M, N> {
    /// Starts adding like [`mma`](Accumulator::mma), for `i8` and `u8`, but sums do not wrap: if an
    /// instruction's sum does not fit in an `i32`, it becomes `i32::MIN` or `i32::MAX`. An
    /// instruction adds 32 elements of K.
    ///
    /// PTX: `wgmma.mma_async` with `.satfinite` (PTX ISA, "wgmma.mma_async").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(
    /// #     a: Tile<i8, Shape2<64, 128>, Swizzle128>,
    /// #     b: Tile<u8, Shape2<64, 128>, Swizzle128>,
    /// # ) {
    /// let mut sum = Accumulator::<i32, 64, 64>::zero();
    /// let mut flight = sum.mma_saturating(a, b, ());
    /// flight.mma_saturating(a, b, ());
    /// flight.wait();
    /// # }
    /// ```
    ///
    /// Floats do not saturate:
    ///
    /// ```compile_fail,E0599
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(a: Tile<f16, Shape2<64, 64>, Swizzle128>) {
    /// let mut sum = Accumulator::<f32, 64, 64>::zero();
    /// sum.mma_saturating(a, a, ()).wait(); // error: the method was found for `Accumulator<i32, M, N>`
    /// # }
    /// ```
    #[doc(alias = "satfinite")]
    pub fn mma_saturating<'a, A, B, Keep, EA, EB, const K: u32>(
        &'a mut self,
        a: A,
        b: B,
        keep: Keep,
    ) -> Flight<'a, i32, M, N, Keep>
    where
        A: Left<M, K, Element = EA>,
        B: Right<N, K, Element = EB>,
        EB: Multiply<EA, i32>,
    {
        device_only()
    }

    /// Starts adding, for each row of `a` and each row of `b`, the number of bits that are set in
    /// both: the product of two bit matrices, M × K and N × K. The bits are those of unsigned
    /// integers, of the same type in both. K is a multiple of 256 bits.
    ///
    /// PTX: `wgmma.mma_async.sync.aligned.m64nNk256.s32.b1.b1.and.popc` (PTX ISA,
    /// "wgmma.mma_async"). This instruction has no `.xor.popc`.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(
    /// #     queries: Tile<u32, Shape2<64, 32>, Swizzle128>,
    /// #     keys: Tile<u32, Shape2<128, 32>, Swizzle128>,
    /// # ) {
    /// // How many of 1024 features each of 64 queries and 128 keys share.
    /// let mut common = Accumulator::<i32, 64, 128>::zero();
    /// common.mma_and_popc(queries, keys, ()).wait();
    /// # }
    /// ```
    #[doc(alias = "b1")]
    pub fn mma_and_popc<'a, A, E, S, W, Keep, const K: u32>(
        &'a mut self,
        a: A,
        b: Tile<E, S, W>,
        keep: Keep,
    ) -> Flight<'a, i32, M, N, Keep>
    where
        A: BitsLeft<M, K, Element = E>,
        E: BitElement,
        S: MatrixShape<N, K>,
        W: MatrixSwizzle,
    {
        device_only()
    }
}

/// # Integers
impl<const M: u32, const N: u32, Keep> Flight<'_, i32, M, N, Keep> {
    /// Continues like [`mma`](Flight::mma), but adds like [`Accumulator::mma_saturating`].
    #[doc(alias = "satfinite")]
    pub fn mma_saturating<A, B, EA, EB, const K: u32>(&mut self, a: A, b: B, keep: Keep) -> Keep
    where
        A: Left<M, K, Element = EA>,
        B: Right<N, K, Element = EB>,
        EB: Multiply<EA, i32>,
    {
        device_only()
    }

    /// Continues like [`mma`](Flight::mma), but adds like [`Accumulator::mma_and_popc`].
    #[doc(alias = "b1")]
    pub fn mma_and_popc<A, E, S, W, const K: u32>(&mut self, a: A, b: Tile<E, S, W>, keep: Keep) -> Keep
    where
        A: BitsLeft<M, K, Element = E>,
        E: BitElement,
        S: MatrixShape<N, K>,
        W: MatrixSwizzle,
    {
        device_only()
    }
}
