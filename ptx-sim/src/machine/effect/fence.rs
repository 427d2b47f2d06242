//! Fences.

use crate::machine::Machine;
use crate::machine::index::ThreadId;
use crate::machine::types::{Fence, Order};

impl Machine {
    /// A fence.
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
            // The machine has one address for each place.
            Fence::ProxyAlias => {}
        }
    }

    /// A fence of memory.
    pub(crate) fn memory_fence(&mut self, who: ThreadId, order: Order) {
        self.order.fence_memory(who, order);
    }
}
