//! The strong writes to shared memory that strong reads have seen.
//!
//! Source: PTX ISA, "Causality Order": a write that a read observes comes before what the read comes
//! before in base causality order, as far as accesses to the same address are concerned, whether or
//! not anything is released and acquired. So a thread that has read a flag may write it weakly.

use std::collections::HashMap;

use tma_model::sync::{Epoch, View};

use crate::machine::index::ThreadId;
use crate::machine::memory::SharedPlace;
use crate::machine::sizes::{SCALARS, Sizes};

/// The last strong write to a place.
#[derive(Debug)]
struct StrongWrite {
    by: ThreadId,
    step: Epoch,
    sizes: Sizes,
    /// The steps of other threads that have read it.
    readers: Vec<Epoch>,
}

/// The last strong writes, by place.
#[derive(Debug, Default)]
pub(super) struct Observed(HashMap<SharedPlace, StrongWrite>);

impl Observed {
    /// A thread has written with this step, which stands for nothing else.
    pub(super) fn write(&mut self, by: ThreadId, step: Epoch, place: SharedPlace, sizes: Sizes) {
        self.0.insert(place, StrongWrite { by, step, sizes, readers: Vec::new() });
    }

    /// A thread reads with this step. Within a block each scope includes the other thread; those of
    /// threads of other blocks are not kept. A read of another size does not observe the write.
    pub(super) fn read(&mut self, by: ThreadId, step: Epoch, place: SharedPlace, sizes: Sizes) {
        if let Some(write) = self.0.get_mut(&place)
            && write.sizes.meet(sizes)
            && write.by != by
            && write.by.block == by.block
            && !write.readers.contains(&step)
        {
            write.readers.push(step);
        }
    }

    /// Whether the agent of `view` comes after a read that has seen this write, which has written
    /// the byte at `place`. A write begins there or before, at a multiple of its size.
    pub(super) fn has(&self, view: &View, write: Epoch, place: SharedPlace) -> bool {
        let begins = |size: u32| SharedPlace { at: place.at & !(size - 1), ..place };
        let known = SCALARS.iter().filter_map(|size| self.0.get(&begins(*size)));
        let mut readers = known.filter(|known| known.step == write).flat_map(|known| &known.readers);
        readers.any(|reader| view.follows(*reader))
    }
}
