//! What threads of the cluster have written to global memory, for the copies that read it.
//!
//! Copies read through the asynchronous proxy, which need not see what threads wrote unless a
//! `fence.proxy.async` of global memory lies between (PTX ISA, "Async proxy"). Only writes that are
//! known to come before the copy are judged: of those that nothing orders here, another cluster may
//! know more. What other clusters, earlier launches and the host wrote is not here.

use std::collections::HashMap;

use tma_model::sync::Epoch;

/// Bytes of a cell, of which the last write is kept, and cells of a page.
const CELL: u64 = 4;
const CELLS: usize = 256;

/// A thread's write, and its PTX line.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::machine) struct Write {
    pub(in crate::machine) step: Epoch,
    pub(in crate::machine) line: u32,
}

/// The last write to each cell, by page.
#[derive(Debug)]
pub(in crate::machine) struct Writes {
    pages: HashMap<u64, Box<[Write; CELLS]>>,
    /// Whether writes are remembered at all.
    tracked: bool,
}

/// Page and cell of the cells that have bytes among the `len` at `address`.
fn cells(address: u64, len: u64) -> impl Iterator<Item = (u64, usize)> {
    let last = address.saturating_add(len.saturating_sub(1)) / CELL;
    (address / CELL..=last).map(|cell| (cell / CELLS as u64, cell as usize % CELLS))
}

impl Writes {
    pub(super) fn new(tracked: bool) -> Self {
        Self { pages: HashMap::new(), tracked }
    }

    /// Whether no write is remembered.
    pub(in crate::machine) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// A thread has written `len` bytes at `address`.
    #[inline]
    pub(in crate::machine) fn note(&mut self, address: u64, len: u64, write: Write) {
        if !self.tracked {
            return;
        }
        for (page, cell) in cells(address, len) {
            self.pages.entry(page).or_insert_with(|| Box::new([Write::default(); CELLS]))[cell] = write;
        }
    }

    /// A copy has written over what threads wrote.
    pub(in crate::machine) fn forget(&mut self, address: u64, len: u64) {
        for (page, cell) in cells(address, len) {
            if let Some(page) = self.pages.get_mut(&page) {
                page[cell] = Write::default();
            }
        }
    }

    /// The first write among the `len` bytes at `address` that `is_wrong`.
    pub(in crate::machine) fn find(
        &self,
        address: u64,
        len: u64,
        is_wrong: impl Fn(Epoch) -> bool,
    ) -> Option<Write> {
        cells(address, len)
            .filter_map(|(page, cell)| self.pages.get(&page)?.get(cell).copied())
            .find(|write| !write.step.is_none() && is_wrong(write.step))
    }
}
