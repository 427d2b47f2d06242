//! Streams and events.

use super::context::Context;
use super::driver;
use crate::error::{Error, ForeignError};
use cust::stream::StreamFlags;
use std::ffi::c_void;
use std::ptr;

/// `CU_STREAM_LEGACY`, another name of the default stream.
const LEGACY: usize = 1;
/// `CU_STREAM_PER_THREAD`, which names another stream on each thread. It waits for the default
/// stream (CUDA runtime API, "Stream synchronization behavior").
const PER_THREAD: usize = 2;

/// A stream that is in order with the default stream.
#[derive(Debug)]
pub(crate) struct Stream {
    context: &'static Context,
    raw: *mut c_void,
    owner: Owner,
}

/// Who destroys a stream.
#[derive(Debug)]
enum Owner {
    /// This stream. It waits for the default stream by itself; `cust` makes no others.
    Own { _stream: cust::stream::Stream },
    /// Another library; the stream waits for the default stream by itself.
    Waits,
    /// Another library; [`Beside`](super::beside::Beside) puts it in order.
    Beside,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above, also at the same time.
unsafe impl Sync for Stream {}

/// A recorded event.
#[derive(Debug)]
pub(crate) struct Event {
    context: &'static Context,
    event: driver::Event,
}

impl Stream {
    pub(super) fn new(context: &'static Context) -> Result<Self, Error> {
        let _current = context.make_current()?;
        let stream = cust::stream::Stream::new(StreamFlags::DEFAULT, None);
        let stream = context.asked("make a stream", stream)?;
        Ok(Self { context, raw: stream.as_inner().cast(), owner: Owner::Own { _stream: stream } })
    }

    /// A stream of another library; null is the default stream.
    ///
    /// # Safety
    ///
    /// The stream is alive until the result is dropped.
    pub(crate) unsafe fn adopt(context: &'static Context, raw: *mut c_void) -> Result<Self, Error> {
        let _current = context.make_current()?;
        let raw = if raw.addr() == LEGACY { ptr::null_mut() } else { raw };
        let is_default = raw.is_null() || raw.addr() == PER_THREAD;
        let failed = |code| context.failure("use a stream of another library", code);
        // SAFETY: as the caller promises.
        if unsafe { context.driver.context_of(raw) }.map_err(failed)? != context.raw() {
            return Err(ForeignError::Context { what: "the stream", device: context.id() }.into());
        }
        // SAFETY: as the caller promises.
        let owner = unsafe {
            if is_default || context.driver.waits_for_default(raw).map_err(failed)? {
                Owner::Waits
            } else {
                context.beside.add(context.driver, raw).map_err(failed)?;
                Owner::Beside
            }
        };
        Ok(Self { context, raw, owner })
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        self.raw
    }

    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        let _current = self.context.make_current()?;
        // SAFETY: the stream is alive.
        let waited = unsafe { self.context.driver.synchronize(self.raw) };
        waited.map_err(|code| self.context.failure("synchronise the stream", code))
    }

    pub(crate) fn record(&self) -> Result<Event, Error> {
        Ok(Event { context: self.context, event: self.event(true)? })
    }

    pub(crate) fn wait_for(&self, other: &Self) -> Result<(), Error> {
        let event = other.event(false)?;
        let _current = self.context.make_current()?;
        // SAFETY: the stream is alive.
        unsafe { event.hold(self.raw) }.map_err(|code| self.context.failure("let a stream wait", code))
    }

    /// # Safety
    ///
    /// Both ranges of `bytes` bytes are valid until the copy has run.
    pub(crate) unsafe fn copy_on_device(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        // SAFETY: as the caller promises; the stream is alive.
        let copy = || unsafe { self.context.driver.copy_on_device(to, from, bytes as usize, self.raw) };
        if self.raw.is_null() {
            return self.context.on_default("copy on the device", copy);
        }
        let _current = self.context.make_current()?;
        copy().map_err(|code| self.context.failure("copy on the device", code))
    }

    fn event(&self, timed: bool) -> Result<driver::Event, Error> {
        let _current = self.context.make_current()?;
        let event = driver::Event::new(self.context.driver, timed);
        let event = event.map_err(|code| self.context.failure("make an event", code))?;
        // SAFETY: the stream is alive, and of this context.
        let recorded = unsafe { event.record(self.raw) };
        recorded.map_err(|code| self.context.failure("record an event", code))?;
        Ok(event)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        match self.owner {
            Owner::Own { .. } | Owner::Waits => {}
            Owner::Beside => {
                if let Ok(_current) = self.context.make_current() {
                    // SAFETY: the stream was added, and is alive.
                    unsafe { self.context.beside.remove(self.context.driver, self.raw) };
                }
            }
        }
    }
}

impl Event {
    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        let _current = self.context.make_current()?;
        self.event.synchronize().map_err(|code| self.context.failure("wait for an event", code))
    }

    pub(crate) fn elapsed_ms(&self, later: &Self) -> Result<f32, Error> {
        self.synchronize()?;
        later.synchronize()?;
        let elapsed = later.event.elapsed_ms(&self.event);
        elapsed.map_err(|code| self.context.failure("read the time between events", code))
    }
}
