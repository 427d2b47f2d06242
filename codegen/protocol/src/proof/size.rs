//! The memory that a state takes.

use tma_front::quick::QuickSet;

use crate::lanes::Lanes;
use crate::memory::Record;
use crate::memory::region::Region;
use crate::state::visit::{ExecutionPart, Visit};
use crate::state::{Agent, Execution};

/// Bytes of a number in a state: a value, or a part of a record.
const NUMBER_BYTES: u64 = 16;
/// Bytes of the record of an access without its numbers.
const RECORD_BYTES: u64 = 160;
/// Bytes of a decision, with its share of a map.
const FACT_BYTES: u64 = 64;
/// Bytes of a group of threads without its numbers, but with the locals of the loops around it.
const AGENT_BYTES: u64 = size_of::<Agent>() as u64 + 256;

/// Returns the memory that a state takes without terms, in bytes. Shared parts count once.
pub(crate) fn of_state(state: &mut Execution) -> u64 {
    let mut size = Size { bytes: 0, clocks: QuickSet::default() };
    state.visit(&mut size);
    // The visit leaves out the views of groups that have ended.
    for agent in &state.agents {
        size.bytes += AGENT_BYTES;
        if agent.is_done {
            agent.view.visit_state(&mut |part| size.sync(part));
        }
    }
    size.bytes
}

struct Size {
    bytes: u64,
    /// The clocks that were counted.
    clocks: QuickSet<usize>,
}

impl Visit for Size {
    fn part(&mut self, part: ExecutionPart<'_>) {
        self.bytes += match part {
            ExecutionPart::Number(_)
            | ExecutionPart::Term(_)
            | ExecutionPart::Step(_)
            | ExecutionPart::UpTo(_)
            | ExecutionPart::Group(_) => NUMBER_BYTES,
            ExecutionPart::Clock(clock) => {
                let is_new = self.clocks.insert(clock.storage_id());
                NUMBER_BYTES + if is_new { 4 * clock.len() as u64 } else { 0 }
            }
            ExecutionPart::Records(records) => {
                let of_record = |record: &Record| RECORD_BYTES + 4 * record.region.numbers() as u64;
                records.iter().map(of_record).sum()
            }
            ExecutionPart::Facts(facts) => facts.len() as u64 * FACT_BYTES,
        }
    }
}

impl Region {
    /// Returns how many numbers the region consists of.
    fn numbers(&self) -> usize {
        match self {
            Self::All(ranges) | Self::Shared { ranges, .. } => 2 * ranges.len(),
            Self::Each(Lanes::Each(all), _) => all.len(),
            Self::Many(owners) => owners.len(),
            Self::Each(Lanes::Same(_), _) | Self::Some(_) => 2,
        }
    }
}
