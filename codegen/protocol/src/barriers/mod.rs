//! mbarriers: initialisation, arrivals, announced bytes, waits and polls.

mod ends;

use std::collections::BTreeMap;

use tma_front::ir::{BarrierOp, BinaryOp, Expr, ExprKind, LocalId, Stmt, StmtId, Type};
use tma_model::limits::BARRIER_BYTES;
use tma_model::sync::{
    Access, AccessKind, Arrival, AwaitedPhase, Epoch, MbarrierCount, MbarrierFault, PhaseOrder, Proxy, Scope,
    Wait,
};

use super::code::LoopEnding;
use super::finding::{Detail, Party, Rule, ThreadAct, UndecidedReason, Violation};
use super::memory::Site;
use super::memory::region::Region;
use super::run::{Run, StepFlow, StepResult, Stop};
use super::state::Mbarrier;
use super::value::Value;

const WRITE: Access = Access::weak(Proxy::Generic, AccessKind::Write);

/// The location of an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MbarrierAddr {
    pub(super) block: usize,
    pub(super) at: u32,
}

/// The scope of an arrival, and on which side it is.
#[derive(Clone, Copy)]
struct ArrivalScope {
    scope: Scope,
    /// Whether the mbarrier is in the block that arrives.
    is_local: bool,
}

impl Run<'_, '_> {
    /// Returns the mbarrier that an expression names, which must be the same for all threads of the
    /// group, and whether it is named by a remote handle.
    pub(super) fn barrier_at(&mut self, barrier: &Expr) -> StepResult<(MbarrierAddr, bool)> {
        let Value::Address(addr) = self.value(barrier) else {
            return Err(self.stop_undecided(UndecidedReason::Operand, barrier.span));
        };
        let (block, at) = (self.uniform(&addr.block)?, self.uniform(&addr.at)?);
        Ok((MbarrierAddr { block, at }, addr.remote))
    }

    /// Returns the first of an array of mbarriers if the index is certainly out of bounds.
    fn out_of_bounds(&mut self, barrier: &Expr) -> Option<MbarrierAddr> {
        let ExprKind::Stage(stages, index) = &barrier.kind else { return None };
        let Type::Stages(_, len) = stages.ty.local() else { return None };
        let index = self.numbers(index)?.uniform()?;
        let index = self.terms.int(index)?;
        let Value::Address(addr) = self.value(stages) else { return None };
        let at = MbarrierAddr { block: addr.block.uniform()?, at: addr.at.uniform()? };
        (index >= i128::from(*len)).then_some(at)
    }

    pub(super) fn mbarrier(&mut self, addr: MbarrierAddr) -> Option<&mut Mbarrier> {
        self.state.blocks.get_mut(addr.block)?.mbarriers.get_mut(&addr.at)
    }

    /// Executes an operation on an mbarrier.
    pub(super) fn barrier(
        &mut self,
        stmt: &Stmt,
        barrier: &Expr,
        op: &BarrierOp,
        scope: Scope,
    ) -> StepResult<StepFlow> {
        if let Some(addr) = self.out_of_bounds(barrier) {
            return self.misuse(stmt.id, addr, ThreadAct::OutOfBounds);
        }
        let (addr, remote) = self.barrier_at(barrier)?;
        if addr.block >= self.state.blocks.len() {
            return Err(self.stop_undecided(UndecidedReason::Cluster, barrier.span));
        }
        // Without clusters there is only one scope. In a cluster, the instruction states the scope.
        let in_cluster = self.state.blocks.len() > 1
            || self.input.kernel.kernel().launch.cluster != tma_front::ir::Cluster::None;
        let scope = if in_cluster { scope } else { Scope::Block };
        let is_near = addr.block == self.agent().block;
        let telling = ArrivalScope { scope, is_local: is_near };
        match op {
            BarrierOp::Init { count } => {
                let count = self.number_u32(count)?;
                self.init(stmt.id, addr, count)?;
                return Ok(StepFlow::Next);
            }
            BarrierOp::Invalidate => {
                self.invalidate(stmt.id, addr)?;
                return Ok(StepFlow::Next);
            }
            BarrierOp::Arrive
            | BarrierOp::ArriveMany { .. }
            | BarrierOp::ArriveToken { .. }
            | BarrierOp::ArriveDrop
            | BarrierOp::ArriveExpectTx { .. } => self.arrive(stmt, addr, op, remote, telling)?,
            BarrierOp::ExpectTx { bytes } => {
                let bytes = self.bytes(bytes)?;
                self.usable(stmt.id, addr, ThreadAct::Announce)?;
                self.use_remote_memory(stmt.id, addr.block)?;
                self.counts_in_order(addr, stmt);
                for _ in 0..self.agent().threads.len() {
                    self.change(stmt.id, addr, ThreadAct::Announce, |count| count.expect_tx(bytes))?;
                }
                let (site, step) = (self.site(stmt.id), self.epoch());
                if let Some(mbarrier) = self.mbarrier(addr) {
                    mbarrier.announced = Some(site);
                    mbarrier.late_announcements.push((step, site));
                }
                self.note_use(addr, step);
            }
            BarrierOp::Wait { parity } => {
                let parity = self.parity(parity)?;
                return self.wait(stmt.id, addr, AwaitedPhase::Parity(parity), scope);
            }
            BarrierOp::WaitToken { token } => {
                let Value::Token { block, at, phase } = self.value(token) else {
                    return Err(self.stop_undecided(UndecidedReason::Operand, token.span));
                };
                if (MbarrierAddr { block, at }) != addr {
                    return self.misuse(stmt.id, addr, ThreadAct::WaitWithOther);
                }
                return self.wait(stmt.id, addr, AwaitedPhase::Number(phase), scope);
            }
            BarrierOp::TestWait { dest, parity }
            | BarrierOp::TryWait { dest, parity }
            | BarrierOp::TryWaitFor { dest, parity, .. } => {
                let parity = self.parity(parity)?;
                return self.poll(stmt, addr, AwaitedPhase::Parity(parity), scope, *dest);
            }
        }
        Ok(StepFlow::Next)
    }

