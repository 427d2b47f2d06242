//! The traits of launcher arguments, such as `impl MapArg<f16, 2>`.
//!
//! A parameter that the kernel writes through requires the `Mut` trait, which only `&mut` tensors
//! implement.

pub(crate) mod erased;
pub(crate) mod im2col;
pub(crate) mod options;
pub(crate) mod peers;

use crate::map::options::MapOptions;
use crate::scalar::Scalar;
use crate::tensor::DeviceTensor;
use crate::tensor::slice::{GlobalSlice, GlobalSliceMut};
use crate::tensor::view::{TensorView, TensorViewMut};

/// A tensor of `N` dimensions with elements of `T` that a kernel reads through a tensor map.
#[diagnostic::on_unimplemented(
    message = "this parameter takes a tensor of {N} dimensions with elements of `{T}`, not `{Self}`",
    label = "pass `&DeviceTensor<{T}, {N}>` or `TensorView<{T}, {N}>`"
)]
pub trait MapArg<T: Scalar, const N: usize> {
    /// Returns the tensor's address, shape and strides.
    fn view(&self) -> TensorView<'_, T, N>;

    /// Returns the options of the tensor's map.
    fn options(&self) -> MapOptions {
        MapOptions::default()
    }
}

/// A tensor of `N` dimensions with elements of `T` that a kernel writes through a tensor map. Any
/// other argument is the error `TMA0301`.
///
/// Types of other crates may implement it: they get a [`TensorViewMut`] from a tensor that they may
/// write, or from `unsafe` code.
///
/// ```
/// # use tma_runtime::{DeviceTensor, launch::MapArgMut};
/// fn launch(dst: impl MapArgMut<f32, 2>) {}
/// fn accepted(tensor: &mut DeviceTensor<f32, 2>) {
///     launch(tensor);
/// }
/// ```
///
/// ```compile_fail,E0277
/// # use tma_runtime::{DeviceTensor, launch::MapArgMut};
/// fn launch(dst: impl MapArgMut<f32, 2>) {}
/// fn refused(tensor: &DeviceTensor<f32, 2>) {
///     launch(tensor);
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "TMA0301: the kernel writes this tensor of {N} dimensions with elements of `{T}`, so it cannot be passed as `{Self}`",
    label = "pass `&mut DeviceTensor<{T}, {N}>` or `TensorViewMut<{T}, {N}>`"
)]
pub trait MapArgMut<T: Scalar, const N: usize> {
    /// Returns the tensor's address, shape and strides, borrowed mutably.
    fn view_mut(&mut self) -> TensorViewMut<'_, T, N>;

    /// Returns the options of the tensor's map.
    fn options(&self) -> MapOptions {
        MapOptions::default()
    }
}

/// A tensor of elements of `T`, of any shape, that a kernel reads as `Global<T>`.
#[diagnostic::on_unimplemented(
    message = "this parameter takes a tensor with elements of `{T}`, not `{Self}`",
    label = "pass `&DeviceTensor<{T}, _>` or `TensorView<{T}, _>`"
)]
pub trait GlobalArg<T: Scalar> {
    /// Returns the tensor's elements.
    fn slice(&self) -> GlobalSlice<'_, T>;
}

/// A tensor of elements of `T`, of any shape, that a kernel writes as `Global<T>`.
#[diagnostic::on_unimplemented(
    message = "TMA0301: the kernel writes this tensor with elements of `{T}`, so it cannot be passed as `{Self}`",
    label = "pass `&mut DeviceTensor<{T}, _>` or `TensorViewMut<{T}, _>`"
)]
pub trait GlobalArgMut<T: Scalar> {
    /// Returns the tensor's elements, borrowed mutably.
    fn slice_mut(&mut self) -> GlobalSliceMut<'_, T>;
}

/// Implements the traits of arguments that the kernel reads, for types with a view.
macro_rules! read {
    ($(<$($life:lifetime)?> $ty:ty, |$tensor:ident| $view:expr;)+) => { $(
        impl<$($life,)? T: Scalar, const N: usize> MapArg<T, N> for $ty {
            fn view(&self) -> TensorView<'_, T, N> {
                let $tensor = self;
                $view
            }
        }

        impl<$($life,)? T: Scalar, const N: usize> GlobalArg<T> for $ty {
            fn slice(&self) -> GlobalSlice<'_, T> {
                GlobalSlice::new(MapArg::<T, N>::view(self))
            }
        }
    )+ };
}

read! {
    <> &DeviceTensor<T, N>, |tensor| DeviceTensor::view(tensor);
    <> &mut DeviceTensor<T, N>, |tensor| DeviceTensor::view(tensor);
    <'a> TensorView<'a, T, N>, |view| *view;
    <'a> &TensorView<'a, T, N>, |view| **view;
}

/// Implements the traits of arguments that the kernel writes, for types with a mutable view.
macro_rules! written {
    ($(<$($life:lifetime)?> $ty:ty, |$tensor:ident| $view:expr;)+) => { $(
        impl<$($life,)? T: Scalar, const N: usize> MapArgMut<T, N> for $ty {
            fn view_mut(&mut self) -> TensorViewMut<'_, T, N> {
                let $tensor = self;
                $view
            }
        }

        impl<$($life,)? T: Scalar, const N: usize> GlobalArgMut<T> for $ty {
            fn slice_mut(&mut self) -> GlobalSliceMut<'_, T> {
                GlobalSliceMut::new(MapArgMut::<T, N>::view_mut(self))
            }
        }
    )+ };
}

written! {
    <> &mut DeviceTensor<T, N>, |tensor| DeviceTensor::view_mut(tensor);
    <'a> TensorViewMut<'a, T, N>, |view| view.reborrow();
    <'a> &mut TensorViewMut<'a, T, N>, |view| view.reborrow();
}
