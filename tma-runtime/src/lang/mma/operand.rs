//! Operands of a matmul, by extents, layout and element type.

use std::marker::PhantomData;
use std::ops::Neg;

use super::{Fragment, MatrixElement, MatrixFloat, TransposedElement};
use crate::lang::{
    NoSwizzle, Panels16, Shape, Shape2, Shape3, Shape4, Shape5, Swizzle, Swizzle32, Swizzle64, Swizzle128,
    Tile, TileElement, device_only, sealed::Sealed,
};

/// The left operand of a matmul, M × K: a [`Tile`] of M rows, [`tile.t()`](Tile::t) of a tile of K
/// rows, either of them negated, or a [`Fragment`].
///
/// Tiles are read from shared memory through the async proxy. After a load, the wait on its barrier
/// suffices. After [`Tile::set`], every thread that wrote calls
/// [`fence_proxy_async`](crate::lang::fence_proxy_async) before all threads synchronise.
///
/// Address, strides and swizzle go into a descriptor, which follows from the tile's type. Source:
/// PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout" and "Matrix Descriptor
/// Format".
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a left operand of {M} × {K}",
    label = "not a left operand of this multiplication",
    note = "a left operand is M × K: a tile of M rows, `tile.t()` of a tile of K rows, or a fragment, `acc.pack()`"
)]
pub trait Left<const M: u32, const K: u32>: Sealed {
    /// The element type.
    type Element: MatrixElement;
}

/// The right operand of a matmul, N × K: a [`Tile`] of N rows, [`tile.t()`](Tile::t) of a tile of K
/// rows, or either of them negated. The rules are those of [`Left`], except that it is never in
/// registers.
///
/// K must be that of the left operand:
///
/// ```compile_fail,E0277
/// # use tma_runtime::prelude::*;
/// # fn kernel(
/// #     a: Tile<bf16, Shape2<64, 64>, Swizzle128>,
/// #     b: Tile<bf16, Shape2<128, 32>, Swizzle64>,
/// # ) {
/// let mut sum = Accumulator::<f32, 64, 128>::zero();
/// sum.mma(a, b, ()).wait(); // error: a tile of 128 rows and 64 columns is wanted here
/// # }
/// ```
///
/// N must be that of the accumulator:
///
/// ```compile_fail,E0277
/// # use tma_runtime::prelude::*;
/// # fn kernel(
/// #     a: Tile<bf16, Shape2<64, 64>, Swizzle128>,
/// #     b: Tile<bf16, Shape2<128, 64>, Swizzle128>,
/// # ) {
/// let mut sum = Accumulator::<f32, 64, 256>::zero();
/// sum.mma(a, b, ()).wait(); // error: a tile of 256 rows and 64 columns is wanted here
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a right operand of {N} × {K}",
    label = "not a right operand of this multiplication",
    note = "a right operand is N × K, in shared memory: a tile of N rows, or `tile.t()` of a tile of K rows"
)]
pub trait Right<const N: u32, const K: u32>: Sealed {
    /// The element type.
    type Element: MatrixElement;
}

/// The shape of a matrix: `Shape2<ROWS, COLUMNS>`, in a batch `Shape3<1, ROWS, COLUMNS>`, in a
/// batch of batches `Shape4<1, 1, ROWS, COLUMNS>`, and so on.
#[diagnostic::on_unimplemented(
    message = "expected a tile of {ROWS} rows and {COLUMNS} columns, found `{Self}`",
    label = "does not match the accumulator or the other operand",
    note = "`mma(a, b, ..)` on an accumulator of M × N takes an `a` of M × K and a `b` of N × K, with the same K; its `store` takes a tile of M × N",
    note = "use `tile.t()` to transpose a tile of K rows, and `tile.band::<ROWS>(i)` for a part of a tile with more rows"
)]
pub trait MatrixShape<const ROWS: u32, const COLUMNS: u32>: Shape {}

impl<const ROWS: u32, const COLUMNS: u32> MatrixShape<ROWS, COLUMNS> for Shape2<ROWS, COLUMNS> {}
impl<const ROWS: u32, const COLUMNS: u32> MatrixShape<ROWS, COLUMNS> for Shape3<1, ROWS, COLUMNS> {}
impl<const ROWS: u32, const COLUMNS: u32> MatrixShape<ROWS, COLUMNS> for Shape4<1, 1, ROWS, COLUMNS> {}
impl<const ROWS: u32, const COLUMNS: u32> MatrixShape<ROWS, COLUMNS> for Shape5<1, 1, 1, ROWS, COLUMNS> {}

