//! Names of locations in shared memory for findings, taken from the variables that the PTX names.

use super::Diagnostics;
pub use crate::isa::SharedName;
use crate::machine::index::BlockRank;
use crate::machine::memory::SharedLocation;

/// Describes the byte at `at` of a variable in words.
fn describe(variable: &SharedName, at: u32) -> String {
    let (name, offset) = variable.object_at(at);
    if offset == 0 { format!("`{name}`") } else { format!("byte {offset} of `{name}`") }
}

impl Diagnostics {
    /// Returns the variables that the byte at `at` belongs to. There are several if some reuse the
    /// memory of others.
    fn named(&self, at: u32) -> impl Iterator<Item = &SharedName> {
        self.names.iter().filter(move |name| name.has(at))
    }

    /// Returns the variable, or the array of objects, that the byte at `at` belongs to: the
    /// longest, if there are several.
    pub(in crate::machine) fn variable(&self, at: u32) -> Option<&SharedName> {
        self.named(at).max_by_key(|name| name.to - name.from)
    }

    /// Returns whether any of the `bytes` bytes at `at` belongs to one of the variables with these
    /// numbers.
    pub(in crate::machine) fn is_any_hit(&self, at: u64, bytes: u32, variables: &[u32]) -> bool {
        let end = at.saturating_add(bytes.into());
        let mut found = variables.iter().filter_map(|&number| self.names.get(number as usize));
        found.any(|name| at < name.to.into() && u64::from(name.from) < end)
    }

    /// Lists the variables with these numbers in words.
    pub(in crate::machine) fn list(&self, variables: &[u32]) -> String {
        let found = variables.iter().filter_map(|&number| self.names.get(number as usize));
        let names: Vec<_> = found.map(|name| format!("`{}`", name.name)).collect();
        match names.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        }
    }

    /// Formats an offset in shared memory: `0x1000`, or ``0x1000 (`full`)`` if it is named, with
    /// all its names.
    pub(in crate::machine) fn offset(&self, at: u32) -> String {
        let names: Vec<_> = self.named(at).map(|name| describe(name, at)).collect();
        if names.is_empty() { format!("{at:#x}") } else { format!("{at:#x} ({})", names.join(" or ")) }
    }

    /// Returns the name of the object that starts at `at`.
    fn name_of(&self, at: u32) -> Option<String> {
        let (name, offset) = self.named(at).next()?.object_at(at);
        (offset == 0).then_some(name)
    }

    /// Describes the block, if the cluster has several.
    pub(in crate::machine) fn of_block(&self, rank: BlockRank) -> String {
        if self.shape.blocks > 1 { format!(" of block {rank}") } else { String::new() }
    }

    /// Formats a location in shared memory: its offset, and its block if the cluster has several.
    pub(in crate::machine) fn location_text(&self, location: SharedLocation) -> String {
        format!("{}{}", self.offset(location.at), self.of_block(location.rank))
    }

    /// Returns the source text that waits at the mbarrier at `at`. Names with a dot belong to the
    /// components of a pipeline.
    pub(in crate::machine) fn wait_at(&self, at: u32) -> String {
        match self.name_of(at) {
            Some(name) if name.contains('.') => "consumer.wait()".to_owned(),
            Some(name) => format!("{name}.wait(..)"),
            None => "barrier.wait(..)".to_owned(),
        }
    }
}
