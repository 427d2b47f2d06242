//! A cache of encoded tensor maps.

use super::driver::Driver;
use crate::error::Error;
use crate::map::options::MapSource;
use crate::map::{Descriptor, MapParams, map_params};
use crate::spec::MapSpec;

/// The number of slots, as a power of two.
const SLOT_BITS: u32 = 5;

/// The descriptors encoded for one parameter of one kernel.
///
/// The cache is direct-mapped: the tensor's address selects the slot, and a new tensor replaces any
/// other one there. This bounds the cache's size, and a lookup takes a few nanoseconds. A
/// descriptor depends only on the tensor's layout and options, because box, element type and
/// swizzle belong to the parameter. Memory that was freed and reallocated is therefore not a
/// problem.
#[derive(Debug, Default)]
pub(super) struct DescriptorCache {
    /// Empty until the first descriptor is encoded.
    slots: Vec<Slot>,
}

/// A descriptor and the tensor that it was encoded from; `None` in an unused slot.
#[derive(Clone, Debug, Default)]
struct Slot {
    source: Option<MapSource>,
    descriptor: Descriptor,
}

impl DescriptorCache {
    /// Returns the descriptor of the tensor of `source`, checked and encoded if it is not cached.
    pub(super) fn get(
        &mut self,
        driver: &Driver,
        tensor: &'static str,
        spec: &MapSpec,
        source: &MapSource,
    ) -> Result<&Descriptor, Error> {
        if self.slots.is_empty() {
            self.slots.resize(1 << SLOT_BITS, Slot::default());
        }
        let slot = &mut self.slots[slot(source.layout.address())];
        if slot.source.as_ref() != Some(source) {
            slot.descriptor = encode(driver, tensor, spec, source)?;
            slot.source = Some(*source);
        }
        Ok(&slot.descriptor)
    }
}

/// Checks the tensor and encodes its map.
pub(super) fn encode(
    driver: &Driver,
    tensor: &'static str,
    spec: &MapSpec,
    source: &MapSource,
) -> Result<Descriptor, Error> {
    encode_params(driver, tensor, &map_params(tensor, source, spec)?)
}

/// Encodes a map that has been checked.
pub(super) fn encode_params(
    driver: &Driver,
    tensor: &'static str,
    params: &MapParams,
) -> Result<Descriptor, Error> {
    driver.encode(params).map_err(|code| Error::MapRefused {
        tensor,
        status: driver.status(code),
        map: Box::new(params.map.clone()),
    })
}

/// Returns the slot of an address: the high bits of a multiplicative hash of all its bits.
fn slot(address: u64) -> usize {
    // 2^64 divided by the golden ratio, as in Fibonacci hashing (Knuth, volume 3, section 6.4).
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOT_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_allocations_spread_over_the_slots() {
        let mut used: Vec<usize> = (0..8).map(|i| slot(0x7f00_0000_0000 + i * (2 << 20))).collect();
        assert!(used.iter().all(|&slot| slot < 1 << SLOT_BITS));
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), 8);
    }
}
