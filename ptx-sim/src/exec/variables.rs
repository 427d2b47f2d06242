//! Checks that accesses to shared memory hit the variables that their source lines name.

use super::executor::Executor;
use super::warp::Warp;
use super::{Issue, lanes_of};
use crate::isa::Inst;
use crate::machine::{Pointer, Stop};

impl Executor<'_, '_> {
    /// Checks the access that the lanes are about to make. `variables` are those of the line.
    pub(super) fn check_variables(
        &mut self,
        warp: &Warp,
        inst: &Inst,
        variables: &[u32],
        issue: Issue,
    ) -> Result<(), Stop> {
        let Some(access) = inst.op.thread_access() else { return Ok(()) };
        let does = if access.writes { "writes" } else { "reads" };
        let addresses = self.addresses(warp, access.address);
        for lane in lanes_of(issue.active & access.lanes) {
            let pointer = Pointer::new(access.space, addresses[lane as usize]);
            let actor = warp.actor(lane, issue.site);
            self.machine.check_variables(actor, does, pointer, access.bytes, variables)?;
        }
        Ok(())
    }
}
