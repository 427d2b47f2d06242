//! Tensors in a device's memory.

pub(crate) mod slice;
pub(crate) mod symmetric;
pub(crate) mod view;

use crate::backend::Backend;
use crate::binding::same_device;
use crate::device::Device;
use crate::device::memory::Memory;
use crate::device::stream::{self, Stream};
use crate::error::{Error, ForeignError};
use crate::scalar::Scalar;
use crate::tensor::slice::{GlobalSlice, GlobalSliceMut};
use crate::tensor::view::{TensorView, TensorViewMut};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// A contiguous row-major tensor in a device's memory, of `N` (1 to 5) dimensions with elements of
/// `T`.
///
/// Its address is a multiple of 256 bytes. The memory is freed when the tensor and every
/// [`Graph`](crate::Graph) and [`Prepared`](crate::Prepared) launch that uses it have been dropped,
/// and no kernel uses it any more. Neither holds for memory of another library
/// ([`from_raw`](Self::from_raw)).
#[derive(Debug)]
pub struct DeviceTensor<T, const N: usize> {
    pub(crate) memory: Arc<Memory>,
    pub(crate) shape: [usize; N],
    pub(crate) elements: PhantomData<T>,
}

/// Asserts that tensors may be used from any thread.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<DeviceTensor<u8, 1>>();
};

impl Device {
    /// Copies a host slice into a new tensor of `shape`, outermost extent first.
    ///
    /// # Errors
    ///
    /// [`Error::HostLength`] if the slice's length differs from the shape's number of elements;
    /// [`Error::TensorTooLarge`], [`Error::OutOfMemory`], [`Error::KernelFault`] and
    /// [`Error::Driver`].
    pub fn tensor<T: Scalar, const N: usize>(
        &self,
        host: &[T],
        shape: [usize; N],
    ) -> Result<DeviceTensor<T, N>, Error> {
        let wanted = byte_len::<T, N>(shape)? as usize / size_of::<T>();
        same_length(host.len(), wanted)?;
        let mut tensor = DeviceTensor::allocate(self, shape)?;
        tensor.copy_from(host)?;
        Ok(tensor)
    }

    /// Creates a tensor of zeros.
    ///
    /// # Errors
    ///
    /// [`Error::TensorTooLarge`], [`Error::OutOfMemory`], [`Error::KernelFault`] and
    /// [`Error::Driver`].
    pub fn zeros<T: Scalar, const N: usize>(&self, shape: [usize; N]) -> Result<DeviceTensor<T, N>, Error> {
        self.filled_bytes(shape, 0)
    }

    /// Creates a tensor with every byte set to `byte`. A poison value reveals elements that a
    /// kernel does not write.
    ///
    /// # Errors
    ///
    /// The errors of [`Device::zeros`].
    pub fn filled_bytes<T: Scalar, const N: usize>(
        &self,
        shape: [usize; N],
        byte: u8,
    ) -> Result<DeviceTensor<T, N>, Error> {
        let mut tensor = DeviceTensor::allocate(self, shape)?;
        tensor.fill_bytes(byte)?;
        Ok(tensor)
    }
}

impl<T: Scalar, const N: usize> DeviceTensor<T, N> {
    fn allocate(device: &Device, shape: [usize; N]) -> Result<Self, Error> {
        let memory = Memory::allocate(device, byte_len::<T, N>(shape)?)?;
        Ok(Self { memory: Arc::new(memory), shape, elements: PhantomData })
    }

