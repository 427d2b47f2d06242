//! Scalars: values that fit in a register.

use super::{device_only, sealed::Sealed};

pub use crate::Scalar;
pub use float8::{F8E4M3 as e4m3, F8E5M2 as e5m2};
pub use half::{bf16, f16};

pub use crate::scalar::tf32;

/// A [`Scalar`] that can be an element of a tensor map, and therefore of a [`Tile`](super::Tile).
///
/// These are the element types of `CUtensorMapDataType` (CUDA driver API, "Tensor Map Object
/// Management"). `i8` and the 8-bit floats are copied as bytes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the element type of a tile",
    label = "the copy engine does not support this element type",
    note = "tiles hold i8, u8, u16, u32, i32, u64, i64, f16, bf16, f32, f64, tf32, e4m3 or e5m2"
)]
pub trait TileElement: Scalar {}

/// A number that [`cast`] converts from and to: every scalar except `bool`.
#[diagnostic::on_unimplemented(
    message = "`cast` does not support `{Self}`",
    label = "not an integer or float of the kernel language",
    note = "for a `bool`, write `if condition {{ 1 }} else {{ 0 }}` or `condition as u32`"
)]
pub trait Number: Sealed + Copy {}

macro_rules! mark {
    ($marker:ident: $($scalar:ty),* $(,)?) => { $(impl $marker for $scalar {})* };
}

mark!(Sealed: bool, u8, i8, u16, i16, u32, i32, u64, i64, usize, f16, bf16, f32, f64, tf32, e4m3, e5m2);
mark!(TileElement: i8, u8, u16, u32, i32, u64, i64, f16, bf16, f32, f64, tf32, e4m3, e5m2);
mark!(Number: u8, i8, u16, i16, u32, i32, u64, i64, usize, f16, bf16, f32, f64, tf32, e4m3, e5m2);

/// Converts a number to the type `To`, by value.
///
/// Between primitives it is `as`: integers are truncated or extended, and a float becomes the
/// nearest integer towards zero, saturated, with NaN as 0. Conversions to a float round once, to
/// nearest, ties to even (to [`tf32`] ties away from zero). It also converts from and to
/// [`f16`](struct@f16), [`bf16`], [`tf32`], [`e4m3`] and [`e5m2`], which `as` does not support.
/// Numbers outside of an 8-bit float's range saturate, and so do infinities. A conversion from a
/// type to itself keeps the bits.
///
/// In kernels `f16::from_f64(x)` is `cast::<f16>(x)`, and likewise for `bf16`. On the host these
/// are functions of the crate `half`, which rounds some `f64`s twice: close to a tie it may return
/// the adjacent number.
///
/// PTX: `cvt`. (PTX ISA, "Data Movement and Conversion Instructions: cvt".)
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(tile: Tile<f16, Shape2<8, 64>>, out: Global<f32>) {
/// let i = thread_idx().x;
/// out.set(i, cast::<f32>(tile.get([0, i])) * 0.5);
/// # }
/// ```
pub fn cast<To: Number>(value: impl Number) -> To {
    device_only()
}

/// Returns the size of a scalar type in bytes, a constant. It is Rust's own function, whose type
/// cannot be inferred in a kernel either: `16 / size_of::<T>()` elements have 16 bytes.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # fn kernel(src: Global<f32>, out: Global<f32>) {
/// const LANES: usize = 16 / size_of::<f32>();
/// let first = (block_idx().x * 32 + thread_idx().x) * LANES as u32;
/// out.set_vec(first, src.get_vec::<LANES>(first));
/// # }
/// ```
#[doc(inline)]
pub use core::mem::size_of;
