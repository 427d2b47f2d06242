//! Streams and events: ordering and timing of work.

use crate::backend::{self, cuda};
use crate::binding::same_device;
use crate::device::Device;
use crate::error::{Error, ForeignError};
use crate::layout::DeviceId;
use std::ffi::c_void;
use std::ptr;
use std::time::Instant;

/// A queue of work on a device. Work on one stream runs in order.
#[derive(Debug)]
pub struct Stream {
    // Dropped before the device that it belongs to.
    backend: Backend,
    device: Device,
}

#[derive(Debug)]
pub(crate) enum Backend {
    Cuda(cuda::Stream),
    /// Nothing is ever queued, since launches run to completion.
    Sim,
}

/// A point in a stream. It is reached when everything queued before it has run.
#[derive(Debug)]
pub struct Event {
    backend: EventBackend,
    device: DeviceId,
}

#[derive(Debug)]
enum EventBackend {
    Cuda(cuda::Event),
    Sim(Instant),
}

/// Asserts that streams and events may be used from any thread.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<Stream>();
    any_thread::<Event>();
};

impl Device {
    /// Creates a stream. Work queued on it runs in order, and concurrently with other streams.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`].
    pub fn stream(&self) -> Result<Stream, Error> {
        match self.backend() {
            backend::Backend::Cuda(context) => Ok(Stream::cuda(self.clone(), context.stream()?)),
            backend::Backend::Sim(_) => Ok(Stream::simulated(self.clone())),
        }
    }
}

impl Stream {
    pub(crate) fn cuda(device: Device, stream: cuda::Stream) -> Self {
        Self { backend: Backend::Cuda(stream), device }
    }

    pub(crate) fn simulated(device: Device) -> Self {
        Self { backend: Backend::Sim, device }
    }

    /// Wraps a stream (`CUstream`) that another library made. Null is the device's default stream.
    /// The stream is not destroyed with the returned one.
    ///
    /// Like every stream of this crate, it is ordered with the default stream and with copies to
    /// and from the host. This also holds for streams made with `CU_STREAM_NON_BLOCKING`, such as
    /// those of cudarc and PyTorch: while the returned stream exists, operations of this crate on
    /// the default stream wait for it, and it waits for them. Its order with work that other
    /// libraries queue elsewhere is the one that they set up. `CU_STREAM_PER_THREAD`, which candle
    /// uses, names a different stream on each thread that launches on it.
    ///
    /// On a simulated device null is the only valid handle.
    ///
    /// # Safety
    ///
    /// * The stream must be alive until the returned one has been dropped.
    /// * If the stream is capturing, tensors of launches on it must stay allocated for as long as
    ///   the graph may run. [`Stream::capture`] makes graphs that keep them.
    ///
    /// # Errors
    ///
    /// [`ForeignError::Context`] if the stream belongs to another context than the device, unless it
    /// is capturing: the driver does not tell then, and refuses the launches;
    /// [`ForeignError::Simulated`], and [`Error::Driver`].
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<Self, Error> {
        match device.backend() {
            backend::Backend::Cuda(context) => {
                // SAFETY: as the caller promises.
                let stream = unsafe { cuda::Stream::adopt(context, raw)? };
                Ok(Self::cuda(device.clone(), stream))
            }
            backend::Backend::Sim(_) if raw.is_null() => Ok(Self::simulated(device.clone())),
            backend::Backend::Sim(_) => Err(ForeignError::Simulated { device: device.id() }.into()),
        }
    }

    /// Returns the device that the stream belongs to.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the backend's handle (`CUstream`), to pass to other crates. It is null on the
    /// simulator.
    pub fn raw(&self) -> *mut c_void {
        match &self.backend {
            Backend::Cuda(stream) => stream.raw(),
            Backend::Sim => ptr::null_mut(),
        }
    }

    /// Returns whether another library is capturing the stream: what is queued on it becomes part
    /// of a graph, and memory must not be allocated meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`].
    pub fn is_capturing(&self) -> Result<bool, Error> {
        match &self.backend {
            Backend::Cuda(stream) => stream.is_capturing(),
            Backend::Sim => Ok(false),
        }
    }

    /// Waits until everything queued so far has run.
    ///
    /// # Errors
    ///
    /// [`Error::KernelFault`] if a kernel stopped with a trap or a fault, and [`Error::Driver`].
    pub fn synchronize(&self) -> Result<(), Error> {
        match &self.backend {
            Backend::Cuda(stream) => stream.synchronize(),
            Backend::Sim => Ok(()),
        }
    }

    /// Records an event at the current end of the queue.
    ///
    /// # Errors
    ///
    /// [`Error::KernelFault`] and [`Error::Driver`].
    pub fn record(&self) -> Result<Event, Error> {
        let backend = match &self.backend {
            Backend::Cuda(stream) => EventBackend::Cuda(stream.record()?),
            Backend::Sim => EventBackend::Sim(Instant::now()),
        };
        Ok(Event { backend, device: self.device.id() })
    }

    /// Makes all work queued here later wait for everything queued on `other` so far.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDevice`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn wait_for(&self, other: &Self) -> Result<(), Error> {
        same_device("the stream waited for", other.device.id(), self.device.id())?;
        match (&self.backend, &other.backend) {
            (Backend::Cuda(stream), Backend::Cuda(other)) => stream.wait_for(other),
            (Backend::Sim, _) | (_, Backend::Sim) => Ok(()),
        }
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }
}

impl Event {
    /// Waits until the event is reached.
    ///
    /// # Errors
    ///
    /// [`Error::KernelFault`] if a kernel stopped with a trap or a fault, and [`Error::Driver`].
    pub fn synchronize(&self) -> Result<(), Error> {
        match &self.backend {
            EventBackend::Cuda(event) => event.synchronize(),
            EventBackend::Sim(_) => Ok(()),
        }
    }

    /// Waits for both events, and returns the milliseconds from this one to `later`. The time is
    /// measured by the device's clock, or by the host's on the simulator.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDevice`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn elapsed_ms(&self, later: &Self) -> Result<f32, Error> {
        same_device("the later event", later.device, self.device)?;
        match (&self.backend, &later.backend) {
            (EventBackend::Cuda(event), EventBackend::Cuda(later)) => event.elapsed_ms(later),
            (EventBackend::Sim(event), EventBackend::Sim(later)) => {
                Ok(later.saturating_duration_since(*event).as_secs_f32() * 1e3)
            }
            // Events of different backends belong to different devices, which was rejected above.
            (EventBackend::Cuda(_), EventBackend::Sim(_)) | (EventBackend::Sim(_), EventBackend::Cuda(_)) => {
                Ok(0.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tma0564_a_simulated_device_has_no_streams_of_others() {
        let device = Device::simulator();
        // SAFETY: null is the default stream.
        let own = unsafe { Stream::from_raw(&device, ptr::null_mut()) }.expect("the default stream");
        assert!(own.raw().is_null());
        assert_eq!(own.is_capturing().ok(), Some(false));
        // SAFETY: refused.
        let other = unsafe { Stream::from_raw(&device, ptr::dangling_mut()) };
        assert_eq!(other.err().map(|error| error.code()), Some("TMA0564"));
    }
}
