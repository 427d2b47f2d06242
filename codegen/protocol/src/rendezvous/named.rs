//! Barriers of the block, by number.

use tma_front::ir::{Expr, Stmt, StmtId};
use tma_model::limits::{NAMED_BARRIERS, WARP_THREADS};

use super::warps_of;
use crate::explain::span_of;
use crate::finding::{Detail, Party, Rule, ThreadAct, UndecidedReason, Violation};
use crate::run::{Run, StepFlow, StepResult};
use crate::state::{PartialWarp, RendezvousKind};

/// A barrier of the block: its number and the threads that a round is for. `None` means all live
/// threads.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) id: u32,
    pub(super) threads: Option<u32>,
    /// Whether all threads of a warp must execute the same instruction.
    pub(super) aligned: bool,
}

impl Run<'_, '_> {
    /// Executes a named barrier, with or without the wait.
    pub(crate) fn named_barrier(
        &mut self,
        stmt: &Stmt,
        id: &Expr,
        threads: &Expr,
        arrives_only: bool,
    ) -> StepResult<StepFlow> {
        let (id, threads) = (self.number_u32(id)?, self.number_u32(threads)?);
        // Number 0 is that of `sync_threads`.
        if id == 0 || id >= NAMED_BARRIERS || threads == 0 || !threads.is_multiple_of(WARP_THREADS) {
            return Err(self.stop_undecided(UndecidedReason::Undefined, self.span_of(stmt.id)));
        }
        self.named(stmt.id, Named { id, threads: Some(threads), aligned: false }, arrives_only)
    }

    /// Returns the number of live threads of a warp of the block.
    fn live_of_warp(&self, block: usize, warp: u32) -> u32 {
        let live = self.state.agents.iter().filter(|agent| agent.block == block && !agent.is_done);
        let of_warp =
            live.flat_map(|agent| agent.threads.iter()).filter(|thread| **thread / WARP_THREADS == warp);
        of_warp.count() as u32
    }

    /// Executes a barrier of the block. Warps arrive as a whole, once all of their live threads
    /// have (PTX ISA, "barrier.cta": barriers are executed as if all threads of the warp were
    /// active).
    pub(super) fn named(&mut self, stmt: StmtId, with: Named, arrives_only: bool) -> StepResult<StepFlow> {
        let block = self.agent().block;
        let warps = warps_of(self.agent());
        if let Some(round) = self.agent().arrived_round {
            let held = self.state.blocks[block]
                .named
                .get(&with.id)
                .and_then(|rendezvous| rendezvous.partial_warps.get(&warps[0]));
            if held.is_some_and(|held| held.agents.contains(&self.state.current)) {
                self.arrive_if_whole(block, with.id)?;
                return Ok(StepFlow::Blocked);
            }
            if arrives_only {
                return Ok(self.continue_without_wait());
            }
            return Ok(self.leave_named(block, with.id, round));
        }
        // PTX does not say whether a warp counts if some of its threads have ended.
        let has_gone = |warp: &u32| self.live_of_warp(block, *warp) < self.input.threads_of_warp(*warp);
        if with.threads.is_some() && warps.iter().any(has_gone) {
            return Err(self.stop_undecided(UndecidedReason::Undefined, self.span_of(stmt)));
        }
        let is_partial = |warp: &u32| {
            let own = self.agent().threads.iter().filter(|thread| **thread / WARP_THREADS == *warp).count();
            (own as u32) < self.live_of_warp(block, *warp)
        };
        // A barrier of all threads does not depend on how the threads are grouped.
        let is_part = with.threads.is_some() && warps.iter().any(is_partial);
        if is_part && warps.len() > 1 {
            return Err(self.split_by_warp());
        }
        let site = self.site(stmt);
        let arrivals = self.arrivals(stmt, &warps, with.aligned);
        let rendezvous = self.state.blocks[block].named.entry(with.id).or_default();
        let room = with.threads.map(|threads| threads.saturating_sub(rendezvous.of_warps()));
        // Some warps would count for this round, and the others for the next.
        if room.is_some_and(|room| warps.len() as u32 * WARP_THREADS > room) && warps.len() > 1 {
            return Err(self.split_by_warp());
        }
        let otherwise = rendezvous.first.filter(|_| rendezvous.expected != with.threads);
        // Other warps are at another statement. PTX requires a single one, but whole warps at two
        // also work.
        let is_another = with.aligned && rendezvous.first.is_some_and(|first| first.stmt != stmt);
        let elsewhere = rendezvous.record_arrivals(arrivals);
        if let Some(other) = otherwise.or(elsewhere) {
            return self.reached_elsewhere(stmt, other);
        }
        if is_another {
            self.findings.note(UndecidedReason::Undefined, span_of(self.input, stmt));
        }
        if with.threads.is_some() && warps.iter().any(|warp| rendezvous.warps.contains(warp)) {
            return self.violation(Rule::Divergence, stmt, ThreadAct::ArriveAgain, vec![], Detail::Nothing);
        }
        if rendezvous.first.is_none() {
            (rendezvous.first, rendezvous.expected) = (Some(site), with.threads);
        }
        // Every thread took part in the last round of a barrier of all threads.
        if with.threads.is_some() {
            self.note_round(stmt, block, with.id);
        }
        let round = self.state.blocks[block].named.get(&with.id).map_or(0, |rendezvous| rendezvous.round);
        (self.agent_mut().arrived_round, self.agent_mut().rendezvous) =
            (Some(round), RendezvousKind::Named(with.id));
        let agent = &mut self.state.agents[self.state.current];
        let Some(rendezvous) = self.state.blocks[block].named.get_mut(&with.id) else {
            return Ok(StepFlow::Blocked);
        };
        rendezvous.releases.release(&mut agent.view);
        if is_part {
            let held =
                rendezvous.partial_warps.entry(warps[0]).or_insert(PartialWarp { stmt, agents: vec![] });
            let is_elsewhere = held.stmt != stmt;
            held.agents.push(self.state.current);
            if is_elsewhere {
                return Err(self.stop_undecided(UndecidedReason::Undefined, self.span_of(stmt)));
            }
            self.arrive_if_whole(block, with.id)?;
            return Ok(StepFlow::Blocked);
        }
        rendezvous.arrived += agent.threads.len() as u32;
        rendezvous.warps.extend(warps);
        self.end_round(block, with.id)?;
        if arrives_only {
            return Ok(self.continue_without_wait());
        }
        // The last group to arrive need not continue first.
        Ok(StepFlow::Blocked)
    }

