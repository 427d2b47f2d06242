//! Accesses of threads and copies to shared and global memory, and their conflicts.

use tma_front::ir::{Expr, GlobalRef, ParamId, ReduceOp, Stmt, StmtId, visit};
use tma_model::sync::{Access, AccessKind, Epoch, Hazard, Proxy};

use super::explain;
use super::finding::{Detail, Party, Rule, ThreadAct, UndecidedReason, Violation};
use super::memory::global::{self, GlobalClash, GlobalLocation, GlobalRecord};
use super::memory::region::{Overlap, Region};
use super::memory::{Clash, Record, Site};
use super::run::{Run, StepResult, Stop};
use super::state::{Block, Execution};
use crate::global::reduction;

impl Run<'_, '_> {
    /// Records an access of the current group to the shared memory of a block. An asynchronous
    /// access is over at step `done`.
    pub(super) fn access_shared(
        &mut self,
        stmt: StmtId,
        block: usize,
        access: Access,
        region: Region,
        done: Option<Epoch>,
    ) -> StepResult {
        if self.input.code.trusts(stmt) {
            return Ok(());
        }
        let site = self.site(stmt);
        let Execution { agents, blocks, current, .. } = &mut self.state;
        let agent = &agents[*current];
        let step = done.unwrap_or(agent.view.epoch());
        let record = Record::new(access, step, region, site, agent.threads.len());
        let Some(Block { memory, .. }) = blocks.get_mut(block) else { return Ok(()) };
        let reads = access.kind != AccessKind::Write;
        if reads && !memory.is_written(&record) {
            self.findings.note(UndecidedReason::Unwritten, explain::span_of(self.input, stmt));
        }
        // Strong accesses need no order among themselves.
        if !reads && !access.strong && record.region.overlaps_itself(record.threads) {
            self.findings.note(UndecidedReason::SameBytes, explain::span_of(self.input, stmt));
        }
        match memory.access(&agent.view, record) {
            None => Ok(()),
            Some(clash) => self.clashed(stmt, block, access, &clash),
        }
    }

    /// Reports two conflicting accesses: as an error if they certainly touch the same bytes, and
    /// otherwise as a reason undecided.
    fn clashed(&mut self, stmt: StmtId, block: usize, access: Access, clash: &Clash) -> StepResult {
        if !clash.certain {
            self.note_undecided(UndecidedReason::Address, self.span_of(stmt));
            return Ok(());
        }
        if self.input.code.acquires && matches!(clash.hazard, Hazard::Unordered | Hazard::ScopeTooNarrow) {
            self.note_undecided(UndecidedReason::Atomics, self.span_of(stmt));
            return Ok(());
        }
        let earlier = clash.earlier.access;
        let rule = match clash.hazard {
            Hazard::NoProxyFence => Rule::Fence,
            Hazard::Unordered | Hazard::ScopeTooNarrow => {
                match (earlier.proxy, earlier.kind, access.kind, access.proxy) {
                    (Proxy::Async, AccessKind::Write | AccessKind::Reduce, AccessKind::Read, _) => {
                        Rule::ReadBeforeWait
                    }
                    (Proxy::Async, AccessKind::Write | AccessKind::Reduce, _, _)
                    | (Proxy::Async, AccessKind::Read, _, _)
                    | (Proxy::Generic, AccessKind::Read, _, Proxy::Async) => Rule::Refill,
                    (Proxy::Generic, _, _, _) => Rule::Race,
                }
            }
        };
        let others = vec![Party { site: clash.earlier.site, does: verb(earlier) }];
        if rule == Rule::ReadBeforeWait
            && let Some(found) = self.unannounced(block, clash.earlier.site)
        {
            return Err(Stop::Violation(Box::new(found)));
        }
        let detail = Detail::Memory { block, at: clash.earlier.region.hull().start };
        let at = Party { site: self.site(stmt), does: verb(access) };
        Err(Stop::Violation(Box::new(Violation { rule, at, others, detail })))
    }

    /// Returns a violation if a load brings bytes that were not announced. The previous phase is
    /// then complete without them, and a wait for it does not cover the load.
    fn unannounced(&mut self, block: usize, load: Site) -> Option<Violation> {
        let mbarriers = &self.state.blocks.get(block)?.mbarriers;
        let (&at, mbarrier) = mbarriers.iter().find(|(_, mbarrier)| {
            let state = mbarrier.state();
            mbarrier.load.is_some_and(|(_, site)| site == load) && state.expected_bytes < state.received_bytes
        })?;
        let loads = Party { site: load, does: ThreadAct::IssueCopy };
        let (at_site, others) = match mbarrier.announced {
            Some(site) => (Party { site, does: ThreadAct::Announce }, vec![loads]),
            None => (loads, vec![]),
        };
        let detail = Detail::Barrier { block, at, state: mbarrier.state() };
        Some(Violation { rule: Rule::Bytes, at: at_site, others, detail })
    }