    /// Evaluates a parity. Returns whether it is odd.
    fn parity(&mut self, parity: &Expr) -> StepResult<bool> {
        let lanes = self.numbers(parity).and_then(|lanes| {
            lanes.map(|term| {
                let one = self.terms.number(1, self.terms.scalar(term));
                Some(self.terms.binary(BinaryOp::And, term, one))
            })
        });
        let Some(lanes) = lanes else {
            return Err(self.stop_undecided(UndecidedReason::Operand, parity.span));
        };
        if let Some(all) = self.numbers(parity).and_then(|lanes| lanes.uniform())
            && self.state.facts.range(self.terms, all).1 > 1
        {
            self.note_undecided(UndecidedReason::Undefined, parity.span);
        }
        let term = self.uniform(&lanes)?;
        let number = self.state.facts.number(self.terms, term);
        number
            .map(|number| number == 1)
            .ok_or_else(|| self.stop_undecided(UndecidedReason::Operand, parity.span))
    }

    fn init(&mut self, stmt: StmtId, addr: MbarrierAddr, count: u32) -> StepResult {
        let MbarrierAddr { block, at } = addr;
        let Ok(counts) = MbarrierCount::new(count) else {
            return self.misuse(stmt, addr, ThreadAct::InitialiseWrongly);
        };
        if self.agent().threads.len() > 1 {
            return self.misuse(stmt, addr, ThreadAct::InitialiseBySeveral);
        }
        if let Some(old) = self.mbarrier(addr) {
            let other = Party { site: old.init, does: ThreadAct::Initialised };
            let detail = self.barrier_detail(addr);
            return self.violation(Rule::Count, stmt, ThreadAct::InitialiseAgain, vec![other], detail);
        }
        let site = self.site(stmt);
        self.access_shared(stmt, block, WRITE, Region::all(at..at + BARRIER_BYTES as u32), None)?;
        let (component, init_step) = (self.component(), self.epoch());
        let mbarrier = Mbarrier {
            count: counts,
            order: PhaseOrder::default(),
            component,
            init: site,
            init_step,
            fenced: None,
            observed: 0,
            remote: false,
            load: None,
            announced: None,
            arrived: None,
            completer: None,
            multi_phase: None,
            late_announcements: vec![],
            last_uses: BTreeMap::new(),
        };
        self.state.history.note_init(addr);
        self.state.blocks[block].memory.forget(at, at + BARRIER_BYTES as u32);
        self.state.blocks[block].mbarriers.insert(at, mbarrier);
        Ok(())
    }

    /// Records that the current group uses an mbarrier at a step. The mbarrier may be invalidated
    /// only once that step is over.
    fn note_use(&mut self, addr: MbarrierAddr, step: Epoch) {
        if !self.input.code.invalidates() {
            return;
        }
        if let Some(mbarrier) = self.mbarrier(addr) {
            mbarrier.last_uses.insert(step.component(), step);
        }
    }