/// The tile layouts that tensor cores read, and in which accumulators are stored: [`Swizzle32`],
/// [`Swizzle64`], [`Swizzle128`], the fastest, and [`Panels16`]. With [`NoSwizzle`] they read only
/// tiles whose rows have 16 bytes, which are one panel. Accumulators can be stored to any tile.
#[diagnostic::on_unimplemented(
    message = "tensor cores cannot read tiles with the layout `{Self}`",
    label = "not a layout of an operand",
    note = "supported layouts are Swizzle32, Swizzle64, Swizzle128 and Panels16"
)]
pub trait MatrixSwizzle: Swizzle {}

impl MatrixSwizzle for NoSwizzle {}
impl MatrixSwizzle for Panels16 {}
impl MatrixSwizzle for Swizzle32 {}
impl MatrixSwizzle for Swizzle64 {}
impl MatrixSwizzle for Swizzle128 {}

/// A tile that is read with its rows and columns exchanged: [`tile.t()`](Tile::t). If `B` is false,
/// the tile is read unchanged: [`tile.t_if::<B>()`](Tile::t_if). Like the tile, it is a handle.
pub struct Transposed<X, const B: bool = true>(PhantomData<X>);

/// An operand with the opposite sign: `-tile`, `-tile.t()`. Like the tile, it is a handle.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # type Part = Tile<f16, Shape2<64, 64>, Swizzle128>;
/// # fn kernel(ar: Part, ai: Part, br: Part, bi: Part) {
/// // The real part of a product of complex numbers.
/// let mut sum = Accumulator::<f32, 64, 64>::zero();
/// let mut flight = sum.mma(ar, br, ());
/// flight.mma(-ai, bi, ());
/// flight.wait();
/// # }
/// ```
///
/// PTX: `imm-scale-a` and `imm-scale-b` of -1 (PTX ISA, "wgmma.mma_async").
pub struct Negated<X>(PhantomData<X>);

macro_rules! handles {
    ($($handle:ident<X $(, const $b:ident: bool)?>)+) => { $(
        impl<X $(, const $b: bool)?> Clone for $handle<X $(, $b)?> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<X $(, const $b: bool)?> Copy for $handle<X $(, $b)?> {}
        impl<X $(, const $b: bool)?> Sealed for $handle<X $(, $b)?> {}
    )+ };
}

handles!(Transposed<X, const B: bool> Negated<X>);

macro_rules! operands {
    ($($operand:ident)+) => { $(
        impl<E, S, W, const ROWS: u32, const K: u32> $operand<ROWS, K> for Tile<E, S, W>
        where
            E: MatrixElement,
            S: MatrixShape<ROWS, K>,
            W: MatrixSwizzle,
        {
            type Element = E;
        }

        impl<E, S, W, const ROWS: u32, const K: u32> $operand<ROWS, K> for Transposed<Tile<E, S, W>>
        where
            E: TransposedElement,
            S: MatrixShape<K, ROWS>,
            W: MatrixSwizzle,
        {
            type Element = E;
        }

        impl<E, S, W, const ROWS: u32, const K: u32> $operand<ROWS, K> for Transposed<Tile<E, S, W>, false>
        where
            E: MatrixElement,
            S: MatrixShape<ROWS, K>,
            W: MatrixSwizzle,
        {
            type Element = E;
        }

        impl<X, const ROWS: u32, const K: u32> $operand<ROWS, K> for Negated<X>
        where
            X: $operand<ROWS, K>,
        {
            type Element = X::Element;
        }
    )+ };
}

operands!(Left Right);

impl<E: MatrixElement, const M: u32, const K: u32> Left<M, K> for Fragment<E, M, K> {
    type Element = E;
}

impl<T: MatrixFloat, S: Shape, W: Swizzle> Neg for Tile<T, S, W> {
    type Output = Negated<Self>;

    fn neg(self) -> Negated<Self> {
        device_only()
    }
}

impl<T: MatrixFloat, S: Shape, W: Swizzle, const B: bool> Neg for Transposed<Tile<T, S, W>, B> {
    type Output = Negated<Self>;

    fn neg(self) -> Negated<Self> {
        device_only()
    }
}