    /// Records an access of threads to global memory, if copies access it as well.
    pub(super) fn global_access(
        &mut self,
        stmt: &Stmt,
        global: &GlobalRef,
        index: &Expr,
        vector: u32,
        access: Access,
    ) -> StepResult {
        if !self.input.code.slice.is_shared_with_copies(global.param) {
            return Ok(());
        }
        let at = match self.numbers(index) {
            Some(index) if global.rank.is_none() => GlobalLocation::Elements(index, Some(vector)),
            Some(_) | None => GlobalLocation::Anywhere,
        };
        self.access_global(stmt.id, global.param, access, at, None)
    }

    /// Records an access of the current group to global memory. A copy is over at step `done`.
    pub(super) fn access_global(
        &mut self,
        stmt: StmtId,
        param: ParamId,
        access: Access,
        at: GlobalLocation,
        done: Option<Epoch>,
    ) -> StepResult {
        if self.input.code.trusts(stmt) {
            return Ok(());
        }
        self.charge()?;
        let agent = &self.state.agents[self.state.current];
        let step = done.unwrap_or(agent.view.epoch());
        let param = self.input.kernel.kernel().holder_of(param);
        let record = GlobalRecord { param, access, step, at, site: self.site(stmt) };
        if access.kind == AccessKind::Reduce && self.overlaps_other_reduction(&record) {
            self.note_undecided(UndecidedReason::Global, self.span_of(stmt));
        }
        let agent = &self.state.agents[self.state.current];
        let used = &self.input.code.used;
        let clash = global::access(&mut self.state.globals, self.terms, agent, used, record);
        let Some(GlobalClash { earlier, hazard, overlap }) = clash else { return Ok(()) };
        if overlap != Overlap::Yes {
            let are_stores = earlier.access.proxy == Proxy::Async && access.proxy == Proxy::Async;
            // Copies to unknown elements are assumed to go to different ones.
            if are_stores && earlier.access.kind != AccessKind::Read && access.kind != AccessKind::Read {
                return Ok(());
            }
            self.note_undecided(UndecidedReason::Global, self.span_of(stmt));
            return Ok(());
        }
        let rule = match hazard {
            Hazard::NoProxyFence => Rule::Fence,
            Hazard::Unordered | Hazard::ScopeTooNarrow => Rule::Race,
        };
        let others = vec![Party { site: earlier.site, does: verb(earlier.access) }];
        self.violation(rule, stmt, verb(access), others, Detail::Global(param))
    }
}

impl Run<'_, '_> {
    /// Whether a reduction may overlap one by another operation that is not over. They do not race,
    /// but the result depends on their order.
    fn overlaps_other_reduction(&mut self, new: &GlobalRecord) -> bool {
        let own = self.reduction_of(new.site.stmt);
        let view = &self.state.agents[self.state.current].view;
        let in_flight = self.state.globals.iter().filter(|old| {
            old.param == new.param && old.access.kind == AccessKind::Reduce && !view.follows(old.step)
        });
        let others: Vec<_> = in_flight
            .filter(|old| self.reduction_of(old.site.stmt) != own)
            .map(|old| old.at.clone())
            .collect();
        others.iter().any(|at| global::overlap(self.terms, at, &new.at) != Overlap::No)
    }

    /// Returns the operation of a reduction into global memory.
    fn reduction_of(&self, id: StmtId) -> Option<ReduceOp> {
        let mut found = None;
        visit::for_each_stmt(&self.input.kernel.kernel().body, &mut |stmt| {
            if stmt.id == id {
                found = reduction(stmt);
            }
        });
        found
    }
}

/// Returns the description of an access for messages.
fn verb(access: Access) -> ThreadAct {
    match (access.proxy, access.kind) {
        (Proxy::Generic, AccessKind::Read) => ThreadAct::Read,
        (Proxy::Generic, AccessKind::Write | AccessKind::Reduce) => ThreadAct::Write,
        (Proxy::Async, AccessKind::Read) => ThreadAct::StartReading,
        (Proxy::Async, AccessKind::Write | AccessKind::Reduce) => ThreadAct::StartWriting,
    }
}