    /// Checks that an mbarrier exists, and that the current group sees its initialisation.
    pub(super) fn usable(&mut self, stmt: StmtId, addr: MbarrierAddr, does: ThreadAct) -> StepResult {
        let init = self.mbarrier(addr).map(|mbarrier| (mbarrier.init_step, mbarrier.init));
        let Some((step, init)) = init else {
            let detail = Detail::Memory { block: addr.block, at: addr.at };
            if let Some(site) = self.state.history.invalidated(addr) {
                let others = vec![Party { site: self.site(stmt), does }];
                let at = Party { site, does: ThreadAct::InvalidateInUse };
                return Err(Violation { rule: Rule::Count, at, others, detail }.into());
            }
            return self.violation(Rule::NotVisible, stmt, does, vec![], detail);
        };
        if self.sees(step) {
            return Ok(());
        }
        let detail = self.barrier_detail(addr);
        let other = Party { site: init, does: ThreadAct::Initialise };
        self.violation(Rule::NotVisible, stmt, does, vec![other], detail)
    }

    /// Whether all threads of the current group see the effects of a step.
    pub(super) fn sees(&self, step: Epoch) -> bool {
        let me = self.agent();
        let own = step.component() == me.view.epoch().component();
        if own && me.threads.len() > 1 {
            me.view.knows().visible().knows(step)
        } else {
            me.view.follows(step)
        }
    }

    pub(super) fn barrier_detail(&mut self, addr: MbarrierAddr) -> Detail {
        let MbarrierAddr { block, at } = addr;
        match self.mbarrier(addr).map(|mbarrier| mbarrier.state()) {
            Some(state) => Detail::Barrier { block, at, state },
            None => Detail::Memory { block, at },
        }
    }

    fn misuse<T>(&mut self, stmt: StmtId, addr: MbarrierAddr, does: ThreadAct) -> StepResult<T> {
        let detail = self.barrier_detail(addr);
        self.violation(Rule::Count, stmt, does, vec![], detail)
    }

    fn arrive(
        &mut self,
        stmt: &Stmt,
        addr: MbarrierAddr,
        op: &BarrierOp,
        remote: bool,
        telling: ArrivalScope,
    ) -> StepResult {
        let (mut arrival, mut does) = (Arrival::ONE, ThreadAct::Arrive);
        match op {
            BarrierOp::ArriveMany { count } => arrival.count = self.number_u32(count)?,
            BarrierOp::ArriveExpectTx { bytes } => {
                arrival.expect_tx = Some(self.bytes(bytes)?);
                does = ThreadAct::AnnounceAndArrive;
            }
            BarrierOp::ArriveDrop => arrival.drop = true,
            BarrierOp::Arrive
            | BarrierOp::ArriveToken { .. }
            | BarrierOp::Init { .. }
            | BarrierOp::Invalidate
            | BarrierOp::ExpectTx { .. }
            | BarrierOp::Wait { .. }
            | BarrierOp::WaitToken { .. }
            | BarrierOp::TestWait { .. }
            | BarrierOp::TryWait { .. }
            | BarrierOp::TryWaitFor { .. } => {}
        }
        self.usable(stmt.id, addr, does)?;
        self.use_remote_memory(stmt.id, addr.block)?;
        self.counts_in_order(addr, stmt);
        let (site, step) = (self.site(stmt.id), self.epoch());
        let agent = &mut self.state.agents[self.state.current];
        let Some(mbarrier) = self.state.blocks[addr.block].mbarriers.get_mut(&addr.at) else { return Ok(()) };
        let own = agent.view.epoch().component();
        mbarrier
            .late_announcements
            .retain(|(step, _)| step.component() != own && !agent.view.knows().past().knows(*step));
        mbarrier.remote |= remote || !telling.is_local;
        let phase = mbarrier.count.phase();
        let observed = phase <= mbarrier.observed || mbarrier.remote;
        // The instruction that announces bytes at the mbarrier of another block has cluster scope.
        let cluster = remote && arrival.expect_tx.is_some();
        let scope = if cluster { Scope::Cluster } else { telling.scope };
        mbarrier.order.arrivals(telling.is_local, scope).release(&mut agent.view);
        mbarrier.arrived = Some(site);
        if arrival.expect_tx.is_some() {
            mbarrier.announced = Some(site);
        }
        if let BarrierOp::ArriveToken { dest } = op {
            let MbarrierAddr { block, at } = addr;
            self.set(*dest, Value::Token { block, at, phase });
        }
        if !observed {
            return self.misuse(stmt.id, addr, ThreadAct::ArriveEarly);
        }
        for _ in 0..self.agent().threads.len() {
            if let Some(mbarrier) = self.mbarrier(addr)
                && mbarrier.count.phase() != phase
            {
                mbarrier.multi_phase = Some(site);
                // The schedule decides which of these arrivals count for which phase.
                self.note_undecided(UndecidedReason::Counting, stmt.origin.span);
            }
            self.change(stmt.id, addr, does, |count| count.arrive(arrival))?;
        }
        self.note_use(addr, step);
        Ok(())
    }

