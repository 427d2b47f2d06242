//! Atomic operations of threads.

use std::sync::Arc;

use tma_model::sync::{AccessKind, MemoryScope};

use crate::machine::Machine;
use crate::machine::diagnostics::Act;
use crate::machine::global::{Change, Manner};
use crate::machine::index::BlockRank;
use crate::machine::memory::{Conflict, Extent, Place, SharedPlace, ThreadAccess};
use crate::machine::sizes::Width;
use crate::machine::types::{AccessOrder, Action, Actor, Order, Pointer};
use crate::report::Stop;

const CHANGES: &str = "changes";

/// The order of an atomic operation, and whether it returns a value, so that it may acquire.
#[derive(Clone, Copy, Debug)]
struct Manners {
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
        self.change_atomically(actor, pointer, width, Manners { order: order.into(), reads: true }, change)
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
        self.change_atomically(actor, pointer, width, Manners { order: order.into(), reads: false }, change)
    }

    fn change_atomically(
        &mut self,
        actor: Actor,
        pointer: Pointer,
        width: Width,
        manners: Manners,
        change: &mut dyn FnMut(u64) -> u64,
    ) -> Result<u64, Stop> {
        let action = actor.does(CHANGES);
        let len = width.bytes;
        match self.place_atomic(action, pointer, width, manners.order.order)? {
            Place::Global(address) => {
                let global = Arc::clone(&self.memory.global);
                let mut updated = Ok(0);
                self.update_global(actor, address, width, manners, &mut || {
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
            Place::Shared(place) => {
                let bytes = self.change_shared(action, place, width);
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
        let manners = Manners { order: order.into(), reads: true };
        let width = Width::scalar(WIDE);
        match self.place_atomic(action, pointer, width, manners.order.order)? {
            Place::Global(address) => {
                let global = Arc::clone(&self.memory.global);
                let mut updated = Ok(0);
                self.update_global(actor, address, width, manners, &mut || {
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
            Place::Shared(place) => {
                let bytes = self.change_shared(action, place, width);
                let mut wide = [0; WIDE as usize];
                wide.copy_from_slice(bytes);
                let old = u128::from_le_bytes(wide);
                bytes.copy_from_slice(&change(old).to_le_bytes());
                Ok(old)
            }
        }
    }

    fn place_atomic(
        &mut self,
        action: Action,
        pointer: Pointer,
        width: Width,
        order: Order,
    ) -> Result<Place, Stop> {
        let place = self.place(action, pointer, Extent::natural(width.bytes))?;
        let is_kept_with_others = match place {
            Place::Global(_) => self.memory.accesses.is_shared(),
            Place::Shared(_) => false,
        };
        if self.order.is_checked() && !is_kept_with_others {
            let order = if order == Order::Weak { Order::Relaxed } else { order };
            self.order.strong_update(action.who, place, order, width.sizes);
        }
        Ok(place)
    }

    /// Executes an atomic operation on global memory. `update` changes the memory, and returns the
    /// new contents.
    fn update_global(
        &mut self,
        actor: Actor,
        address: u64,
        width: Width,
        manners: Manners,
        update: &mut dyn FnMut() -> [u8; WIDE as usize],
    ) {
        let len = width.bytes;
        self.wrote_global(actor, address, len);
        let AccessOrder { order, scope } = manners.order;
        let scope = Some(scope.unwrap_or(MemoryScope::Device));
        let manner = Manner::generic(AccessKind::Write, scope).of(width.sizes);
        let Some(strong) = self.strong(actor, address, order, manner) else {
            update();
            if !self.memory.accesses.is_off() {
                self.access_global(actor.does(CHANGES), address, len, manner, &[]);
            }
            return;
        };
        let (memory, order) = (&mut self.memory, &mut self.order);
        let change = Change::Update { reads: manners.reads, update };
        let found = memory.accesses.change(strong, len, &memory.global, order, change);
        if let Some(conflict) = found {
            self.global_conflict(actor.does(CHANGES), manner, conflict);
        }
    }

    /// Records an atomic operation on shared memory, and returns the bytes for it to change.
    fn change_shared(&mut self, action: Action, place: SharedPlace, width: Width) -> &mut [u8] {
        let SharedPlace { rank, at } = place;
        let Width { bytes: len, sizes } = width;
        if self.order.is_checked() {
            self.visit(&Actor { who: action.who, site: action.site }, rank);
            let (view, line) = (self.order.view(action.who), action.site.ptx_line);
            let access = ThreadAccess { view, line, sizes };
            let (who, order) = (action.who, &self.order);
            let is_observed = |conflict: &Conflict| order.has_observed(who, rank, conflict);
            let found = self.memory.shared[rank].shadow.change(at, len, access, &is_observed);
            if let Some(conflict) = found {
                self.conflict(action, Act::Write, rank, conflict);
            }
            self.order.wrote_strongly(action.who, place, sizes);
        }
        self.memory.shared[rank].bytes_mut(at, len as usize)
    }

    /// Records that a thread itself accesses the shared memory of another block, which must exist
    /// until then. (For copies, mbarriers provide this order.)
    #[inline]
    pub(super) fn visit(&mut self, actor: &Actor, rank: BlockRank) {
        if rank != actor.who.block {
            self.visit_other(*actor, rank);
        }
    }

    #[cold]
    fn visit_other(&mut self, actor: Actor, rank: BlockRank) {
        if self.order.is_checked() {
            let step = self.order.view(actor.who).epoch();
            self.memory.shared[rank].visit(step, actor.site.ptx_line, self.shape);
        }
    }
}
