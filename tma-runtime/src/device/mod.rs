//! The device that kernels run on, whatever its backend.

mod properties;
#[cfg(feature = "ptx-sim")]
mod simulated;
pub(crate) mod stream;

use std::ffi::c_void;
use std::ptr;

use crate::backend::{Backend, cuda, sim};
use crate::device::stream::{Event, Stream};
use crate::error::Error;
use crate::tensor::DeviceTensor;
use crate::tensor::layout::DeviceId;
pub(crate) use properties::Properties;

/// A device: a GPU or a simulator. It is cheap to clone and may be shared between threads.
///
/// Opening the same GPU again returns the same device: its memory and loaded kernels belong to the
/// process until it ends. Work without a [`Stream`] runs on the device's default stream, ordered
/// with all of its streams.
#[derive(Clone, Debug)]
pub struct Device {
    backend: Backend,
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
    /// Opens the first GPU, if the program was built with the feature `cuda` and there is one, else
    /// the simulator, if it was built with the feature `ptx-sim`, which is on by default.
    /// [`name`](Self::name) says which.
    ///
    /// The environment variable `TMA_DEVICE` overrides the choice: `sim`, `cuda`, or `cuda:1` for
    /// the second GPU.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownDevice`] for any other value of the variable, [`Error::NoSimulator`], and as
    /// [`Device::cuda`].
    pub fn open() -> Result<Self, Error> {
        match std::env::var("TMA_DEVICE").as_deref().map(str::trim) {
            Err(_) | Ok("") => match Self::cuda(0) {
                Err(error @ (Error::NoBackend | Error::NoDriver { .. } | Error::NoDevice { .. })) => {
                    Self::simulated().map_err(|_| error)
                }
                gpu => gpu,
            },
            Ok("sim") => Self::simulated(),
            Ok("cuda") => Self::cuda(0),
            Ok(name) => match name.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok()) {
                Some(ordinal) => Self::cuda(ordinal),
                None => Err(Error::UnknownDevice { name: name.to_owned() }),
            },
        }
    }

    /// A simulated device, if this build has them.
    fn simulated() -> Result<Self, Error> {
        Ok(Self { backend: Backend::Sim(sim::Context::open()?) })
    }

    /// Opens the GPU with this ordinal, as the driver counts them, which respects
    /// `CUDA_VISIBLE_DEVICES`.
    ///
    /// # Errors
    ///
    /// [`Error::NoDriver`], [`Error::NoDevice`], [`Error::MissingEntryPoint`] and
    /// [`Error::Driver`].
    pub fn cuda(ordinal: u32) -> Result<Self, Error> {
        Ok(Self { backend: Backend::Cuda(cuda::Context::open(ordinal)?) })
    }

    /// Opens all GPUs that the driver sees, in its order; none if there is none, or the program was
    /// built without the feature `cuda`.
    ///
    /// ```
    /// use tma_runtime::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// // On a machine without GPUs, two simulated devices.
    /// let mut devices = Device::all_cuda()?;
    /// if devices.is_empty() {
    ///     devices = vec![Device::simulator(), Device::simulator()];
    /// }
    /// # assert!(!devices.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::MissingEntryPoint`] and [`Error::Driver`].
    pub fn all_cuda() -> Result<Vec<Self>, Error> {
        match cuda::Context::count() {
            Err(Error::NoBackend | Error::NoDriver { .. }) => Ok(Vec::new()),
            count => (0..count?).map(Self::cuda).collect(),
        }
    }

    /// The device of a context that another library made: a `CUcontext`.
    ///
    /// For a GPU's primary context, which the CUDA runtime, PyTorch, cudarc and candle use, it is the
    /// device of [`Device::cuda`], which needs no `unsafe`. Any other context has memory, streams
    /// and kernels of its own, so it is another device ([`DeviceId::Context`]), even of the same GPU.
    ///
    /// Calls leave the context that is current on the thread as it was; only where none was, the
    /// device's stays current.
    ///
    /// # Safety
    ///
    /// The context must be alive until the process ends, or until the device and everything made on
    /// it (tensors, streams, events, graphs) have been dropped and the context's address is not
    /// passed here again.
    ///
    /// # Errors
    ///
    /// [`Error::NoBackend`], [`Error::NoDriver`], [`Error::MissingEntryPoint`] and
    /// [`Error::Driver`], also for null.
    pub unsafe fn from_context(context: *mut c_void) -> Result<Self, Error> {
        // SAFETY: as the caller promises.
        Ok(Self { backend: Backend::Cuda(unsafe { cuda::Context::adopt(context)? }) })
    }

    /// The backend's handle of the context, to pass to other crates: a `CUcontext`; null on the
    /// simulator.
    pub fn raw_context(&self) -> *mut c_void {
        match &self.backend {
            Backend::Cuda(context) => context.raw(),
            Backend::Sim(_) => ptr::null_mut(),
        }
    }

    /// The memory that the device's addresses belong to.
    pub fn id(&self) -> DeviceId {
        match &self.backend {
            Backend::Cuda(context) => context.id(),
            Backend::Sim(context) => context.id(),
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

    /// The number of multiprocessors.
    pub fn multiprocessors(&self) -> u32 {
        self.properties().multiprocessors
    }

    /// The maximum shared memory per block, in bytes.
    pub fn shared_bytes(&self) -> u32 {
        self.properties().shared_bytes
    }

    /// Makes a stream. Work queued on it runs in order, and concurrently with other streams.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`].
    pub fn stream(&self) -> Result<Stream, Error> {
        match &self.backend {
            Backend::Cuda(context) => Ok(Stream::cuda(self.clone(), context.stream()?)),
            Backend::Sim(_) => Ok(Stream::simulated(self.clone())),
        }
    }

    /// Waits until everything queued on the device has run.
    ///
    /// # Errors
    ///
    /// [`Error::KernelFault`] if a kernel stopped with a trap or a fault, and [`Error::Driver`].
    pub fn synchronize(&self) -> Result<(), Error> {
        match &self.backend {
            Backend::Cuda(context) => context.synchronize(),
            Backend::Sim(_) => Ok(()),
        }
    }

    /// How many of `bytes` bytes from `address` on are memory that kernels of this device reach.
    pub(crate) fn reachable(&self, address: u64, bytes: u64) -> Result<u64, Error> {
        match &self.backend {
            Backend::Cuda(context) => context.reachable(address, bytes),
            Backend::Sim(context) => context.reachable(address, bytes),
        }
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    fn properties(&self) -> &Properties {
        match &self.backend {
            Backend::Cuda(context) => context.properties(),
            Backend::Sim(context) => context.properties(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn tma0603_without_the_feature_a_gpu_is_refused_and_says_what_to_enable() {
        let error = Device::cuda(0).expect_err("there is no backend");
        assert_eq!(error.code(), "TMA0603");
        assert!(error.to_string().contains("--features cuda"), "{error}");
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn without_the_feature_there_are_no_gpus() {
        assert!(Device::all_cuda().is_ok_and(|devices| devices.is_empty()));
        // SAFETY: nothing is made of null.
        let adopted = unsafe { Device::from_context(ptr::null_mut()) };
        assert_eq!(adopted.err().map(|error| error.code()), Some("TMA0603"));
    }

    #[cfg(feature = "ptx-sim")]
    #[test]
    fn simulators_have_memory_of_their_own() {
        let (first, second) = (Device::simulator(), Device::simulator().seed(7));
        assert_ne!(first.id(), second.id());
        let tensor = first.tensor(&[1u32, 2, 3], [3]);
        assert_eq!(tensor.and_then(|tensor| tensor.to_vec()).ok(), Some(vec![1, 2, 3]));
    }
}
