//! Exchange of contexts, streams, memory and modules with cust.
//!
//! The receiver of an object destroys it; nothing is copied. cust works in the context that is
//! current on the thread, which [`Device::to_cust`] sets.

use crate::backend::{Backend, cuda};
use crate::device::Device;
use crate::device::memory::Memory;
use crate::device::stream::{self, Stream};
use crate::error::{Error, ForeignError};
use crate::map::Descriptor;
use crate::scalar::Scalar;
use crate::spec::KernelSpec;
use crate::tensor::{DeviceTensor, byte_len, same_length};
use cust::memory::bytemuck::Pod;
use cust::memory::{DeviceBuffer, DeviceCopy, DeviceMemory, DevicePointer};
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

// SAFETY: the 128 bytes hold an address on the device, and refer to nothing on the host.
unsafe impl DeviceCopy for Descriptor {}

impl Device {
    /// Returns the device of a cust context, as [`Device::cuda`] opens it. The device keeps the
    /// context open by itself, so it may outlive `context`.
    ///
    /// cust's contexts are primary ones. For those of [`cust::context::legacy`] there is
    /// [`Device::from_context`].
    ///
    /// # Errors
    ///
    /// The same as for [`Device::cuda`].
    pub fn from_cust(context: &cust::context::Context) -> Result<Self, Error> {
        // SAFETY: the context is alive, and it is the primary context of its GPU, which is also
        // opened here and kept until the process ends.
        unsafe { Self::from_context(context.as_raw().cast()) }
    }

    /// Returns the device's context as a cust context. It becomes current on this thread and stays
    /// so: cust allocates, makes streams and loads modules in the current context.
    ///
    /// # Errors
    ///
    /// [`ForeignError::NotPrimary`] unless the device is one of [`Device::cuda`], and
    /// [`Error::Driver`].
    pub fn to_cust(&self) -> Result<cust::context::Context, Error> {
        self.gpu()?.to_cust()
    }

    /// Loads the PTX of a kernel as a cust module, in the device's context. The function
    /// [`spec.entry`](crate::spec::KernelParts::entry) is opted in to the shared memory and the
    /// clusters that the kernel needs; [`launch::parameters`](crate::launch::parameters) returns
    /// the parameters of its launch. A launch by cust has no attributes: it sets no cluster size,
    /// and is not cooperative. A failed assertion stops the kernel, but a kernel that uses the
    /// tensor cores does not report which assertion failed.
    ///
    /// # Errors
    ///
    /// [`Error::Architecture`], [`Error::NoPtx`], [`Error::SharedMemory`], [`Error::Jit`],
    /// [`Error::NoEntry`] and [`Error::Launch`] as for a launch of the kernel;
    /// [`ForeignError::NotPrimary`] on the simulator; and [`Error::Driver`].
    pub fn cust_module(&self, spec: &'static KernelSpec) -> Result<cust::module::Module, Error> {
        self.gpu()?.cust_module(spec)
    }

    fn gpu(&self) -> Result<&'static cuda::Context, Error> {
        match self.backend() {
            Backend::Cuda(context) => Ok(context),
            Backend::Sim(_) => Err(ForeignError::NotPrimary { device: self.id() }.into()),
        }
    }
}

impl Stream {
    /// Takes over a cust stream, and destroys it when this one is dropped. Like every stream of
    /// this crate, it is ordered with the default stream and with copies to and from the host.
    ///
    /// # Errors
    ///
    /// [`ForeignError::Context`] if the stream belongs to another context than the device,
    /// [`ForeignError::NotPrimary`] on the simulator, and [`Error::Driver`].
    pub fn from_cust(device: &Device, stream: cust::stream::Stream) -> Result<Self, Error> {
        let stream = cuda::Stream::of_cust(device.gpu()?, stream)?;
        Ok(Self::cuda(device.clone(), stream))
    }

    /// Returns the stream as a cust stream, to queue work on. Streams of [`Device::stream`] and
    /// [`from_cust`](Self::from_cust) are cust streams; those of [`from_raw`](Self::from_raw) and
    /// of the simulator are not.
    pub fn as_cust(&self) -> Option<&cust::stream::Stream> {
        match self.backend() {
            stream::Backend::Cuda(stream) => stream.as_cust(),
            stream::Backend::Sim => None,
        }
    }
}

impl<T: Scalar, const N: usize> DeviceTensor<T, N> {
    /// Takes over a cust buffer as a row-major tensor of `shape`, outermost extent first. The
    /// memory is freed with the tensor.
    ///
    /// The buffer's elements may be of another type of the same size: a tensor of `f16` comes from
    /// a buffer of `u16`. A type of another size does not compile.
    ///
    /// # Errors
    ///
    /// [`Error::HostLength`] if the buffer's length differs from the shape's number of elements;
    /// [`Error::TensorTooLarge`]; [`Error::OtherDevice`], [`ForeignError::Context`] and
    /// [`ForeignError::Memory`] if the memory is not on the device; [`ForeignError::NotPrimary`] on
    /// the simulator; and [`Error::Driver`]. On an error the buffer is dropped.
    pub fn from_cust<B: DeviceCopy>(
        device: &Device,
        buffer: DeviceBuffer<B>,
        shape: [usize; N],
    ) -> Result<Self, Error> {
        const { assert!(size_of::<B>() == size_of::<T>(), "elements differ in size") };
        let (context, bytes) = (device.gpu()?, byte_len::<T, N>(shape)?);
        same_length(buffer.len(), bytes as usize / size_of::<T>())?;
        let address = buffer.as_raw_ptr();
        let reachable = context.reachable(address, bytes)?;
        if reachable < bytes {
            return Err(ForeignError::Memory { address: address + reachable, device: device.id() }.into());
        }
        // From here on the tensor frees the memory, as cust would have done.
        mem::forget(buffer);
        let memory = Arc::new(Memory::new(device, address, bytes, false));
        Ok(Self { memory, shape, elements: PhantomData })
    }

    /// Hands the memory over to cust, once everything queued on streams of other libraries has run.
    ///
    /// The buffer's elements are of a type of the same size, every value of which is valid: a
    /// tensor of `f16` becomes a buffer of `u16`. A type of another size does not compile.
    ///
    /// # Errors
    ///
    /// [`ForeignError::Shared`] if a [`Graph`](crate::Graph) or [`Prepared`](crate::Prepared)
    /// launches use the tensor, [`ForeignError::Borrowed`] if another library frees its memory,
    /// [`ForeignError::NotPrimary`] on the simulator, [`Error::KernelFault`] and [`Error::Driver`].
    /// On an error the tensor is dropped.
    pub fn into_cust<B: DeviceCopy + Pod>(self) -> Result<DeviceBuffer<B>, Error> {
        const { assert!(size_of::<B>() == size_of::<T>(), "elements differ in size") };
        let (device, len) = (self.device().clone(), self.len());
        device.gpu()?.wait_for_non_blocking()?;
        self.memory.wait_for_peers()?;
        let memory = Arc::into_inner(self.memory);
        let memory = memory.ok_or(ForeignError::Shared { device: device.id() })?;
        if memory.is_foreign {
            return Err(ForeignError::Borrowed { device: device.id() }.into());
        }
        let address = memory.address;
        // From here on cust frees the memory.
        mem::forget(memory);
        // SAFETY: the driver allocated the memory as it does for cust, it has that many elements,
        // and nothing else owns it.
        Ok(unsafe { DeviceBuffer::from_raw_parts(DevicePointer::from_raw(address), len) })
    }
}
