//! Barriers and asynchronous copies. The operands are read here, and the machine does the rest.

use tma_model::sync::Arrival;

use super::alu::each;
use super::executor::{Executor, Flow};
use super::warp::Warp;
use super::{Issue, lanes_of};
use crate::isa::{
    Address, BarrierOp, BlockBarrier, BlockVote, BulkCode, CopyAsyncOp, CopyCode, EngineReduction,
    MbarrierAction, MbarrierOp, RemoteCode, Space, TensorCode, TensorCodeAction, TmaOp,
};
use crate::machine::{
    Arrive, BarrierId, BarrierUse, BulkAction, BulkCopy, Combination, CopyAsync, Machine, Phase, PhaseWait,
    Pointer, Poll, RemoteStore, Stop, TensorAction, TensorCopy, TryWait, WaitingFor,
};

impl Executor<'_, '_> {
    /// Calls `attempt` for each lane, and a second time for each lane that was blocked, since a
    /// later lane may have released it.
    fn poll(
        &mut self,
        active: u32,
        mut attempt: impl FnMut(&mut Self, u32) -> Result<Poll, Stop>,
    ) -> Result<u32, Stop> {
        let mut blocked = 0;
        for lane in lanes_of(active) {
            if attempt(self, lane)? == Poll::Blocked {
                blocked |= 1 << lane;
            }
        }
        if blocked != active {
            for lane in lanes_of(blocked) {
                if attempt(self, lane)? == Poll::Ready {
                    blocked &= !(1 << lane);
                }
            }
        }
        Ok(blocked)
    }

    pub(super) fn barrier(&mut self, warp: &mut Warp, op: &BarrierOp, issue: Issue) -> Result<Flow, Stop> {
        let Issue { active, site, .. } = issue;
        match op {
            BarrierOp::Block(barrier) => self.block_barrier(warp, barrier, issue),
            BarrierOp::ClusterArrive { order, aligned } => {
                for lane in lanes_of(active) {
                    self.machine.cluster_arrive(warp.actor(lane, site), *order, *aligned)?;
                }
                Ok(Flow::Next)
            }
            BarrierOp::ClusterWait(order) => {
                let blocked = self.poll(active, |executor, lane| {
                    executor.machine.cluster_wait(warp.actor(lane, site), *order)
                })?;
                Ok(waiting(blocked, WaitingFor::Cluster))
            }
        }
    }

    fn block_barrier(&mut self, warp: &mut Warp, barrier: &BlockBarrier, issue: Issue) -> Result<Flow, Stop> {
        let mut ids = BarrierId(0);
        let yes = barrier.reduction.map_or(0, |reduction| warp.holds(self.context, reduction.predicate));
        let blocked = self.poll(issue.active, |executor, lane| {
            let id = BarrierId(executor.lane(warp, barrier.id, lane) as u32);
            ids = id;
            let with = BarrierUse {
                id,
                threads: barrier.threads.map(|reg| executor.lane(warp, reg, lane) as u32),
                arrive_only: barrier.arrive_only,
                aligned: barrier.aligned,
                vote: yes >> lane & 1 != 0,
            };
            executor.machine.barrier(warp.actor(lane, issue.site), with)
        })?;
        if let Some(reduction) = barrier.reduction {
            for lane in lanes_of(issue.active & !blocked) {
                let votes = self.machine.barrier_votes(warp.thread(lane));
                let result = match reduction.vote {
                    BlockVote::Count => votes.yes,
                    BlockVote::All => u32::from(votes.yes == votes.all),
                    BlockVote::Any => u32::from(votes.yes > 0),
                };
                warp.set(reduction.d, lane, u64::from(result));
            }
        }
        Ok(waiting(blocked, WaitingFor::Barrier(ids)))
    }

    pub(super) fn copy_async(&mut self, warp: &Warp, op: &CopyAsyncOp, issue: Issue) -> Result<Flow, Stop> {
        let Issue { active, site, .. } = issue;
        match *op {
            CopyAsyncOp::Copy(code) => {
                let copies = self.async_copies(warp, code, active);
                self.machine.copy_async(&copies, site)?;
            }
            CopyAsyncOp::Commit => {
                lanes_of(active).for_each(|lane| self.machine.copy_async_commit(warp.thread(lane)));
            }
            CopyAsyncOp::Wait(pending) => {
                let blocked = self.poll(active, |executor, lane| {
                    Ok(executor.machine.copy_async_wait(warp.thread(lane), pending))
                })?;
                return Ok(waiting(blocked, WaitingFor::AsyncGroups(pending)));
            }
            CopyAsyncOp::Arrive { space, address, no_increment } => {
                for lane in lanes_of(active) {
                    let at = Pointer::new(space, self.address(warp, address, lane));
                    self.machine.copy_async_arrive(warp.actor(lane, site), at, no_increment)?;
                }
            }
        }
        Ok(Flow::Next)
    }

