//! Element types that a warp multiplies and sums.

use crate::lang::{TileElement, bf16, e4m3, e5m2, f16, sealed::Sealed, tf32};

/// The element of a [`WarpAccumulator`](super::WarpAccumulator): `f32`, `f16`, `i32` or `f64`.
///
/// Source: PTX ISA, "mma", `.dtype`.
#[diagnostic::on_unimplemented(
    message = "a warp cannot accumulate in `{Self}`",
    label = "not an element type of a warp's accumulators",
    note = "floats are accumulated in f32, products of f16, e4m3 and e5m2 also in f16; integers in i32, and f64 in f64"
)]
pub trait WarpSum: Sealed + Copy {}

/// The element of a [`WarpLeft`](super::WarpLeft) or [`WarpRight`](super::WarpRight): `f16`,
/// `bf16`, `tf32`, `e4m3`, `e5m2`, `i8`, `u8` or `f64`; also `u16`, `u32` and `u64`, of which only
/// the bits are multiplied.
///
/// Source: PTX ISA, "mma", `.atype` and `.btype`.
#[diagnostic::on_unimplemented(
    message = "a warp cannot multiply elements of type `{Self}`",
    label = "not an element type of a warp's operands",
    note = "supported element types are f16, bf16, tf32, e4m3, e5m2, i8, u8 and f64, and the bits of u8, u16, u32 and u64; for f32 data, load tiles of tf32"
)]
pub trait WarpElement: TileElement + Sealed {}

/// The pairs of element types that a warp multiplies with each other, and the types in which their
/// products are summed. `B: WarpMultiply<A, T>` holds if the left operand has elements of type `A`,
/// the right operand elements of type `B`, and the accumulator elements of type `T`.
///
/// | left and right | sum | K is a multiple of | an instruction takes up to |
/// | --- | --- | --- | --- |
/// | `f16` and `f16` | `f32`, `f16` | 8 | 16 |
/// | `bf16` and `bf16` | `f32` | 8 | 16 |
/// | `tf32` and `tf32` | `f32` | 4 | 8 |
/// | `e4m3` or `e5m2`, and `e4m3` or `e5m2` | `f32`, `f16` | 16 | 32 |
/// | `i8` or `u8`, and `i8` or `u8` | `i32`, which wraps | 16 | 32 |
/// | `f64` and `f64` | `f64` | 4 | 16 |
///
/// Source: PTX ISA, "mma", the table of shapes and types.
#[diagnostic::on_unimplemented(
    message = "a warp cannot multiply `{Left}` by `{Self}` and accumulate in `{Sum}`",
    label = "these element types cannot be combined",
    note = "supported are f16 by f16, accumulated in f32 or f16; bf16 by bf16 and tf32 by tf32, in f32; e4m3 or e5m2 by e4m3 or e5m2, in f32 or f16; i8 or u8 by i8 or u8, in i32; f64 by f64, in f64"
)]
pub trait WarpMultiply<Left, Sum>: WarpElement {}

/// The element types in which an accumulator of a warp of `Self` is
/// [stored](super::WarpAccumulator::store): those of [`StoreAs`](crate::lang::StoreAs), and `f64`
/// as `f64`.
#[diagnostic::on_unimplemented(
    message = "an accumulator of `{Self}` cannot be stored as `{Element}`",
    label = "not an element type to which this accumulator can be stored",
    note = "f32 can be stored as f32, f16, bf16, e4m3 or e5m2; f16 as f16; i32 as i32; f64 as f64",
    note = "for another type, convert element by element: `tile.set(acc.at(i), cast(acc[i]))`"
)]
pub trait WarpStoreAs<Element>: WarpSum {}

macro_rules! mark {
    ($marker:ident: $($scalar:ty),+) => { $(impl $marker for $scalar {})+ };
}

mark!(WarpSum: f32, f16, i32, f64);
mark!(WarpElement: f16, bf16, tf32, e4m3, e5m2, i8, u8, u16, u32, u64, f64);

/// Syntax: `From => To, ..`
macro_rules! stored {
    ($($from:ty => $to:ty),+) => { $(impl WarpStoreAs<$to> for $from {})+ };
}

stored!(f32 => f32, f32 => f16, f32 => bf16, f32 => e4m3, f32 => e5m2, f16 => f16, i32 => i32, f64 => f64);

/// Syntax: `Right: [Left => Sum, ..];`
macro_rules! products {
    ($($right:ty: [$($left:ty => $sum:ty),+];)+) => { $($(impl WarpMultiply<$left, $sum> for $right {})+)+ };
}

products! {
    f16: [f16 => f32, f16 => f16];
    bf16: [bf16 => f32];
    tf32: [tf32 => f32];
    e4m3: [e4m3 => f32, e4m3 => f16, e5m2 => f32, e5m2 => f16];
    e5m2: [e4m3 => f32, e4m3 => f16, e5m2 => f32, e5m2 => f16];
    i8: [i8 => i32, u8 => i32];
    u8: [i8 => i32, u8 => i32];
    f64: [f64 => f64];
}
