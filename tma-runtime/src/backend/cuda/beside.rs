//! Streams of other libraries, in order with the default stream.
//!
//! Streams of this crate and the default stream wait for each other, by which copies to and from
//! the host come after launches. Those of cudarc and PyTorch are made to wait for nothing
//! (`CU_STREAM_NON_BLOCKING`). While such a stream is in use here, each operation on the default
//! stream waits for it, and it for the operation, by events. Nothing is recorded where no such
//! stream is in use.

use super::driver::{Driver, Event, Status};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The default stream.
const DEFAULT: *mut c_void = ptr::null_mut();

/// The streams of other libraries that do not wait for the default stream.
#[derive(Debug, Default)]
pub(super) struct Beside {
    streams: Mutex<Vec<Foreign>>,
    /// Whether there is any stream; read without the lock.
    any: AtomicBool,
    /// Whether this crate has queued anything on the default stream.
    default_used: AtomicBool,
}

/// A stream, or what was queued on it.
#[derive(Debug)]
struct Foreign {
    stream: *mut c_void,
    /// How many of this crate's streams are this one. At 0 it may no longer exist, and only the
    /// event is used.
    users: usize,
    /// Recorded when the last of them was dropped.
    event: Event,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Foreign {}

impl Beside {
    /// Puts a stream in order from now on.
    ///
    /// # Safety
    ///
    /// The stream is alive until [`remove`](Self::remove), and does not wait for the default
    /// stream; its context is current.
    pub(super) unsafe fn add(&self, driver: &'static Driver, stream: *mut c_void) -> Result<(), Status> {
        let mut streams = self.lock();
        match streams.iter_mut().find(|foreign| foreign.stream == stream) {
            Some(foreign) => {
                // Another stream may have had the handle before: this one takes its place.
                // SAFETY: as the caller promises.
                unsafe { foreign.event.hold(stream)? };
                foreign.users += 1;
            }
            None => streams.push(Foreign { stream, users: 1, event: Event::new(driver, false)? }),
        }
        self.any.store(true, Ordering::Release);
        if self.default_used.load(Ordering::Acquire) {
            // SAFETY: as the caller promises.
            unsafe { follow(driver, stream)? };
        }
        Ok(())
    }

    /// Forgets a stream, but not what was queued on it. A failure belongs to an earlier kernel, and
    /// other calls report it.
    ///
    /// # Safety
    ///
    /// The stream is alive, and its context is current.
    pub(super) unsafe fn remove(&self, driver: &'static Driver, stream: *mut c_void) {
        let mut streams = self.lock();
        if let Some(foreign) = streams.iter_mut().find(|foreign| foreign.stream == stream) {
            foreign.users -= 1;
            // SAFETY: as the caller promises.
            let _reported_elsewhere = unsafe { foreign.record(driver) };
        }
    }

    /// Queues something on the default stream, in order with all streams.
    pub(super) fn around(
        &self,
        driver: &'static Driver,
        queue: impl FnOnce() -> Result<(), Status>,
    ) -> Result<(), Status> {
        self.before_default(driver)?;
        queue()?;
        self.after_default(driver)
    }

    /// Makes what comes on the default stream wait for all streams.
    fn before_default(&self, driver: &'static Driver) -> Result<(), Status> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut streams = self.lock();
        for foreign in streams.iter_mut() {
            // SAFETY: streams with users are alive, as `add` requires, and the default stream is.
            unsafe {
                if foreign.users > 0 {
                    foreign.record(driver)?;
                }
                foreign.event.hold(DEFAULT)?;
            }
        }
        streams.retain(|foreign| foreign.users > 0);
        self.any.store(!streams.is_empty(), Ordering::Release);
        Ok(())
    }

    /// Makes what comes on all streams wait for the default stream, on which something was queued.
    fn after_default(&self, driver: &'static Driver) -> Result<(), Status> {
        self.default_used.store(true, Ordering::Release);
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        let streams = self.lock();
        let mut used = streams.iter().filter(|foreign| foreign.users > 0);
        // SAFETY: streams with users are alive, as `add` requires.
        used.try_for_each(|foreign| unsafe { follow(driver, foreign.stream) })
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

    /// Nothing panics halfway through a change, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, Vec<Foreign>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Foreign {
    /// Moves the event to the end of the stream's queue. Work that is being recorded does not run
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

/// Makes what comes on a stream wait for the default stream.
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
