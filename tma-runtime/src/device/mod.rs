//! Devices that kernels run on, independent of the backend.

pub(crate) mod memory;
#[cfg(feature = "ptx-sim")]
mod simulated;
pub(crate) mod stream;
pub(crate) mod team;

use std::ffi::c_void;
use std::ptr;

use crate::backend::properties::Properties;
use crate::backend::{Backend, cuda, sim};
use crate::error::Error;
use crate::layout::DeviceId;

/// A device: a GPU or a simulator. It is cheap to clone and may be shared between threads.
///
/// Opening the same GPU again returns the same device: its memory and loaded kernels belong to the
/// process until it ends. Work without a [`Stream`](crate::Stream) runs on the device's default
/// stream, which is ordered with all of the device's streams.
#[derive(Clone, Debug)]
pub struct Device {
    backend: Backend,
}

/// The devices that the environment variable `TMA_DEVICE` requests.
enum Requested {
    /// The variable is not set: GPUs, or else the simulator.
    Any,
    /// `sim`.
    Simulator,
    /// `cuda`: the first GPU, or all of them for a team.
    AllCuda,
    /// `cuda:N`.
    Cuda(u32),
}

impl Requested {
    /// # Errors
    ///
    /// [`Error::UnknownDevice`].
    fn from_environment() -> Result<Self, Error> {
        match std::env::var("TMA_DEVICE").as_deref().map(str::trim) {
            Err(_) | Ok("") => Ok(Self::Any),
            Ok("sim") => Ok(Self::Simulator),
            Ok("cuda") => Ok(Self::AllCuda),
            Ok(name) => match name.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok()) {
                Some(ordinal) => Ok(Self::Cuda(ordinal)),
                None => Err(Error::UnknownDevice { name: name.to_owned() }),
            },
        }
    }
}

/// Asserts that devices and errors may be used from any thread.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<Device>();
    any_thread::<Error>();
};

impl Device {
    /// Opens the first GPU, if there is one and the program was built with the feature `cuda`.
    /// Otherwise it returns the simulator, if the program was built with the feature `ptx-sim`,
    /// which is on by default. [`name`](Self::name) tells the two apart.
    ///
    /// The environment variable `TMA_DEVICE` overrides the choice: `sim`, `cuda`, or `cuda:1` for
    /// the second GPU.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownDevice`] for any other value of the variable, [`Error::NoSimulator`], and
    /// the errors of [`Device::cuda`].
    pub fn open() -> Result<Self, Error> {
        match Requested::from_environment()? {
            Requested::Any => match Self::cuda(0) {
                Err(error) if error.is_absence() => Self::simulated().map_err(|_| error),
                gpu => gpu,
            },
            Requested::Simulator => Self::simulated(),
            Requested::AllCuda => Self::cuda(0),
            Requested::Cuda(ordinal) => Self::cuda(ordinal),
        }
    }

    /// Makes a simulated device, if this build has the simulator.
    fn simulated() -> Result<Self, Error> {
        Ok(Self { backend: Backend::Sim(sim::Context::open()?) })
    }

    /// Opens the GPU with this ordinal in the driver's numbering, which respects
    /// `CUDA_VISIBLE_DEVICES`.
    ///
    /// # Errors
    ///
    /// [`Error::NoDriver`], [`Error::NoDevice`], [`Error::MissingEntryPoint`] and
    /// [`Error::Driver`].
    pub fn cuda(ordinal: u32) -> Result<Self, Error> {
        Ok(Self { backend: Backend::Cuda(cuda::Context::open(ordinal)?) })
    }

    /// Opens all GPUs that the driver sees, in its order. The result is empty if there is no GPU or
    /// no driver, or if the program was built without the feature `cuda`.
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

    /// Returns the device of a context (`CUcontext`) that another library made.
    ///
    /// For a GPU's primary context, which the CUDA runtime, PyTorch, cudarc and candle use, this is
    /// the device of [`Device::cuda`], which needs no `unsafe`. Any other context has memory,
    /// streams and kernels of its own, so it is another device ([`DeviceId::Context`]), even on the
    /// same GPU.
    ///
    /// Calls restore the context that was current on the thread. If there was none, the device's
    /// context stays current.
    ///
    /// # Safety
    ///
    /// The context must be alive until the process ends. Alternatively, it must be alive until the
    /// device and everything made on it (tensors, streams, events, graphs) have been dropped, and
    /// its address must not be passed to this function again.
    ///
    /// # Errors
    ///
    /// [`Error::NoBackend`], [`Error::NoDriver`], [`Error::MissingEntryPoint`] and
    /// [`Error::Driver`]. The last is also returned for null.
    pub unsafe fn from_context(context: *mut c_void) -> Result<Self, Error> {
        // SAFETY: as the caller promises.
        Ok(Self { backend: Backend::Cuda(unsafe { cuda::Context::adopt(context)? }) })
    }

    /// Returns the backend's handle of the context (`CUcontext`), to pass to other crates. It is
    /// null on the simulator.
    pub fn raw_context(&self) -> *mut c_void {
        match &self.backend {
            Backend::Cuda(context) => context.raw(),
            Backend::Sim(_) => ptr::null_mut(),
        }
    }

    /// Identifies the memory that the device's addresses belong to.
    pub fn id(&self) -> DeviceId {
        match &self.backend {
            Backend::Cuda(context) => context.id(),
            Backend::Sim(context) => context.id(),
        }
    }

    /// Returns the product name.
    pub fn name(&self) -> &str {
        &self.properties().name
    }

    /// Returns the compute capability, major and minor: `(9, 0)` for Hopper.
    pub fn compute_capability(&self) -> (u32, u32) {
        self.properties().capability
    }

    /// Returns the number of multiprocessors.
    pub fn multiprocessors(&self) -> u32 {
        self.properties().multiprocessors
    }

    /// Returns the maximum shared memory per block, in bytes.
    pub fn shared_bytes(&self) -> u32 {
        self.properties().shared_bytes
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

    /// Returns how many of the `bytes` bytes from `address` on are memory that kernels of this
    /// device can access.
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
    fn tma0603_without_the_feature_the_error_names_it() {
        let error = Device::cuda(0).expect_err("there is no backend");
        assert_eq!(error.code(), "TMA0603");
        assert!(error.to_string().contains("--features cuda"), "{error}");
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn without_the_feature_there_are_no_gpus() {
        assert!(Device::all_cuda().is_ok_and(|devices| devices.is_empty()));
        // SAFETY: null is rejected, so the device is never made.
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
