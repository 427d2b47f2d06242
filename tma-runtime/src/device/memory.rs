//! Allocations of device memory.

use std::sync::{Mutex, PoisonError};

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
    /// Other devices, on which a team's kernels may have accessed the memory.
    peers: Mutex<Vec<Device>>,
}

impl Memory {
    pub(crate) fn new(device: &Device, address: u64, bytes: u64, is_foreign: bool) -> Self {
        Self { device: device.clone(), address, bytes, is_foreign, peers: Mutex::default() }
    }

    pub(crate) fn allocate(device: &Device, bytes: u64) -> Result<Self, Error> {
        let address = match device.backend() {
            _ if bytes == 0 => 0,
            Backend::Cuda(context) => context.allocate(bytes)?,
            Backend::Sim(context) => context.allocate(bytes)?,
        };
        Ok(Self::new(device, address, bytes, false))
    }

    /// Records that kernels on these devices may access the memory from now on.
    pub(crate) fn share(&self, devices: impl Iterator<Item = Device>) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        for device in devices {
            if device.id() != self.device.id() && peers.iter().all(|known| known.id() != device.id()) {
                peers.push(device);
            }
        }
    }

    /// Waits until everything that is queued on other devices of a team has run, if it may access
    /// the memory. The memory's own device orders its work by itself.
    ///
    /// # Errors
    ///
    /// Those of [`Device::synchronize`].
    pub(crate) fn wait_for_peers(&self) -> Result<(), Error> {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        peers.iter().try_for_each(Device::synchronize)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.bytes == 0 || self.is_foreign {
            return;
        }
        // A failure comes from an earlier kernel, and is reported by other calls.
        let _reported_elsewhere = self.wait_for_peers();
        match self.device.backend() {
            Backend::Cuda(context) => context.free(self.address),
            Backend::Sim(context) => context.free(self.address),
        }
    }
}
