//! Atomic operations of threads.

use std::sync::Arc;

use tma_model::sync::{AccessKind, MemoryScope};

use crate::machine::Machine;
use crate::machine::diagnostics::LaterAccess;
use crate::machine::global::{AccessAttributes, MemoryChange};
use crate::machine::index::BlockRank;
use crate::machine::memory::{AccessLayout, Conflict, MemoryLocation, SharedLocation, ThreadAccess};
use crate::machine::sizes::Width;
use crate::machine::types::{AccessOrder, Action, Actor, Order, Pointer};
use crate::report::Stop;

const CHANGES: &str = "changes";

/// The order of an atomic operation, and whether it returns a value, so that it may acquire.
#[derive(Clone, Copy, Debug)]
struct AtomicAccess {
    order: AccessOrder,
    reads: bool,
}

/// Bytes of the widest atomic operation.
const WIDE: u32 = 16;

impl Machine {
    /// Changes 2, 4 or 8 bytes atomically. `change` maps the old value to the new one. Returns the
    /// old value.
    ///
    /// # Errors
    ///
    /// If the access is out of bounds or misaligned.
    pub fn atomic(
        &mut self,
        actor: Actor,
        pointer: Pointer,
        width: Width,
        order: impl Into<AccessOrder>,
        change: &mut dyn FnMut(u64) -> u64,
    ) -> Result<u64, Stop> {
        self.change_atomically(
            actor,
            pointer,
            width,
            AtomicAccess { order: order.into(), reads: true },
            change,
        )
    }

    /// Changes bytes like [`atomic`](Self::atomic), as `red`, which acquires nothing.
    ///
    /// # Errors
    ///
    /// If the access is out of bounds or misaligned.
    pub fn reduction(
        &mut self,
        actor: Actor,
        pointer: Pointer,
        width: Width,
        order: impl Into<AccessOrder>,
        change: &mut dyn FnMut(u64) -> u64,
    ) -> Result<u64, Stop> {
        self.change_atomically(
            actor,
            pointer,
            width,
            AtomicAccess { order: order.into(), reads: false },
            change,
        )
    }

    fn change_atomically(
        &mut self,
        actor: Actor,
        pointer: Pointer,
        width: Width,
        access: AtomicAccess,
        change: &mut dyn FnMut(u64) -> u64,
    ) -> Result<u64, Stop> {
        let action = actor.does(CHANGES);
        let len = width.bytes;
        match self.locate_atomic(action, pointer, width, access.order.order)? {
            MemoryLocation::Global(address) => {
                let global = Arc::clone(&self.memory.global);
                let mut updated = Ok(0);
                self.update_global(actor, address, width, access, &mut || {
                    let mut value = [0; WIDE as usize];
                    updated = global.update(address, len as usize, &mut |old| {
                        let new = change(old);
                        value[..8].copy_from_slice(&new.to_le_bytes());
                        new
                    });
                    value
                });
                updated.map_err(|fault| self.global_fault(action, address, len, fault))
            }
            MemoryLocation::Shared(location) => {
                let bytes = self.change_shared(action, location, width);
                let mut wide = [0; 8];
                let width = (len as usize).min(wide.len());
                wide[..width].copy_from_slice(&bytes[..width]);
                let old = u64::from_le_bytes(wide);
                bytes[..width].copy_from_slice(&change(old).to_le_bytes()[..width]);
                Ok(old)
            }
        }
    }

    /// Changes 16 bytes like [`atomic`](Self::atomic). In global memory the change is atomic only
    /// with respect to other calls of this function.
    ///
    /// # Errors
    ///
    /// If the access is out of bounds or misaligned.
    pub fn wide_atomic(
        &mut self,
        actor: Actor,
        pointer: Pointer,
        order: impl Into<AccessOrder>,
        change: &mut dyn FnMut(u128) -> u128,
    ) -> Result<u128, Stop> {
        let action = actor.does(CHANGES);
        let access = AtomicAccess { order: order.into(), reads: true };
        let width = Width::scalar(WIDE);
        match self.locate_atomic(action, pointer, width, access.order.order)? {
            MemoryLocation::Global(address) => {
                let global = Arc::clone(&self.memory.global);
                let mut updated = Ok(0);
                self.update_global(actor, address, width, access, &mut || {
                    let mut value = [0; WIDE as usize];
                    updated = global.update_wide(address, &mut |old| {
                        let new = change(old);
                        value = new.to_le_bytes();
                        new
                    });
                    value
                });
                updated.map_err(|fault| self.global_fault(action, address, WIDE, fault))
            }
            MemoryLocation::Shared(location) => {
                let bytes = self.change_shared(action, location, width);
                let mut wide = [0; WIDE as usize];
                wide.copy_from_slice(bytes);
                let old = u128::from_le_bytes(wide);
                bytes.copy_from_slice(&change(old).to_le_bytes());
                Ok(old)
            }
        }
    }

