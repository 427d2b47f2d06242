//! Loads and stores of threads.

use tma_model::sync::AccessKind;

use crate::machine::Machine;
use crate::machine::ThreadId;
use crate::machine::diagnostics::LaterAccess;
use crate::machine::global::{AccessAttributes, GlobalAccess, GlobalConflict, StrongAccess};
use crate::machine::memory::{AccessLayout, Conflict, Mark, MemoryLocation, SharedLocation, ThreadAccess};
use crate::machine::sizes::Sizes;
use crate::machine::types::{AccessOrder, Action, Actor, Order, Pointer};
use crate::report::{Finding, FindingKind, Stop, counted};

/// The verbs for loads and stores in findings.
const READS: &str = "reads";
const WRITES: &str = "writes";

impl Machine {
    /// Reads `out.len()` bytes. A weak vector is read at once, since its address is a multiple of
    /// its whole size. For a strong vector, this is called for each element.
    ///
    /// # Errors
    ///
    /// If the access is out of bounds or misaligned.
    #[inline]
    pub fn load(
        &mut self,
        actor: Actor,
        pointer: Pointer,
        out: &mut [u8],
        order: impl Into<AccessOrder>,
    ) -> Result<(), Stop> {
        let AccessOrder { order, scope } = order.into();
        let len = out.len() as u32;
        let sizes = sizes_of(order, len);
        let location = self.locate_for(&actor, READS, pointer, AccessLayout::natural(len))?;
        match location {
            MemoryLocation::Global(address) => {
                self.load_global(actor.does(READS), address, out)?;
                if !self.memory.accesses.is_off() {
                    let attributes = AccessAttributes::generic(AccessKind::Read, scope).of(sizes);
                    if let Some(strong) = self.strong(actor, address, order, attributes) {
                        self.load_strongly(actor, strong, out);
                        return Ok(());
                    }
                    self.access_global(actor.does(READS), address, len, attributes, &[]);
                }
            }
            MemoryLocation::Shared(SharedLocation { rank, at }) => {
                if self.order.is_checked() {
                    self.note_remote_access(&actor, rank);
                    let (thread, line, known) = (actor.thread, actor.site.ptx_line, &self.order);
                    let access = ThreadAccess { view: known.view(thread), line, sizes };
                    let is_observed = |conflict: &Conflict| known.has_observed(thread, rank, conflict);
                    let shadow = &mut self.memory.shared[rank].shadow;
                    if let Some(conflict) = shadow.read(at, len, access, &is_observed) {
                        self.conflict(actor.does(READS), LaterAccess::Read, rank, conflict);
                    }
                }
                copy(out, self.memory.shared[rank].from(at));
            }
        }
        if order != Order::Weak && self.order.is_checked() {
            self.order.strong_read(actor.thread, location, order, sizes);
        }
        Ok(())
    }

