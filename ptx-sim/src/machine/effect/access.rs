//! Loads and stores of threads.

use tma_model::sync::AccessKind;

use crate::machine::Machine;
use crate::machine::ThreadId;
use crate::machine::diagnostics::Act;
use crate::machine::global::{GlobalAccess, GlobalConflict, Manner, Strong};
use crate::machine::memory::{Conflict, Extent, Mark, Place, SharedPlace, ThreadAccess};
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
        let place = self.place_of(&actor, READS, pointer, Extent::natural(len))?;
        match place {
            Place::Global(address) => {
                self.load_global(actor.does(READS), address, out)?;
                if !self.memory.accesses.is_off() {
                    let manner = Manner::generic(AccessKind::Read, scope).of(sizes);
                    if let Some(strong) = self.strong(actor, address, order, manner) {
                        self.load_strongly(actor, strong, out);
                        return Ok(());
                    }
                    self.access_global(actor.does(READS), address, len, manner, &[]);
                }
            }
            Place::Shared(SharedPlace { rank, at }) => {
                if self.order.is_checked() {
                    self.visit(&actor, rank);
                    let (who, line, known) = (actor.who, actor.site.ptx_line, &self.order);
                    let access = ThreadAccess { view: known.view(who), line, sizes };
                    let is_observed = |conflict: &Conflict| known.has_observed(who, rank, conflict);
                    let shadow = &mut self.memory.shared[rank].shadow;
                    if let Some(conflict) = shadow.read(at, len, access, &is_observed) {
                        self.conflict(actor.does(READS), Act::Read, rank, conflict);
                    }
                }
                copy(out, self.memory.shared[rank].from(at));
            }
        }
        if order != Order::Weak && self.order.is_checked() {
            self.order.strong_read(actor.who, place, order, sizes);
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
        let place = self.place_of(&actor, WRITES, pointer, Extent::natural(len))?;
        let manner = Manner::generic(AccessKind::Write, scope).of(sizes);
        if let Place::Global(address) = place
            && let Some(strong) = self.strong(actor, address, order, manner)
        {
            return self.store_strongly(actor, strong, bytes);
        }
        if order != Order::Weak && self.order.is_checked() {
            self.order.strong_store(actor.who, place, order);
        }
        match place {
            Place::Global(address) => {
                self.wrote_global(actor, address, len);
                if !self.memory.accesses.is_off() {
                    self.access_global(actor.does(WRITES), address, len, manner, bytes);
                    self.memory.accesses.keep_bytes(address, bytes);
                }
                let written = self.memory.global.write(address, bytes);
                written.map_err(|fault| self.global_fault(actor.does(WRITES), address, len, fault))
            }
            Place::Shared(place @ SharedPlace { rank, at }) => {
                if self.order.is_checked() {
                    self.visit(&actor, rank);
                    let (who, line, known) = (actor.who, actor.site.ptx_line, &self.order);
                    let access = ThreadAccess { view: known.view(who), line, sizes };
                    let is_observed = |conflict: &Conflict| known.has_observed(who, rank, conflict);
                    let shadow = &mut self.memory.shared[rank].shadow;
                    let found = shadow.write(at, len, access, &is_observed);
                    if let Some(conflict) = found
                        && !self.is_repeated(place, bytes, conflict)
                    {
                        self.conflict(actor.does(WRITES), Act::Write, rank, conflict);
                    }
                    if order.is_strong() {
                        self.order.wrote_strongly(actor.who, place, sizes);
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
    fn is_repeated(&self, place: SharedPlace, bytes: &[u8], conflict: Conflict) -> bool {
        conflict.other_writes
            && conflict.mixed.is_none()
            && self.shape.thread(conflict.other).is_some()
            && self.memory.shared[place.rank].from(place.at).starts_with(bytes)
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
                "nobody has written what is read: {} of global memory at {address:#x}",
                counted(len, "byte")
            );
            let party = self.diagnostics.party(action);
            self.report(Finding::new(FindingKind::Uninitialised, message).with(party));
        }
    }

    /// Notes a write of a thread to global memory.
    #[inline]
    pub(super) fn wrote_global(&mut self, actor: Actor, address: u64, len: u32) {
        let (step, line) = (self.order.view(actor.who).epoch(), actor.site.ptx_line);
        self.memory.maps.wrote(address, len, Mark { step, line });
    }

    /// Checks an access of a thread to global memory, unless it is a strong access in the table of
    /// all clusters. `bytes` are the bytes written, if known.
    #[inline]
    pub(super) fn access_global(
        &mut self,
        action: Action,
        address: u64,
        len: u32,
        manner: Manner,
        bytes: &[u8],
    ) {
        let view = self.order.view(action.who);
        let author = self.memory.accesses.author(action.who);
        let access = GlobalAccess { step: view.epoch(), author, line: action.site.ptx_line, manner };
        let stretch = std::iter::once((address, address.saturating_add(len.into())));
        let Some(conflict) = self.memory.accesses.access(&access, view, stretch) else { return };
        if !self.writes_the_same(address, bytes, conflict) {
            self.global_conflict(action, manner, conflict);
        }
    }

    /// Returns whether the executing side should report uses of values that threads read from
    /// global memory.
    #[inline]
    pub(crate) fn follows_uses(&self) -> bool {
        self.memory.accesses.follows_uses()
    }

    /// Records that a thread uses the value that it last read in a line of the PTX.
    pub(crate) fn uses(&mut self, who: ThreadId, line: u32) {
        self.memory.accesses.uses(who, line, self.order.view(who).epoch());
    }

    /// Returns the description of a strong access, if all clusters share one table.
    #[inline]
    pub(super) fn strong(&self, actor: Actor, address: u64, order: Order, manner: Manner) -> Option<Strong> {
        let scope = manner.scope?;
        let (who, line, sizes) = (actor.who, actor.site.ptx_line, manner.sizes);
        self.memory.accesses.is_shared().then_some(Strong { who, line, address, order, scope, sizes })
    }

    fn load_strongly(&mut self, actor: Actor, strong: Strong, out: &mut [u8]) {
        let (memory, order) = (&mut self.memory, &mut self.order);
        let found = memory.accesses.load(strong, out, &memory.global, order);
        if let Some(conflict) = found {
            self.global_conflict(actor.does(READS), strong.manner(AccessKind::Read), conflict);
        }
    }

    fn store_strongly(&mut self, actor: Actor, strong: Strong, bytes: &[u8]) -> Result<(), Stop> {
        let (address, len) = (strong.address, bytes.len() as u32);
        self.wrote_global(actor, address, len);
        let (memory, order) = (&mut self.memory, &mut self.order);
        let found = memory.accesses.store(strong, bytes, &memory.global, order);
        if let Some(conflict) = found
            && !self.writes_the_same(address, bytes, conflict)
        {
            self.global_conflict(actor.does(WRITES), strong.manner(AccessKind::Write), conflict);
        }
        let written = self.memory.global.write(address, bytes);
        written.map_err(|fault| self.global_fault(actor.does(WRITES), address, len, fault))
    }

    /// Returns whether a write to global memory repeats bytes, like
    /// [`is_repeated`](Self::is_repeated).
    #[cold]
    fn writes_the_same(&mut self, address: u64, bytes: &[u8], conflict: GlobalConflict) -> bool {
        if bytes.is_empty() || !conflict.rule.is_race() || conflict.other.manner.kind != AccessKind::Write {
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
