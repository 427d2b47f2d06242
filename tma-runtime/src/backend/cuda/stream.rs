//! Streams and events.

use super::context::Context;
use crate::error::Error;
use cust::event::EventFlags;
use cust::stream::{StreamFlags, StreamWaitEventFlags};
use std::ffi::c_void;

/// A stream that is ordered with the default stream; `cust` makes no others.
#[derive(Debug)]
pub(crate) struct Stream {
    context: &'static Context,
    stream: cust::stream::Stream,
}

/// A recorded event.
#[derive(Debug)]
pub(crate) struct Event {
    context: &'static Context,
    event: cust::event::Event,
}

impl Stream {
    pub(super) fn new(context: &'static Context) -> Result<Self, Error> {
        context.make_current()?;
        let stream = cust::stream::Stream::new(StreamFlags::DEFAULT, None);
        Ok(Self { context, stream: context.asked("make a stream", stream)? })
    }

    pub(crate) fn raw(&self) -> *mut c_void {
        self.stream.as_inner().cast()
    }

    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        self.context.make_current()?;
        self.context.asked("synchronise the stream", self.stream.synchronize())
    }

    pub(crate) fn record(&self) -> Result<Event, Error> {
        Ok(Event { context: self.context, event: self.event(EventFlags::DEFAULT)? })
    }

    pub(crate) fn wait_for(&self, other: &Self) -> Result<(), Error> {
        let event = other.event(EventFlags::DISABLE_TIMING)?;
        let waits = self.stream.wait_event(event, StreamWaitEventFlags::DEFAULT);
        self.context.asked("let a stream wait", waits)
    }

    /// # Safety
    ///
    /// Both ranges of `bytes` bytes are valid until the copy has run.
    pub(crate) unsafe fn copy_on_device(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        self.context.make_current()?;
        // SAFETY: as the caller promises; the stream is alive.
        let queued = unsafe { self.context.driver.copy_on_device(to, from, bytes as usize, self.raw()) };
        queued.map_err(|code| self.context.failure("copy on the device", code))
    }

    fn event(&self, flags: EventFlags) -> Result<cust::event::Event, Error> {
        self.context.make_current()?;
        let event = self.context.asked("make an event", cust::event::Event::new(flags))?;
        self.context.asked("record an event", event.record(&self.stream))?;
        Ok(event)
    }
}

impl Event {
    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        self.context.make_current()?;
        self.context.asked("wait for an event", self.event.synchronize())
    }

    pub(crate) fn elapsed_ms(&self, later: &Self) -> Result<f32, Error> {
        self.synchronize()?;
        later.synchronize()?;
        self.context.asked("read the time between events", later.event.elapsed_time_f32(&self.event))
    }
}
