//! The device that kernels run on, whichever backend stands behind it.

use crate::cuda;
use crate::error::Error;
use crate::layout::DeviceId;
use crate::stream::{Event, Stream};
use crate::tensor::DeviceTensor;

/// A device: cheap to clone, and to share between threads.
///
/// Opening the same GPU again gives the same device: its memory, and its kernels once loaded, belong to the process
/// until it ends. Everything that is not given a [`Stream`] runs on the device's default stream, in order with all of
/// its streams.
#[derive(Clone, Debug)]
pub struct Device {
    backend: Backend,
}

/// What runs the kernels.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    /// A GPU, through the NVIDIA driver.
    Cuda(&'static cuda::Context),
}

/// What a device can do.
#[derive(Clone, Debug)]
pub(crate) struct Properties {
    pub(crate) name: String,
    /// Major and minor.
    pub(crate) capability: (u32, u32),
    pub(crate) multiprocessors: u32,
    /// Bytes of dynamic shared memory that a block can opt in to.
    pub(crate) shared_bytes: u32,
}

/// Devices, tensors, streams and events may be used from any thread.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<Device>();
    any_thread::<DeviceTensor<u8, 1>>();
    any_thread::<Stream>();
    any_thread::<Event>();
    any_thread::<Error>();
};

impl Device {
    /// Opens the first GPU.
    ///
    /// # Errors
    ///
    /// [`Error::NoBackend`] without the feature `cuda`, and as [`Device::cuda`].
    pub fn open() -> Result<Self, Error> {
        Self::cuda(0)
    }

    /// Opens the GPU with this ordinal, counted as the driver does, which heeds `CUDA_VISIBLE_DEVICES`.
    ///
    /// # Errors
    ///
    /// [`Error::NoDriver`], [`Error::NoDevice`], [`Error::MissingEntryPoint`] and [`Error::Driver`].
    pub fn cuda(ordinal: u32) -> Result<Self, Error> {
        Ok(Self { backend: Backend::Cuda(cuda::Context::open(ordinal)?) })
    }

    /// The memory that the device's addresses belong to.
    pub fn id(&self) -> DeviceId {
        match self.backend {
            Backend::Cuda(context) => context.id(),
        }
    }

    /// The product's name.
    pub fn name(&self) -> &str {
        &self.properties().name
    }

    /// The compute capability, major and minor: `(9, 0)` for Hopper.
    pub fn compute_capability(&self) -> (u32, u32) {
        self.properties().capability
    }

    /// The number of multiprocessors: how many persistent blocks a launch wants.
    pub fn multiprocessors(&self) -> u32 {
        self.properties().multiprocessors
    }

    /// The greatest number of bytes of shared memory that a block can have.
    pub fn shared_bytes(&self) -> u32 {
        self.properties().shared_bytes
    }

    /// Makes a stream: what is queued on it runs in order, and beside other streams.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`].
    pub fn stream(&self) -> Result<Stream, Error> {
        match self.backend {
            Backend::Cuda(context) => Ok(Stream::cuda(self.clone(), context.stream()?)),
        }
    }

    /// Waits until everything queued on the device has run.
    ///
    /// # Errors
    ///
    /// [`Error::KernelFault`] if a kernel stopped with a trap or a fault, and [`Error::Driver`].
    pub fn synchronize(&self) -> Result<(), Error> {
        match self.backend {
            Backend::Cuda(context) => context.synchronize(),
        }
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    fn properties(&self) -> &Properties {
        match self.backend {
            Backend::Cuda(context) => context.properties(),
        }
    }
}

#[cfg(all(test, not(feature = "cuda")))]
mod tests {
    use super::*;

    #[test]
    fn tma0603_without_a_backend_opening_says_what_to_enable() {
        let error = Device::open().expect_err("there is no backend");
        assert_eq!(error.code(), "TMA0603");
        assert!(error.to_string().contains("--features cuda"), "{error}");
    }
}
