//! Counts and a timeline of the instructions that warps run, if the launch asks for them.

use super::alu::Lanes;
use super::executor::{Executor, Flow};
use super::warp::Warp;
use super::{Issue, lanes_of};
use crate::isa::{
    ControlOp, Facts, Inst, LaneAccess, Memory, Op, Pc, Space, SpanCode, Synchronization, Wait,
};
use crate::machine::address::{Target, resolve};
use crate::machine::{BarrierId, BlockRank, Phase, Pointer, Position, WaitingFor};
use crate::profile::{Executed, LineCounts, SharedAccesses};
use crate::trace::Awaited;
use tma_model::banks::{Wavefronts, wavefronts};

/// The counts of one instruction of the program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    executed: Executed,
    shared: SharedAccesses,
}

impl Count {
    pub(crate) fn add(&mut self, other: Self) {
        self.executed += other.executed;
        self.shared += other.shared;
    }

    pub(crate) fn of_line(self, inst: &Inst) -> LineCounts {
        let Self { executed, shared } = self;
        LineCounts { site: inst.site, class: inst.op.facts().class, executed, shared }
    }
}

impl Executor<'_, '_> {
    /// Counts an instruction that the lanes are about to run.
    pub(super) fn count(&mut self, warp: &Warp, inst: &Inst, issue: Issue) {
        if self.counts.is_empty() || mark(inst).is_some() {
            return;
        }
        let facts = inst.op.facts();
        let access = facts.accesses().next();
        let shared = access.map(|access| self.shared_access(warp, access, facts.is_atomic(), issue));
        let executed = Executed { warps: 1, threads: issue.active.count_ones().into() };
        if let Some(count) = self.counts.get_mut(issue.pc.index()) {
            count.add(Count { executed, shared: shared.unwrap_or_default() });
        }
    }

    /// Counts the part of an access that goes to the shared memory of the warp's own block.
    fn shared_access(
        &self,
        warp: &Warp,
        access: LaneAccess,
        is_atomic: bool,
        issue: Issue,
    ) -> SharedAccesses {
        let LaneAccess { memory, address, bytes, .. } = access;
        let Memory::Machine(space) = memory else { return SharedAccesses::default() };
        if space == Space::Global {
            return SharedAccesses::default();
        }
        let mut offsets: Lanes = self.addresses(warp, address);
        let mut lanes = issue.active;
        if space != Space::Shared {
            for lane in lanes_of(issue.active) {
                match resolve(Pointer::new(space, offsets[lane as usize]), warp.block) {
                    Target::Shared(rank, at) if rank == warp.block => offsets[lane as usize] = at,
                    Target::Shared(..) | Target::Global(_) => lanes &= !(1 << lane),
                }
            }
        }
        let Wavefronts { needed, ideal } = wavefronts(&offsets, lanes, bytes, is_atomic);
        SharedAccesses { accesses: u64::from(lanes != 0), wavefronts: needed.into(), ideal: ideal.into() }
    }

    /// Records an instruction that the lanes have run on the timeline.
    pub(super) fn record(&mut self, warp: &Warp, inst: &Inst, issue: Issue, flow: &Flow) {
        if self.machine.recorder().is_none() {
            return;
        }
        let Issue { active, pc, site } = issue;
        let at = Position { block: warp.block, warp: warp.index, pc: pc.0, site };
        if let Some(mark) = mark(inst) {
            if let Some(recorder) = self.machine.recorder() {
                recorder.marked(at, mark.edge, &mark.name);
            }
            return;
        }
        let facts = inst.op.facts();
        let part = self.sync_role(warp, &facts, active);
        let Some(recorder) = self.machine.recorder() else { return };
        match (flow, part) {
            (Flow::Wait { blocked, event }, _) => {
                if let Some(awaited) = awaited(event, warp.block) {
                    recorder.waits(at, *blocked, awaited);
                }
            }
            (_, SyncRole::Waits { awaited, gave_up }) => recorder.waited(at, active, awaited, gave_up),
            (_, SyncRole::Signals) => recorder.signalled(at, active),
            (_, SyncRole::None) => recorder.ran(at, facts.is_branch),
        }
        if facts.warp_barrier().is_some() {
            // Lanes that stay here are not yet in the warp's splits.
            let remains = matches!(flow, Flow::Wait { .. });
            let waits = |at| remains && at == pc.0 || warp.splits.any_at(Pc(at));
            recorder.released(warp.block, warp.index, waits);
        }
    }

