//! Arguments of any type in one list, as a launch takes them.

use crate::binding::Argument;
use crate::device::memory::Memory;
use crate::map::options::MapOptions;
use crate::scalar::Scalar;
use crate::tensor::slice::{GlobalSlice, GlobalSliceMut};
use crate::tensor::view::{TensorView, TensorViewMut};
use std::sync::Arc;

/// A type-erased argument of a launch. Like `&mut`, an argument that is borrowed mutably cannot be
/// copied:
///
/// ```compile_fail,E0382
/// # use tma_runtime::{DeviceTensor, launch::Arg};
/// fn refused<'a>(tensor: &'a mut DeviceTensor<f32, 1>) -> [Arg<'a>; 2] {
///     let arg = Arg::global_mut(tensor.slice_mut());
///     [arg, arg]
/// }
/// ```
#[derive(Debug)]
pub struct Arg<'a> {
    argument: Argument,
    memory: Option<&'a Arc<Memory>>,
}

impl<'a> Arg<'a> {
    /// Passes a tensor to a `TensorMap` parameter that the kernel only reads.
    pub fn map<T: Scalar, const N: usize>(tensor: TensorView<'a, T, N>) -> Self {
        Self { argument: Argument::map(tensor.layout(), false), memory: tensor.memory() }
    }

    /// Passes a tensor to a `TensorMap` parameter that the kernel writes.
    pub fn map_mut<T: Scalar, const N: usize>(tensor: TensorViewMut<'a, T, N>) -> Self {
        Self { argument: Argument::map(tensor.layout(), true), memory: tensor.memory() }
    }

    /// Sets the options of the tensor's map. It has no effect on other arguments.
    #[must_use]
    pub fn with(mut self, options: MapOptions) -> Self {
        self.argument.set_options(options);
        self
    }

    /// Passes the elements of a tensor to a `Global` parameter that the kernel only reads.
    pub fn global<T: Scalar>(slice: GlobalSlice<'a, T>) -> Self {
        Self { argument: Argument::global(slice.layout, false), memory: slice.memory }
    }

    /// Passes the elements of a tensor to a `Global` parameter that the kernel writes.
    pub fn global_mut<T: Scalar>(slice: GlobalSliceMut<'a, T>) -> Self {
        Self { argument: Argument::global(slice.layout, true), memory: slice.memory }
    }

    /// Passes the elements of a tensor, or nothing, to an `Option<Global>` parameter that the
    /// kernel only reads. Whether there is a tensor is an argument of its own, a `bool` after those
    /// of the kernel's signature.
    pub fn optional<T: Scalar>(slice: Option<GlobalSlice<'a, T>>) -> Self {
        slice.map_or_else(Self::nothing::<T>, Self::global)
    }

    /// Like [`optional`](Self::optional), for a parameter that the kernel writes.
    pub fn optional_mut<T: Scalar>(slice: Option<GlobalSliceMut<'a, T>>) -> Self {
        slice.map_or_else(Self::nothing::<T>, Self::global_mut)
    }

    /// Returns the same argument, for the launch that this one is for.
    pub(crate) fn again(&self) -> Arg<'_> {
        Arg { argument: self.argument, memory: self.memory }
    }

    /// Passes the tensors of all ranks. Their owners are not recorded.
    pub(crate) fn of_ranks(argument: Argument) -> Self {
        Self { argument, memory: None }
    }

    fn nothing<T: Scalar>() -> Self {
        Self { argument: Argument::nothing::<T>(), memory: None }
    }

    /// Passes a value to a scalar parameter.
    pub fn scalar<T: Scalar>(value: T) -> Self {
        Self { argument: Argument::scalar(value), memory: None }
    }

    /// Returns the allocation of a tensor.
    ///
    /// # Errors
    ///
    /// An error if the tensor is a view of memory whose owner is unknown.
    pub(crate) fn memory(&self) -> Result<Option<&'a Arc<Memory>>, ()> {
        if self.argument.is_in_memory() { self.memory.ok_or(()).map(Some) } else { Ok(None) }
    }
}

impl AsRef<Argument> for Arg<'_> {
    fn as_ref(&self) -> &Argument {
        &self.argument
    }
}
