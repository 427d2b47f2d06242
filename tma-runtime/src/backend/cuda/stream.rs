//! Streams and events.

use super::OwnedStream;
use super::context::Context;
use super::driver::{self, RelaxedCaptures, stream::DEFAULT};
use crate::error::{Error, ForeignError};
use std::ffi::c_void;
use std::ptr;

/// `CU_STREAM_LEGACY`, another name for the default stream.
const LEGACY: usize = 1;
/// `CU_STREAM_PER_THREAD`, which names a different stream on each thread. It waits for the default
/// stream (CUDA runtime API, "Stream synchronization behavior").
const PER_THREAD: usize = 2;

/// A stream that is ordered with the default stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(super) context: &'static Context,
    pub(super) handle: Handle,
}

/// A stream's handle, by the party that destroys the stream.
#[derive(Debug)]
pub(super) enum Handle {
    /// Destroyed with this value. It waits for the default stream by itself.
    Own(OwnedStream),
    /// Destroyed by another library. It waits for the default stream by itself.
    Waits(*mut c_void),
    /// Destroyed by another library.
    /// [`NonBlockingStreams`](super::non_blocking::NonBlockingStreams) orders it.
    NonBlocking(*mut c_void),
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above, also concurrently.
unsafe impl Sync for Stream {}

/// A recorded event.
#[derive(Debug)]
pub(crate) struct Event {
    context: &'static Context,
    event: driver::Event,
}

impl Context {
    pub(crate) fn stream(&'static self) -> Result<Stream, Error> {
        let _current = self.make_current()?;
        let stream = OwnedStream::new(self.driver, DEFAULT);
        let stream = stream.map_err(|code| self.failure("create a stream", code))?;
        Ok(Stream { context: self, handle: Handle::Own(stream) })
    }

    /// Checks that a stream of another library belongs to this context, which is current.
    ///
    /// # Safety
    ///
    /// The stream is alive.
    pub(super) unsafe fn accept(&self, stream: *mut c_void) -> Result<(), Error> {
        // SAFETY: as the caller promises.
        let found = unsafe { self.driver.context_of(stream) };
        let found = found.map_err(|code| self.failure("use a stream of another library", code))?;
        if found == self.raw() {
            return Ok(());
        }
        Err(ForeignError::Context { what: "the stream", device: self.id() }.into())
    }
}

impl Stream {
    /// Wraps a stream of another library. Null is the default stream.
    ///
    /// # Safety
    ///
    /// The stream is alive until the result is dropped.
    pub(crate) unsafe fn adopt(context: &'static Context, raw: *mut c_void) -> Result<Self, Error> {
        let _current = context.make_current()?;
        // The stream may be capturing, or another one.
        let _relaxed = RelaxedCaptures::new(context.driver);
        let raw = if raw.addr() == LEGACY { ptr::null_mut() } else { raw };
        let is_default = raw.is_null() || raw.addr() == PER_THREAD;
        let failed = |code| context.failure("use a stream of another library", code);
        // SAFETY: as the caller promises.
        let handle = unsafe {
            // The driver tells neither the context nor the flags of a stream that is capturing: either
            // question fails, and ends the capture (seen with driver 580). It is treated as one that
            // does not wait for the default stream: what that adds is right for either kind.
            let is_capturing = !raw.is_null() && context.driver.is_capturing(raw).map_err(failed)?;
            if !is_capturing {
                context.accept(raw)?;
            }
            if is_default || !is_capturing && context.driver.waits_for_default(raw).map_err(failed)? {
                Handle::Waits(raw)
            } else {
                context.non_blocking.add(context.driver, raw).map_err(failed)?;
                Handle::NonBlocking(raw)
            }
        };
        Ok(Self { context, handle })
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        match &self.handle {
            Handle::Own(stream) => stream.raw(),
            Handle::Waits(raw) | Handle::NonBlocking(raw) => *raw,
        }
    }

    pub(crate) fn is_capturing(&self) -> Result<bool, Error> {
        let _current = self.context.make_current()?;
        // SAFETY: the stream is alive.
        let capturing = unsafe { self.context.driver.is_capturing(self.raw()) };
        capturing.map_err(|code| self.context.failure("ask whether a stream is capturing", code))
    }

    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        let _current = self.context.make_current()?;
        // SAFETY: the stream is alive.
        let waited = unsafe { self.context.driver.synchronize(self.raw()) };
        waited.map_err(|code| self.context.failure("synchronise the stream", code))?;
        self.context.print();
        Ok(())
    }

    pub(crate) fn record(&self) -> Result<Event, Error> {
        Ok(Event { context: self.context, event: self.event(true)? })
    }

    pub(crate) fn wait_for(&self, other: &Self) -> Result<(), Error> {
        let event = other.event(false)?;
        let _current = self.context.make_current()?;
        // SAFETY: the stream is alive.
        unsafe { event.hold(self.raw()) }
            .map_err(|code| self.context.failure("make a stream wait for an event", code))
    }

    /// # Safety
    ///
    /// Both ranges of `bytes` bytes are valid until the copy has run.
    pub(crate) unsafe fn copy_on_device(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        // SAFETY: as the caller promises; the stream is alive.
        let copy = || unsafe { self.context.driver.copy_on_device(to, from, bytes as usize, self.raw()) };
        if self.raw().is_null() {
            return self.context.on_default("copy on the device", copy);
        }
        let _current = self.context.make_current()?;
        copy().map_err(|code| self.context.failure("copy on the device", code))
    }

    /// # Safety
    ///
    /// The range of `bytes` bytes is valid until the operation has run.
    pub(crate) unsafe fn fill(&self, to: u64, byte: u8, bytes: u64) -> Result<(), Error> {
        // SAFETY: as the caller promises; the stream is alive.
        let fill = || unsafe { self.context.driver.fill(to, byte, bytes as usize, self.raw()) };
        if self.raw().is_null() {
            return self.context.on_default("fill memory", fill);
        }
        let _current = self.context.make_current()?;
        fill().map_err(|code| self.context.failure("fill memory", code))
    }

    fn event(&self, timed: bool) -> Result<driver::Event, Error> {
        let _current = self.context.make_current()?;
        let event = driver::Event::new(self.context.driver, timed);
        let event = event.map_err(|code| self.context.failure("create an event", code))?;
        // SAFETY: the stream is alive, and of this context.
        let recorded = unsafe { event.record(self.raw()) };
        recorded.map_err(|code| self.context.failure("record an event", code))?;
        Ok(event)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        match self.handle {
            Handle::Own(_) | Handle::Waits(_) => {}
            Handle::NonBlocking(raw) => {
                if let Ok(_current) = self.context.make_current() {
                    // SAFETY: the stream was added, and is alive.
                    unsafe { self.context.non_blocking.remove(self.context.driver, raw) };
                }
            }
        }
    }
}

impl Event {
    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        let _current = self.context.make_current()?;
        self.event.synchronize().map_err(|code| self.context.failure("wait for an event", code))?;
        self.context.print();
        Ok(())
    }

    pub(crate) fn elapsed_ms(&self, later: &Self) -> Result<f32, Error> {
        self.synchronize()?;
        later.synchronize()?;
        let elapsed = later.event.elapsed_ms(&self.event);
        elapsed.map_err(|code| self.context.failure("measure the time between events", code))
    }
}