    /// Records a reason undecided if the operation may count for one phase or another.
    pub(super) fn counts_in_order(&mut self, addr: MbarrierAddr, stmt: &Stmt) {
        let known = self.mbarrier(addr).map(|mbarrier| (mbarrier.component, mbarrier.count.phase()));
        if let Some((component, phase)) = known
            && self.agent().view.knows().past().get(component) < phase
        {
            self.note_undecided(UndecidedReason::Counting, stmt.origin.span);
        }
    }

    /// Changes the counts of an mbarrier.
    pub(super) fn change(
        &mut self,
        stmt: StmtId,
        addr: MbarrierAddr,
        does: ThreadAct,
        change: impl FnOnce(&mut MbarrierCount) -> Result<(), MbarrierFault>,
    ) -> StepResult {
        let site = self.site(stmt);
        let Some(mbarrier) = self.mbarrier(addr) else { return Ok(()) };
        let phase = mbarrier.count.phase();
        let changed = change(&mut mbarrier.count);
        let mut late_site = None;
        if mbarrier.count.phase() != phase {
            mbarrier.order.complete(Epoch::new(mbarrier.component, mbarrier.count.phase()));
            mbarrier.completer = Some(site);
            late_site = std::mem::take(&mut mbarrier.late_announcements).first().map(|(_, site)| *site);
        }
        let (overrun, state) = (mbarrier.order.take_overrun(), mbarrier.state());
        let (multi_phase, MbarrierAddr { block, at }) = (mbarrier.multi_phase, addr);
        let detail = Detail::Barrier { block, at, state };
        self.state.event_count += u64::from(state.phase != phase);
        if let Err(fault) = changed {
            let rule = match fault {
                MbarrierFault::TransactionRange => Rule::Bytes,
                MbarrierFault::InitialCount
                | MbarrierFault::TooManyArrivals
                | MbarrierFault::NoArrival
                | MbarrierFault::OtherPhase
                | MbarrierFault::PendingRange
                | MbarrierFault::Completes
                | MbarrierFault::NoneExpected => Rule::Count,
            };
            return self.violation(rule, stmt, does, vec![], detail);
        }
        if let Some(announces) = late_site {
            // All arrivals may come first, and complete the phase without these bytes.
            let others = vec![Party { site, does }];
            let at = Party { site: announces, does: ThreadAct::AnnounceLate };
            return Err(Violation { rule: Rule::Count, at, others, detail }.into());
        }
        if let Some(wait) = overrun {
            if let Some(site) = multi_phase {
                return Err(multi_phase_arrivals(site, wait.site, detail));
            }
            let others = vec![Party { site, does: ThreadAct::MayCompleteNext }];
            let seen = self.state.history.passed_at_once(addr, wait.site);
            let does = seen.map_or(ThreadAct::Wait, |seen| ThreadAct::WaitWithParity { seen });
            let at = Party { site: wait.site, does };
            return Err(Violation { rule: Rule::Overrun, at, others, detail }.into());
        }
        Ok(())
    }

    /// Whether the phase that the current group waits for is complete.
    fn is_complete(&mut self, stmt: StmtId, addr: MbarrierAddr, awaited: AwaitedPhase) -> StepResult<bool> {
        self.usable(stmt, addr, ThreadAct::Wait)?;
        let Some(mbarrier) = self.mbarrier(addr) else { return Ok(false) };
        let (component, phase) = (mbarrier.component, mbarrier.count.phase());
        let (completer, multi_phase) = (mbarrier.completer, mbarrier.multi_phase);
        let complete = mbarrier.count.is_complete(awaited);
        let known = self.agent().view.knows().past().get(component);
        if phase > awaited.phases(known) {
            let others = completer.map(|site| Party { site, does: ThreadAct::CompleteNext });
            let detail = self.barrier_detail(addr);
            if let Some(site) = multi_phase {
                return Err(multi_phase_arrivals(site, self.site(stmt), detail));
            }
            // A wait for a phase that was seen complete is one too many, or has the wrong parity.
            let does = match awaited {
                AwaitedPhase::Parity(_) if awaited.phases(known) == known => {
                    ThreadAct::WaitWithParity { seen: known }
                }
                AwaitedPhase::Number(_) if awaited.phases(known) == known => ThreadAct::WaitAgain,
                AwaitedPhase::Parity(_) | AwaitedPhase::Number(_) => ThreadAct::Wait,
            };
            return self.violation(Rule::Overrun, stmt, does, others.into_iter().collect(), detail);
        }
        match complete {
            Ok(complete) => Ok(complete),
            Err(_) => self.misuse(stmt, addr, ThreadAct::WaitForOtherPhase),
        }
    }

