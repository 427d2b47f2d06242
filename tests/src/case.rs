//! What is checked on a device, as data.

use tma_runtime::prelude::*;

/// One check: kernels are launched, and what they give is compared with plain Rust.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name, unique among all cases: `theme::what`.
    pub name: &'static str,
    /// Runs it; the error says what differed.
    pub run: fn(&Device, &Options) -> anyhow::Result<()>,
}

/// How thoroughly cases are run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Few and small inputs, for backends and tools that are slow.
    pub quick: bool,
}

impl Options {
    /// How many elements a case computes: `thorough`, or a sixteenth of it, but a block at least.
    pub fn elements(&self, thorough: usize) -> usize {
        if self.quick { (thorough / 16).max(BLOCK as usize) } else { thorough }
    }

    /// How many tiles a case moves one after the other: `thorough`, or a sixty-fourth of it.
    pub fn tiles(&self, thorough: usize) -> usize {
        if self.quick { thorough / 64 } else { thorough }
    }
}

/// Threads of a block in kernels that compute element by element.
pub const BLOCK: u32 = 128;

/// The blocks that give each of `n` elements a thread.
pub fn blocks(n: usize) -> Grid {
    Grid::tiles([n], [BLOCK])
}
