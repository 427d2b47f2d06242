//! What threads of the cluster have written to global memory, for the copies that read it.
//!
//! Copies read through the asynchronous proxy, which need not see what threads wrote unless a `fence.proxy.async` of global
//! memory lies between (PTX ISA, "Async proxy"). Only writes that are known to come before the copy are judged: of those that
//! nothing orders here, another cluster may know more. What other clusters, earlier launches and the host wrote is not here.

use std::collections::HashMap;

use super::Machine;
use super::access::Access;
use super::clock::{Epoch, Memory};
use super::engine::Shape;
use super::types::Site;
use crate::report::{Finding, FindingKind};

/// Bytes of a cell, of which the last write is kept, and cells of a page.
const CELL: u64 = 4;
const CELLS: usize = 256;

const FENCE: &str = "[[`fence_proxy_async_global()`||`fence.proxy.async.global`]] between the write and the copy: after the \
                     writes, before the barrier that orders them";

/// A thread's write, and its PTX line.
#[derive(Clone, Copy, Debug, Default)]
struct Write {
    step: Epoch,
    line: u32,
}

/// The last write to each cell, by page.
#[derive(Debug, Default)]
pub(super) struct Written(HashMap<u64, Box<[Write; CELLS]>>);

/// Page and cell of the cells that have bytes among the `len` at `address`.
fn cells(address: u64, len: u64) -> impl Iterator<Item = (u64, usize)> {
    let last = address.saturating_add(len.saturating_sub(1)) / CELL;
    (address / CELL..=last).map(|cell| (cell / CELLS as u64, cell as usize % CELLS))
}

impl Written {
    fn note(&mut self, address: u64, len: u64, write: Write) {
        for (page, cell) in cells(address, len) {
            self.0.entry(page).or_insert_with(|| Box::new([Write::default(); CELLS]))[cell] = write;
        }
    }

    fn forget(&mut self, address: u64, len: u64) {
        for (page, cell) in cells(address, len) {
            if let Some(page) = self.0.get_mut(&page) {
                page[cell] = Write::default();
            }
        }
    }

    /// The first write among the `len` bytes at `address` that `is_wrong`.
    fn find(&self, address: u64, len: u64, is_wrong: impl Fn(Epoch) -> bool) -> Option<Write> {
        cells(address, len)
            .filter_map(|(page, cell)| self.0.get(&page)?.get(cell).copied())
            .find(|write| !write.step.is_none() && is_wrong(write.step))
    }
}

impl Machine {
    /// A thread writes to global memory.
    #[inline]
    pub(super) fn wrote_global(&mut self, access: Access, address: u64, len: u32) {
        let Access { who, site: Site { ptx_line: line, .. }, .. } = access;
        let step = self.threads[self.index(who)].view.epoch();
        self.maps.wrote(address, len, step, line);
        if self.config.copies && self.config.checks.order {
            self.written.note(address, len.into(), Write { step, line });
        }
    }

    /// A copy writes over what threads wrote.
    pub(super) fn overwritten(&mut self, shape: &Shape, units: u32) {
        if self.written.0.is_empty() {
            return;
        }
        let maps = self.maps.all();
        for unit in (0..units).map(|number| shape.unit(&maps, number)) {
            if let Some(global) = unit.global {
                self.written.forget(global.wrapping_add(unit.from.into()), (unit.to - unit.from).into());
            }
        }
    }

    /// Checks that a proxy fence lies between the writes of threads and a copy that reads them from now on.
    pub(super) fn check_fenced(&mut self, access: Access, shape: &Shape, units: u32) {
        if self.written.0.is_empty() {
            return;
        }
        let maps = self.maps.all();
        let view = &self.threads[self.index(access.who)].view;
        let is_wrong = |step| view.follows(step) && !view.sees_async(step, Memory::Global);
        let found = (0..units).map(|number| shape.unit(&maps, number)).find_map(|unit| {
            let start = unit.global?.wrapping_add(unit.from.into());
            Some((start, self.written.find(start, (unit.to - unit.from).into(), is_wrong)?))
        });
        if let Some((address, write)) = found {
            self.not_fenced(access, address, write);
        }
    }

    #[cold]
    fn not_fenced(&mut self, access: Access, address: u64, write: Write) {
        let message = format!(
            "global memory at {address:#x} was written by a thread, and a copy that reads it need not see that: no proxy fence \
             of global memory lies between"
        );
        let mut finding = Finding::new(FindingKind::MissingProxyFence, message)
            .with(self.party(access.who, access.site, access.does))
            .help(FENCE);
        if let Some(who) = self.thread_of(write.step) {
            finding = finding.with(self.party(who, self.site_of(write.line), "wrote"));
        }
        self.report(finding);
    }
}
