//! The elements of a cache, and the kernels that take them.

use tma_runtime::Scalar;
use tma_runtime::prelude::*;

use super::AttentionElement;

mod sealed {
    use tma_runtime::Scalar;
    use tma_runtime::prelude::*;

    pub trait Sealed<T>: Sized {
        /// The element as which queries, keys, weights and values are multiplied.
        type Multiplied: Scalar;
        /// The constant `SHIFT` of the kernels' instances.
        const SHIFT: i32;

        /// Returns keys or values as elements of queries, if they are.
        fn unwidened(view: TensorView<'_, Self, 4>) -> Option<TensorView<'_, T, 4>>;
    }

    impl Sealed<Self> for bf16 {
        type Multiplied = Self;
        const SHIFT: i32 = 32;

        fn unwidened(view: TensorView<'_, Self, 4>) -> Option<TensorView<'_, Self, 4>> {
            Some(view)
        }
    }

    impl Sealed<Self> for f16 {
        type Multiplied = Self;
        const SHIFT: i32 = -7;

        fn unwidened(view: TensorView<'_, Self, 4>) -> Option<TensorView<'_, Self, 4>> {
            Some(view)
        }
    }

    impl<T> Sealed<T> for e4m3 {
        type Multiplied = f16;
        const SHIFT: i32 = <f16 as Sealed<f16>>::SHIFT;

        fn unwidened(_: TensorView<'_, Self, 4>) -> Option<TensorView<'_, T, 4>> {
            None
        }
    }
}

/// The element types of a cache for queries of `T`: `T` itself, and `e4m3`.
#[diagnostic::on_unimplemented(
    message = "a cache of `{Self}` has no kernel for queries of `{T}`",
    label = "neither `{T}` nor `e4m3`"
)]
pub trait CacheElement<T>: Scalar + sealed::Sealed<T> {
    /// Bytes of an element.
    const BYTES: usize = size_of::<Self>();
}

impl CacheElement<Self> for bf16 {}
impl CacheElement<Self> for f16 {}
impl<T: AttentionElement> CacheElement<T> for e4m3 {}
