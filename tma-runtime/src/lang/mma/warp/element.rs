//! Element types: which ones a warp multiplies and sums.

use crate::lang::{TileElement, bf16, e4m3, e5m2, f16, sealed::Sealed, tf32};

/// The element of a [`WarpAccumulator`](super::WarpAccumulator): `f32`, `f16`, `i32` or `f64`.
///
/// Source: PTX ISA, "mma", `.dtype`.
#[diagnostic::on_unimplemented(
    message = "a warp does not accumulate in `{Self}`",
    label = "not the element of an accumulator of a warp",
    note = "products of floats are summed in f32, those of f16, e4m3 and e5m2 also in f16; those of integers in i32, and those of f64 in f64"
)]
pub trait WarpSum: Sealed + Copy {}

/// The element of a [`WarpLeft`](super::WarpLeft) or [`WarpRight`](super::WarpRight): `f16`,
/// `bf16`, `tf32`, `e4m3`, `e5m2`, `i8`, `u8` or `f64`; and `u16`, `u32` and `u64`, of which only
/// the bits are multiplied.
///
/// Source: PTX ISA, "mma", `.atype` and `.btype`.
#[diagnostic::on_unimplemented(
    message = "a warp does not multiply elements of type `{Self}`",
    label = "not the element of an operand of a warp",
    note = "it multiplies f16, bf16, tf32, e4m3, e5m2, i8, u8 and f64, and the bits of u8, u16, u32 and u64; for f32 data, load tiles of tf32"
)]
pub trait WarpElement: TileElement + Sealed {}

/// Which elements a warp multiplies with each other, and in which type their products are summed:
/// `B: WarpMultiply<A, T>` if the left operand's elements are of type `A`, the right one's of `B`
/// and the accumulator's of `T`.
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
    message = "a warp does not multiply `{Left}` by `{Self}` and sum in `{Sum}`",
    label = "these element types do not go together",
    note = "it multiplies f16 by f16, summing in f32 or f16; bf16 by bf16 and tf32 by tf32, in f32; e4m3 or e5m2 by e4m3 or e5m2, in f32 or f16; i8 or u8 by i8 or u8, in i32; f64 by f64, in f64"
)]
pub trait WarpMultiply<Left, Sum>: WarpElement {}

/// The types as which an accumulator of a warp of `Self` is
/// [stored](super::WarpAccumulator::store): those of [`StoreAs`](crate::lang::StoreAs), and `f64`
/// as `f64`.
#[diagnostic::on_unimplemented(
    message = "an accumulator of `{Self}` is not stored as `{Element}`",
    label = "not what this accumulator is stored to",
    note = "f32 is stored as f32, f16, bf16, e4m3 or e5m2; f16 as f16; i32 as i32; f64 as f64",
    note = "for another type, convert element by element: `tile.set(acc.at(i), cast(acc[i]))`"
)]
pub trait WarpStoreAs<Element>: WarpSum {}

macro_rules! mark {
    ($marker:ident: $($scalar:ty),+) => { $(impl $marker for $scalar {})+ };
}

mark!(WarpSum: f32, f16, i32, f64);
mark!(WarpElement: f16, bf16, tf32, e4m3, e5m2, i8, u8, u16, u32, u64, f64);

/// `From => To, ..`
macro_rules! stored {
    ($($from:ty => $to:ty),+) => { $(impl WarpStoreAs<$to> for $from {})+ };
}

stored!(f32 => f32, f32 => f16, f32 => bf16, f32 => e4m3, f32 => e5m2, f16 => f16, i32 => i32, f64 => f64);

/// `Right: [Left => Sum, ..];`
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
