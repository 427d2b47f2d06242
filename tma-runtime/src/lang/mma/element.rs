//! Element types that tensor cores multiply, sum and convert.

use super::WarpElement;
use crate::lang::{bf16, e4m3, e5m2, f16, sealed::Sealed, tf32};

/// The element of an [`Accumulator`](super::Accumulator): `f32`, `f16` or `i32`.
///
/// Source: PTX ISA, "wgmma.mma_async", `.dtype`.
#[diagnostic::on_unimplemented(
    message = "tensor cores cannot accumulate in `{Self}`",
    label = "not an element type of accumulators",
    note = "floats are accumulated in f32, products of f16, e4m3 and e5m2 also in f16; integers in i32"
)]
pub trait AccumulatorElement: Sealed + Copy {}

/// The element of an operand: `f16`, `bf16`, `tf32`, `e4m3`, `e5m2`, `i8` or `u8`.
///
/// Source: PTX ISA, "wgmma.mma_async", `.atype` and `.btype`.
#[diagnostic::on_unimplemented(
    message = "tensor cores cannot multiply elements of type `{Self}`",
    label = "not an element type of operands",
    note = "supported element types are f16, bf16, tf32, e4m3, e5m2, i8 and u8; for f32 data, load tiles of tf32"
)]
pub trait MatrixElement: WarpElement + Sealed {}

/// The element of an operand that can be [negated](super::Negated): every [float](MatrixElement).
#[diagnostic::on_unimplemented(
    message = "tensor cores cannot negate operands of `{Self}`",
    label = "not an element type that can be negated",
    note = "operands of f16, bf16, tf32, e4m3 and e5m2 can be negated"
)]
pub trait MatrixFloat: MatrixElement {}

/// The element of a tile that can be read [transposed](super::Transposed): `f16` or `bf16`.
///
/// Source: PTX ISA, "wgmma.mma_async", `imm-trans-a` and `imm-trans-b`.
#[diagnostic::on_unimplemented(
    message = "tensor cores cannot transpose a tile of `{Self}`",
    label = "not a tile of 16-bit elements",
    note = "only tiles of f16 and bf16 can be transposed; with other elements, K must be the contiguous dimension of both operands",
    note = "store the tensor transposed in global memory"
)]
pub trait TransposedElement: MatrixElement {}

/// The pairs of element types that are multiplied with each other, and the types in which their
/// products are summed. `B: Multiply<A, T>` holds if the left operand has elements of type `A`, the
/// right operand elements of type `B`, and the accumulator elements of type `T`.
///
/// | left and right | sum |
/// | --- | --- |
/// | `f16` and `f16` | `f32`, `f16` |
/// | `bf16` and `bf16` | `f32` |
/// | `tf32` and `tf32` | `f32` |
/// | `e4m3` or `e5m2`, and `e4m3` or `e5m2` | `f32`, `f16` |
/// | `i8` or `u8`, and `i8` or `u8` | `i32`, which wraps |
///
/// With 8-bit floats the sum keeps fewer bits than its type. An H200 truncates each product to 13
/// fraction bits below the greatest product of an instruction. If that precision does not suffice
/// for a long sum, add parts of it to a second accumulator.
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
    message = "tensor cores cannot multiply `{Left}` by `{Self}` and accumulate in `{Sum}`",
    label = "these element types cannot be combined",
    note = "supported are f16 by f16, accumulated in f32 or f16; bf16 by bf16 and tf32 by tf32, in f32; e4m3 or e5m2 by e4m3 or e5m2, in f32 or f16; i8 or u8 by i8 or u8, in i32"
)]
pub trait Multiply<Left, Sum>: MatrixElement {}

/// The element types in which an accumulator of `Self` is [stored](super::Accumulator::store).
#[diagnostic::on_unimplemented(
    message = "an accumulator of `{Self}` cannot be stored as `{Element}`",
    label = "not an element type to which this accumulator can be stored",
    note = "f32 can be stored as f32, f16, bf16, e4m3 or e5m2; f16 as f16; i32 as i32",
    note = "for another type, convert element by element: `tile.set(acc.at(i), cast(acc[i]))`"
)]
pub trait StoreAs<Element>: AccumulatorElement {}

/// The element types to which an accumulator of `Self` is [packed](super::Accumulator::pack).
#[diagnostic::on_unimplemented(
    message = "an accumulator of `{Self}` cannot be packed to a fragment of `{Element}`",
    label = "not an element type to which this accumulator can be packed",
    note = "f32 can be packed to f16 or bf16, f16 to f16: only 16-bit operands have their elements in the same threads as an accumulator"
)]
pub trait PackAs<Element>: AccumulatorElement {}

macro_rules! mark {
    ($marker:ident: $($scalar:ty),+) => { $(impl $marker for $scalar {})+ };
}

mark!(AccumulatorElement: f32, f16, i32);
mark!(MatrixElement: f16, bf16, tf32, e4m3, e5m2, i8, u8);
mark!(MatrixFloat: f16, bf16, tf32, e4m3, e5m2);
mark!(TransposedElement: f16, bf16);

/// Syntax: `Right: [Left => Sum, ..];`
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

/// Syntax: `Conversion: From => To, ..;`
macro_rules! conversions {
    ($($conversion:ident: $($from:ty => $to:ty),+;)+) => { $($(impl $conversion<$to> for $from {})+)+ };
}

conversions! {
    StoreAs: f32 => f32, f32 => f16, f32 => bf16, f32 => e4m3, f32 => e5m2, f16 => f16, i32 => i32;
    PackAs: f32 => f16, f32 => bf16, f16 => f16;
}
