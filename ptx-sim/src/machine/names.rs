//! What findings call places in shared memory: by the variables that the PTX names, where it names any.

use super::Machine;
pub use crate::isa::SharedName;

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

impl Machine {
    /// An offset in shared memory: `0x1000`, and with a name `0x1000 (`full`)`.
    pub(super) fn spot(&self, at: u32) -> String {
        match self.config.names.iter().find(|name| (name.from..name.to).contains(&at)) {
            Some(name) => format!("{at:#x} ({})", name.describe(at)),
            None => format!("{at:#x}"),
        }
    }

    /// What the source calls the place at an offset, if it is the start of something.
    pub(super) fn name_of(&self, at: u32) -> Option<String> {
        let name = self.config.names.iter().find(|name| (name.from..name.to).contains(&at))?;
        let (name, offset) = name.place(at);
        (offset == 0).then_some(name)
    }

    /// Which block is meant, where a cluster has several.
    pub(super) fn of_block(&self, rank: usize) -> String {
        if self.blocks.len() > 1 { format!(" of block {rank}") } else { String::new() }
    }
}
