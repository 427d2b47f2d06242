//! Uses of the values that threads have loaded from global memory.

use super::executor::Executor;
use super::warp::Warp;
use super::{Issue, lanes_of};
use crate::isa::Values;

/// The lanes that have not yet used the value they last loaded with an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnusedLanes {
    lanes: u32,
    /// The PTX line of the load.
    line: u32,
}

impl Executor<'_, '_> {
    /// Reports the uses by an instruction to the machine. Lanes of `all` are at the instruction and
    /// use its guard, and those of `issue.active` use its operands.
    pub(super) fn use_values(&mut self, warp: &mut Warp, values: &Values, all: u32, issue: Issue) {
        if !self.machine.needs_uses() {
            return;
        }
        for (loads, lanes) in [(&values.guard, all), (&values.operands, issue.active)] {
            for load in loads {
                let Some(unused) = warp.unused.get_mut(*load as usize) else { continue };
                let (used, line) = (unused.lanes & lanes, unused.line);
                unused.lanes &= !lanes;
                lanes_of(used).for_each(|lane| self.machine.note_use(warp.thread(lane), line));
            }
        }
        if let Some(unused) = values.load.and_then(|load| warp.unused.get_mut(load as usize)) {
            *unused = UnusedLanes { lanes: unused.lanes | issue.active, line: issue.site.ptx_line };
        }
    }
}
