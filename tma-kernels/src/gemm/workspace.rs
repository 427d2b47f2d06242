//! Memory through which blocks exchange sums.

use super::{GemmError, tile};
use crate::workspace::{GivenMemory, bytes_of};
use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

/// The elements of the sums of a warpgroup at most: 64 × 256.
const SUMS: usize = 64 * 256;

/// Memory through which blocks exchange sums that are split among them. Only one GEMM may use it at
/// a time: give each stream its own.
#[derive(Debug)]
pub struct Workspace {
    pub(super) partials: DeviceTensor<f32, 1>,
    pub(super) tickets: DeviceTensor<u32, 1>,
    /// The bytes of the caller's memory, which cannot grow.
    given: Option<usize>,
}

impl Workspace {
    /// Allocates the memory for every GEMM whose sums are split by default: 35 MB on an H200.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn new(device: &Device) -> Result<Self, Error> {
        Self::of(device, usual_warpgroups(device))
    }

    /// Makes a workspace that allocates its memory when the first GEMM needs it.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] of the host.
    pub fn empty(device: &Device) -> Result<Self, Error> {
        Self::of(device, 0)
    }

    /// Returns how many bytes suffice for every GEMM whose sums are split by default, as
    /// [`new`](Self::new) allocates them.
    pub fn bytes(device: &Device) -> usize {
        bytes_of_warpgroups(usual_warpgroups(device))
    }

    /// Makes a workspace of memory that another library has allocated: of [`bytes`](Self::bytes),
    /// or of fewer for small GEMMs. It never grows. Part of it is filled with zeros: on a stream,
    /// the fill is queued; otherwise it is complete when the function returns.
    ///
    /// The address is a multiple of 128.
    ///
    /// ```
    /// use tma_kernels::gemm::{GemmOptions, Workspace, gemm};
    /// use tma_runtime::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Device::open()?;
    /// let memory = device.zeros::<u8, 1>([Workspace::bytes(&device)])?; // or another library's
    /// // SAFETY: the memory outlives the workspace, and is used for nothing else.
    /// let mut workspace = unsafe { Workspace::from_raw(&device, memory.as_ptr(), memory.len())? };
    /// let (a, b) = (device.zeros::<bf16, 2>([64, 64])?, device.zeros::<bf16, 2>([64, 64])?);
    /// let mut c = device.zeros::<bf16, 2>([64, 64])?;
    /// gemm(&device, &a, &b, &mut c, GemmOptions { workspace: Some(&mut workspace), ..Default::default() })?;
    /// # drop(workspace);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    ///
    /// The conditions of [`DeviceTensor::from_raw`] for `bytes` bytes from `address` on. They are
    /// used by nothing else as long as the workspace is. If `on` is a stream, the first call that
    /// uses the workspace is queued there, or after what waits for it.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceTensor::from_raw`], and [`Error::KernelFault`].
    pub unsafe fn from_raw(on: &impl LaunchOn, address: u64, bytes: usize) -> Result<Self, Error> {
        let warpgroups = bytes.saturating_sub(bytes_of_warpgroups(0)) / (SUMS * size_of::<f32>() + 4);
        let most = |&count: &usize| bytes_of_warpgroups(count) <= bytes;
        let warpgroups = [warpgroups, warpgroups.saturating_sub(1)].into_iter().find(most).unwrap_or(0);
        let mut memory = GivenMemory::new(on, address);
        // SAFETY: as the caller promises, for no more bytes than are given.
        let (partials, tickets) = unsafe { (memory.take(warpgroups * SUMS)?, memory.zeros(warpgroups)?) };
        Ok(Self { partials, tickets, given: Some(bytes) })
    }

    /// Allocates the memory for the sums of this many warpgroups.
    pub(super) fn of(device: &Device, warpgroups: usize) -> Result<Self, Error> {
        let partials = device.zeros([warpgroups * SUMS])?;
        Ok(Self { partials, tickets: device.zeros([warpgroups])?, given: None })
    }

    /// Grows until the memory suffices for the sums of this many blocks. What it had before is
    /// freed once every GEMM that uses it has run.
    pub(super) fn grow(&mut self, blocks: usize, facts: &tile::Facts) -> Result<(), GemmError> {
        let warpgroups = blocks * facts.warpgroups as usize;
        let holds = self.partials.len() >= warpgroups * 64 * facts.columns as usize
            && self.tickets.len() >= warpgroups;
        match self.given {
            _ if holds => Ok(()),
            Some(found) => Err(GemmError::Workspace { found, wanted: bytes_of_warpgroups(warpgroups) }),
            None => {
                let device = self.partials.device();
                *self = Self::of(device, (2 * blocks).max(usual_warpgroups(device)))?;
                Ok(())
            }
        }
    }
}

/// Returns the warpgroups whose sums are split by default at most.
fn usual_warpgroups(device: &Device) -> usize {
    4 * device.multiprocessors() as usize
}

/// Returns the bytes for the sums and counters of so many warpgroups.
const fn bytes_of_warpgroups(warpgroups: usize) -> usize {
    bytes_of::<f32>(warpgroups.saturating_mul(SUMS)) + bytes_of::<u32>(warpgroups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_memory_holds_what_its_bytes_are_for() -> Result<(), Error> {
        let device = Device::simulator();
        let memory = device.filled_bytes::<u8, 1>([bytes_of_warpgroups(33)], 7)?;
        assert_eq!(Workspace::bytes(&device), bytes_of_warpgroups(16));
        for warpgroups in [0, 1, 2, 15, 16, 31, 32, 33] {
            let bytes = bytes_of_warpgroups(warpgroups);
            // SAFETY: the memory outlives the workspace, and is used for nothing else.
            let workspace = unsafe { Workspace::from_raw(&device, memory.as_ptr(), bytes)? };
            assert_eq!(workspace.partials.len(), warpgroups * SUMS);
            assert_eq!(workspace.tickets.to_vec()?, vec![0; warpgroups]);
            let end = workspace.tickets.as_ptr() + workspace.tickets.bytes();
            assert!(end <= memory.as_ptr() + bytes as u64, "{warpgroups}");
        }
        Ok(())
    }
}
