//! Bulk groups: `cp.async.bulk.commit_group` and `cp.async.bulk.wait_group`.

use super::Machine;
use super::clock::NOT_READY;
use super::types::{Poll, Site, ThreadId};
use crate::report::Stop;

impl Machine {
    /// `cp.async.bulk.commit_group`: the stores since the last one become a group.
    pub fn bulk_commit(&mut self, who: ThreadId) {
        let index = self.index(who);
        let bulk = &mut self.threads[index].bulk;
        bulk.committed = bulk.committed.saturating_add(1);
    }

    /// `cp.async.bulk.wait_group`, and with `.read` if `read_only`: waits until at most `pending` groups are left.
    ///
    /// # Errors
    ///
    /// None yet; an instruction that may block may also stop.
    pub fn bulk_wait(
        &mut self,
        who: ThreadId,
        pending: u32,
        read_only: bool,
        _site: Site,
    ) -> Result<Poll, Stop> {
        let index = self.index(who);
        let thread = &mut self.threads[index];
        let last = thread.bulk.committed.saturating_sub(pending);
        thread.bulk.tidy();
        if !thread.bulk.done(last, read_only) {
            return Ok(Poll::Blocked);
        }
        if !read_only {
            self.stored.complete(who, last);
        }
        if last > thread.bulk.waited {
            thread.bulk.waited = last;
            thread.bulk.sites.retain(|&(number, _)| number > last);
            if let Some(component) = thread.bulk.component {
                thread.view.knows.learn(component, last, NOT_READY);
            }
        }
        Ok(Poll::Ready)
    }

    /// The clock component of a thread's bulk groups, and the number of the group that its next store is of.
    pub(super) fn open_group(&mut self, who: ThreadId, site: Site) -> (u32, u32) {
        let index = self.index(who);
        let component = match self.threads[index].bulk.component {
            Some(component) => component,
            None => {
                let component = self.new_component();
                self.engine.name_agent(component, who);
                self.threads[index].bulk.component = Some(component);
                component
            }
        };
        let bulk = &mut self.threads[index].bulk;
        let number = bulk.committed.saturating_add(1);
        if bulk.sites.last() != Some(&(number, site)) {
            bulk.sites.push((number, site));
        }
        (component, number)
    }
}
