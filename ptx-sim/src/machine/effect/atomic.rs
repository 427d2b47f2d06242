//! Atomic operations of threads.

use std::sync::Arc;

use crate::machine::Machine;
use crate::machine::diagnostics::Act;
use crate::machine::index::BlockRank;
use crate::machine::memory::{Extent, Place, SharedPlace};
use crate::machine::types::{Action, Actor, Order, Pointer};
use crate::report::Stop;

/// Bytes of the widest atomic operation.
const WIDE: u32 = 16;

impl Machine {
    /// Changes `width` bytes (2, 4 or 8) at once: `change` gets what they were, which is also the
    /// answer, and gives what they are to be.
    ///
    /// # Errors
    ///
    /// Out of bounds or misaligned.
    pub fn atomic(
        &mut self,
        actor: Actor,
        pointer: Pointer,
        width: usize,
        order: Order,
        change: &mut dyn FnMut(u64) -> u64,
    ) -> Result<u64, Stop> {
        let action = actor.does("changes");
        let len = width as u32;
        match self.place_atomic(action, pointer, len, order)? {
            Place::Global(address) => {
                self.wrote_global(actor, address, len);
                let global = Arc::clone(&self.memory.global);
                let updated = global.update(address, width, change);
                updated.map_err(|fault| self.global_fault(action, address, len, fault))
            }
            Place::Shared(place) => {
                let bytes = self.change_shared(action, place, len);
                let mut wide = [0; 8];
                let width = width.min(wide.len());
                wide[..width].copy_from_slice(&bytes[..width]);
                let old = u64::from_le_bytes(wide);
                bytes[..width].copy_from_slice(&change(old).to_le_bytes()[..width]);
                Ok(old)
            }
        }
    }

    /// The same with 16 bytes. In global memory, it is at once as far as others of these operations
    /// are concerned.
    ///
    /// # Errors
    ///
    /// Out of bounds or misaligned.
    pub fn wide_atomic(
        &mut self,
        actor: Actor,
        pointer: Pointer,
        order: Order,
        change: &mut dyn FnMut(u128) -> u128,
    ) -> Result<u128, Stop> {
        let action = actor.does("changes");
        match self.place_atomic(action, pointer, WIDE, order)? {
            Place::Global(address) => {
                self.wrote_global(actor, address, WIDE);
                let global = Arc::clone(&self.memory.global);
                let updated = global.update_wide(address, change);
                updated.map_err(|fault| self.global_fault(action, address, WIDE, fault))
            }
            Place::Shared(place) => {
                let bytes = self.change_shared(action, place, WIDE);
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
        len: u32,
        order: Order,
    ) -> Result<Place, Stop> {
        let place = self.place(action, pointer, Extent::natural(len))?;
        if self.order.is_checked() {
            let order = if order == Order::Weak { Order::Relaxed } else { order };
            self.order.strong_update(action.who, place, order);
        }
        Ok(place)
    }

    /// The bytes of shared memory that an atomic operation changes.
    fn change_shared(&mut self, action: Action, place: SharedPlace, len: u32) -> &mut [u8] {
        let SharedPlace { rank, at } = place;
        if self.order.is_checked() {
            self.visit(&Actor { who: action.who, site: action.site }, rank);
            let (view, line) = (self.order.view(action.who), action.site.ptx_line);
            let found = self.memory.shared[rank].shadow.change(at, len, view, line);
            if let Some(conflict) = found {
                self.conflict(action, Act::Write, rank, conflict);
            }
        }
        self.memory.shared[rank].bytes_mut(at, len as usize)
    }

    /// A thread itself uses shared memory, which has to be there until it has. (Of copies,
    /// mbarriers tell.)
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
