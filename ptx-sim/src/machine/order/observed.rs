//! Strong writes to shared memory, and the strong reads that have observed them.
//!
//! Source: PTX ISA, "Causality Order": for accesses to the same address, a write that a read
//! observes precedes whatever the read precedes in base causality order, even without release and
//! acquire. A thread that has read a flag may therefore write it weakly.

use std::collections::HashMap;

use tma_model::sync::{Epoch, View};

use crate::machine::index::ThreadId;
use crate::machine::memory::SharedLocation;
use crate::machine::sizes::{SCALARS, Sizes};

/// The last strong write to a location.
#[derive(Debug)]
struct StrongWrite {
    by: ThreadId,
    step: Epoch,
    sizes: Sizes,
    /// The steps in which other threads have read it.
    readers: Vec<Epoch>,
}

/// The last strong writes, by location.
#[derive(Debug, Default)]
pub(super) struct Observed(HashMap<SharedLocation, StrongWrite>);

impl Observed {
    /// Records that a thread has written in this step, in which it does nothing else.
    pub(super) fn write(&mut self, by: ThreadId, step: Epoch, location: SharedLocation, sizes: Sizes) {
        self.0.insert(location, StrongWrite { by, step, sizes, readers: Vec::new() });
    }

    /// Records that a thread reads in this step. Within a block every scope includes the other
    /// thread. Reads by threads of other blocks are not recorded. A read of another size does not
    /// observe the write.
    pub(super) fn read(&mut self, by: ThreadId, step: Epoch, location: SharedLocation, sizes: Sizes) {
        if let Some(write) = self.0.get_mut(&location)
            && write.sizes.intersects(sizes)
            && write.by != by
            && write.by.block == by.block
            && !write.readers.contains(&step)
        {
            write.readers.push(step);
        }
    }

    /// Returns whether the agent of `view` is ordered after a read that observed this write. The
    /// write covers the byte at `location`, so it begins there or before, at a multiple of its
    /// size.
    pub(super) fn has(&self, view: &View, write: Epoch, location: SharedLocation) -> bool {
        let begins = |size: u32| SharedLocation { at: location.at & !(size - 1), ..location };
        let known = SCALARS.iter().filter_map(|size| self.0.get(&begins(*size)));
        let mut readers = known.filter(|known| known.step == write).flat_map(|known| &known.readers);
        readers.any(|reader| view.follows(*reader))
    }
}
