//! Atomic operations of 128 bits.

use super::Machine;
use super::access::{Access, Place};
use super::conflict::Act;
use super::types::{Order, Site, Space, ThreadId};
use crate::report::Stop;

/// Bytes that are changed at once.
const BYTES: u32 = 16;

impl Machine {
    /// Changes 16 bytes at once: `change` gets what they were, which is also the answer, and gives what they are to be.
    ///
    /// In global memory, it is at once as far as others of these operations are concerned.
    ///
    /// # Errors
    ///
    /// Out of bounds or misaligned.
    pub fn wide_atomic(
        &mut self,
        who: ThreadId,
        (space, address): (Space, u64),
        order: Order,
        change: &mut dyn FnMut(u128) -> u128,
        site: Site,
    ) -> Result<u128, Stop> {
        let access = Access { who, site, does: "changes" };
        let place = self.place(access, space, address, BYTES, BYTES)?;
        let order = if order == Order::Weak { Order::Relaxed } else { order };
        if self.config.checks.order {
            self.flag_read(who, space, address, order);
            self.flag_write(who, space, address, order, true);
        }
        match place {
            Place::Global(address) => {
                self.wrote_global(access, address, BYTES);
                let global = std::sync::Arc::clone(&self.config.global);
                global
                    .update_wide(address, change)
                    .or_else(|fault| self.global_fault(access, address, BYTES, fault).map(|()| 0))
            }
            Place::Shared(rank, at) => {
                self.visit(access, rank);
                if self.config.checks.order {
                    let index = self.index(who);
                    let (view, shadow) = (&self.threads[index].view, &mut self.blocks[rank].shadow);
                    if let Some(conflict) = shadow.change(at, BYTES, view, site.ptx_line) {
                        self.conflict(access, Act::Write, rank, conflict);
                    }
                }
                let place = &mut self.blocks[rank].data[at as usize..(at + BYTES) as usize];
                let mut bytes = [0; BYTES as usize];
                bytes.copy_from_slice(place);
                let old = u128::from_le_bytes(bytes);
                place.copy_from_slice(&change(old).to_le_bytes());
                Ok(old)
            }
        }
    }
}
