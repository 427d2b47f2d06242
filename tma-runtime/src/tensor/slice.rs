//! The elements of tensors, for `Global` parameters, which know no shape.

use crate::device::memory::Memory;
use crate::layout::Layout;
use crate::scalar::Scalar;
use crate::tensor::view::{TensorView, TensorViewMut};
use std::marker::PhantomData;
use std::sync::Arc;

macro_rules! slice {
    ($(#[$doc:meta])* $Slice:ident of $View:ident, $borrow:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $Slice<'a, T> {
            pub(crate) layout: Layout,
            pub(crate) memory: Option<&'a Arc<Memory>>,
            elements: PhantomData<$borrow>,
        }

        impl<'a, T: Scalar> $Slice<'a, T> {
            /// Returns the elements of a tensor.
            pub fn new<const N: usize>(tensor: $View<'a, T, N>) -> Self {
                Self { layout: tensor.layout(), memory: tensor.memory(), elements: PhantomData }
            }
        }
    };
}

slice! {
    /// The elements of a tensor, for a `Global` parameter that the kernel only reads. The launch
    /// checks that they are contiguous.
    #[derive(Clone, Copy)]
    GlobalSlice of TensorView, &'a T
}

slice! {
    /// The elements of a tensor, for a `Global` parameter that the kernel writes. The launch checks
    /// that they are contiguous.
    ///
    /// A shared borrow does not suffice:
    ///
    /// ```
    /// # use tma_runtime::{DeviceTensor, launch::{Arg, GlobalSliceMut}};
    /// fn accepted(tensor: &mut DeviceTensor<f32, 2>) -> Arg<'_> {
    ///     Arg::global_mut(tensor.slice_mut())
    /// }
    /// ```
    ///
    /// ```compile_fail,E0596
    /// # use tma_runtime::{DeviceTensor, launch::{Arg, GlobalSliceMut}};
    /// fn refused(tensor: &DeviceTensor<f32, 2>) -> Arg<'_> {
    ///     Arg::global_mut(tensor.slice_mut())
    /// }
    /// ```
    ///
    /// ```compile_fail,E0308
    /// # use tma_runtime::{DeviceTensor, launch::{Arg, GlobalSliceMut}};
    /// fn refused(tensor: &DeviceTensor<f32, 2>) -> Arg<'_> {
    ///     Arg::global_mut(tensor.slice())
    /// }
    /// ```
    GlobalSliceMut of TensorViewMut, &'a mut T
}