/// # Operands of tensor cores
impl<T: TileElement, S: Shape, W: Swizzle> Tile<T, S, W> {
    /// Returns the tile with rows and columns exchanged, as an operand of
    /// [`mma`](super::Accumulator::mma): a K × N tile becomes the right operand N × K. No data
    /// moves: the tensor cores read the tile transposed. Only for 16-bit elements.
    ///
    /// PTX: `imm-trans-a` or `imm-trans-b` (PTX ISA, "wgmma.mma_async").
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(
    /// #     a: Tile<bf16, Shape2<64, 32>, Swizzle64>,
    /// #     b: Tile<bf16, Shape2<32, 64>, Swizzle128>,
    /// # ) {
    /// let mut sum = Accumulator::<f32, 64, 64>::zero();
    /// sum.mma(a, b.t(), ()).wait(); // A · B, as B has K rows of N columns
    /// # }
    /// ```
    ///
    /// Without `t()`, this tile is rejected:
    ///
    /// ```compile_fail,E0277
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(
    /// #     a: Tile<bf16, Shape2<64, 32>, Swizzle64>,
    /// #     b: Tile<bf16, Shape2<32, 64>, Swizzle128>,
    /// # ) {
    /// let mut sum = Accumulator::<f32, 64, 64>::zero();
    /// sum.mma(a, b, ()).wait(); // error: a tile of 64 rows and 32 columns is wanted here
    /// # }
    /// ```
    ///
    /// Tiles of 8-bit elements have no `t()`:
    ///
    /// ```compile_fail,E0277
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(b: Tile<e4m3, Shape2<32, 64>, Swizzle64>) {
    /// let transposed = b.t(); // error: tensor cores do not transpose a tile of `e4m3`
    /// # }
    /// ```
    #[must_use]
    pub fn t(self) -> Transposed<Self>
    where
        T: TransposedElement,
    {
        device_only()
    }

    /// Returns [`t`](Self::t) if `B` is true, and otherwise the tile unchanged. This is for kernels
    /// whose instances differ in the contiguous dimension of an operand. The bound states the
    /// operand's extents, and each instance must satisfy it:
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// fn multiply<const N_MAJOR: bool, const ROWS: u32, const COLUMNS: u32>(
    ///     a: Tile<f16, Shape2<64, 32>, Swizzle64>,
    ///     b: Tile<f16, Shape2<ROWS, COLUMNS>, Swizzle64>, // 128 × 32, or 32 × 128
    /// ) where
    ///     Transposed<Tile<f16, Shape2<ROWS, COLUMNS>, Swizzle64>, N_MAJOR>: Right<128, 32, Element = f16>,
    /// {
    ///     let mut sum = Accumulator::<f32, 64, 128>::zero();
    ///     sum.mma(a, b.t_if::<N_MAJOR>(), ()).wait();
    /// }
    /// ```
    #[must_use]
    pub fn t_if<const B: bool>(self) -> Transposed<Self, B> {
        device_only()
    }
}

/// # Parts of a matrix
impl<T: TileElement, W: Swizzle, const ROWS: u32, const COLUMNS: u32> Tile<T, Shape2<ROWS, COLUMNS>, W> {
    /// Returns rows `i * R` to `i * R + R` of this tile, as a tile: the part of one warpgroup. `R`
    /// divides the tile's rows and is a multiple of 8, the number of rows after which a swizzle
    /// pattern repeats.
    ///
    /// If a tile has several panels, its bands can only be operands of a matmul.
    /// [`columns`](Tile::columns) returns one panel, whose bands are tiles.
    ///
    /// The cost is the addition of an offset to an address.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(
    /// #     a: Tile<bf16, Shape2<128, 64>, Swizzle128>,
    /// #     b: Tile<bf16, Shape2<256, 64>, Swizzle128>,
    /// # ) {
    /// let mut sum = Accumulator::<f32, 64, 256>::zero();
    /// sum.mma(a.band::<64>(warpgroup_idx()), b, ()).wait(); // two warpgroups read one b
    /// # }
    /// ```
    #[must_use]
    pub fn band<const R: u32>(self, i: u32) -> Tile<T, Shape2<R, COLUMNS>, W> {
        device_only()
    }

    /// Returns columns `j * C` to `j * C + C` of this tile, as a tile: one or more panels of a tile
    /// whose rows are longer than its swizzle's span. `C` divides the tile's columns and is a
    /// multiple of the columns of a panel, which are 64 with [`Swizzle128`] and 16-bit elements.
    /// The tile has a multiple of 8 rows.
    ///
    /// The cost is the addition of an offset to an address.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(
    /// #     a: Tile<bf16, Shape2<128, 128>, Swizzle128>,
    /// #     b: Tile<bf16, Shape2<128, 64>, Swizzle128>,
    /// #     sum: Accumulator<f32, 64, 64>,
    /// # ) {
    /// // Two warpgroups, which multiply the second half of K.
    /// let me = warpgroup_idx();
    /// let mut part = Accumulator::<f32, 64, 128>::zero();
    /// part.mma(a.columns::<64>(1).band::<64>(me), b, ()).wait();
    /// // A part is also what an accumulator is stored to.
    /// sum.store(a.columns::<64>(0).band::<64>(me));
    /// # }
    /// ```
    #[must_use]
    pub fn columns<const C: u32>(self, j: u32) -> Tile<T, Shape2<ROWS, C>, W> {
        device_only()
    }
}

/// # Matrices of a batch
impl<T: TileElement, W: Swizzle, const BATCH: u32, const ROWS: u32, const COLUMNS: u32>
    Tile<T, Shape3<BATCH, ROWS, COLUMNS>, W>
{
    /// Returns rows `i * R` to `i * R + R` of this tile, counted through all its matrices, which
    /// follow each other if their rows are no longer than a panel. A left operand of a matmul has
    /// at least 64 rows; these can be those of several matrices.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # fn kernel(
    /// #     few: Tile<e4m3, Shape3<4, 16, 128>, Swizzle128>,
    /// #     b: Tile<e4m3, Shape2<8, 128>, Swizzle128>,
    /// # ) {
    /// let mut sum = Accumulator::<f32, 64, 8>::zero();
    /// sum.mma(few.band::<64>(0), b, ()).wait(); // warp i multiplies matrix i
    /// # }
    /// ```
    #[must_use]
    pub fn band<const R: u32>(self, i: u32) -> Tile<T, Shape2<R, COLUMNS>, W> {
        device_only()
    }

    /// Returns matrix `i` of this tile, as a tile of two dimensions, which has parts. A tile with
    /// an outermost extent of 1 is an operand without it.
    ///
    /// If a tile has several panels, its outermost extent is 1: a panel contains all matrices.
    ///
    /// ```
    /// # use tma_runtime::prelude::*;
    /// # type A = Tile<bf16, Shape3<1, 128, 64>, Swizzle128>;
    /// # type B = Tile<bf16, Shape3<1, 64, 64>, Swizzle128>;
    /// # fn kernel(a: TensorMap<A>, b: TensorMap<B>, full: Barrier, k: u32) {
    /// let left: A = shared();
    /// let right: B = shared();
    /// if thread_idx().x == 0 {
    ///     let z = block_idx().z;
    ///     full.arrive_expect_tx(left.bytes() + right.bytes());
    ///     a.load(left, [z, block_idx().y * 128, k], full);
    ///     b.load(right, [z, block_idx().x * 64, k], full);
    /// }
    /// full.wait(0);
    /// let mut sum = Accumulator::<f32, 64, 64>::zero();
    /// sum.mma(left.batch(0).band::<64>(warpgroup_idx()), right, ()).wait();
    /// # }
    /// ```
    #[must_use]
    pub fn batch(self, i: u32) -> Tile<T, Shape2<ROWS, COLUMNS>, W> {
        device_only()
    }
}

/// # Matrices of several batches
impl<T: TileElement, W: Swizzle, const A: u32, const B: u32, const ROWS: u32, const COLUMNS: u32>
    Tile<T, Shape4<A, B, ROWS, COLUMNS>, W>
{
    /// Returns rows `i * R` to `i * R + R` of this tile, like for a tile of three dimensions.
    #[must_use]
    pub fn band<const R: u32>(self, i: u32) -> Tile<T, Shape2<R, COLUMNS>, W> {
        device_only()
    }
}

/// # Matrices of a batch of batches
impl<T: TileElement, W: Swizzle, const BATCH: u32, const ROWS: u32, const COLUMNS: u32>
    Tile<T, Shape4<1, BATCH, ROWS, COLUMNS>, W>
{
    /// Returns matrix `i` of this tile, like for a tile of three dimensions. In a tensor of
    /// batch × heads × rows × columns, this is the matrix of a head.
    #[must_use]
    pub fn batch(self, i: u32) -> Tile<T, Shape2<ROWS, COLUMNS>, W> {
        device_only()
    }
}
