//! mbarriers: initialisation, arrivals, announced bytes, waits and polls.

mod ends;

use std::collections::BTreeMap;

use tma_model::limits::BARRIER_BYTES;
use tma_model::sync::{
    Access, AccessKind, Arrival, Awaited, Epoch, MbarrierCount, MbarrierFault, PhaseOrder, Proxy, Scope, Wait,
};

use super::code::Ends;
use super::finding::{Act, Detail, Party, Rule, Why};
use super::memory::Site;
use super::memory::region::Region;
use super::run::{Flow, Run, Step, Stop};
use super::state::Mbarrier;
use super::value::Value;
use crate::ir::{BarrierOp, BinaryOp, Expr, ExprKind, LocalId, Stmt, StmtId, Type};

const WRITE: Access = Access::weak(Proxy::Generic, AccessKind::Write);

/// The location of an mbarrier: the block and the address.
pub(super) type At = (usize, u32);

/// The scope of an arrival, and on which side it is.
#[derive(Clone, Copy)]
struct Telling {
    scope: Scope,
    /// Whether the mbarrier is in the block that arrives.
    is_near: bool,
}

impl Run<'_, '_> {
    /// Returns the mbarrier that an expression names, which must be the same for all threads of the
    /// group, and whether it is named by a remote handle.
    pub(super) fn barrier_at(&mut self, barrier: &Expr) -> Step<(At, bool)> {
        let Value::Place(place) = self.value(barrier) else {
            return Err(self.unknown(Why::Operand, barrier.span));
        };
        Ok(((self.uniform(&place.block)?, self.uniform(&place.at)?), place.remote))
    }

    /// Returns the first of an array of mbarriers if the index is certainly out of bounds.
    fn beyond(&mut self, barrier: &Expr) -> Option<At> {
        let ExprKind::Stage(stages, index) = &barrier.kind else { return None };
        let Type::Stages(_, len) = stages.ty.local() else { return None };
        let index = self.numbers(index)?.uniform()?;
        let index = self.terms.int(index)?;
        let Value::Place(place) = self.value(stages) else { return None };
        let at = (place.block.uniform()?, place.at.uniform()?);
        (index >= i128::from(*len)).then_some(at)
    }

    pub(super) fn mbarrier(&mut self, (block, at): At) -> Option<&mut Mbarrier> {
        self.blocks.get_mut(block)?.mbarriers.get_mut(&at)
    }

