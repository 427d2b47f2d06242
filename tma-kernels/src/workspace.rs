//! Workspaces in the caller's memory.

use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;
use tma_runtime::{Error, Scalar};

/// The multiple of bytes at which each tensor of a workspace begins: that of a tensor map.
pub(crate) const ALIGNMENT: usize = 128;

/// Returns the bytes of `len` elements, up to where the next tensor begins.
pub(crate) const fn bytes_of<T>(len: usize) -> usize {
    len.saturating_mul(size_of::<T>()).saturating_add(ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
}

/// Writes the error that a workspace in the caller's memory is too small.
pub(crate) fn write_too_small(
    f: &mut std::fmt::Formatter<'_>,
    code: &str,
    found: usize,
    wanted: usize,
) -> std::fmt::Result {
    write!(
        f,
        "{code}: a workspace in the caller's memory cannot grow: it has {found} bytes, but this call needs \
         {wanted}; pass at least that many to `from_raw`, or use a workspace that allocates its memory"
    )
}

/// Memory of the caller's that tensors are cut from, one after the other.
#[derive(Debug)]
pub(crate) struct GivenMemory<'a> {
    device: &'a Device,
    /// The stream on which zeros are written. Without one, they are there at once.
    stream: Option<&'a Stream>,
    address: u64,
}

impl<'a> GivenMemory<'a> {
    /// Returns the memory from an address on, which begins at a multiple of [`ALIGNMENT`].
    pub(crate) fn new(on: &'a impl LaunchOn, address: u64) -> Self {
        Self { device: on.device(), stream: on.stream(), address }
    }

    /// Returns the address after what has been cut off.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Cuts off a tensor of `len` elements, which are not initialised.
    ///
    /// # Safety
    ///
    /// The conditions of [`DeviceTensor::from_raw`] for [`bytes_of`] the elements.
    pub(crate) unsafe fn take<T: Scalar>(&mut self, len: usize) -> Result<DeviceTensor<T, 1>, Error> {
        // SAFETY: as the caller promises.
        let tensor = unsafe { DeviceTensor::from_raw(self.device, self.address, [len])? };
        self.address = self.address.saturating_add(bytes_of::<T>(len) as u64);
        Ok(tensor)
    }

    /// Cuts off a tensor of zeros, like [`take`](Self::take).
    ///
    /// # Safety
    ///
    /// The same.
    pub(crate) unsafe fn zeros<T: Scalar>(&mut self, len: usize) -> Result<DeviceTensor<T, 1>, Error> {
        // SAFETY: as the caller promises.
        let mut tensor = unsafe { self.take(len)? };
        match self.stream {
            Some(stream) => tensor.fill_bytes_on(0, stream)?,
            None => tensor.fill_bytes(0)?,
        }
        Ok(tensor)
    }
}
