//! Bulk groups: `cp.async.bulk.commit_group` and `cp.async.bulk.wait_group`.

use tma_model::sync::GroupEnd;

use crate::machine::Machine;
use crate::machine::index::ThreadId;
use crate::machine::types::Poll;

impl Machine {
    /// `cp.async.bulk.commit_group`: closes a group of the stores since the last commit.
    pub fn bulk_commit(&mut self, thread: ThreadId) {
        self.engines.commit_group(thread);
    }

    /// `cp.async.bulk.wait_group`, with `.read` if `read_only`: waits until at most `pending`
    /// groups are incomplete.
    pub fn bulk_wait(&mut self, thread: ThreadId, pending: u32, read_only: bool) -> Poll {
        let end = if read_only { GroupEnd::Read } else { GroupEnd::Written };
        let Some(last) = self.engines.wait_groups(thread, pending, end, &mut self.order) else {
            return Poll::Blocked;
        };
        if !read_only {
            self.memory.stores.complete(thread, last);
            if self.order.is_checked() {
                self.engines.learn_written(thread, last, &mut self.order);
            }
        }
        Poll::Ready
    }
}
