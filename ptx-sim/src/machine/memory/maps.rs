//! Tensor maps: those that copies have named, and the state of those in global memory.
//!
//! Copies read maps through a proxy of their own (PTX ISA, "Tensormap proxy"). A map in the
//! kernel's parameters is valid from the start. A map in global memory must be acquired in the
//! block before its first use and after each change, with `fence.proxy.tensormap::generic.acquire`
//! by the thread that issues the copy, or by a thread that a barrier orders before it (CUDA
//! Programming Guide, "Using a tensor map in global memory"). A change by a thread of this cluster
//! must also be released before the acquire, by a thread that knows of the change. Changes by other
//! clusters, by earlier launches and by the host are noticed only because the bytes differ.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use tma_model::sync::{Epoch, View};

use super::Mark;
use crate::machine::index::MapId;
use crate::tensor_map::{self, DESCRIPTOR_BYTES, Descriptor, TensorMap};

/// The maps of a cluster.
#[derive(Debug, Default)]
pub(in crate::machine) struct Maps {
    /// All maps, by number. Maps are never forgotten.
    known: Vec<Rc<TensorMap>>,
    numbers: HashMap<Descriptor, MapId>,
    /// Maps in global memory that were changed, acquired or used, by address.
    global: BTreeMap<u64, GlobalMap>,
}

/// A map in global memory.
#[derive(Debug, Default)]
struct GlobalMap {
    /// The last change by a thread of this cluster.
    last_change: Option<Mark>,
    /// The fence that released the change.
    released: Option<Epoch>,
    acquired: Vec<Acquired>,
}

/// An acquire of a map: the fence, the bytes at that time, and whether the last change had been
/// released before.
#[derive(Debug)]
struct Acquired {
    fence: Epoch,
    bytes: Descriptor,
    after_release: bool,
}

/// An error in the use of a map in global memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) enum MapMisuse {
    /// The map was not acquired.
    NotAcquired,
    /// The map has changed since it was acquired.
    Changed,
    /// The change was not released before the map was acquired.
    NotReleased,
}

impl Maps {
    /// Returns the map with this number.
    pub(in crate::machine) fn get(&self, map: MapId) -> Option<&Rc<TensorMap>> {
        self.known.get(map.index())
    }

    /// Returns the number of the map that a descriptor encodes, or `None` if the bytes are no valid
    /// descriptor.
    pub(in crate::machine) fn number_of(&mut self, descriptor: &Descriptor) -> Option<MapId> {
        if let Some(number) = self.numbers.get(descriptor) {
            return Some(*number);
        }
        let map = tensor_map::decode(descriptor)?;
        let number = MapId(self.known.len() as u32);
        self.known.push(Rc::new(map));
        self.numbers.insert(*descriptor, number);
        Some(number)
    }

    /// Notes that a thread has written to global memory.
    #[inline]
    pub(in crate::machine) fn note_write(&mut self, address: u64, len: u32, write: Mark) {
        if self.global.is_empty() {
            return;
        }
        let first = address.saturating_sub(DESCRIPTOR_BYTES as u64 - 1);
        for (_, map) in self.global.range_mut(first..address.saturating_add(len.into())) {
            (map.last_change, map.released) = (Some(write), None);
        }
    }

    /// Notes that a thread has changed the map at `address`.
    pub(in crate::machine) fn note_change(&mut self, address: u64, write: Mark) {
        let map = self.global.entry(address).or_default();
        (map.last_change, map.released) = (Some(write), None);
    }

    /// Returns the error, if any, in a use by `view` of the map at `address`, together with the
    /// last change of the map. `bytes` are the current contents.
    pub(in crate::machine) fn misuse(
        &mut self,
        address: u64,
        bytes: &Descriptor,
        view: &View,
    ) -> Option<(MapMisuse, Option<Mark>)> {
        let map = self.global.entry(address).or_default();
        map.misuse(view, bytes).map(|misuse| (misuse, map.last_change))
    }

    /// A fence of `view`: releases all changes that it knows of.
    pub(in crate::machine) fn release(&mut self, view: &View) {
        for map in self.global.values_mut() {
            if map.last_change.is_some_and(|change| view.follows(change.step)) {
                map.released = Some(view.epoch());
            }
        }
    }

    /// A fence of `view`: acquires the map at `address`, whose current contents are `bytes`.
    pub(in crate::machine) fn acquire(&mut self, address: u64, bytes: Descriptor, view: &View) {
        let map = self.global.entry(address).or_default();
        let after_release = match (map.last_change, map.released) {
            (None, _) => true,
            (Some(_), released) => released.is_some_and(|fence| view.follows(fence)),
        };
        let fence = view.epoch();
        map.acquired.retain(|known| known.fence.component() != fence.component());
        map.acquired.push(Acquired { fence, bytes, after_release });
    }
}

impl GlobalMap {
    fn misuse(&self, view: &View, bytes: &Descriptor) -> Option<MapMisuse> {
        let mut visible = self.acquired.iter().filter(|acquired| view.follows(acquired.fence)).peekable();
        if visible.peek().is_none() {
            return Some(MapMisuse::NotAcquired);
        }
        let mut current = visible.filter(|acquired| acquired.bytes == *bytes).peekable();
        if current.peek().is_none() {
            return Some(MapMisuse::Changed);
        }
        (!current.any(|acquired| acquired.after_release)).then_some(MapMisuse::NotReleased)
    }
}
