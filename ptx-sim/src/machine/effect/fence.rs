//! Fences.

use crate::isa::MemoryFence;
use crate::machine::Machine;
use crate::machine::index::ThreadId;
use crate::machine::types::{Fence, Order};

impl Machine {
    /// Executes a fence.
    pub fn fence(&mut self, who: ThreadId, fence: Fence) {
        match fence {
            Fence::ProxyAsync(memory) => self.order.view_mut(who).fence_async(memory.memories()),
            Fence::MbarrierInit => {
                let step = self.order.fence_step(who);
                self.barriers.fence_inits(who, step);
            }
            Fence::Memory => self.memory_fence(who, Order::AcqRel),
            Fence::TensorMapRelease => {
                self.memory.maps.release(self.order.view(who));
                self.order.fence_step(who);
            }
            // The machine has a single address for each place.
            Fence::ProxyAlias => {}
        }
    }

    /// Executes a memory fence.
    pub(crate) fn memory_fence(&mut self, who: ThreadId, fence: impl Into<MemoryFence>) {
        let MemoryFence { order, sequential, scope } = fence.into();
        if !self.memory.accesses.is_shared() {
            self.order.fence_memory(who, order);
            return;
        }
        let accesses = &mut self.memory.accesses;
        if order.acquires() {
            accesses.fence_acquires(who, scope, &mut self.order);
        }
        if sequential {
            accesses.fence_sequentially(who, scope, &mut self.order);
        }
        if let Some(releases) = self.order.fence_memory(who, order) {
            accesses.fence_releases(who, scope, releases);
        }
    }
}