    /// Executes an operation on an mbarrier.
    pub(super) fn barrier(
        &mut self,
        stmt: &Stmt,
        barrier: &Expr,
        op: &BarrierOp,
        scope: Scope,
    ) -> Step<Flow> {
        if let Some(place) = self.beyond(barrier) {
            return self.misuse(stmt.id, place, Act::Beyond);
        }
        let (place, remote) = self.barrier_at(barrier)?;
        if place.0 >= self.blocks.len() {
            return Err(self.unknown(Why::Cluster, barrier.span));
        }
        // Without clusters there is only one scope. In a cluster, the instruction states the scope.
        let in_cluster =
            self.blocks.len() > 1 || self.input.kernel.kernel().launch.cluster != crate::ir::Cluster::None;
        let scope = if in_cluster { scope } else { Scope::Block };
        let is_near = place.0 == self.me().block;
        let telling = Telling { scope, is_near };
        match op {
            BarrierOp::Init { count } => {
                let count = self.small(count)?;
                self.init(stmt.id, place, count)?;
                return Ok(Flow::Next);
            }
            BarrierOp::Invalidate => {
                self.invalidate(stmt.id, place)?;
                return Ok(Flow::Next);
            }
            BarrierOp::Arrive
            | BarrierOp::ArriveMany { .. }
            | BarrierOp::ArriveToken { .. }
            | BarrierOp::ArriveDrop
            | BarrierOp::ArriveExpectTx { .. } => self.arrive(stmt, place, (op, remote), telling)?,
            BarrierOp::ExpectTx { bytes } => {
                let bytes = self.bytes(bytes)?;
                self.usable(stmt.id, place, Act::Announce)?;
                self.visit(stmt.id, place.0)?;
                self.counts_in_order(place, stmt);
                for _ in 0..self.me().threads.len() {
                    self.change(stmt.id, place, Act::Announce, |count| count.expect_tx(bytes))?;
                }
                let (site, step) = (self.site(stmt.id), self.epoch());
                if let Some(mbarrier) = self.mbarrier(place) {
                    mbarrier.announced = Some(site);
                    mbarrier.late.push((step, site));
                }
                self.note_use(place, step);
            }
            BarrierOp::Wait { parity } => {
                let parity = self.parity(parity)?;
                return self.wait(stmt.id, place, Awaited::Parity(parity), scope);
            }
            BarrierOp::WaitToken { token } => {
                let Value::Token { block, at, phase } = self.value(token) else {
                    return Err(self.unknown(Why::Operand, token.span));
                };
                if (block, at) != place {
                    return self.misuse(stmt.id, place, Act::WaitWithOther);
                }
                return self.wait(stmt.id, place, Awaited::Number(phase), scope);
            }
            BarrierOp::TestWait { dest, parity }
            | BarrierOp::TryWait { dest, parity }
            | BarrierOp::TryWaitFor { dest, parity, .. } => {
                let parity = self.parity(parity)?;
                return self.poll(stmt, place, (Awaited::Parity(parity), scope), *dest);
            }
        }
        Ok(Flow::Next)
    }

    /// Evaluates a parity. Returns whether it is odd.
    fn parity(&mut self, parity: &Expr) -> Step<bool> {
        let lanes = self.numbers(parity).and_then(|lanes| {
            lanes.map(|term| {
                let one = self.terms.number(1, self.terms.scalar(term));
                Some(self.terms.binary(BinaryOp::And, term, one))
            })
        });
        let Some(lanes) = lanes else { return Err(self.unknown(Why::Operand, parity.span)) };
        if let Some(all) = self.numbers(parity).and_then(|lanes| lanes.uniform())
            && self.facts.range(self.terms, all).1 > 1
        {
            self.doubt(Why::Undefined, parity.span);
        }
        let term = self.uniform(&lanes)?;
        let number = self.facts.number(self.terms, term);
        number.map(|number| number == 1).ok_or_else(|| self.unknown(Why::Operand, parity.span))
    }

