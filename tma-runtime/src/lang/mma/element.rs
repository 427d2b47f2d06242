//! Element types: which ones tensor cores multiply, sum and convert.

use super::WarpElement;
use crate::lang::{bf16, e4m3, e5m2, f16, sealed::Sealed, tf32};

/// The element of an [`Accumulator`](super::Accumulator): `f32`, `f16` or `i32`.
///
/// Source: PTX ISA, "wgmma.mma_async", `.dtype`.
#[diagnostic::on_unimplemented(
    message = "tensor cores do not accumulate in `{Self}`",
    label = "not the element of an accumulator",
    note = "products of floats are summed in f32, those of f16, e4m3 and e5m2 also in f16; those of integers in i32"
)]
pub trait AccumulatorElement: Sealed + Copy {}

/// The element of an operand: `f16`, `bf16`, `tf32`, `e4m3`, `e5m2`, `i8` or `u8`.
///
/// Source: PTX ISA, "wgmma.mma_async", `.atype` and `.btype`.
#[diagnostic::on_unimplemented(
    message = "tensor cores do not multiply elements of type `{Self}`",
    label = "not the element of an operand",
    note = "they multiply f16, bf16, tf32, e4m3, e5m2, i8 and u8; for f32 data, load tiles of tf32"
)]
pub trait MatrixElement: WarpElement + Sealed {}

/// The element of an operand that can be [negated](super::Negated): every
/// [float](MatrixElement).
#[diagnostic::on_unimplemented(
    message = "tensor cores do not negate operands of `{Self}`",
    label = "not the element of an operand that can be negated",
    note = "they negate f16, bf16, tf32, e4m3 and e5m2"
)]
pub trait MatrixFloat: MatrixElement {}

/// The element of a tile that can be read [transposed](super::Transposed): `f16` or `bf16`.
///
/// Source: PTX ISA, "wgmma.mma_async", `imm-trans-a` and `imm-trans-b`.
#[diagnostic::on_unimplemented(
    message = "tensor cores do not transpose a tile of `{Self}`",
    label = "not a tile of 16-bit elements",
    note = "they transpose tiles of f16 and bf16; with other elements, K must be the contiguous dimension of both operands",
    note = "lay the tensor out the other way in global memory"
)]
pub trait TransposedElement: MatrixElement {}

/// Which elements are multiplied with each other, and in which type their products are summed:
/// `B: Multiply<A, T>` if the left operand's elements are of type `A`, the right one's of `B` and
/// the accumulator's of `T`.
///
/// | left and right | sum |
/// | --- | --- |
/// | `f16` and `f16` | `f32`, `f16` |
/// | `bf16` and `bf16` | `f32` |
/// | `tf32` and `tf32` | `f32` |
/// | `e4m3` or `e5m2`, and `e4m3` or `e5m2` | `f32`, `f16` |
/// | `i8` or `u8`, and `i8` or `u8` | `i32`, which wraps |
///
/// With 8-bit floats the sum keeps fewer bits than its type: an H200 truncates each product to 13
/// fraction bits below the greatest of an instruction. Add long sums to a second accumulator where
/// that matters.
///
/// Source: PTX ISA, "wgmma.mma_async", the table of shapes and types.
///
/// ```compile_fail,E0277
/// # use tma_runtime::prelude::*;
/// # fn kernel(
/// #     a: Tile<bf16, Shape2<64, 64>, Swizzle128>,
/// #     b: Tile<e4m3, Shape2<128, 64>, Swizzle64>,
/// # ) {
/// let mut sum = Accumulator::<f32, 64, 128>::zero();
/// sum.mma(a, b, ()).wait(); // error: tensor cores do not multiply `bf16` by `e4m3`
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "tensor cores do not multiply `{Left}` by `{Self}` and sum in `{Sum}`",
    label = "these element types do not go together",
    note = "they multiply f16 by f16, summing in f32 or f16; bf16 by bf16 and tf32 by tf32, in f32; e4m3 or e5m2 by e4m3 or e5m2, in f32 or f16; i8 or u8 by i8 or u8, in i32"
)]
pub trait Multiply<Left, Sum>: MatrixElement {}

/// The types as which an accumulator of `Self` is [stored](super::Accumulator::store).
#[diagnostic::on_unimplemented(
    message = "an accumulator of `{Self}` is not stored as `{Element}`",
    label = "not what this accumulator is stored to",
    note = "f32 is stored as f32, f16, bf16, e4m3 or e5m2; f16 as f16; i32 as i32",
    note = "for another type, convert element by element: `tile.set(acc.at(i), cast(acc[i]))`"
)]
pub trait StoreAs<Element>: AccumulatorElement {}

/// The types to which an accumulator of `Self` is [packed](super::Accumulator::pack).
#[diagnostic::on_unimplemented(
    message = "an accumulator of `{Self}` is not packed to a fragment of `{Element}`",
    label = "not a type that this accumulator is packed to",
    note = "f32 is packed to f16 or bf16, f16 to f16: only 16-bit operands have their elements in the threads that an accumulator has them in"
)]
pub trait PackAs<Element>: AccumulatorElement {}

macro_rules! mark {
    ($marker:ident: $($scalar:ty),+) => { $(impl $marker for $scalar {})+ };
}

mark!(AccumulatorElement: f32, f16, i32);
mark!(MatrixElement: f16, bf16, tf32, e4m3, e5m2, i8, u8);
mark!(MatrixFloat: f16, bf16, tf32, e4m3, e5m2);
mark!(TransposedElement: f16, bf16);

/// `Right: [Left => Sum, ..];`
macro_rules! products {
    ($($right:ty: [$($left:ty => $sum:ty),+];)+) => { $($(impl Multiply<$left, $sum> for $right {})+)+ };
}

products! {
    f16: [f16 => f32, f16 => f16];
    bf16: [bf16 => f32];
    tf32: [tf32 => f32];
    e4m3: [e4m3 => f32, e4m3 => f16, e5m2 => f32, e5m2 => f16];
    e5m2: [e4m3 => f32, e4m3 => f16, e5m2 => f32, e5m2 => f16];
    i8: [i8 => i32, u8 => i32];
    u8: [i8 => i32, u8 => i32];
}

/// `Conversion: From => To, ..;`
macro_rules! conversions {
    ($($conversion:ident: $($from:ty => $to:ty),+;)+) => { $($(impl $conversion<$to> for $from {})+)+ };
}

conversions! {
    StoreAs: f32 => f32, f32 => f16, f32 => bf16, f32 => e4m3, f32 => e5m2, f16 => f16, i32 => i32;
    PackAs: f32 => f16, f32 => bf16, f16 => f16;
}
