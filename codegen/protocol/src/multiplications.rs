//! Multiplications on tensor cores: reads that end only when waited for.

use tma_front::check::layout;
use tma_front::ir::{LeftOperand, LocalId, Mma, SharedOperand, Stmt, StmtId, Type};
use tma_front::limits::WARPGROUP_THREADS;
use tma_model::sync::{Access, AccessKind, Epoch, Proxy};

use super::memory::region::Region;
use super::run::{Run, StepFlow, StepResult};
use super::state::TensorCore;
use super::to_u32;

const READ: Access = Access::weak(Proxy::Async, AccessKind::Read);

impl Run<'_, '_> {
    /// Returns the warpgroup of the current group of threads.
    pub(super) fn warpgroup(&self) -> u32 {
        self.agent().threads.first().map_or(0, |thread| thread / WARPGROUP_THREADS)
    }

    /// Executes a multiplication, which reads its tiles until it is waited for.
    pub(super) fn multiply(&mut self, stmt: &Stmt, mma: &Mma) -> StepResult<StepFlow> {
        let (block, warpgroup) = (self.agent().block, self.warpgroup());
        if !self.state.blocks[block].tensor_cores.contains_key(&warpgroup) {
            let component = self.component();
            let core = TensorCore { component, folded: 0, issues: vec![] };
            self.state.blocks[block].tensor_cores.insert(warpgroup, core);
        }
        let number = self.agent().multiplications + 1;
        let issue = self.issue();
        let mut operands = vec![&mma.right];
        if let LeftOperand::Shared(left) = &mma.left {
            operands.push(left);
        }
        let Some(core) = self.state.blocks[block].tensor_cores.get_mut(&warpgroup) else {
            return Ok(StepFlow::Next);
        };
        core.note(number, &issue);
        let done = Epoch::new(core.component, number);
        self.agent_mut().multiplications = number;
        self.state.event_count += 1;
        for operand in operands {
            let (block, region) = self.region_of(&operand.tile, |at| operand_region(operand, at))?;
            self.access_shared(stmt.id, block, READ, region, Some(done))?;
        }
        Ok(StepFlow::Next)
    }

    pub(super) fn wait_for_multiplications(&mut self, stmt: StmtId, _of: LocalId) -> StepFlow {
        let last = self.agent().multiplications.saturating_sub(self.input.kernel.flights().pending(stmt));
        let (block, warpgroup) = (self.agent().block, self.warpgroup());
        let in_group = |agent: &&super::state::Agent| {
            agent.block == block
                && agent.threads.first().is_some_and(|thread| thread / WARPGROUP_THREADS == warpgroup)
        };
        if self.state.agents.iter().filter(in_group).any(|agent| agent.multiplications < last) {
            return StepFlow::Blocked;
        }
        if last == 0 {
            return StepFlow::Next;
        }
        let Some(core) = self.state.blocks[block].tensor_cores.get_mut(&warpgroup) else {
            return StepFlow::Next;
        };
        let component = core.component;
        let past = core.past(last);
        let view = &mut self.state.agents[self.state.current].view;
        view.learn(Epoch::new(component, last));
        past.iter().for_each(|past| view.learn_past(past));
        StepFlow::Next
    }
}

/// Returns the bytes of an operand that a multiplication reads.
fn operand_region(operand: &SharedOperand, at: u32) -> Region {
    let tile = &operand.ty.tile;
    match operand.ty.band {
        None => Region::all(at..at + to_u32(layout::size(&Type::Tile(tile.clone())))),
        Some(rows) => {
            let (panel, band) = (to_u32(tile.panel_bytes()), rows * to_u32(tile.row_pitch()));
            let panels = u32::try_from(tile.panels()).unwrap_or(1);
            let start = |index: u32| at + index * panel;
            Region::All((0..panels).map(|index| start(index)..start(index) + band).collect())
        }
    }
}