    /// Makes a tensor of memory that another library has allocated, and that is not freed with it.
    ///
    /// Unlike a [view](TensorView::from_raw), it can be recorded for a [`Graph`](crate::Graph) and
    /// for [`Prepared`](crate::Prepared) launches, and be part of a workspace. The address is a
    /// multiple of the element's size. Tensor maps need multiples of 16 bytes.
    ///
    /// # Safety
    ///
    /// All `shape.iter().product()` elements stay allocated until the tensor and all graphs and
    /// prepared launches that were recorded with it have been dropped, and what was queued has run.
    /// The memory must be initialised before it is read, and must not be used by anything else
    /// while a kernel writes it or the host borrows the tensor mutably.
    ///
    /// # Errors
    ///
    /// [`Error::TensorTooLarge`]; [`ForeignError::Misaligned`](crate::ForeignError::Misaligned),
    /// [`ForeignError::Memory`](crate::ForeignError::Memory),
    /// [`ForeignError::Context`](crate::ForeignError::Context) and [`Error::OtherDevice`] if the
    /// memory is not on the device; on the simulator [`Error::SimulatedMemory`]; and
    /// [`Error::Driver`].
    ///
    /// ```
    /// use tma_runtime::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// let device = Device::simulator();
    /// let owner = device.tensor(&[1.0f32, 2.0, 3.0, 4.0], [4])?;
    /// // SAFETY: `owner` outlives the tensor, and nothing writes its memory.
    /// let tensor = unsafe { DeviceTensor::<f32, 2>::from_raw(&device, owner.as_ptr() + 8, [1, 2])? };
    /// assert_eq!(tensor.to_vec()?, [3.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn from_raw(device: &Device, address: u64, shape: [usize; N]) -> Result<Self, Error> {
        let bytes = byte_len::<T, N>(shape)?;
        if !address.is_multiple_of(size_of::<T>() as u64) {
            return Err(ForeignError::Misaligned { address, element: T::ELEMENT }.into());
        }
        let reachable = if bytes == 0 { 0 } else { device.reachable(address, bytes)? };
        if reachable < bytes {
            return Err(ForeignError::Memory { address: address + reachable, device: device.id() }.into());
        }
        let memory = Memory::new(device, address, bytes, true);
        Ok(Self { memory: Arc::new(memory), shape, elements: PhantomData })
    }

    /// Returns the device that holds the tensor.
    pub fn device(&self) -> &Device {
        &self.memory.device
    }

    /// Returns the extents in elements, outermost first.
    pub fn shape(&self) -> [usize; N] {
        self.shape
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.memory.bytes as usize / size_of::<T>()
    }

    /// Returns whether the tensor has no elements.
    pub fn is_empty(&self) -> bool {
        self.memory.bytes == 0
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes
    }

    /// Returns the device address of the first element, to pass to other crates.
    pub fn as_ptr(&self) -> u64 {
        self.memory.address
    }

    /// Returns an immutable view of the tensor.
    pub fn view(&self) -> TensorView<'_, T, N> {
        TensorView::owned(&self.memory, self.shape)
    }

    /// Returns a mutable view of the tensor.
    pub fn view_mut(&mut self) -> TensorViewMut<'_, T, N> {
        TensorViewMut::owned(&self.memory, self.shape)
    }

    /// Returns the tensor's elements, to make an [`Arg`](crate::launch::Arg) for a `Global`
    /// parameter that the kernel only reads.
    pub fn slice(&self) -> GlobalSlice<'_, T> {
        GlobalSlice::new(self.view())
    }

    /// Returns the tensor's elements, to make an [`Arg`](crate::launch::Arg) for a `Global`
    /// parameter that the kernel writes.
    pub fn slice_mut(&mut self) -> GlobalSliceMut<'_, T> {
        GlobalSliceMut::new(self.view_mut())
    }

    /// Copies the tensor to the host, in row-major order, once everything queued on the device has
    /// run.
    ///
    /// # Errors
    ///
    /// [`Error::KernelFault`] if a kernel stopped with a trap or a fault, [`Error::HostMemory`],
    /// and [`Error::Driver`].
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        let len = self.len();
        let mut host = Vec::new();
        host.try_reserve_exact(len).map_err(|_| Error::HostMemory { bytes: self.bytes() })?;
        let elements = &mut host.spare_capacity_mut()[..len];
        // A failed copy leaves bytes uninitialised, which must not be read.
        self.read_into(elements)?;
        T::make_valid(elements);
        // SAFETY: the copy initialised `len` elements, and they were made valid.
        unsafe { host.set_len(len) };
        Ok(host)
    }

    /// Copies the tensor to a host slice, as [`to_vec`](Self::to_vec) does.
    ///
    /// # Errors
    ///
    /// [`Error::HostLength`] if the slice's length differs from the tensor's, and the errors of
    /// [`to_vec`](Self::to_vec).
    pub fn copy_to(&self, host: &mut [T]) -> Result<(), Error> {
        same_length(host.len(), self.len())?;
        // SAFETY: `MaybeUninit<T>` has the layout of `T`, and is left with valid values only.
        let host = unsafe { std::slice::from_raw_parts_mut(host.as_mut_ptr().cast(), host.len()) };
        let copied = self.read_into(host);
        // Done even if the copy failed, since it may have been partial. All bytes were initialised
        // before it.
        T::make_valid(host);
        copied
    }

    /// Overwrites the tensor with a host slice, once everything queued on the device has run.
    ///
    /// # Errors
    ///
    /// [`Error::HostLength`] if the slice's length differs from the tensor's,
    /// [`Error::KernelFault`] and [`Error::Driver`].
    pub fn copy_from(&mut self, host: &[T]) -> Result<(), Error> {
        same_length(host.len(), self.len())?;
        let Memory { device, address, bytes, .. } = &*self.memory;
        if self.is_empty() {
            return Ok(());
        }
        self.memory.wait_for_peers()?;
        match device.backend() {
            // SAFETY: both sides have `bytes` bytes, as checked above, and scalars have no padding.
            Backend::Cuda(context) => unsafe {
                context.copy_to_device(*address, host.as_ptr().cast(), *bytes)
            },
            // SAFETY: scalars have no padding, so all bytes of a slice of them are initialised.
            Backend::Sim(context) => context.write(*address, unsafe {
                std::slice::from_raw_parts(host.as_ptr().cast(), size_of_val(host))
            }),
        }
    }

    /// Queues a copy of another tensor of the device into this one.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`], [`Error::OtherDevice`], [`Error::KernelFault`] and
    /// [`Error::Driver`].
    pub fn copy_from_device(&mut self, from: &Self, stream: &Stream) -> Result<(), Error> {
        same_shape(&from.shape, &self.shape)?;
        let wanted = stream.device().id();
        same_device("the source tensor", from.device().id(), wanted)?;
        same_device("the destination tensor", self.device().id(), wanted)?;
        if self.is_empty() {
            return Ok(());
        }
        match stream.backend() {
            // SAFETY: both are allocations of `bytes` bytes, and freeing one waits for the copy.
            stream::Backend::Cuda(stream) => unsafe {
                stream.copy_on_device(self.as_ptr(), from.as_ptr(), self.bytes())
            },
            stream::Backend::Sim => match self.device().backend() {
                Backend::Sim(context) => context.copy(self.as_ptr(), from.as_ptr(), self.bytes()),
                // All three belong to the same device, as checked above.
                Backend::Cuda(_) => Ok(()),
            },
        }
    }

    /// Queues a fill: every byte of the tensor becomes `byte`.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDevice`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn fill_bytes_on(&mut self, byte: u8, stream: &Stream) -> Result<(), Error> {
        same_device("the tensor", self.device().id(), stream.device().id())?;
        if self.is_empty() {
            return Ok(());
        }
        match stream.backend() {
            // SAFETY: the memory has these bytes. Freeing an allocation waits for the stream, and
            // other memory stays until what is queued has run, as its owner promised (`from_raw`).
            stream::Backend::Cuda(stream) => unsafe { stream.fill(self.as_ptr(), byte, self.bytes()) },
            // The simulator runs everything at once.
            stream::Backend::Sim => self.fill_bytes(byte),
        }
    }

    /// Sets every byte of the tensor to `byte`, once everything queued on the device has run.
    ///
    /// # Errors
    ///
    /// [`Error::KernelFault`] and [`Error::Driver`].
    pub fn fill_bytes(&mut self, byte: u8) -> Result<(), Error> {
        let Memory { device, address, bytes, .. } = &*self.memory;
        if self.is_empty() {
            return Ok(());
        }
        self.memory.wait_for_peers()?;
        match device.backend() {
            // SAFETY: the allocation has `bytes` bytes.
            Backend::Cuda(context) => unsafe { context.fill(*address, byte, *bytes) },
            Backend::Sim(context) => context.fill(*address, byte, *bytes),
        }
    }

    /// Copies to the host. Making the values valid is left to the caller. After an error some bytes
    /// may have been copied; the others are unchanged, and may be uninitialised.
    fn read_into(&self, host: &mut [MaybeUninit<T>]) -> Result<(), Error> {
        let Memory { device, address, bytes, .. } = &*self.memory;
        if self.is_empty() {
            return Ok(());
        }
        self.memory.wait_for_peers()?;
        match device.backend() {
            // SAFETY: callers pass `self.len()` elements, which are `bytes` bytes.
            Backend::Cuda(context) => unsafe {
                context.copy_to_host(host.as_mut_ptr().cast(), *address, *bytes)
            },
            Backend::Sim(context) => {
                host.fill(MaybeUninit::zeroed());
                // SAFETY: all bytes were just initialised, and may hold any value until they are
                // made valid.
                context.read(*address, unsafe {
                    std::slice::from_raw_parts_mut(host.as_mut_ptr().cast(), *bytes as usize)
                })
            }
        }
    }
}

