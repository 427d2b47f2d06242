//! Element types of matrices, and the types in which their products are stored.

use tma_runtime::Scalar;
use tma_runtime::prelude::*;

mod sealed {
    pub trait Sealed {}
}

/// The element type of A and B, with a GEMM whose results are stored as `C`.
///
/// | `Self` | sums | `C` |
/// | --- | --- | --- |
/// | `bf16` | `f32` | `bf16`, `f32` |
/// | `f16` | `f32`; [`f16`](super::Sums) with a C of `f16` | `f16`, `f32` |
/// | `e4m3`, `e5m2` | `f32`, of which the tensor cores keep 13 bits after the point | `bf16`, `f32` |
/// | `tf32` | `f32` | `f32` |
/// | `i8` | `i32`, which wraps | `i32` |
#[diagnostic::on_unimplemented(
    message = "a GEMM of `{Self}` cannot be stored as `{C}`",
    label = "unsupported element types of a GEMM",
    note = "a GEMM of bf16 is stored as bf16 or f32, of f16 as f16 or f32, of e4m3 and e5m2 as bf16 or f32, of tf32 as f32, of i8 as i32"
)]
pub trait Product<C>: Scalar + sealed::Sealed {
    /// The type of sums.
    #[doc(hidden)]
    type Sum: Scalar;

    /// The prefix of instance names.
    #[doc(hidden)]
    const NAME: &'static str;

    /// The same for sums in `f16`, if they are supported.
    #[doc(hidden)]
    const HALF: Option<&'static str>;
}

macro_rules! products {
    ($($element:ty: $sum:ty, $($c:ty = $name:literal $half:expr),+;)+) => { $(
        impl sealed::Sealed for $element {}
        $(impl Product<$c> for $element {
            type Sum = $sum;
            const NAME: &'static str = $name;
            const HALF: Option<&'static str> = $half;
        })+
    )+ };
}

products! {
    bf16: f32, bf16 = "bf16" None, f32 = "bf16_f32" None;
    f16: f32, f16 = "f16" Some("f16_half"), f32 = "f16_f32" None;
    e4m3: f32, bf16 = "e4m3" None, f32 = "e4m3_f32" None;
    e5m2: f32, bf16 = "e5m2" None, f32 = "e5m2_f32" None;
    tf32: f32, f32 = "tf32" None;
    i8: i32, i32 = "i8" None;
}
