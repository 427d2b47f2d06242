//! Device memory in which kernels publish tensor maps.

use crate::device::Device;
use crate::error::Error;
use crate::launch::args::GlobalSliceMut;
use crate::tensor::DeviceTensor;

/// 64-bit words per tensor map.
const MAP_WORDS: usize = 16;

/// Device memory for tensor maps that kernels make: the argument of a `Maps` parameter. Maps that
/// one launch publishes are there for the next, including the addresses in them: a tensor that a
/// published map points to must stay alive, and must not be borrowed elsewhere, for as long as
/// kernels copy through that map.
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
    /// [`Error::OutOfMemory`], and whatever the device reports.
    pub fn new(device: &Device, maps: usize) -> Result<Self, Error> {
        Ok(Self { words: device.zeros([maps, MAP_WORDS])? })
    }

    /// How many maps there is room for.
    pub fn len(&self) -> usize {
        self.words.shape()[0]
    }

    /// Whether there is room for no map at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory as an argument of a launch.
    pub fn slice_mut(&mut self) -> GlobalSliceMut<'_, u64> {
        self.words.slice_mut()
    }
}
