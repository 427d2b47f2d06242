//! What findings call places in shared memory: by the variables that the PTX names, where it names
//! any.

use super::Diagnostics;
pub use crate::isa::SharedName;
use crate::machine::index::BlockRank;
use crate::machine::memory::SharedPlace;

impl SharedName {
    /// The one that the byte at `at` is of, and how far it is from its first.
    fn place(&self, at: u32) -> (String, u32) {
        let (name, offset) = (&self.name, at - self.from);
        match self.step {
            Some(step) => (format!("{name}[{}]", offset / step.max(1)), offset % step.max(1)),
            None => (name.clone(), offset),
        }
    }

    /// The byte at `at` in words.
    fn describe(&self, at: u32) -> String {
        let (name, offset) = self.place(at);
        if offset == 0 { format!("`{name}`") } else { format!("byte {offset} of `{name}`") }
    }
}

impl Diagnostics {
    fn named(&self, at: u32) -> Option<&SharedName> {
        self.names.iter().find(|name| (name.from..name.to).contains(&at))
    }

    /// The variable that the byte at an offset is of, or those of a kind.
    pub(in crate::machine) fn variable(&self, at: u32) -> Option<&SharedName> {
        self.named(at)
    }

    /// Whether one of `bytes` at an offset is of one of the variables with these numbers.
    pub(in crate::machine) fn is_any_hit(&self, at: u64, bytes: u32, variables: &[u32]) -> bool {
        let end = at.saturating_add(bytes.into());
        let mut found = variables.iter().filter_map(|&number| self.names.get(number as usize));
        found.any(|name| at < name.to.into() && u64::from(name.from) < end)
    }

    /// The variables with these numbers, as a list in words.
    pub(in crate::machine) fn list(&self, variables: &[u32]) -> String {
        let found = variables.iter().filter_map(|&number| self.names.get(number as usize));
        let names: Vec<_> = found.map(|name| format!("`{}`", name.name)).collect();
        match names.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        }
    }

    /// An offset in shared memory: `0x1000`, and with a name `0x1000 (`full`)`.
    pub(in crate::machine) fn offset(&self, at: u32) -> String {
        match self.named(at) {
            Some(name) => format!("{at:#x} ({})", name.describe(at)),
            None => format!("{at:#x}"),
        }
    }

    /// What the source calls the place at an offset, if it is the start of something.
    fn name_of(&self, at: u32) -> Option<String> {
        let (name, offset) = self.named(at)?.place(at);
        (offset == 0).then_some(name)
    }

    /// Which block is meant, where a cluster has several.
    pub(in crate::machine) fn of_block(&self, rank: BlockRank) -> String {
        if self.shape.blocks > 1 { format!(" of block {rank}") } else { String::new() }
    }

    /// A place in shared memory: its offset, and of which block, where a cluster has several.
    pub(in crate::machine) fn place(&self, place: SharedPlace) -> String {
        format!("{}{}", self.offset(place.at), self.of_block(place.rank))
    }

    /// How the language waits at the mbarrier at an offset. Names with a dot are those of a
    /// pipeline's parts.
    pub(in crate::machine) fn wait_at(&self, at: u32) -> String {
        match self.name_of(at) {
            Some(name) if name.contains('.') => "consumer.wait()".to_owned(),
            Some(name) => format!("{name}.wait(..)"),
            None => "barrier.wait(..)".to_owned(),
        }
    }
}
