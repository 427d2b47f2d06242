//! Where kernels publish tensor maps.

use crate::device::Device;
use crate::error::Error;
use crate::launch::args::GlobalSliceMut;
use crate::tensor::DeviceTensor;

/// Words of 64 bits that a tensor map has.
const MAP_WORDS: usize = 16;

/// Room in a device's memory for tensor maps that kernels make: the argument of a `Maps` parameter. What one launch
/// publishes is there for the next, and so are the addresses in it: a tensor that a kernel has pointed a map at stays
/// alive, and is not lent elsewhere, for as long as kernels copy by that map.
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
    /// Room for `maps` tensor maps.
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

    /// Whether there is room for none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its words, as a launch takes them.
    pub fn slice_mut(&mut self) -> GlobalSliceMut<'_, u64> {
        self.words.slice_mut()
    }
}
