//! Allocations of device memory.

use crate::backend::Backend;
use crate::device::Device;
use crate::error::Error;

/// An allocation of device memory, at address 0 if it is empty. It is owned by tensors, and by the
/// graphs and prepared launches that use it.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) device: Device,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// Whether another library frees it.
    pub(crate) is_foreign: bool,
}

impl Memory {
    pub(crate) fn allocate(device: &Device, bytes: u64) -> Result<Self, Error> {
        let address = match device.backend() {
            _ if bytes == 0 => 0,
            Backend::Cuda(context) => context.allocate(bytes)?,
            Backend::Sim(context) => context.allocate(bytes)?,
        };
        Ok(Self { device: device.clone(), address, bytes, is_foreign: false })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.device.backend() {
            _ if self.bytes == 0 || self.is_foreign => {}
            Backend::Cuda(context) => context.free(self.address),
            Backend::Sim(context) => context.free(self.address),
        }
    }
}