    /// Writes `bytes`.
    ///
    /// # Errors
    ///
    /// If the access is out of bounds or misaligned.
    #[inline]
    pub fn store(
        &mut self,
        actor: Actor,
        pointer: Pointer,
        bytes: &[u8],
        order: impl Into<AccessOrder>,
    ) -> Result<(), Stop> {
        let AccessOrder { order, scope } = order.into();
        let len = bytes.len() as u32;
        let sizes = sizes_of(order, len);
        let location = self.locate_for(&actor, WRITES, pointer, AccessLayout::natural(len))?;
        let attributes = AccessAttributes::generic(AccessKind::Write, scope).of(sizes);
        if let MemoryLocation::Global(address) = location
            && let Some(strong) = self.strong(actor, address, order, attributes)
        {
            return self.store_strongly(actor, strong, bytes);
        }
        if order != Order::Weak && self.order.is_checked() {
            self.order.strong_store(actor.thread, location, order);
        }
        match location {
            MemoryLocation::Global(address) => {
                self.note_global_write(actor, address, len);
                if !self.memory.accesses.is_off() {
                    self.access_global(actor.does(WRITES), address, len, attributes, bytes);
                    self.memory.accesses.keep_bytes(address, bytes);
                }
                let written = self.memory.global.write(address, bytes);
                written.map_err(|fault| self.global_fault(actor.does(WRITES), address, len, fault))
            }
            MemoryLocation::Shared(location @ SharedLocation { rank, at }) => {
                if self.order.is_checked() {
                    self.note_remote_access(&actor, rank);
                    let (thread, line, known) = (actor.thread, actor.site.ptx_line, &self.order);
                    let access = ThreadAccess { view: known.view(thread), line, sizes };
                    let is_observed = |conflict: &Conflict| known.has_observed(thread, rank, conflict);
                    let shadow = &mut self.memory.shared[rank].shadow;
                    let found = shadow.write(at, len, access, &is_observed);
                    if let Some(conflict) = found
                        && !self.is_repeated(location, bytes, conflict)
                    {
                        self.conflict(actor.does(WRITES), LaterAccess::Write, rank, conflict);
                    }
                    if order.is_strong() {
                        self.order.note_strong_write(actor.thread, location, sizes);
                    }
                }
                copy(self.memory.shared[rank].bytes_mut(at, bytes.len()), bytes);
                Ok(())
            }
        }
    }

    /// Returns whether a write repeats the bytes of another thread's unordered write. The result is
    /// then the same in either order. Compilers such as Triton let all threads that hold a copy of
    /// a value write it.
    #[cold]
    fn is_repeated(&self, location: SharedLocation, bytes: &[u8], conflict: Conflict) -> bool {
        conflict.other_writes
            && conflict.mixed.is_none()
            && self.shape.thread(conflict.other).is_some()
            && self.memory.shared[location.rank].from(location.at).starts_with(bytes)
    }

    pub(super) fn load_global(&mut self, action: Action, address: u64, out: &mut [u8]) -> Result<(), Stop> {
        let len = out.len() as u64;
        if let Err(fault) = self.memory.global.read(address, out) {
            return Err(self.global_fault(action, address, len as u32, fault));
        }
        self.check_written(action, address, len);
        Ok(())
    }

    /// Checks that the bytes were written before they are read.
    #[inline]
    pub(super) fn check_written(&mut self, action: Action, address: u64, len: u64) {
        if self.checks.global_initialised && !self.memory.global.is_written(address, len) {
            let message = format!(
                "a read of {} of global memory at {address:#x}, which no thread or copy has written",
                counted(len, "byte")
            );
            let party = self.diagnostics.party(action);
            self.report(Finding::new(FindingKind::Uninitialised, message).with(party));
        }
    }

    /// Notes a write of a thread to global memory.
    #[inline]
    pub(super) fn note_global_write(&mut self, actor: Actor, address: u64, len: u32) {
        let (step, line) = (self.order.view(actor.thread).epoch(), actor.site.ptx_line);
        self.memory.maps.note_write(address, len, Mark { step, line });
    }

    /// Checks an access of a thread to global memory, unless it is a strong access in the table of
    /// all clusters. `bytes` are the bytes written, if known.
    #[inline]
    pub(super) fn access_global(
        &mut self,
        action: Action,
        address: u64,
        len: u32,
        attributes: AccessAttributes,
        bytes: &[u8],
    ) {
        let view = self.order.view(action.thread);
        let grid_thread = self.memory.accesses.grid_thread(action.thread);
        let access = GlobalAccess { step: view.epoch(), grid_thread, line: action.site.ptx_line, attributes };
        let range = std::iter::once((address, address.saturating_add(len.into())));
        let Some(conflict) = self.memory.accesses.access(&access, view, range) else { return };
        if !self.repeats_bytes(address, bytes, conflict) {
            self.global_conflict(action, attributes, conflict);
        }
    }