    /// Returns the `cp.async` of each lane.
    fn async_copies(&self, warp: &Warp, code: CopyCode, active: u32) -> Vec<CopyAsync> {
        let ignored = code.ignore.map_or(0, |guard| warp.holds(self.context, guard));
        lanes_of(active)
            .map(|lane| CopyAsync {
                thread: warp.thread(lane),
                to: self.address(warp, code.to, lane),
                from: self.address(warp, code.from, lane),
                bytes: code.bytes,
                read: match code.read {
                    _ if ignored >> lane & 1 == 1 => 0,
                    Some(reg) => self.lane(warp, reg, lane) as u32,
                    None => code.bytes,
                },
            })
            .collect()
    }

    pub(super) fn mbarrier(&mut self, warp: &mut Warp, op: &MbarrierOp, issue: Issue) -> Result<Flow, Stop> {
        match *op {
            MbarrierOp::At { space, address, action } => {
                self.mbarrier_at(warp, space, address, action, issue)
            }
            MbarrierOp::PendingCount { d, state } => {
                let count = |[state]: [u64; 1]| Machine::mbarrier_pending_count(state).into();
                each(self.context, warp, issue.active, d, [state], count);
                Ok(Flow::Next)
            }
        }
    }

    fn mbarrier_at(
        &mut self,
        warp: &mut Warp,
        space: Space,
        address: Address,
        action: MbarrierAction,
        issue: Issue,
    ) -> Result<Flow, Stop> {
        let Issue { active, site, .. } = issue;
        let mut blocked = 0;
        let mut event = WaitingFor::Cluster;
        for lane in lanes_of(active) {
            let actor = warp.actor(lane, site);
            let at = Pointer::new(space, self.address(warp, address, lane));
            match action {
                MbarrierAction::Init { count } => {
                    let count = self.lane(warp, count, lane) as u32;
                    self.machine.mbarrier_init(actor, at, count)?;
                }
                MbarrierAction::Invalidate => self.machine.mbarrier_inval(actor, at)?,
                MbarrierAction::Arrive { count, expect_tx, drop, no_complete, semantics, state } => {
                    let count = self.lane(warp, count, lane) as u32;
                    let expect_tx = expect_tx.map(|reg| self.lane(warp, reg, lane) as u32);
                    let arrival = Arrival { count, expect_tx, drop, no_complete };
                    let before = self.machine.mbarrier_arrive(actor, at, Arrive { arrival, semantics })?;
                    warp.set(state, lane, before);
                }
                MbarrierAction::ExpectTx { bytes } => {
                    let bytes = self.lane(warp, bytes, lane) as u32;
                    self.machine.mbarrier_expect_tx(actor, at, bytes)?;
                }
                MbarrierAction::CompleteTx { bytes } => {
                    let bytes = self.lane(warp, bytes, lane) as u32;
                    self.machine.mbarrier_complete_tx(actor, at, bytes)?;
                }
                MbarrierAction::TestWait { phase, parity, semantics, done, may_block } => {
                    let phase = Phase::of(self.lane(warp, phase, lane), parity);
                    let wait = PhaseWait { phase, semantics };
                    let result = if may_block {
                        self.machine.mbarrier_try_wait(actor, at, wait)?
                    } else if self.machine.mbarrier_poll(actor, at, wait)? {
                        TryWait::Complete
                    } else {
                        TryWait::TimedOut
                    };
                    match result {
                        TryWait::Complete => warp.set(done, lane, 1),
                        TryWait::TimedOut => warp.set(done, lane, 0),
                        TryWait::Blocked => {
                            blocked |= 1 << lane;
                            event = WaitingFor::Mbarrier { pointer: at, phase };
                        }
                    }
                }
            }
        }
        Ok(waiting(blocked, event))
    }

    pub(super) fn tma(&mut self, warp: &Warp, op: &TmaOp, issue: Issue) -> Result<Flow, Stop> {
        match op {
            TmaOp::Tensor(code) => self.tensor(warp, code, issue)?,
            TmaOp::Bulk(code) => self.bulk(warp, code, issue)?,
            TmaOp::Remote(code) => self.remote(warp, code, issue)?,
            TmaOp::Map(code) => return self.map(warp, code, issue),
            TmaOp::Commit => {
                lanes_of(issue.active).for_each(|lane| self.machine.bulk_commit(warp.thread(lane)));
            }
            TmaOp::Wait { pending, read } => {
                let (pending, read) = (*pending, *read);
                let blocked = self.poll(issue.active, |executor, lane| {
                    Ok(executor.machine.bulk_wait(warp.thread(lane), pending, read))
                })?;
                return Ok(waiting(blocked, WaitingFor::BulkGroups { pending, read }));
            }
        }
        Ok(Flow::Next)
    }

