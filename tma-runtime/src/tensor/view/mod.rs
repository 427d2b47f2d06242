//! Borrowed tensors: an address with a shape and strides.

use crate::device::Device;
use crate::device::memory::Memory;
use crate::error::Error;
use crate::layout::{DeviceId, Layout, row_major_strides};
use crate::scalar::Scalar;
use std::marker::PhantomData;
use std::sync::Arc;

mod foreign;
mod part;

/// The representation of both kinds of view, without the element type.
#[derive(Clone, Copy, Debug)]
struct RawView<'a, const N: usize> {
    device: DeviceId,
    address: u64,
    shape: [usize; N],
    strides: [usize; N],
    /// The allocation that the view points into, if known.
    memory: Option<&'a Arc<Memory>>,
    /// The number of elements from the first one on that may be used, if the view was made from a
    /// contiguous one of another crate's memory.
    available: Option<u64>,
    /// Whether the memory between the elements belongs to another view, since both were split from
    /// one.
    is_split: bool,
}

macro_rules! view {
    ($View:ident) => {
        impl<'a, T, const N: usize> $View<'a, T, N> {
            /// Returns the allocation that the view points into, if known.
            pub(crate) fn memory(&self) -> Option<&'a Arc<Memory>> {
                self.raw.memory
            }
        }

        impl<'a, T: Scalar, const N: usize> $View<'a, T, N> {
            /// Makes a view of memory that does not belong to a
            /// [`DeviceTensor`](crate::DeviceTensor), such as another crate's. For a part of a
            /// tensor, [`slice`](Self::slice), [`permute`](Self::permute) and
            /// [`with_strides`](Self::with_strides) need no `unsafe`.
            ///
            /// `address` is that of the first element on `device`; `shape` and `strides` are in
            /// elements, outermost first. The launch checks the rules for tensor maps. Rows may
            /// overlap, like windows over a signal, if the kernel only loads.
            ///
            /// # Safety
            ///
            /// `address` is a multiple of the element's size. For all of `'a`, and until work
            /// queued with the view has run, every element within shape and strides must be in
            /// allocated memory of `device` that kernels may access through this view. The memory
            /// must be initialised if it is read, and must not be used by anything else at the same
            /// time if it is written.
            pub unsafe fn from_raw(
                device: &Device,
                address: u64,
                shape: [usize; N],
                strides: [usize; N],
            ) -> Self {
                Self::new(device.id(), address, shape, strides)
            }

            /// Makes a view like [`from_raw`](Self::from_raw), but checks what the device can
            /// check: that the address is aligned, and that every element within shape and strides
            /// is in memory that the device has allocated and can access.
            ///
            /// A GPU's driver knows allocations, not tensors: allocators such as PyTorch's place
            /// many tensors in one allocation.
            ///
            /// # Safety
            ///
            /// The conditions of [`from_raw`](Self::from_raw). The checks cannot determine how long
            /// the memory stays allocated, whether it is initialised, and what else uses it.
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
                view.check_disjoint()?;
                Ok(view)
            }

            pub(crate) fn new(
                device: DeviceId,
                address: u64,
                shape: [usize; N],
                strides: [usize; N],
            ) -> Self {
                let (memory, available, is_split) = (None, None, false);
                let raw = RawView { device, address, shape, strides, memory, available, is_split };
                Self { raw, elements: PhantomData }
            }

            /// Returns a view of a whole allocation, in row-major order.
            pub(crate) fn owned(memory: &'a Arc<Memory>, shape: [usize; N]) -> Self {
                let (device, strides) = (memory.device.id(), row_major_strides(shape));
                let (address, memory, available) = (memory.address, Some(memory), None);
                let raw = RawView { device, address, shape, strides, memory, available, is_split: false };
                Self { raw, elements: PhantomData }
            }

            /// Returns the extents in elements, outermost first.
            pub fn shape(&self) -> [usize; N] {
                self.raw.shape
            }

            /// Returns the strides in elements, outermost first.
            pub fn strides(&self) -> [usize; N] {
                self.raw.strides
            }

            /// Returns the device address of the first element.
            pub fn as_ptr(&self) -> u64 {
                self.raw.address
            }

            /// Returns address, shape and strides, without element type and rank in the type.
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
    /// Returns an immutable view of the same tensor.
    pub fn as_view(&self) -> TensorView<'_, T, N> {
        TensorView { raw: self.raw, elements: PhantomData }
    }

    /// Returns a mutable view of the same tensor, with a shorter lifetime.
    pub fn reborrow(&mut self) -> TensorViewMut<'_, T, N> {
        TensorViewMut { raw: self.raw, elements: PhantomData }
    }

    /// Returns the view twice, for a kernel that writes some elements of the tensor through one
    /// parameter, and others through another: by copies of whole tiles, and by threads where a tile
    /// is not stored as a whole.
    ///
    /// # Safety
    ///
    /// Both views are passed to one launch, of a kernel that accesses each element that it writes
    /// through only one of them.
    pub unsafe fn alias(self) -> [Self; 2] {
        let Self { raw, elements } = self;
        [Self { raw, elements }, Self { raw, elements }]
    }
}
