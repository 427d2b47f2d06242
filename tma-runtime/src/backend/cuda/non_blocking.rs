//! Ordering of streams of other libraries with the default stream.
//!
//! Streams of this crate and the default stream wait for each other, which is why copies to and
//! from the host come after launches. The streams of cudarc and PyTorch are created so that they
//! wait for nothing (`CU_STREAM_NON_BLOCKING`). While such a stream is in use here, events order it
//! with each operation on the default stream, in both directions. No event is recorded while no
//! such stream is in use.

use super::driver::{Driver, Event, Status};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The default stream.
const DEFAULT: *mut c_void = ptr::null_mut();

/// The streams of other libraries that do not wait for the default stream.
#[derive(Debug, Default)]
pub(super) struct NonBlockingStreams {
    streams: Mutex<Vec<NonBlockingStream>>,
    /// Whether there is any stream. Read without the lock.
    any: AtomicBool,
    /// Whether this crate has queued anything on the default stream.
    default_used: AtomicBool,
}

/// A stream, or the work that was queued on it.
#[derive(Debug)]
struct NonBlockingStream {
    stream: *mut c_void,
    /// The number of this crate's streams that wrap this one. At 0 the stream may no longer exist,
    /// and only the event is used.
    users: usize,
    /// Recorded when the last of these streams was dropped.
    event: Event,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for NonBlockingStream {}

impl NonBlockingStreams {
    /// Orders a stream with the default stream from now on.
    ///
    /// # Safety
    ///
    /// The stream is alive until [`remove`](Self::remove), and does not wait for the default
    /// stream. Its context is current.
    pub(super) unsafe fn add(&self, driver: &'static Driver, stream: *mut c_void) -> Result<(), Status> {
        let mut streams = self.lock();
        match streams.iter_mut().find(|known| known.stream == stream) {
            Some(known) => {
                // The handle may have belonged to an earlier stream, which this one replaces. What
                // is captured cannot wait for what is not.
                // SAFETY: as the caller promises.
                unsafe {
                    if !driver.is_capturing(stream)? {
                        known.event.hold(stream)?;
                    }
                }
                known.users += 1;
            }
            None => streams.push(NonBlockingStream { stream, users: 1, event: Event::new(driver, false)? }),
        }
        self.any.store(true, Ordering::Release);
        if self.default_used.load(Ordering::Acquire) {
            // SAFETY: as the caller promises.
            unsafe { follow(driver, stream)? };
        }
        Ok(())
    }

    /// Forgets a stream, but not the work queued on it. A failure comes from an earlier kernel, and
    /// is reported by other calls.
    ///
    /// # Safety
    ///
    /// The stream is alive, and its context is current.
    pub(super) unsafe fn remove(&self, driver: &'static Driver, stream: *mut c_void) {
        let mut streams = self.lock();
        if let Some(known) = streams.iter_mut().find(|known| known.stream == stream) {
            known.users -= 1;
            // SAFETY: as the caller promises.
            let _reported_elsewhere = unsafe { known.record(driver) };
        }
    }

    /// Queues an operation on the default stream, in order with all streams.
    pub(super) fn around(
        &self,
        driver: &'static Driver,
        queue: impl FnOnce() -> Result<(), Status>,
    ) -> Result<(), Status> {
        self.before_default(driver)?;
        queue()?;
        self.after_default(driver)
    }

    /// Makes later work on the default stream wait for all streams.
    fn before_default(&self, driver: &'static Driver) -> Result<(), Status> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut streams = self.lock();
        for known in streams.iter_mut() {
            // SAFETY: streams with users are alive, as `add` requires, and the default stream is.
            unsafe {
                if known.users > 0 {
                    known.record(driver)?;
                }
                known.event.hold(DEFAULT)?;
            }
        }
        streams.retain(|known| known.users > 0);
        self.any.store(!streams.is_empty(), Ordering::Release);
        Ok(())
    }

    /// Makes later work on all streams wait for the default stream, on which something was queued.
    fn after_default(&self, driver: &'static Driver) -> Result<(), Status> {
        self.default_used.store(true, Ordering::Release);
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        let streams = self.lock();
        let mut used = streams.iter().filter(|known| known.users > 0);
        // SAFETY: streams with users are alive, as `add` requires.
        used.try_for_each(|known| unsafe { follow(driver, known.stream) })
    }

    /// Waits until everything queued on the streams has run.
    pub(super) fn synchronize(&self, driver: &'static Driver) -> Result<(), Status> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        self.before_default(driver)?;
        // SAFETY: the default stream is alive.
        unsafe { driver.synchronize(DEFAULT) }
    }

    /// Locks the streams. Nothing panics in the middle of a change, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, Vec<NonBlockingStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NonBlockingStream {
    /// Moves the event to the end of the stream's queue. Work that is being captured does not run
    /// now, and nothing waits for it.
    ///
    /// # Safety
    ///
    /// The stream is alive, and its context is current.
    unsafe fn record(&self, driver: &'static Driver) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        unsafe { if driver.is_capturing(self.stream)? { Ok(()) } else { self.event.record(self.stream) } }
    }
}

/// Makes later work on a stream wait for the default stream.
///
/// # Safety
///
/// The stream is alive, and its context is current.
unsafe fn follow(driver: &'static Driver, stream: *mut c_void) -> Result<(), Status> {
    // SAFETY: as the caller promises; the default stream is always alive.
    unsafe {
        if driver.is_capturing(stream)? {
            return Ok(());
        }
        let event = Event::new(driver, false)?;
        event.record(DEFAULT)?;
        event.hold(stream)
    }
}
