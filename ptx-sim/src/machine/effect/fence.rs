//! Fences.

use crate::isa::MemoryFence;
use crate::machine::Machine;
use crate::machine::index::ThreadId;
use crate::machine::types::{Fence, Order};

impl Machine {
    /// Executes a fence.
    pub fn fence(&mut self, thread: ThreadId, fence: Fence) {
        match fence {
            Fence::ProxyAsync(memory) => self.order.view_mut(thread).fence_async(memory.memories()),
            Fence::MbarrierInit => {
                let step = self.order.fence_step(thread);
                self.barriers.fence_inits(thread, step);
            }
            Fence::Memory => self.memory_fence(thread, Order::AcqRel),
            Fence::TensorMapRelease => {
                self.memory.maps.release(self.order.view(thread));
                self.order.fence_step(thread);
            }
            // The machine has a single address for each place.
            Fence::ProxyAlias => {}
        }
    }

    /// Executes a memory fence.
    pub(crate) fn memory_fence(&mut self, thread: ThreadId, fence: impl Into<MemoryFence>) {
        let MemoryFence { order, sequential, scope } = fence.into();
        if !self.memory.accesses.is_shared() {
            self.order.fence_memory(thread, order);
            return;
        }
        let accesses = &mut self.memory.accesses;
        if order.acquires() {
            accesses.fence_acquires(thread, scope, &mut self.order);
        }
        if sequential {
            accesses.fence_sequentially(thread, scope, &mut self.order);
        }
        if let Some(releases) = self.order.fence_memory(thread, order) {
            accesses.fence_releases(thread, scope, releases);
        }
    }
}
