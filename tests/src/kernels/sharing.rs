//! Items that a module imports from others, with the same names in both, compared with the same
//! functions in plain Rust.

use tma_runtime::prelude::*;

use crate::case::{Case, Options, blocks};
use crate::compare::same;
use crate::random::samples;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "sharing::names", run: |device, options| check(device, options, Kernel::Names) },
    Case { name: "sharing::all", run: |device, options| check(device, options, Kernel::All) },
];

/// Functions that several modules share.
#[tma_module]
pub mod library {
    use tma_runtime::prelude::*;

    /// The threads of a block.
    pub const THREADS: u32 = 128;
    const FACTOR: u32 = 3;

    /// A staged value per thread.
    pub type Staged = SharedArray<u32, THREADS>;

    /// A position.
    #[derive(Clone, Copy)]
    pub struct At {
        /// The row.
        pub row: u32,
        /// The column.
        pub column: u32,
    }

    #[tma_device]
    impl At {
        /// Returns the position one row below, and `helper` of the column.
        pub fn below(self) -> At {
            At { row: self.row + FACTOR, column: helper(self.column) }
        }
    }

    /// Uses the `helper` and the `FACTOR` of this module.
    #[tma_device]
    pub fn scaled(x: u32) -> u32 {
        helper(x).wrapping_mul(FACTOR)
    }

    /// Stages a value, and returns that of the next thread.
    #[tma_device]
    pub fn next(staged: Staged, x: u32) -> u32 {
        staged.set(thread_idx().x, x);
        sync_threads();
        staged.get((thread_idx().x + 1) % THREADS)
    }

    #[tma_device]
    fn helper(x: u32) -> u32 {
        (x >> 3) ^ 0x55
    }
}

/// Exports another module's items.
#[tma_module]
pub mod exports {
    pub use super::library::{At as Position, next as neighbour, scaled};
}

/// Has items of the same names as the library.
#[tma_module]
pub mod importing {
    use tma_runtime::prelude::*;

    use super::exports::{Position, neighbour, scaled as library_scaled};
    use super::library::{Staged, THREADS};

    const FACTOR: u32 = 7;

    #[tma_device]
    fn helper(x: u32) -> u32 {
        x & 0xff
    }

    /// Uses items of both modules.
    #[tma_device]
    pub fn named(x: u32) -> u32 {
        let at = Position { row: helper(x), column: x }.below();
        library_scaled(x) ^ scaled(x) ^ (at.row << 4) ^ at.column
    }

    #[tma_device]
    fn scaled(x: u32) -> u32 {
        helper(x) * FACTOR
    }

    /// Names of both modules.
    #[tma_kernel(threads = 128)]
    pub fn sharing_names(input: Global<u32>, out: Global<u32>) {
        let i = block_idx().x * THREADS + thread_idx().x;
        let staged: Staged = shared();
        out.set(i, neighbour(staged, named(input.get(i))));
    }
}

/// Imports everything.
#[tma_module]
pub mod all {
    use tma_runtime::prelude::*;

    use super::library::*;

    /// Uses imported items alone.
    #[tma_device]
    pub fn imported(x: u32) -> u32 {
        let at = At { row: x & 0xff, column: x }.below();
        scaled(at.row) ^ at.column
    }

    /// All items of another module.
    #[tma_kernel(threads = 128)]
    pub fn sharing_all(input: Global<u32>, out: Global<u32>) {
        let i = block_idx().x * THREADS + thread_idx().x;
        let staged: Staged = shared();
        out.set(i, next(staged, imported(input.get(i))));
    }
}

/// A kernel of this file.
#[derive(Clone, Copy)]
enum Kernel {
    Names,
    All,
}

/// Compares a kernel with its function in Rust, of the next element of the block.
fn check(device: &Device, options: &Options, kernel: Kernel) -> anyhow::Result<()> {
    let n = options.elements(1 << 12);
    let inputs = samples::<u32>(23, n);
    let of = |x| match kernel {
        Kernel::Names => {
            let library = |x: u32| (x >> 3) ^ 0x55;
            let own = x & 0xff;
            library(x).wrapping_mul(3) ^ (own * 7) ^ ((own + 3) << 4) ^ library(x)
        }
        Kernel::All => all::imported(x),
    };
    let wanted: Vec<u32> = (0..n).map(|i| of(inputs[i / 128 * 128 + (i + 1) % 128])).collect();
    let input = device.tensor(&inputs, [n])?;
    let mut out = device.filled_bytes([n], 0xab)?;
    match kernel {
        Kernel::Names => importing::sharing_names::launch(device, blocks(n), &input, &mut out)?,
        Kernel::All => all::sharing_all::launch(device, blocks(n), &input, &mut out)?,
    }
    same("results", &out.to_vec()?, &wanted)
}
