//! Memory that threads synchronise through: releases and acquires, and fences around relaxed accesses.
//!
//! Source: PTX ISA, "Release and acquire patterns". A location keeps what was released to it; an atomic operation adds to it
//! (it continues the release sequence), a store replaces it.

use std::collections::HashMap;

use super::Machine;
use super::address::{Target, resolve};
use super::clock::Gathered;
use super::types::{Order, Space, ThreadId};

/// What was released to each location.
pub(super) type Flags = HashMap<Location, Gathered>;

/// A place in global memory (of no block) or in a block's shared memory.
type Location = (Option<u32>, u64);

fn location(who: ThreadId, space: Space, address: u64) -> Location {
    match resolve(space, address, who.block) {
        Target::Global(address) => (None, address),
        Target::Shared(rank, at) => (Some(rank), at),
    }
}

impl Machine {
    /// A strong read.
    pub(super) fn flag_read(&mut self, who: ThreadId, space: Space, address: u64, order: Order) {
        if self.flags.is_empty() {
            return;
        }
        let Some(released) = self.flags.get_mut(&location(who, space, address)) else { return };
        let index = (who.block * self.config.threads + who.thread) as usize;
        let news = released.join();
        let thread = &mut self.threads[index];
        if order.acquires() {
            self.acquirer.acquire(&mut thread.view, &news);
        } else {
            thread.heard.get_or_insert_default().add(&news);
        }
    }

    /// A strong write, by an atomic operation if `adds`.
    pub(super) fn flag_write(&mut self, who: ThreadId, space: Space, address: u64, order: Order, adds: bool) {
        let index = self.index(who);
        let thread = &mut self.threads[index];
        if !order.releases() && thread.published.is_none() && (adds || self.flags.is_empty()) {
            return;
        }
        let released = self.flags.entry(location(who, space, address)).or_default();
        if !adds {
            *released = Gathered::default();
        }
        if order.releases() {
            released.release(&mut thread.view);
        } else if let Some(published) = &mut thread.published {
            released.add(&published.join());
        }
    }

    /// A fence: later relaxed writes release what is known now, and earlier relaxed reads acquire.
    pub(super) fn fence_memory(&mut self, who: ThreadId) {
        let index = self.index(who);
        let thread = &mut self.threads[index];
        if let Some(mut heard) = thread.heard.take() {
            self.acquirer.acquire(&mut thread.view, &heard.join());
        }
        let mut published = Gathered::default();
        published.release(&mut thread.view);
        thread.published = Some(published);
    }
}