    fn locate_atomic(
        &mut self,
        action: Action,
        pointer: Pointer,
        width: Width,
        order: Order,
    ) -> Result<MemoryLocation, Stop> {
        let location = self.locate(action, pointer, AccessLayout::natural(width.bytes))?;
        let is_tracked_globally = match location {
            MemoryLocation::Global(_) => self.memory.accesses.is_shared(),
            MemoryLocation::Shared(_) => false,
        };
        if self.order.is_checked() && !is_tracked_globally {
            let order = if order == Order::Weak { Order::Relaxed } else { order };
            self.order.strong_update(action.thread, location, order, width.sizes);
        }
        Ok(location)
    }

    /// Executes an atomic operation on global memory. `update` changes the memory, and returns the
    /// new contents.
    fn update_global(
        &mut self,
        actor: Actor,
        address: u64,
        width: Width,
        access: AtomicAccess,
        update: &mut dyn FnMut() -> [u8; WIDE as usize],
    ) {
        let len = width.bytes;
        self.note_global_write(actor, address, len);
        let AccessOrder { order, scope } = access.order;
        let scope = Some(scope.unwrap_or(MemoryScope::Device));
        let attributes = AccessAttributes::generic(AccessKind::Write, scope).of(width.sizes);
        let Some(strong) = self.strong(actor, address, order, attributes) else {
            update();
            if !self.memory.accesses.is_off() {
                self.access_global(actor.does(CHANGES), address, len, attributes, &[]);
            }
            return;
        };
        let (memory, order) = (&mut self.memory, &mut self.order);
        let change = MemoryChange::Update { reads: access.reads, update };
        let found = memory.accesses.change(strong, len, &memory.global, order, change);
        if let Some(conflict) = found {
            self.global_conflict(actor.does(CHANGES), attributes, conflict);
        }
    }

    /// Records an atomic operation on shared memory, and returns the bytes for it to change.
    fn change_shared(&mut self, action: Action, location: SharedLocation, width: Width) -> &mut [u8] {
        let SharedLocation { rank, at } = location;
        let Width { bytes: len, sizes } = width;
        if self.order.is_checked() {
            self.note_remote_access(&Actor { thread: action.thread, site: action.site }, rank);
            let (view, line) = (self.order.view(action.thread), action.site.ptx_line);
            let access = ThreadAccess { view, line, sizes };
            let (thread, order) = (action.thread, &self.order);
            let is_observed = |conflict: &Conflict| order.has_observed(thread, rank, conflict);
            let found = self.memory.shared[rank].shadow.change(at, len, access, &is_observed);
            if let Some(conflict) = found {
                self.conflict(action, LaterAccess::Write, rank, conflict);
            }
            self.order.note_strong_write(action.thread, location, sizes);
        }
        self.memory.shared[rank].bytes_mut(at, len as usize)
    }

    /// Records that a thread itself accesses the shared memory of another block, which must exist
    /// until then. (For copies, mbarriers provide this order.)
    #[inline]
    pub(super) fn note_remote_access(&mut self, actor: &Actor, rank: BlockRank) {
        if rank != actor.thread.block {
            self.note_other_block_access(*actor, rank);
        }
    }

    #[cold]
    fn note_other_block_access(&mut self, actor: Actor, rank: BlockRank) {
        if self.order.is_checked() {
            let step = self.order.view(actor.thread).epoch();
            self.memory.shared[rank].note_remote_access(step, actor.site.ptx_line, self.shape);
        }
    }
}
