//! Devices, their attributes, and their primary contexts.

use super::{Driver, NO_DEVICE, PEER_ACCESS_ALREADY_ENABLED, Status, checked, from_int, to_int};
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

/// Size of the buffer for a device's name, in bytes. The driver truncates longer names.
const NAME_BYTES: usize = 256;

/// The values of `CUdevice_attribute` that are queried here.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(in crate::backend::cuda) enum Attribute {
    /// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`.
    Multiprocessors = 16,
    /// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
    CapabilityMajor = 75,
    /// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
    CapabilityMinor = 76,
    /// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`, in bytes.
    SharedBytes = 97,
}

/// A reference to a GPU's primary context. The driver counts the references of a process, and
/// destroys the context with the last of them.
#[derive(Debug)]
pub(in crate::backend::cuda) struct PrimaryContext {
    driver: &'static Driver,
    device: c_int,
    raw: *mut c_void,
}

impl PrimaryContext {
    /// Takes a reference, and creates the context if it does not exist. It does not become current.
    pub(in crate::backend::cuda) fn retain(driver: &'static Driver, device: c_int) -> Result<Self, Status> {
        let mut raw = ptr::null_mut();
        // SAFETY: the driver writes the context's handle.
        checked(unsafe { (driver.primary_ctx_retain)(&mut raw, device) })?;
        Ok(Self { driver, device, raw })
    }

    pub(in crate::backend::cuda) fn raw(&self) -> *mut c_void {
        self.raw
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // SAFETY: this releases the one reference that `retain` took.
        unsafe { (self.driver.primary_ctx_release)(self.device) };
    }
}

impl Driver {
    /// Returns the number of GPUs that the process sees.
    pub(in crate::backend::cuda) fn device_count(&self) -> Result<u32, Status> {
        let mut count = 0;
        // SAFETY: the driver writes one number.
        match unsafe { (self.device_get_count)(&mut count) } {
            NO_DEVICE => Ok(0),
            code => checked(code).and_then(|()| from_int(count)),
        }
    }

    /// Returns the handle of the GPU with this ordinal.
    pub(in crate::backend::cuda) fn device(&self, ordinal: u32) -> Result<c_int, Status> {
        let mut device = 0;
        let ordinal = to_int(ordinal)?;
        // SAFETY: the driver writes one number.
        checked(unsafe { (self.device_get)(&mut device, ordinal) })?;
        Ok(device)
    }

    /// Returns the product name of a device.
    pub(in crate::backend::cuda) fn device_name(&self, device: c_int) -> Result<String, Status> {
        let mut name = [0u8; NAME_BYTES];
        // SAFETY: the driver writes at most `NAME_BYTES` bytes, the last of which is 0.
        checked(unsafe { (self.device_get_name)(name.as_mut_ptr().cast(), NAME_BYTES as c_int, device) })?;
        let name = CStr::from_bytes_until_nul(&name).map(CStr::to_string_lossy).unwrap_or_default();
        Ok(name.into_owned())
    }

    /// Returns an attribute of a device.
    pub(in crate::backend::cuda) fn attribute(
        &self,
        device: c_int,
        attribute: Attribute,
    ) -> Result<u32, Status> {
        let mut value = 0;
        // SAFETY: the driver writes one number.
        checked(unsafe { (self.device_get_attribute)(&mut value, attribute as c_int, device) })?;
        from_int(value)
    }

    /// Returns whether one GPU can access the memory of another.
    pub(in crate::backend::cuda) fn can_access_peer(&self, from: c_int, to: c_int) -> Result<bool, Status> {
        let mut can = 0;
        // SAFETY: the driver writes one number.
        checked(unsafe { (self.device_can_access_peer)(&mut can, from, to) })?;
        Ok(can != 0)
    }

    /// Lets the current context access all memory that is allocated in `peer`, now or later.
    ///
    /// # Safety
    ///
    /// The context `peer` is alive.
    pub(in crate::backend::cuda) unsafe fn enable_peer_access(
        &self,
        peer: *mut c_void,
    ) -> Result<(), Status> {
        // SAFETY: as the caller promises. The flags must be 0.
        match unsafe { (self.ctx_enable_peer_access)(peer, 0) } {
            PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            code => checked(code),
        }
    }

    /// Waits until everything queued in the current context has run.
    pub(in crate::backend::cuda) fn synchronize_context(&self) -> Result<(), Status> {
        // SAFETY: without a current context the driver returns an error.
        checked(unsafe { (self.ctx_synchronize)() })
    }
}