    /// Records a reason undecided if nothing orders an arrival after the last round of its barrier.
    /// The schedule then decides which round it counts for.
    fn note_round(&mut self, stmt: StmtId, block: usize, id: u32) {
        let component = self.state.blocks[block].named.get(&id).and_then(|rendezvous| rendezvous.component);
        let component = match component {
            Some(component) => component,
            None => self.component(),
        };
        let Some(rendezvous) = self.state.blocks[block].named.get_mut(&id) else { return };
        rendezvous.component = Some(component);
        let round = rendezvous.round;
        if self.agent().view.knows().past().get(component) < round {
            self.note_undecided(UndecidedReason::Round, self.span_of(stmt));
        }
    }

    /// Lets partial warps arrive once none of their live threads is missing.
    fn arrive_if_whole(&mut self, block: usize, id: u32) -> StepResult {
        let held = self.state.blocks[block].named.get(&id).map(|rendezvous| rendezvous.partial_warps.clone());
        for (warp, held) in held.into_iter().flatten() {
            let live = self.live_of_warp(block, warp);
            if live < self.input.threads_of_warp(warp) {
                return Err(self.stop_undecided(UndecidedReason::Undefined, self.span_of(held.stmt)));
            }
            let threads: usize =
                held.agents.iter().map(|agent| self.state.agents[*agent].threads.len()).sum();
            if (threads as u32) < live {
                continue;
            }
            let Some(rendezvous) = self.state.blocks[block].named.get_mut(&id) else { continue };
            rendezvous.partial_warps.remove(&warp);
            rendezvous.warps.push(warp);
            let round = rendezvous.round;
            for agent in held.agents {
                self.state.agents[agent].arrived_round = Some(round);
            }
            self.state.event_count += 1;
            self.end_round(block, id)?;
        }
        Ok(())
    }

    /// Continues without a wait. A group that only arrives acquires nothing.
    fn continue_without_wait(&mut self) -> StepFlow {
        (self.agent_mut().arrived_round, self.agent_mut().pending_release) = (None, None);
        StepFlow::Next
    }

    fn leave_named(&mut self, block: usize, id: u32, round: u32) -> StepFlow {
        let Some(rendezvous) = self.state.blocks[block].named.get(&id) else { return StepFlow::Blocked };
        if rendezvous.round <= round {
            return StepFlow::Blocked;
        }
        let agent = &mut self.state.agents[self.state.current];
        // The group acquires its own round, and none that others have completed since.
        if let Some(knowledge) = agent.pending_release.take() {
            self.acquirer.acquire(&mut agent.view, &knowledge);
        }
        agent.arrived_round = None;
        agent.failed_polls = 0;
        StepFlow::Next
    }

    /// Completes the round of a barrier if exactly the expected number of threads has arrived.
    fn end_round(&mut self, block: usize, id: u32) -> StepResult {
        let (all, live) = (self.input.kernel.kernel().launch.thread_count(), self.live(Some(block)));
        let Some(rendezvous) = self.state.blocks[block].named.get_mut(&id) else { return Ok(()) };
        let Some(first) = rendezvous.first else { return Ok(()) };
        let is_whole = match rendezvous.expected {
            Some(expected) => rendezvous.of_warps() == expected,
            None => rendezvous.arrived >= live,
        };
        if !is_whole {
            return Ok(());
        }
        let missing = rendezvous.expected.is_none() && u64::from(live) < all;
        let round = rendezvous.round;
        rendezvous.next_round();
        for agent in &mut self.state.agents {
            let is_inside =
                agent.arrived_round == Some(round) && agent.rendezvous == RendezvousKind::Named(id);
            if agent.block == block && is_inside {
                agent.pending_release = Some(rendezvous.released.clone());
            }
        }
        self.state.event_count += 1;
        if missing {
            let at = Party { site: first, does: ThreadAct::WaitForBlock };
            let others = self.returned(Some(block));
            return Err(Violation { rule: Rule::Divergence, at, others, detail: Detail::Nothing }.into());
        }
        Ok(())
    }

    /// Completes the rounds that no longer wait for anything, after some threads of the block have
    /// ended.
    pub(crate) fn end_rounds(&mut self, block: usize) -> StepResult {
        if self.live(Some(block)) == 0 {
            return Ok(());
        }
        let ids: Vec<u32> = self.state.blocks[block].named.keys().copied().collect();
        ids.into_iter().try_for_each(|id| {
            self.arrive_if_whole(block, id)?;
            self.end_round(block, id)
        })
    }
}
