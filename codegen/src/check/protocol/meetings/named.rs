//! Barriers of the block, by number.

use tma_model::limits::{NAMED_BARRIERS, WARP_THREADS};

use super::warps_of;
use crate::check::protocol::explain::span_of;
use crate::check::protocol::finding::{Act, Detail, Doubt, Found, Party, Rule, Why};
use crate::check::protocol::run::{Flow, Run, Step, Stop};
use crate::check::protocol::state::{Held, Meets};
use crate::ir::{Expr, Stmt, StmtId};

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
    pub(in crate::check::protocol) fn named_barrier(
        &mut self,
        stmt: &Stmt,
        (id, threads): (&Expr, &Expr),
        arrives_only: bool,
    ) -> Step<Flow> {
        let (id, threads) = (self.small(id)?, self.small(threads)?);
        // Number 0 is that of `sync_threads`.
        if id == 0 || id >= NAMED_BARRIERS || threads == 0 || !threads.is_multiple_of(WARP_THREADS) {
            return Err(self.unknown(Why::Undefined, self.span_of(stmt.id)));
        }
        self.named(stmt.id, Named { id, threads: Some(threads), aligned: false }, arrives_only)
    }

    /// Returns the number of live threads of a warp of the block.
    fn live_of_warp(&self, block: usize, warp: u32) -> u32 {
        let live = self.agents.iter().filter(|agent| agent.block == block && !agent.is_done);
        let of_warp =
            live.flat_map(|agent| agent.threads.iter()).filter(|thread| **thread / WARP_THREADS == warp);
        of_warp.count() as u32
    }

    /// Executes a barrier of the block. Warps arrive as a whole, once all of their live threads
    /// have (PTX ISA, "barrier.cta": barriers are executed as if all threads of the warp were
    /// active).
    pub(super) fn named(&mut self, stmt: StmtId, with: Named, arrives_only: bool) -> Step<Flow> {
        let block = self.me().block;
        let warps = warps_of(self.me());
        if let Some(round) = self.me().inside {
            let held = self.blocks[block].named.get(&with.id).and_then(|meeting| meeting.held.get(&warps[0]));
            if held.is_some_and(|held| held.agents.contains(&self.current)) {
                self.come_if_whole(block, with.id)?;
                return Ok(Flow::Blocked);
            }
            if arrives_only {
                return Ok(self.go_on());
            }
            return Ok(self.leave_named(block, with.id, round));
        }
        // PTX does not say whether a warp counts if some of its threads have ended.
        let has_gone = |warp: &u32| self.live_of_warp(block, *warp) < self.input.threads_of_warp(*warp);
        if with.threads.is_some() && warps.iter().any(has_gone) {
            return Err(self.unknown(Why::Undefined, self.span_of(stmt)));
        }
        let is_partial = |warp: &u32| {
            let own = self.me().threads.iter().filter(|thread| **thread / WARP_THREADS == *warp).count();
            (own as u32) < self.live_of_warp(block, *warp)
        };
        // A barrier of all threads does not depend on how the threads are grouped.
        let is_part = with.threads.is_some() && warps.iter().any(is_partial);
        if is_part && warps.len() > 1 {
            return Err(self.split_by_warp());
        }
        let site = self.site(stmt);
        let meeting = self.blocks[block].named.entry(with.id).or_default();
        let room = with.threads.map(|threads| threads.saturating_sub(meeting.of_warps()));
        // Some warps would count for this round, and the others for the next.
        if room.is_some_and(|room| warps.len() as u32 * WARP_THREADS > room) && warps.len() > 1 {
            return Err(self.split_by_warp());
        }
        let otherwise = meeting.first.filter(|_| meeting.expected != with.threads);
        // Other warps are at another statement. PTX requires a single one, but whole warps at two
        // also work.
        let is_another = with.aligned && meeting.first.is_some_and(|first| first.stmt != stmt);
        let elsewhere = meeting.at_another_place(&warps, (site, with.aligned));
        if let Some(other) = otherwise.or(elsewhere) {
            let other = Party { site: other, does: Act::ComeOtherwise };
            return self.found(Rule::Parted, (stmt, Act::Come), vec![other], Detail::Nothing);
        }
        if is_another {
            let span = span_of(self.input, stmt);
            self.doubts.push(Doubt { why: Why::Undefined, span });
        }
        if with.threads.is_some() && warps.iter().any(|warp| meeting.warps.contains(warp)) {
            return self.found(Rule::Parted, (stmt, Act::ArriveAgain), vec![], Detail::Nothing);
        }
        if meeting.first.is_none() {
            (meeting.first, meeting.expected) = (Some(site), with.threads);
        }
        // Every thread took part in the last round of a barrier of all threads.
        if with.threads.is_some() {
            self.note_round(stmt, block, with.id);
        }
        let round = self.blocks[block].named.get(&with.id).map_or(0, |meeting| meeting.round);
        (self.me_mut().inside, self.me_mut().meets) = (Some(round), Meets::Named(with.id));
        let agent = &mut self.agents[self.current];
        let Some(meeting) = self.blocks[block].named.get_mut(&with.id) else { return Ok(Flow::Blocked) };
        meeting.releases.release(&mut agent.view);
        if is_part {
            let held = meeting.held.entry(warps[0]).or_insert(Held { stmt, agents: vec![] });
            let is_elsewhere = held.stmt != stmt;
            held.agents.push(self.current);
            if is_elsewhere {
                return Err(self.unknown(Why::Undefined, self.span_of(stmt)));
            }
            self.come_if_whole(block, with.id)?;
            return Ok(Flow::Blocked);
        }
        meeting.arrived += agent.threads.len() as u32;
        meeting.warps.extend(warps);
        self.end_round(block, with.id)?;
        if arrives_only {
            return Ok(self.go_on());
        }
        // The last group to arrive need not continue first.
        Ok(Flow::Blocked)
    }

    /// Records a reason undecided if nothing orders an arrival after the last round of its barrier.
    /// The schedule then decides which round it counts for.
    fn note_round(&mut self, stmt: StmtId, block: usize, id: u32) {
        let component = self.blocks[block].named.get(&id).and_then(|meeting| meeting.component);
        let component = match component {
            Some(component) => component,
            None => self.component(),
        };
        let Some(meeting) = self.blocks[block].named.get_mut(&id) else { return };
        meeting.component = Some(component);
        let round = meeting.round;
        if self.me().view.knows().past().get(component) < round {
            self.doubt(Why::Round, self.span_of(stmt));
        }
    }

    /// Lets partial warps arrive once none of their live threads is missing.
    fn come_if_whole(&mut self, block: usize, id: u32) -> Step {
        let held = self.blocks[block].named.get(&id).map(|meeting| meeting.held.clone());
        for (warp, held) in held.into_iter().flatten() {
            let live = self.live_of_warp(block, warp);
            if live < self.input.threads_of_warp(warp) {
                return Err(self.unknown(Why::Undefined, self.span_of(held.stmt)));
            }
            let threads: usize = held.agents.iter().map(|agent| self.agents[*agent].threads.len()).sum();
            if (threads as u32) < live {
                continue;
            }
            let Some(meeting) = self.blocks[block].named.get_mut(&id) else { continue };
            meeting.held.remove(&warp);
            meeting.warps.push(warp);
            let round = meeting.round;
            for agent in held.agents {
                self.agents[agent].inside = Some(round);
            }
            self.news += 1;
            self.end_round(block, id)?;
        }
        Ok(())
    }

    /// Continues without a wait. A group that only arrives acquires nothing.
    fn go_on(&mut self) -> Flow {
        (self.me_mut().inside, self.me_mut().told) = (None, None);
        Flow::Next
    }

    fn leave_named(&mut self, block: usize, id: u32, round: u32) -> Flow {
        let Some(meeting) = self.blocks[block].named.get(&id) else { return Flow::Blocked };
        if meeting.round <= round {
            return Flow::Blocked;
        }
        let agent = &mut self.agents[self.current];
        // The group acquires its own round, and none that others have completed since.
        if let Some(told) = agent.told.take() {
            self.acquirer.acquire(&mut agent.view, &told);
        }
        agent.inside = None;
        agent.failed_polls = 0;
        Flow::Next
    }

    /// Completes the round of a barrier if exactly the expected number of threads has arrived.
    fn end_round(&mut self, block: usize, id: u32) -> Step {
        let (all, live) = (self.input.kernel.kernel().launch.thread_count(), self.live(block));
        let Some(meeting) = self.blocks[block].named.get_mut(&id) else { return Ok(()) };
        let Some(first) = meeting.first else { return Ok(()) };
        let is_whole = match meeting.expected {
            Some(expected) => meeting.of_warps() == expected,
            None => meeting.arrived >= live,
        };
        if !is_whole {
            return Ok(());
        }
        let missing = meeting.expected.is_none() && u64::from(live) < all;
        let round = meeting.round;
        meeting.next_round();
        for agent in &mut self.agents {
            let is_inside = agent.inside == Some(round) && agent.meets == Meets::Named(id);
            if agent.block == block && is_inside {
                agent.told = Some(meeting.released.clone());
            }
        }
        self.news += 1;
        if missing {
            let at = Party { site: first, does: Act::WaitForBlock };
            let others = self.returned(Some(block));
            let found = Found { rule: Rule::Parted, at, others, detail: Detail::Nothing };
            return Err(Stop::Found(Box::new(found)));
        }
        Ok(())
    }

    /// Completes the rounds that no longer wait for anything, after some threads of the block have
    /// ended.
    pub(in crate::check::protocol) fn end_rounds(&mut self, block: usize) -> Step {
        if self.live(block) == 0 {
            return Ok(());
        }
        let ids: Vec<u32> = self.blocks[block].named.keys().copied().collect();
        ids.into_iter().try_for_each(|id| {
            self.come_if_whole(block, id)?;
            self.end_round(block, id)
        })
    }
}
