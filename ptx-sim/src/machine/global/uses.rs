//! When threads have used what they read.
//!
//! The read of a value that was used is over: whoever knows of the use need not fear that a copy
//! overtakes the read. Which instructions use a value, linking finds
//! ([`mark_uses`](crate::code::link)).

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use tma_model::sync::{Epoch, Proxy};

use super::foreign::Observer;
use super::mark::{Author, GlobalAccess};
use super::table::PageHasher;

/// The most uses that are kept of what a thread reads in one line; reads before the first of them
/// then count as used.
const MOST_USES: usize = 64;

/// A thread, and a line in which it reads.
type Reads = (u64, u64);

fn reads(author: Author, line: u32) -> Reads {
    (u64::from(author.cluster) << 32 | u64::from(author.thread), line.into())
}

/// What threads have used of what they read.
#[derive(Debug)]
pub(super) struct Uses {
    /// Of each line, whether what is read there is used before anybody can learn of the read.
    at_once: Arc<[bool]>,
    /// The steps of the other uses.
    steps: HashMap<Reads, Vec<u32>, BuildHasherDefault<PageHasher>>,
}

impl Uses {
    pub(super) fn new(at_once: &Arc<[bool]>) -> Self {
        Self { at_once: Arc::clone(at_once), steps: HashMap::default() }
    }

    /// A thread uses, in this step, what it has read last in a line.
    pub(super) fn add(&mut self, author: Author, line: u32, step: Epoch) {
        let steps = self.steps.entry(reads(author, line)).or_default();
        if steps.last() == Some(&step.count()) {
            return;
        }
        if steps.len() == MOST_USES {
            steps.remove(0);
        }
        steps.push(step.count());
    }

    /// Whether it is a read whose value comes to a register of its thread, which may be used late.
    /// Of a `cp.async` nobody knows before it is complete.
    #[inline]
    pub(super) fn may_be_overtaken(&self, read: &GlobalAccess) -> bool {
        let loads_register =
            read.manner.proxy == Proxy::Generic && read.step.component().number() == read.author.thread;
        loads_register && !self.at_once.get(read.line as usize).is_none_or(|at_once| *at_once)
    }

    /// Whether the observer knows that the value of this read was used.
    pub(super) fn is_known(&self, read: &GlobalAccess, observer: &Observer<'_>) -> bool {
        let Some(steps) = self.steps.get(&reads(read.author, read.line)) else { return false };
        let first = steps.partition_point(|step| *step < read.step.count());
        if first == 0 && steps.len() == MOST_USES {
            return true;
        }
        let known = |count: &u32| {
            let step = Epoch::new(read.step.component(), *count);
            observer.knows_over(&GlobalAccess { step, ..*read })
        };
        steps.get(first).is_some_and(known)
    }

    /// Whether a copy that does not overtake a read does not overtake an earlier one either, which
    /// comes before it. Of the reads of one thread that may be late that is taken to be so.
    pub(super) fn stand_for(
        &self,
        later: &GlobalAccess,
        earlier: &GlobalAccess,
        observer: &Observer<'_>,
    ) -> bool {
        let is_of_thread = later.author == earlier.author && self.may_be_overtaken(later);
        is_of_thread || !self.may_be_overtaken(earlier) || observer.fences_read(earlier)
    }
}
