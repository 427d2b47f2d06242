//! Events.

use super::{Driver, Status, checked};
use std::ffi::{c_uint, c_void};
use std::ptr;

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: c_uint = 2;

/// A point in a stream.
#[derive(Debug)]
pub(in crate::backend::cuda) struct Event {
    driver: &'static Driver,
    raw: *mut c_void,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above, also concurrently.
unsafe impl Sync for Event {}

impl Event {
    /// Creates an event in the current context.
    pub(in crate::backend::cuda) fn new(driver: &'static Driver, timed: bool) -> Result<Self, Status> {
        let mut raw = ptr::null_mut();
        // SAFETY: the driver writes the event's handle.
        checked(unsafe { (driver.event_create)(&mut raw, if timed { 0 } else { DISABLE_TIMING }) })?;
        Ok(Self { driver, raw })
    }

    /// Moves the event to the end of the stream's queue.
    ///
    /// # Safety
    ///
    /// The stream is alive, and belongs to the event's context.
    pub(in crate::backend::cuda) unsafe fn record(&self, stream: *mut c_void) -> Result<(), Status> {
        // SAFETY: as the caller promises; the event is alive.
        checked(unsafe { (self.driver.event_record)(self.raw, stream) })
    }

    /// Makes work that is queued on the stream from now on wait for the event.
    ///
    /// # Safety
    ///
    /// The stream is alive.
    pub(in crate::backend::cuda) unsafe fn hold(&self, stream: *mut c_void) -> Result<(), Status> {
        // SAFETY: as the caller promises; the driver keeps whatever it needs of the event.
        checked(unsafe { (self.driver.stream_wait_event)(stream, self.raw, 0) })
    }

    pub(in crate::backend::cuda) fn synchronize(&self) -> Result<(), Status> {
        // SAFETY: the event is alive.
        checked(unsafe { (self.driver.event_synchronize)(self.raw) })
    }

    /// Returns the milliseconds from `start` to this event. Both must have been reached.
    pub(in crate::backend::cuda) fn elapsed_ms(&self, start: &Self) -> Result<f32, Status> {
        let mut milliseconds = 0.0;
        // SAFETY: both events are alive, and the driver writes one number.
        checked(unsafe { (self.driver.event_elapsed)(&mut milliseconds, start.raw, self.raw) })?;
        Ok(milliseconds)
    }
}

/// The driver frees an event once it has been reached. Source: CUDA driver API, `cuEventDestroy`.
impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is not shared.
        unsafe { (self.driver.event_destroy)(self.raw) };
    }
}