    fn wait(
        &mut self,
        stmt: StmtId,
        addr: MbarrierAddr,
        awaited: AwaitedPhase,
        scope: Scope,
    ) -> StepResult<StepFlow> {
        if !self.is_complete(stmt, addr, awaited)? {
            return Ok(StepFlow::Blocked);
        }
        self.note_passed_at_once(stmt, addr, awaited);
        self.passed(stmt, addr, scope);
        Ok(StepFlow::Next)
    }

    /// Records a wait by parity for a phase that the current group has already seen complete.
    fn note_passed_at_once(&mut self, stmt: StmtId, addr: MbarrierAddr, awaited: AwaitedPhase) {
        let Some(component) = self.mbarrier(addr).map(|mbarrier| mbarrier.component) else { return };
        let seen = self.agent().view.knows().past().get(component);
        if matches!(awaited, AwaitedPhase::Parity(_)) && awaited.phases(seen) == seen {
            self.state.history.note_passed_at_once(addr, self.site(stmt), seen);
        }
    }

    /// Lets the current group pass a wait, and acquire what the phase released.
    fn passed(&mut self, stmt: StmtId, addr: MbarrierAddr, scope: Scope) {
        let (site, step) = (self.site(stmt), self.epoch());
        let agent = &mut self.state.agents[self.state.current];
        let Some(mbarrier) = self.state.blocks[addr.block].mbarriers.get_mut(&addr.at) else { return };
        mbarrier.observed = mbarrier.count.phase();
        self.acquirer.acquire(&mut agent.view, mbarrier.order.completed(scope));
        mbarrier.order.note_wait(Wait { step, site });
        agent.waited = step.count();
        agent.failed_polls = 0;
        self.note_use(addr, step);
    }

    /// Executes a poll. In a loop that does nothing but repeat it, the poll is a wait. Elsewhere it
    /// may fail, unless the group knows the phase to be complete.
    fn poll(
        &mut self,
        stmt: &Stmt,
        addr: MbarrierAddr,
        awaited: AwaitedPhase,
        scope: Scope,
        dest: LocalId,
    ) -> StepResult<StepFlow> {
        let complete = self.is_complete(stmt.id, addr, awaited)?;
        let component = self.mbarrier(addr).map(|mbarrier| mbarrier.component);
        let known = component.map_or(0, |component| self.agent().view.knows().past().get(component));
        let is_certain = awaited.phases(known) == known;
        let is_wait = self.input.code.is_wait(stmt.id) || self.agent().failed_polls > 1;
        if !is_certain && !is_wait {
            let succeeds = self.fresh(tma_front::ir::Scalar::Bool);
            let succeeds = super::lanes::Lanes::Same(succeeds);
            if self.agent().failed_polls == 0 && !self.decide(&succeeds, stmt, LoopEnding::Neither)? {
                self.agent_mut().failed_polls += 1;
                self.note_undecided(UndecidedReason::Poll, stmt.origin.span);
                self.set_truth(dest, false);
                return Ok(StepFlow::Next);
            }
        }
        if !complete {
            // This poll will succeed later.
            self.agent_mut().failed_polls = 2;
            return Ok(StepFlow::Blocked);
        }
        self.passed(stmt.id, addr, scope);
        self.set_truth(dest, true);
        Ok(StepFlow::Next)
    }
}

/// Reports arrivals that complete more than one phase at once, so that a wait cannot distinguish
/// the phases.
fn multi_phase_arrivals(arrives: Site, waits: Site, detail: Detail) -> Stop {
    let at = Party { site: arrives, does: ThreadAct::ArriveTooOften };
    let others = vec![Party { site: waits, does: ThreadAct::WaitForBarrier }];
    Violation { rule: Rule::Count, at, others, detail }.into()
}
