//! Device memory in which kernels publish tensor maps.

use crate::device::Device;
use crate::error::Error;
use crate::tensor::DeviceTensor;
use crate::tensor::slice::GlobalSliceMut;
use tma_model::limits::MAP_BYTES;

/// Size of a tensor map in 64-bit words.
const MAP_WORDS: usize = MAP_BYTES as usize / size_of::<u64>();

/// Device memory for tensor maps that kernels make: the argument of a `Maps` parameter. Maps
/// published by one launch remain available to the next, including the addresses in them. A tensor
/// that a published map points to must stay alive, and must not be borrowed elsewhere, for as long
/// as kernels copy through that map.
///
/// ```
/// # use tma_runtime::prelude::*;
/// # use tma_runtime::launch::MapWorkspace;
/// # fn main() -> Result<(), tma_runtime::Error> {
/// let maps = MapWorkspace::new(&Device::simulator(), 8)?;
/// assert_eq!(maps.len(), 8);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MapWorkspace {
    words: DeviceTensor<u64, 2>,
}

impl MapWorkspace {
    /// Allocates room for `maps` tensor maps.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], and any error of the device.
    pub fn new(device: &Device, maps: usize) -> Result<Self, Error> {
        Ok(Self { words: device.zeros([maps, MAP_WORDS])? })
    }

    /// Makes a workspace of memory that another library has allocated: 128 bytes for each map.
    ///
    /// # Safety
    ///
    /// The conditions of [`DeviceTensor::from_raw`] for `maps` times 128 bytes from `address` on.
    ///
    /// # Errors
    ///
    /// The errors of [`DeviceTensor::from_raw`].
    pub unsafe fn from_raw(device: &Device, address: u64, maps: usize) -> Result<Self, Error> {
        // SAFETY: as the caller promises.
        Ok(Self { words: unsafe { DeviceTensor::from_raw(device, address, [maps, MAP_WORDS])? } })
    }

    /// Returns the capacity in maps.
    pub fn len(&self) -> usize {
        self.words.shape()[0]
    }

    /// Returns whether the capacity is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory as an argument of a launch.
    pub fn slice_mut(&mut self) -> GlobalSliceMut<'_, u64> {
        self.words.slice_mut()
    }
}
