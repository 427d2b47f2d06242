//! Borrowed tensors: an address with a shape and strides.

use crate::device::Device;
use crate::error::Error;
use crate::tensor::layout::{DeviceId, Layout, row_major_strides};
use crate::tensor::{Memory, Scalar};
use std::marker::PhantomData;
use std::sync::Arc;

mod foreign;
mod part;

/// A view of either kind, without its element type.
#[derive(Clone, Copy, Debug)]
struct RawView<'a, const N: usize> {
    device: DeviceId,
    address: u64,
    shape: [usize; N],
    strides: [usize; N],
    /// The allocation that it points into, if known.
    memory: Option<&'a Arc<Memory>>,
}

macro_rules! view {
    ($View:ident) => {
        impl<'a, T, const N: usize> $View<'a, T, N> {
            /// The allocation that it points into, if known.
            pub(crate) fn memory(&self) -> Option<&'a Arc<Memory>> {
                self.raw.memory
            }
        }

        impl<'a, T: Scalar, const N: usize> $View<'a, T, N> {
            /// A view of memory that does not belong to a [`DeviceTensor`](crate::DeviceTensor),
            /// such as another crate's. For a part of a tensor, [`slice`](Self::slice),
            /// [`permute`](Self::permute) and [`with_strides`](Self::with_strides) need no
            /// `unsafe`.
            ///
            /// `address` is that of the first element on `device`; `shape` and `strides` are in
            /// elements, outermost first. The launch checks the rules of tensor maps. Rows may
            /// overlap, as windows over a signal do, if the kernel only loads.
            ///
            /// # Safety
            ///
            /// `address` is a multiple of the element's size. For all of `'a`, and until what was
            /// queued with the view has run, every element that shape and strides reach must be in
            /// allocated memory of `device` that kernels may access through this view: initialised
            /// if it is read, and not used by anything else at the same time if it is written.
            pub unsafe fn from_raw(
                device: &Device,
                address: u64,
                shape: [usize; N],
                strides: [usize; N],
            ) -> Self {
                Self::new(device.id(), address, shape, strides)
            }

            /// As [`from_raw`](Self::from_raw), checked as far as the device knows: that the
            /// address is aligned, and that every element that shape and strides reach is in memory
            /// that the device has allocated and reaches.
            ///
            /// A GPU's driver knows allocations, not tensors: allocators such as PyTorch's put many
            /// tensors into one.
            ///
            /// # Safety
            ///
            /// As [`from_raw`](Self::from_raw): what the checks cannot see is for how long the memory
            /// stays allocated, whether it is initialised, and what else uses it.
            ///
            /// # Errors
            ///
            /// [`ForeignError::Misaligned`](crate::ForeignError::Misaligned),
            /// [`ForeignError::Memory`](crate::ForeignError::Memory) and
            /// [`ForeignError::Context`](crate::ForeignError::Context); [`Error::OtherDevice`];
            /// [`ViewError::Reach`](crate::ViewError::Reach); for mutable views
            /// [`ViewError::Overlap`](crate::ViewError::Overlap); and on the simulator
            /// [`Error::SimulatedMemory`].
            pub unsafe fn from_raw_checked(
                device: &Device,
                address: u64,
                shape: [usize; N],
                strides: [usize; N],
            ) -> Result<Self, Error> {
                let view = Self::new(device.id(), address, shape, strides);
                view.raw.in_memory_of(device, T::ELEMENT)?;
                view.apart()?;
                Ok(view)
            }

            pub(crate) fn new(
                device: DeviceId,
                address: u64,
                shape: [usize; N],
                strides: [usize; N],
            ) -> Self {
                let raw = RawView { device, address, shape, strides, memory: None };
                Self { raw, elements: PhantomData }
            }

            /// A view of a whole allocation, in row-major order.
            pub(crate) fn owned(memory: &'a Arc<Memory>, shape: [usize; N]) -> Self {
                let (device, strides) = (memory.device.id(), row_major_strides(shape));
                let raw = RawView { device, address: memory.address, shape, strides, memory: Some(memory) };
                Self { raw, elements: PhantomData }
            }

            /// The extents in elements, outermost first.
            pub fn shape(&self) -> [usize; N] {
                self.raw.shape
            }

            /// The strides in elements, outermost first.
            pub fn strides(&self) -> [usize; N] {
                self.raw.strides
            }

            /// The address of the first element on the device.
            pub fn as_ptr(&self) -> u64 {
                self.raw.address
            }

            /// Address, shape and strides, whatever the element type and rank.
            pub fn layout(&self) -> Layout {
                let RawView { device, address, shape, strides, .. } = self.raw;
                Layout::new(device, T::ELEMENT, address, shape, strides)
            }
        }
    };
}

/// A tensor that kernels may read, of `N` dimensions with elements of `T`.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a, T, const N: usize> {
    raw: RawView<'a, N>,
    elements: PhantomData<&'a T>,
}

/// A tensor that kernels may read and write, of `N` dimensions with elements of `T`.
#[derive(Debug)]
pub struct TensorViewMut<'a, T, const N: usize> {
    raw: RawView<'a, N>,
    elements: PhantomData<&'a mut T>,
}

view!(TensorView);
view!(TensorViewMut);

impl<T: Scalar, const N: usize> TensorViewMut<'_, T, N> {
    /// An immutable view of the same tensor.
    pub fn as_view(&self) -> TensorView<'_, T, N> {
        TensorView { raw: self.raw, elements: PhantomData }
    }

    /// A mutable view of the same tensor, with a shorter lifetime.
    pub fn reborrow(&mut self) -> TensorViewMut<'_, T, N> {
        TensorViewMut { raw: self.raw, elements: PhantomData }
    }
}