    fn tensor(&mut self, warp: &Warp, code: &TensorCode, issue: Issue) -> Result<(), Stop> {
        for named in issue.lanes() {
            let (map, descriptor) = self.map_of(warp, named, code.map)?;
            let lane = named.index;
            let mut at = [0; 5];
            for (location, reg) in at.iter_mut().zip(&code.at) {
                *location = self.lane(warp, *reg, lane) as i32;
            }
            let action = match code.action {
                TensorCodeAction::Load { space, tile, barrier, multicast } => TensorAction::Load {
                    space,
                    tile: self.address(warp, tile, lane),
                    barrier: self.address(warp, barrier, lane),
                    multicast: multicast.map(|reg| self.lane(warp, reg, lane) as u16),
                },
                TensorCodeAction::Store { tile } => {
                    TensorAction::Store { tile: self.address(warp, tile, lane) }
                }
                TensorCodeAction::Reduce { tile, with } => {
                    TensorAction::Reduce { tile: self.address(warp, tile, lane), with }
                }
                TensorCodeAction::Prefetch => TensorAction::Prefetch,
            };
            let mut offsets = [0; 3];
            for (location, reg) in offsets.iter_mut().zip(&code.offsets) {
                *location = self.lane(warp, *reg, lane) as u16;
            }
            let (rank, im2col) = (code.at.len() as u32, code.im2col);
            let copy = TensorCopy { map, descriptor, at, rank, im2col, offsets, action };
            self.machine.tensor_copy(warp.actor(lane, issue.site), &copy)?;
        }
        Ok(())
    }

    fn bulk(&mut self, warp: &Warp, code: &BulkCode, issue: Issue) -> Result<(), Stop> {
        for lane in lanes_of(issue.active) {
            let at = |address| self.address(warp, address, lane);
            let size = |reg| self.lane(warp, reg, lane) as u32;
            let copy = match *code {
                BulkCode::Load { space, to, from, bytes, barrier, multicast } => BulkCopy {
                    bytes: size(bytes),
                    action: BulkAction::Load {
                        global: at(from),
                        space,
                        to: at(to),
                        barrier: at(barrier),
                        multicast: multicast.map(|reg| size(reg) as u16),
                    },
                },
                BulkCode::Store { to, from, bytes, reduce } => BulkCopy {
                    bytes: size(bytes),
                    action: BulkAction::Store {
                        from: at(from),
                        global: at(to),
                        reduce: reduce.map(combination),
                    },
                },
                BulkCode::ToCluster { to, from, bytes, barrier, reduce } => BulkCopy {
                    bytes: size(bytes),
                    action: BulkAction::ToCluster {
                        from: at(from),
                        to: at(to),
                        barrier: at(barrier),
                        reduce: reduce.map(combination),
                    },
                },
                BulkCode::Prefetch { from, bytes } => {
                    BulkCopy { bytes: size(bytes), action: BulkAction::Prefetch { global: at(from) } }
                }
            };
            self.machine.bulk_copy(warp.actor(lane, issue.site), &copy)?;
        }
        Ok(())
    }

    /// Executes `st.async` and `red.async`.
    fn remote(&mut self, warp: &Warp, code: &RemoteCode, issue: Issue) -> Result<(), Stop> {
        let size = code.bytes as usize;
        for lane in lanes_of(issue.active) {
            let mut bytes = [0; 16];
            for (location, reg) in bytes.chunks_exact_mut(size).zip(&code.values) {
                location.copy_from_slice(&self.lane(warp, *reg, lane).to_le_bytes()[..size]);
            }
            let store = RemoteStore {
                space: code.space,
                to: self.address(warp, code.to, lane),
                value: bytes,
                bytes: (size * code.values.len()) as u32,
                barrier: self.address(warp, code.barrier, lane),
                reduce: code.reduce.map(combination),
            };
            self.machine.remote_store(warp.actor(lane, issue.site), &store)?;
        }
        Ok(())
    }
}

fn waiting(blocked: u32, event: WaitingFor) -> Flow {
    if blocked == 0 { Flow::Next } else { Flow::Wait { blocked, event } }
}

fn combination(reduction: EngineReduction) -> Combination {
    Combination { with: reduction.op, element: reduction.element }
}