    fn init(&mut self, stmt: StmtId, place @ (block, at): At, count: u32) -> Step {
        let Ok(counts) = MbarrierCount::new(count) else {
            return self.misuse(stmt, place, Act::InitialiseWrongly);
        };
        if self.me().threads.len() > 1 {
            return self.misuse(stmt, place, Act::InitialiseTogether);
        }
        if let Some(old) = self.mbarrier(place) {
            let other = Party { site: old.init, does: Act::Initialised };
            let detail = self.barrier_detail(place);
            return self.found(Rule::Count, (stmt, Act::InitialiseAgain), vec![other], detail);
        }
        let site = self.site(stmt);
        self.touch(stmt, block, (WRITE, Region::all(at..at + BARRIER_BYTES as u32)), None)?;
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
            crowded: None,
            late: vec![],
            uses: BTreeMap::new(),
        };
        self.history.note_init(place);
        self.blocks[block].memory.forget(at, at + BARRIER_BYTES as u32);
        self.blocks[block].mbarriers.insert(at, mbarrier);
        Ok(())
    }

    /// Records that the current group uses an mbarrier at a step. The mbarrier may be invalidated
    /// only once that step is over.
    fn note_use(&mut self, place: At, step: Epoch) {
        if !self.input.code.invalidates() {
            return;
        }
        if let Some(mbarrier) = self.mbarrier(place) {
            mbarrier.uses.insert(step.component(), step);
        }
    }

    /// Checks that an mbarrier exists, and that the current group sees its initialisation.
    pub(super) fn usable(&mut self, stmt: StmtId, place: At, does: Act) -> Step {
        let init = self.mbarrier(place).map(|mbarrier| (mbarrier.init_step, mbarrier.init));
        let Some((step, init)) = init else {
            let detail = Detail::Memory { block: place.0, at: place.1 };
            if let Some(site) = self.history.invalidated(place) {
                let others = vec![Party { site: self.site(stmt), does }];
                let at = Party { site, does: Act::InvalidateInUse };
                let found = super::finding::Found { rule: Rule::Count, at, others, detail };
                return Err(Stop::Found(Box::new(found)));
            }
            return self.found(Rule::NotVisible, (stmt, does), vec![], detail);
        };
        if self.sees(step) {
            return Ok(());
        }
        let detail = self.barrier_detail(place);
        let other = Party { site: init, does: Act::Initialise };
        self.found(Rule::NotVisible, (stmt, does), vec![other], detail)
    }

    /// Whether all threads of the current group see the effects of a step.
    pub(super) fn sees(&self, step: Epoch) -> bool {
        let me = self.me();
        let own = step.component() == me.view.epoch().component();
        if own && me.threads.len() > 1 { me.view.knows().seen().knows(step) } else { me.view.follows(step) }
    }

    pub(super) fn barrier_detail(&mut self, place: At) -> Detail {
        let (block, at) = place;
        match self.mbarrier(place).map(|mbarrier| mbarrier.state()) {
            Some(state) => Detail::Barrier { block, at, state },
            None => Detail::Memory { block, at },
        }
    }

    fn misuse<T>(&mut self, stmt: StmtId, place: At, does: Act) -> Step<T> {
        let detail = self.barrier_detail(place);
        self.found(Rule::Count, (stmt, does), vec![], detail)
    }

    fn arrive(&mut self, stmt: &Stmt, place: At, (op, remote): (&BarrierOp, bool), telling: Telling) -> Step {
        let (mut arrival, mut does) = (Arrival::ONE, Act::Arrive);
        match op {
            BarrierOp::ArriveMany { count } => arrival.count = self.small(count)?,
            BarrierOp::ArriveExpectTx { bytes } => {
                arrival.expect_tx = Some(self.bytes(bytes)?);
                does = Act::AnnounceAndArrive;
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
        self.usable(stmt.id, place, does)?;
        self.visit(stmt.id, place.0)?;
        self.counts_in_order(place, stmt);
        let (site, step) = (self.site(stmt.id), self.epoch());
        let agent = &mut self.agents[self.current];
        let Some(mbarrier) = self.blocks[place.0].mbarriers.get_mut(&place.1) else { return Ok(()) };
        let own = agent.view.epoch().component();
        mbarrier.late.retain(|(step, _)| step.component() != own && !agent.view.knows().past().knows(*step));
        mbarrier.remote |= remote || !telling.is_near;
        let phase = mbarrier.count.phase();
        let observed = phase <= mbarrier.observed || mbarrier.remote;
        // The instruction that announces bytes at the mbarrier of another block has cluster scope.
        let cluster = remote && arrival.expect_tx.is_some();
        let scope = if cluster { Scope::Cluster } else { telling.scope };
        mbarrier.order.arrivals(telling.is_near, scope).release(&mut agent.view);
        mbarrier.arrived = Some(site);
        if arrival.expect_tx.is_some() {
            mbarrier.announced = Some(site);
        }
        if let BarrierOp::ArriveToken { dest } = op {
            let (block, at) = place;
            self.set(*dest, Value::Token { block, at, phase });
        }
        if !observed {
            return self.misuse(stmt.id, place, Act::ArriveEarly);
        }
        for _ in 0..self.me().threads.len() {
            if let Some(mbarrier) = self.mbarrier(place)
                && mbarrier.count.phase() != phase
            {
                mbarrier.crowded = Some(site);
                // The schedule decides which of these arrivals count for which phase.
                self.doubt(Why::Counting, stmt.origin.span);
            }
            self.change(stmt.id, place, does, |count| count.arrive(arrival))?;
        }
        self.note_use(place, step);
        Ok(())
    }

    /// Records a reason undecided if the operation may count for one phase or another.
    pub(super) fn counts_in_order(&mut self, place: At, stmt: &Stmt) {
        let known = self.mbarrier(place).map(|mbarrier| (mbarrier.component, mbarrier.count.phase()));
        if let Some((component, phase)) = known
            && self.me().view.knows().past().get(component) < phase
        {
            self.doubt(Why::Counting, stmt.origin.span);
        }
    }

    /// Changes the counts of an mbarrier.
    pub(super) fn change(
        &mut self,
        stmt: StmtId,
        place: At,
        does: Act,
        change: impl FnOnce(&mut MbarrierCount) -> Result<(), MbarrierFault>,
    ) -> Step {
        let site = self.site(stmt);
        let Some(mbarrier) = self.mbarrier(place) else { return Ok(()) };
        let phase = mbarrier.count.phase();
        let changed = change(&mut mbarrier.count);
        let mut late = None;
        if mbarrier.count.phase() != phase {
            mbarrier.order.complete(Epoch::new(mbarrier.component, mbarrier.count.phase()));
            mbarrier.completer = Some(site);
            late = std::mem::take(&mut mbarrier.late).first().map(|(_, site)| *site);
        }
        let (overrun, state) = (mbarrier.order.take_overrun(), mbarrier.state());
        let crowded = mbarrier.crowded;
        self.news += u64::from(state.phase != phase);
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
            let (block, at) = place;
            return self.found(rule, (stmt, does), vec![], Detail::Barrier { block, at, state });
        }
        if let Some(announces) = late {
            // All arrivals may come first, and complete the phase without these bytes.
            let (block, at) = place;
            let others = vec![Party { site, does }];
            let at_party = Party { site: announces, does: Act::AnnounceLate };
            let detail = Detail::Barrier { block, at, state };
            let found = super::finding::Found { rule: Rule::Count, at: at_party, others, detail };
            return Err(Stop::Found(Box::new(found)));
        }
        if let Some(wait) = overrun {
            let (block, at) = place;
            let detail = Detail::Barrier { block, at, state };
            if let Some(site) = crowded {
                return Err(too_often(site, wait.site, detail));
            }
            let others = vec![Party { site, does: Act::MayCompleteNext }];
            let seen = self.history.idle(place, wait.site);
            let does = seen.map_or(Act::Wait, |seen| Act::WaitWithParity { seen });
            let at = Party { site: wait.site, does };
            let found = super::finding::Found { rule: Rule::Overrun, at, others, detail };
            return Err(Stop::Found(Box::new(found)));
        }
        Ok(())
    }

    /// Whether the phase that the current group waits for is complete.
    fn is_complete(&mut self, stmt: StmtId, place: At, awaited: Awaited) -> Step<bool> {
        self.usable(stmt, place, Act::Wait)?;
        let Some(mbarrier) = self.mbarrier(place) else { return Ok(false) };
        let (component, phase) = (mbarrier.component, mbarrier.count.phase());
        let (completer, crowded) = (mbarrier.completer, mbarrier.crowded);
        let complete = mbarrier.count.is_complete(awaited);
        let known = self.me().view.knows().past().get(component);
        if phase > awaited.phases(known) {
            let others = completer.map(|site| Party { site, does: Act::CompleteNext });
            let detail = self.barrier_detail(place);
            if let Some(site) = crowded {
                return Err(too_often(site, self.site(stmt), detail));
            }
            // A wait for a phase that was seen complete is one too many, or has the wrong parity.
            let does = match awaited {
                Awaited::Parity(_) if awaited.phases(known) == known => Act::WaitWithParity { seen: known },
                Awaited::Number(_) if awaited.phases(known) == known => Act::WaitAgain,
                Awaited::Parity(_) | Awaited::Number(_) => Act::Wait,
            };
            return self.found(Rule::Overrun, (stmt, does), others.into_iter().collect(), detail);
        }
        match complete {
            Ok(complete) => Ok(complete),
            Err(_) => self.misuse(stmt, place, Act::WaitForOtherPhase),
        }
    }

    fn wait(&mut self, stmt: StmtId, place: At, awaited: Awaited, scope: Scope) -> Step<Flow> {
        if !self.is_complete(stmt, place, awaited)? {
            return Ok(Flow::Blocked);
        }
        self.note_idle(stmt, place, awaited);
        self.passed(stmt, place, scope);
        Ok(Flow::Next)
    }

    /// Records a wait by parity for a phase that the current group has already seen complete.
    fn note_idle(&mut self, stmt: StmtId, place: At, awaited: Awaited) {
        let Some(component) = self.mbarrier(place).map(|mbarrier| mbarrier.component) else { return };
        let seen = self.me().view.knows().past().get(component);
        if matches!(awaited, Awaited::Parity(_)) && awaited.phases(seen) == seen {
            self.history.note_idle(place, self.site(stmt), seen);
        }
    }

    /// Lets the current group pass a wait, and acquire what the phase released.
    fn passed(&mut self, stmt: StmtId, place: At, scope: Scope) {
        let (site, step) = (self.site(stmt), self.epoch());
        let agent = &mut self.agents[self.current];
        let Some(mbarrier) = self.blocks[place.0].mbarriers.get_mut(&place.1) else { return };
        mbarrier.observed = mbarrier.count.phase();
        self.acquirer.acquire(&mut agent.view, mbarrier.order.completed(scope));
        mbarrier.order.note_wait(Wait { step, site });
        agent.waited = step.count();
        agent.failed_polls = 0;
        self.note_use(place, step);
    }

    /// Executes a poll. In a loop that does nothing but repeat it, the poll is a wait. Elsewhere it
    /// may fail, unless the group knows the phase to be complete.
    fn poll(
        &mut self,
        stmt: &Stmt,
        place: At,
        (awaited, scope): (Awaited, Scope),
        dest: LocalId,
    ) -> Step<Flow> {
        let complete = self.is_complete(stmt.id, place, awaited)?;
        let component = self.mbarrier(place).map(|mbarrier| mbarrier.component);
        let known = component.map_or(0, |component| self.me().view.knows().past().get(component));
        let is_certain = awaited.phases(known) == known;
        let is_wait = self.input.code.is_wait(stmt.id) || self.me().failed_polls > 1;
        if !is_certain && !is_wait {
            let succeeds = self.terms.fresh(crate::ir::Scalar::Bool);
            let succeeds = super::lanes::Lanes::Same(succeeds);
            if self.me().failed_polls == 0 && !self.decide(&succeeds, stmt, Ends::Neither)? {
                self.me_mut().failed_polls += 1;
                self.doubt(Why::Poll, stmt.origin.span);
                self.set_truth(dest, false);
                return Ok(Flow::Next);
            }
        }
        if !complete {
            // This poll will succeed later.
            self.me_mut().failed_polls = 2;
            return Ok(Flow::Blocked);
        }
        self.passed(stmt.id, place, scope);
        self.set_truth(dest, true);
        Ok(Flow::Next)
    }
}

/// Reports arrivals that complete more than one phase at once, so that a wait cannot distinguish
/// the phases.
fn too_often(arrives: Site, waits: Site, detail: Detail) -> Stop {
    let at = Party { site: arrives, does: Act::ArriveTooOften };
    let others = vec![Party { site: waits, does: Act::WaitForBarrier }];
    Stop::Found(Box::new(super::finding::Found { rule: Rule::Count, at, others, detail }))
}
