//! Matches the arguments of a launch with the kernel's parameters, in the same way for every
//! backend.

use crate::device::stream::same_device;
use crate::error::{ArgumentKind, Error};
use crate::launch::args::{GlobalSlice, GlobalSliceMut};
use crate::map::options::{MapOptions, MapSource};
use crate::spec::{KernelSpec, MapMode, MapSpec, ParamKind};
use crate::tensor::layout::{DeviceId, Layout};
use crate::tensor::{Memory, Scalar, TensorView, TensorViewMut};
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
    value: Value,
    memory: Option<&'a Arc<Memory>>,
    /// Whether the tensor is borrowed mutably.
    mutable: bool,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Map(MapSource),
    /// `len` is meaningless unless the elements are contiguous.
    Global {
        layout: Layout,
        contiguous: bool,
        address: u64,
        len: u64,
    },
    Scalar {
        bits: u64,
        bytes: u32,
    },
}

impl Value {
    fn global(layout: Layout) -> Self {
        let len = layout.contiguous_len();
        let (contiguous, address) = (len.is_some(), layout.address());
        Self::Global { layout, contiguous, address, len: len.unwrap_or_default() }
    }
}

impl<'a> Arg<'a> {
    /// Passes a tensor to a `TensorMap` parameter that the kernel only reads.
    pub fn map<T: Scalar, const N: usize>(tensor: TensorView<'a, T, N>) -> Self {
        Self { value: Value::Map(tensor.layout().into()), memory: tensor.memory(), mutable: false }
    }

    /// Passes a tensor to a `TensorMap` parameter that the kernel writes.
    pub fn map_mut<T: Scalar, const N: usize>(tensor: TensorViewMut<'a, T, N>) -> Self {
        Self { value: Value::Map(tensor.layout().into()), memory: tensor.memory(), mutable: true }
    }

    /// Sets the options of the tensor's map. It has no effect on other arguments.
    #[must_use]
    pub fn with(mut self, options: MapOptions) -> Self {
        if let Value::Map(source) = &mut self.value {
            source.options = options;
        }
        self
    }

    /// Passes the elements of a tensor to a `Global` parameter that the kernel only reads.
    pub fn global<T: Scalar>(slice: GlobalSlice<'a, T>) -> Self {
        Self { value: Value::global(slice.layout), memory: slice.memory, mutable: false }
    }

    /// Passes the elements of a tensor to a `Global` parameter that the kernel writes.
    pub fn global_mut<T: Scalar>(slice: GlobalSliceMut<'a, T>) -> Self {
        Self { value: Value::global(slice.layout), memory: slice.memory, mutable: true }
    }

    /// Passes a value to a scalar parameter.
    pub fn scalar<T: Scalar>(value: T) -> Self {
        let value = Value::Scalar { bits: value.raw_bits(), bytes: T::ELEMENT.bytes() };
        Self { value, memory: None, mutable: false }
    }

    /// Returns the allocation of a tensor.
    ///
    /// # Errors
    ///
    /// An error if the tensor is a view of memory whose owner is unknown.
    pub(crate) fn memory(&self) -> Result<Option<&'a Arc<Memory>>, ()> {
        match (&self.value, self.memory) {
            (Value::Scalar { .. }, _) => Ok(None),
            (Value::Map(_) | Value::Global { .. }, Some(memory)) => Ok(Some(memory)),
            (Value::Map(_) | Value::Global { .. }, None) => Err(()),
        }
    }

    /// Returns the kind of the argument.
    fn kind(&self) -> ArgumentKind {
        match &self.value {
            Value::Map(MapSource { layout, options }) if options.corners.is_some() => {
                ArgumentKind::Im2colMap { element: layout.element() }
            }
            Value::Map(source) => ArgumentKind::TensorMap { element: source.layout.element() },
            Value::Global { layout, .. } => ArgumentKind::Global { element: layout.element() },
            &Value::Scalar { bytes, .. } => ArgumentKind::Scalar { bytes },
        }
    }
}

/// An argument that fits its parameter.
#[derive(Debug)]
pub enum Bound<'a> {
    /// One PTX parameter: a tensor map. [`map_params`](crate::map::map_params) has not checked it
    /// yet.
    Map {
        /// The index of the kernel's parameter.
        index: usize,
        /// The parameter's name.
        tensor: &'static str,
        /// The box.
        spec: &'static MapSpec,
        /// The tensor and the options of its map.
        source: &'a MapSource,
    },
    /// Two PTX parameters.
    Global {
        /// The address of the first element.
        address: &'a u64,
        /// The number of elements.
        len: &'a u64,
    },
    /// One PTX parameter.
    Scalar {
        /// The value, zero-extended. The kernel declares its size in bytes.
        bits: &'a u64,
    },
}

/// Matches arguments with parameters, and passes them to `visit` in the order of the PTX
/// parameters.
///
/// # Errors
///
/// [`Error::ArgumentCount`], [`Error::ArgumentMismatch`], [`Error::OtherDevice`],
/// [`Error::ElementMismatch`], [`Error::NotContiguous`], [`Error::MisalignedGlobal`],
/// [`Error::NotMutable`], and those of `visit`.
pub fn bind<'a>(
    device: DeviceId,
    spec: &'static KernelSpec,
    args: &'a [Arg<'_>],
    mut visit: impl FnMut(Bound<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    if args.len() != spec.params.len() {
        let (found, wanted) = (args.len(), spec.params.len());
        return Err(Error::ArgumentCount { kernel: spec.name, found, wanted });
    }
    for (index, (param, arg)) in spec.params.iter().zip(args).enumerate() {
        let tensor = param.name;
        let bound = match (&param.kind, &arg.value) {
            (ParamKind::Map(spec), Value::Map(source))
                if matches!(spec.mode, MapMode::Im2col { .. }) == source.options.corners.is_some() =>
            {
                same_device(tensor, source.layout.device(), device)?;
                Bound::Map { index, tensor, spec, source }
            }
            (
                &ParamKind::Global { element: wanted, alignment, .. },
                Value::Global { layout, contiguous, address, len },
            ) => {
                same_device(tensor, layout.device(), device)?;
                match layout.element() {
                    found if found != wanted => return Err(Error::ElementMismatch { tensor, found, wanted }),
                    _ if !contiguous => return Err(Error::NotContiguous { tensor }),
                    _ if !address.is_multiple_of(u64::from(alignment)) => {
                        return Err(Error::MisalignedGlobal { tensor, address: *address, alignment });
                    }
                    _ => Bound::Global { address, len },
                }
            }
            (ParamKind::Scalar { bytes: wanted }, Value::Scalar { bits, bytes }) if bytes == wanted => {
                Bound::Scalar { bits }
            }
            (kind, _) => {
                let (found, wanted) = (arg.kind(), kind.into());
                return Err(Error::ArgumentMismatch { kernel: spec.name, parameter: tensor, found, wanted });
            }
        };
        if param.kind.written() && !arg.mutable {
            return Err(Error::NotMutable { kernel: spec.name, tensor });
        }
        visit(bound)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
