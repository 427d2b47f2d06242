//! Checks on a device, as data.

use tma_runtime::prelude::*;

/// A check: launches kernels, and compares the results with plain Rust.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name, unique among all cases: `theme::what`.
    pub name: &'static str,
    /// Runs the case. The error describes the difference.
    pub run: fn(&Device, &Options) -> anyhow::Result<()>,
}

/// The thoroughness of the cases.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether to use few and small inputs, for backends and tools that are slow.
    pub quick: bool,
}

impl Options {
    /// Returns the number of elements that a case computes: `thorough`, or a sixteenth of it, but
    /// at least one block.
    pub fn elements(&self, thorough: usize) -> usize {
        if self.quick { (thorough / 16).max(BLOCK as usize) } else { thorough }
    }

    /// Returns the number of tiles that a case moves one after the other: `thorough`, or a
    /// sixty-fourth of it.
    pub fn tiles(&self, thorough: usize) -> usize {
        if self.quick { thorough / 64 } else { thorough }
    }
}

/// Threads per block in kernels that compute element by element.
pub const BLOCK: u32 = 128;

/// Returns a grid with a thread for each of `n` elements.
pub fn blocks(n: usize) -> Grid {
    Grid::tiles([n], [BLOCK])
}
