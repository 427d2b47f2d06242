//! Streams.

use super::{Driver, Status, checked};
use std::ffi::{c_uint, c_void};
use std::ptr;

/// `CU_STREAM_DEFAULT`: the stream and the default stream wait for each other.
pub(in crate::backend::cuda) const DEFAULT: c_uint = 0;
/// `CU_STREAM_NON_BLOCKING`: they do not wait for each other.
pub(in crate::backend::cuda) const NON_BLOCKING: c_uint = 1;

/// A stream that is destroyed with its handle.
#[derive(Debug)]
pub(in crate::backend::cuda) struct OwnedStream {
    driver: &'static Driver,
    raw: *mut c_void,
}

impl OwnedStream {
    /// Creates a stream in the current context.
    pub(in crate::backend::cuda) fn new(driver: &'static Driver, flags: c_uint) -> Result<Self, Status> {
        let mut raw = ptr::null_mut();
        // SAFETY: the driver writes the stream's handle.
        checked(unsafe { (driver.stream_create)(&mut raw, flags) })?;
        Ok(Self { driver, raw })
    }

    pub(in crate::backend::cuda) fn raw(&self) -> *mut c_void {
        self.raw
    }
}

/// The driver destroys a stream once what was queued on it has run. Source: CUDA driver API,
/// `cuStreamDestroy`.
impl Drop for OwnedStream {
    fn drop(&mut self) {
        // SAFETY: the handle is not shared.
        unsafe { (self.driver.stream_destroy)(self.raw) };
    }
}

impl Driver {
    /// Waits until everything queued on the stream has run.
    ///
    /// # Safety
    ///
    /// The stream is alive.
    pub(in crate::backend::cuda) unsafe fn synchronize(&self, stream: *mut c_void) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.stream_synchronize)(stream) })
    }
}