    /// Returns whether the executing side should report uses of values that threads read from
    /// global memory.
    #[inline]
    pub(crate) fn needs_uses(&self) -> bool {
        self.memory.accesses.needs_uses()
    }

    /// Records that a thread uses the value that it last read in a line of the PTX.
    pub(crate) fn note_use(&mut self, thread: ThreadId, line: u32) {
        self.memory.accesses.uses(thread, line, self.order.view(thread).epoch());
    }

    /// Reports a non-coherent load of memory that has been written in this launch, even if the
    /// write is ordered before it. Source: PTX ISA, "ld.global.nc".
    pub fn check_non_coherent(&mut self, actor: Actor, address: u64, len: u32) {
        if let Some(conflict) = self.memory.accesses.written(address, len.into()) {
            let attributes = AccessAttributes::generic(AccessKind::Read, None);
            self.global_conflict(actor.does(READS), attributes, conflict);
        }
    }

    /// Returns the description of a strong access, if all clusters share one table.
    #[inline]
    pub(super) fn strong(
        &self,
        actor: Actor,
        address: u64,
        order: Order,
        attributes: AccessAttributes,
    ) -> Option<StrongAccess> {
        let scope = attributes.scope?;
        let (thread, line, sizes) = (actor.thread, actor.site.ptx_line, attributes.sizes);
        self.memory.accesses.is_shared().then_some(StrongAccess {
            thread,
            line,
            address,
            order,
            scope,
            sizes,
        })
    }

    fn load_strongly(&mut self, actor: Actor, strong: StrongAccess, out: &mut [u8]) {
        let (memory, order) = (&mut self.memory, &mut self.order);
        let found = memory.accesses.load(strong, out, &memory.global, order);
        if let Some(conflict) = found {
            self.global_conflict(actor.does(READS), strong.attributes(AccessKind::Read), conflict);
        }
    }

    fn store_strongly(&mut self, actor: Actor, strong: StrongAccess, bytes: &[u8]) -> Result<(), Stop> {
        let (address, len) = (strong.address, bytes.len() as u32);
        self.note_global_write(actor, address, len);
        let (memory, order) = (&mut self.memory, &mut self.order);
        let found = memory.accesses.store(strong, bytes, &memory.global, order);
        if let Some(conflict) = found
            && !self.repeats_bytes(address, bytes, conflict)
        {
            self.global_conflict(actor.does(WRITES), strong.attributes(AccessKind::Write), conflict);
        }
        let written = self.memory.global.write(address, bytes);
        written.map_err(|fault| self.global_fault(actor.does(WRITES), address, len, fault))
    }

    /// Returns whether a write to global memory repeats bytes, like
    /// [`is_repeated`](Self::is_repeated).
    #[cold]
    fn repeats_bytes(&mut self, address: u64, bytes: &[u8], conflict: GlobalConflict) -> bool {
        if bytes.is_empty() || !conflict.rule.is_race() || conflict.other.attributes.kind != AccessKind::Write
        {
            return false;
        }
        self.memory.accesses.has_bytes(address, bytes).unwrap_or_else(|| {
            let mut there = vec![0; bytes.len()];
            self.memory.global.read(address, &mut there).is_ok() && there == bytes
        })
    }
}

/// Returns the sizes of a load or store of one element.
#[inline]
fn sizes_of(order: Order, bytes: u32) -> Sizes {
    if order.is_strong() { Sizes::of(bytes) } else { Sizes::WEAK }
}

/// Fills `out` from the start of `from`, which must be long enough. The most frequent sizes are
/// handled separately.
#[inline]
fn copy(out: &mut [u8], from: &[u8]) {
    if let (Some(out), Some(from)) = (as_array::<4>(out), from.first_chunk()) {
        *out = *from;
    } else {
        let from = &from[..out.len()];
        out.copy_from_slice(from);
    }
}

fn as_array<const N: usize>(bytes: &mut [u8]) -> Option<&mut [u8; N]> {
    bytes.try_into().ok()
}
