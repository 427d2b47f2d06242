//! Launches that are encoded once, and queued again at the cost of the driver's calls alone.

use crate::backend::Backend;
use crate::backend::{cuda, sim};
use crate::binding::same_device;
use crate::binding::shape::LaunchOptions;
use crate::device::Device;
use crate::device::memory::Memory;
use crate::error::Error;
use crate::launch::cuda_stream;
use crate::launch::on::LaunchOn;
use std::sync::Arc;

/// Launches in order, recorded by [`Device::prepare`]: kernels, grids, options, scalars and encoded
/// tensor maps. Queueing them again looks nothing up, encodes nothing, allocates nothing and does
/// not wait: each costs one call of the driver. On the default stream, each launch is also ordered
/// by events with the non-blocking streams of other libraries, so pass a stream.
///
/// A [`Graph`](crate::Graph) costs less for many launches, but is bound to what it was captured
/// with. Prepared launches are queued between others, on any stream of their device, and recorded
/// in a capture, of this crate or of another library.
///
/// The arguments are those of the recording: the same tensors, with their contents at the time that
/// the kernels run, and the same scalars. Promises such as that a cache is constant hold for each
/// launch: they are about the work that is queued before it then.
///
/// The tensors' memory stays alive as long as this value and the [`Graph`](crate::Graph)s that it
/// was recorded in. A graph of another library keeps nothing: keep this value for as long as such a
/// graph may run. Memory of another library has no owner to keep: pass it as a tensor of
/// [`DeviceTensor::from_raw`](crate::DeviceTensor::from_raw), which has the conditions.
///
/// Any thread may queue the launches. Those that several threads queue on one stream at the same
/// time may interleave. If prepared launches share a workspace, or one of them reads what another
/// writes, order the calls: by a lock on one stream, by
/// [`Stream::wait_for`](crate::Stream::wait_for) on several.
#[derive(Debug)]
pub struct Prepared {
    // Dropped before the memory that it uses.
    pub(super) backend: PreparedBackend,
    pub(super) memory: Vec<Arc<Memory>>,
    pub(super) device: Device,
}

#[derive(Debug)]
pub(super) enum PreparedBackend {
    Cuda(Vec<Arc<cuda::Prepared>>),
    Sim(Vec<Arc<sim::Launch>>),
}

/// Asserts that prepared launches may be used from any thread.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<Prepared>();
};

impl Prepared {
    /// Queues all launches, in order, on a stream or a device's default stream, or records them in
    /// a capture. They have the options with which they were recorded.
    ///
    /// After an error, the launches before the one that failed have been queued or recorded.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDevice`]; [`Error::PreparedOptions`] if `on` has options; [`Error::Launch`],
    /// [`Error::KernelFault`] and [`Error::Driver`]. On the simulator also the errors of
    /// [`launch`](crate::launch::launch).
    pub fn launch(&self, on: &impl LaunchOn) -> Result<(), Error> {
        same_device("the prepared launches", self.device.id(), on.device().id())?;
        if on.options() != LaunchOptions::default() {
            return Err(Error::PreparedOptions);
        }
        if let Some(capture) = on.capture() {
            return capture.launch_prepared(self);
        }
        match (&self.backend, self.device.backend()) {
            (PreparedBackend::Cuda(launches), Backend::Cuda(context)) => {
                context.launch_prepared(on.stream().and_then(cuda_stream), launches)
            }
            (PreparedBackend::Sim(launches), Backend::Sim(context)) => {
                launches.iter().try_for_each(|launch| context.run(launch))
            }
            // The backend always matches the device.
            (PreparedBackend::Cuda(_), Backend::Sim(_)) | (PreparedBackend::Sim(_), Backend::Cuda(_)) => {
                Ok(())
            }
        }
    }

    /// Returns the number of launches.
    pub fn launches(&self) -> usize {
        match &self.backend {
            PreparedBackend::Cuda(launches) => launches.len(),
            PreparedBackend::Sim(launches) => launches.len(),
        }
    }

    /// Returns the device that the launches run on.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

#[cfg(test)]
mod tests;