    fn sync_role(&self, warp: &Warp, facts: &Facts, active: u32) -> SyncRole {
        let Some(lane) = lanes_of(active).next() else { return SyncRole::None };
        let get = |reg| warp.get(self.context, reg, lane);
        let wait = match facts.synchronization {
            Synchronization::None => return SyncRole::None,
            Synchronization::Signals => return SyncRole::Signals,
            Synchronization::Waits(wait) => wait,
        };
        let (event, gave_up) = match wait {
            // Recorded as an instruction of a run, not as a wait.
            Wait::Exchange => return SyncRole::None,
            Wait::Barrier { id } => (WaitingFor::Barrier(BarrierId(get(id) as u32)), false),
            Wait::Cluster => (WaitingFor::Cluster, false),
            Wait::BulkGroups { pending, read } => (WaitingFor::BulkGroups { pending, read }, false),
            Wait::AsyncGroups(pending) => (WaitingFor::AsyncGroups(pending), false),
            Wait::MultiplyGroups(pending) => (WaitingFor::MultiplyGroups(pending), false),
            Wait::Registers(count) => (WaitingFor::Registers(count), false),
            Wait::WarpBarrier { mask } => (WaitingFor::Warp(get(mask) as u32), false),
            Wait::WholeWarp => (WaitingFor::Warp(warp.live), false),
            Wait::Mbarrier { space, address, phase, parity, done, may_block } => {
                let complete = lanes_of(active).all(|lane| warp.get(self.context, done, lane) != 0);
                if !complete && !may_block {
                    return SyncRole::None;
                }
                let phase = Phase::of(get(phase), parity);
                let pointer = Pointer::new(space, self.address(warp, address, lane));
                (WaitingFor::Mbarrier { pointer, phase }, !complete)
            }
        };
        awaited(&event, warp.block).map_or(SyncRole::None, |awaited| SyncRole::Waits { awaited, gave_up })
    }
}

/// Returns the mark of a span, which is no instruction.
pub(super) fn mark(inst: &Inst) -> Option<&SpanCode> {
    if let Op::Control(ControlOp::Mark(mark)) = &inst.op { Some(mark) } else { None }
}

/// The part of an executed instruction in synchronisation.
enum SyncRole {
    None,
    Signals,
    Waits { awaited: Awaited, gave_up: bool },
}

/// Converts the event that lanes of block `own` wait for. The address of an mbarrier becomes a rank
/// and an offset.
fn awaited(event: &WaitingFor, own: BlockRank) -> Option<Awaited> {
    Some(match *event {
        WaitingFor::Barrier(id) => Awaited::Barrier(id.0),
        WaitingFor::Cluster => Awaited::Cluster,
        WaitingFor::Mbarrier { pointer, phase } => match resolve(pointer, own) {
            Target::Shared(rank, at) => Awaited::Mbarrier { rank: rank.0, at: at as u32, phase },
            // The machine has already refused this address.
            Target::Global(_) => Awaited::Mbarrier { rank: own.0, at: u32::MAX, phase },
        },
        WaitingFor::BulkGroups { pending, read } => Awaited::BulkGroups { pending, read },
        WaitingFor::AsyncGroups(pending) => Awaited::AsyncGroups(pending),
        WaitingFor::MultiplyGroups(pending) => Awaited::MultiplyGroups(pending),
        WaitingFor::Registers(count) => Awaited::Registers(count),
        WaitingFor::Warp(lanes) => Awaited::Lanes(lanes),
        // Polling loops are recorded as the instructions that they run.
        WaitingFor::Memory(_) | WaitingFor::Nothing => return None,
    })
}
