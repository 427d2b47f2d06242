//! Uses of the values that threads read.
//!
//! A read has completed once its value was used. A copy that is ordered after the use therefore
//! cannot overtake the read. Linking finds the instructions that use a value
//! ([`mark_uses`](crate::code::link)).

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use tma_model::sync::{Epoch, Proxy};

use super::cross_cluster::Observer;
use super::mark::{GlobalAccess, GridThread};
use super::table::PageHasher;

/// The most uses that are kept for the reads of a thread in one line. Reads before the oldest kept
/// use then count as used.
const MOST_USES: usize = 64;

/// A thread, and a line in which it reads.
type Reads = (u64, u64);

fn reads(grid_thread: GridThread, line: u32) -> Reads {
    (u64::from(grid_thread.cluster) << 32 | u64::from(grid_thread.thread), line.into())
}

/// The uses of values that threads read.
#[derive(Debug)]
pub(super) struct Uses {
    /// For each line, whether a value read there is used before any other thread can learn of the
    /// read.
    used_immediately: Arc<[bool]>,
    /// The steps of all other uses.
    steps: HashMap<Reads, Vec<u32>, BuildHasherDefault<PageHasher>>,
}

impl Uses {
    pub(super) fn new(used_immediately: &Arc<[bool]>) -> Self {
        Self { used_immediately: Arc::clone(used_immediately), steps: HashMap::default() }
    }

    /// Records that a thread uses, in this step, the value that it last read in a line.
    pub(super) fn add(&mut self, grid_thread: GridThread, line: u32, step: Epoch) {
        let steps = self.steps.entry(reads(grid_thread, line)).or_default();
        if steps.last() == Some(&step.count()) {
            return;
        }
        if steps.len() == MOST_USES {
            steps.remove(0);
        }
        steps.push(step.count());
    }

    /// Returns whether this read loads a register of its thread, whose value may be used late. A
    /// `cp.async` does not, because no thread learns of it before it is complete.
    #[inline]
    pub(super) fn may_be_overtaken(&self, read: &GlobalAccess) -> bool {
        let loads_register = read.attributes.proxy == Proxy::Generic
            && read.step.component().number() == read.grid_thread.thread;
        loads_register
            && !self.used_immediately.get(read.line as usize).is_none_or(|used_immediately| *used_immediately)
    }

    /// Returns whether the observer knows that the value of this read was used.
    pub(super) fn is_known(&self, read: &GlobalAccess, observer: &Observer<'_>) -> bool {
        let Some(steps) = self.steps.get(&reads(read.grid_thread, read.line)) else { return false };
        let first = steps.partition_point(|step| *step < read.step.count());
        if first == 0 && steps.len() == MOST_USES {
            return true;
        }
        let known = |count: &u32| {
            let step = Epoch::new(read.step.component(), *count);
            observer.knows_complete(&GlobalAccess { step, ..*read })
        };
        steps.get(first).is_some_and(known)
    }

    /// Returns whether a copy that cannot overtake `later` cannot overtake `earlier` either, where
    /// `earlier` happens before `later`. This is assumed for reads of one thread that may complete
    /// late.
    pub(super) fn covers(
        &self,
        later: &GlobalAccess,
        earlier: &GlobalAccess,
        observer: &Observer<'_>,
    ) -> bool {
        let is_of_thread = later.grid_thread == earlier.grid_thread && self.may_be_overtaken(later);
        is_of_thread || !self.may_be_overtaken(earlier) || observer.has_fenced_read(earlier)
    }
}