/// Returns the size of a tensor in bytes. It must fit in 63 bits, like that of a host slice.
pub(crate) fn byte_len<T: Scalar, const N: usize>(shape: [usize; N]) -> Result<u64, Error> {
    shape
        .iter()
        .try_fold(size_of::<T>(), |bytes, &extent| bytes.checked_mul(extent))
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .map(|bytes| bytes as u64)
        .ok_or_else(|| Error::TensorTooLarge { shape: shape.to_vec(), element: T::ELEMENT })
}

pub(crate) fn same_length(found: usize, wanted: usize) -> Result<(), Error> {
    if found == wanted { Ok(()) } else { Err(Error::HostLength { found, wanted }) }
}

fn same_shape(found: &[usize], wanted: &[usize]) -> Result<(), Error> {
    if found == wanted {
        Ok(())
    } else {
        Err(Error::ShapeMismatch { found: found.to_vec(), wanted: wanted.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T, Error>) -> Option<&'static str> {
        result.err().map(|error| {
            assert!(error.to_string().starts_with(&format!("{}: ", error.code())), "{error}");
            error.code()
        })
    }

    #[test]
    fn memory_of_other_libraries_is_not_freed() {
        let device = Device::simulator();
        let owner = device.tensor(&[1u32, 2, 3, 4], [4]).expect("a tensor");
        let at = |address, shape: [usize; 1]| {
            // SAFETY: `owner` outlives the tensor, which nothing writes.
            unsafe { DeviceTensor::<u32, 1>::from_raw(&device, address, shape) }
        };
        let part = at(owner.as_ptr() + 8, [2]).expect("a tensor");
        assert_eq!(part.to_vec().ok(), Some(vec![3, 4]));
        drop(part);
        assert_eq!(owner.to_vec().ok(), Some(vec![1, 2, 3, 4]));
        assert_eq!(code(at(0, [0])), None);
        assert_eq!(code(at(owner.as_ptr() + 2, [1])), Some("TMA0564"));
        assert_eq!(code(at(owner.as_ptr() + 8, [3])), Some("TMA0564"));
        assert_eq!(code(at(0x1000, [1])), Some("TMA0618"));
        assert_eq!(code(at(owner.as_ptr(), [usize::MAX])), Some("TMA0515"));
    }

    #[test]
    fn tma0512_host_slices_have_as_many_elements() {
        assert_eq!(code(same_length(6, 6)), None);
        assert_eq!(code(same_length(5, 6)), Some("TMA0512"));
    }

    #[test]
    fn tma0513_copies_are_between_equal_shapes() {
        assert_eq!(code(same_shape(&[2, 3], &[2, 3])), None);
        assert_eq!(code(same_shape(&[3, 2], &[2, 3])), Some("TMA0513"));
    }

    #[test]
    fn tma0515_bytes_fit_63_bits() {
        assert_eq!(byte_len::<f32, 2>([1 << 16, 1 << 16]).ok(), Some(1 << 34));
        assert_eq!(byte_len::<u8, 1>([isize::MAX as usize]).ok(), Some(isize::MAX as u64));
        assert_eq!(code(byte_len::<u8, 1>([isize::MAX as usize + 1])), Some("TMA0515"));
        assert_eq!(code(byte_len::<f32, 2>([usize::MAX, usize::MAX])), Some("TMA0515"));
    }
}
