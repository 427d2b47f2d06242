//! Where threads meet: the block's barriers, warps, the cluster, and registers that are shared.

use tma_model::limits::{NAMED_BARRIERS, WARP_THREADS, WARPGROUP_THREADS};
use tma_model::sync::Epoch;

use super::explain::span_of;
use super::finding::{Act, Detail, Doubt, Party, Rule, Why};
use super::memory::Site;
use super::run::{Flow, Run, Step};
use super::state::{Agent, Came, Change, Held, Meeting, Meets, Together};
use super::term::Term;
use super::value::Value;
use crate::ir::{Expr, LocalId, Scalar, ShuffleOp, Stmt, StmtId, Sync, VoteOp, WarpOp, WarpReduceOp};

/// What the lanes of a warp have brought to a meeting, by thread.
type Brought = std::rc::Rc<[(u32, Option<Term>)]>;

/// The warp of a group that is within one.
fn warp_of(agent: &Agent) -> u32 {
    agent.threads.first().map_or(0, |thread| thread / WARP_THREADS)
}

/// Which meeting of the block's, and for how many threads: all that are left if none.
#[derive(Clone, Copy)]
struct Named {
    id: u32,
    threads: Option<u32>,
    /// Whether a warp's threads come to one instruction.
    aligned: bool,
}

impl Run<'_, '_> {
    pub(super) fn meet(&mut self, stmt: &Stmt, sync: Sync) -> Step<Flow> {
        match sync {
            Sync::Threads => self.named(stmt.id, Named { id: 0, threads: None, aligned: true }, false),
            Sync::Warp => self.warp(stmt.id, Together::Sync, vec![]).map(|(flow, _)| flow),
            Sync::Warpgroup => {
                let all = self.input.kernel.barriers().of_warpgroups();
                let id = all.get(self.warpgroup() as usize).copied().unwrap_or(0);
                let named = Named { id, threads: Some(WARPGROUP_THREADS), aligned: false };
                self.named(stmt.id, named, false)
            }
            Sync::Cluster => {
                if self.me().at_cluster != Some(stmt.id) {
                    self.arrive_in_cluster(stmt.id, true)?;
                    self.me_mut().at_cluster = Some(stmt.id);
                }
                let flow = self.wait_in_cluster(stmt.id)?;
                if flow == Flow::Next {
                    self.me_mut().at_cluster = None;
                }
                Ok(flow)
            }
            Sync::ClusterArrive => self.arrive_in_cluster(stmt.id, false).map(|()| Flow::Next),
            Sync::ClusterWait => self.wait_in_cluster(stmt.id),
        }
    }

    /// A named barrier, with the wait or without.
    pub(super) fn named_barrier(
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

    fn live(&self, block: usize) -> u32 {
        let live = self.agents.iter().filter(|agent| agent.block == block && !agent.is_done);
        live.map(|agent| agent.threads.len() as u32).sum()
    }

    /// The live threads of a warp of the block.
    fn live_of_warp(&self, block: usize, warp: u32) -> u32 {
        let live = self.agents.iter().filter(|agent| agent.block == block && !agent.is_done);
        let of_warp =
            live.flat_map(|agent| agent.threads.iter()).filter(|thread| **thread / WARP_THREADS == warp);
        of_warp.count() as u32
    }

    /// A barrier of the block. What comes is a warp: when all of its live threads have (PTX ISA,
    /// "barrier.cta": barriers are executed as if all threads of the warp were active).
    fn named(&mut self, stmt: StmtId, with: Named, arrives_only: bool) -> Step<Flow> {
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
        // Whether a warp counts as one of which threads have ended, PTX does not say.
        let has_gone = |warp: &u32| self.live_of_warp(block, *warp) < self.input.threads_of_warp(*warp);
        if with.threads.is_some() && warps.iter().any(has_gone) {
            return Err(self.unknown(Why::Undefined, self.span_of(stmt)));
        }
        let is_partial = |warp: &u32| {
            let own = self.me().threads.iter().filter(|thread| **thread / WARP_THREADS == *warp).count();
            (own as u32) < self.live_of_warp(block, *warp)
        };
        // All threads come to the barrier of all: in which parts makes no difference.
        let is_part = with.threads.is_some() && warps.iter().any(is_partial);
        if is_part && warps.len() > 1 {
            return Err(self.split_by_warp());
        }
        let site = self.site(stmt);
        let meeting = self.blocks[block].named.entry(with.id).or_default();
        let room = with.threads.map(|threads| threads.saturating_sub(meeting.of_warps()));
        // Some would come to this round, and the others to the next.
        if room.is_some_and(|room| warps.len() as u32 * WARP_THREADS > room) && warps.len() > 1 {
            return Err(self.split_by_warp());
        }
        let otherwise = meeting.first.filter(|_| meeting.expected != with.threads);
        // Other warps at another place: PTX wants the block at one, and it works for whole warps.
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
        // In the last round of the barrier of all threads each has been.
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
        // Whoever comes last does not go on first.
        Ok(Flow::Blocked)
    }

    /// Notes an arrival that nothing orders after the last round of its barrier: which round it counts
    /// in is a matter of luck.
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

    /// Warps of which parts have come, come when no part is missing.
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

    /// Whoever has only arrived does not learn what the round releases.
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
        // Rounds that others have ended since then tell it nothing.
        if let Some(told) = agent.told.take() {
            self.acquirer.acquire(&mut agent.view, &told);
        }
        agent.inside = None;
        agent.failed_polls = 0;
        Flow::Next
    }

    /// Ends the round of a barrier if exactly as many have come as it is for.
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
            let found =
                super::finding::Found { rule: Rule::Parted, at, others: vec![], detail: Detail::Nothing };
            return Err(super::run::Stop::Found(Box::new(found)));
        }
        Ok(())
    }

    /// Some threads of the block have ended: rounds that wait for those that are left may end.
    pub(super) fn end_rounds(&mut self, block: usize) -> Step {
        if self.live(block) == 0 {
            return Ok(());
        }
        let ids: Vec<u32> = self.blocks[block].named.keys().copied().collect();
        ids.into_iter().try_for_each(|id| {
            self.come_if_whole(block, id)?;
            self.end_round(block, id)
        })
    }

    /// The threads of a warp meet at an operation, each with a value.
    fn warp(
        &mut self,
        stmt: StmtId,
        at: Together,
        brings: Vec<(u32, Option<Term>)>,
    ) -> Step<(Flow, Brought)> {
        let (block, warp) = (self.me().block, warp_of(self.me()));
        let of_warp = |agent: &&Agent| agent.block == block && warp_of(agent) == warp && !agent.is_done;
        let live: u32 = self.agents.iter().filter(of_warp).map(|agent| agent.threads.len() as u32).sum();
        let site = self.site(stmt);
        let inside = self.me().inside;
        let agent = &mut self.agents[self.current];
        let meeting = self.blocks[block].warps.entry((warp, at)).or_default();
        let round = match inside {
            Some(round) => round,
            None => {
                if at == Together::Sync {
                    meeting.releases.release(&mut agent.view);
                }
                let first = *meeting.first.get_or_insert(site);
                meeting.arrived += agent.threads.len() as u32;
                meeting.brought.extend(brings);
                // Lanes at two places may meet, as far as PTX says; compilers need not keep them two.
                if first.stmt != stmt && at != Together::Sync {
                    let span = span_of(self.input, stmt);
                    self.doubts.push(Doubt { why: Why::Undefined, span });
                }
                (agent.inside, agent.meets) = (Some(meeting.round), Meets::Warp(warp, at));
                meeting.round
            }
        };
        if meeting.round <= round && meeting.arrived >= live {
            meeting.next_round();
            self.news += 1;
        }
        if meeting.round <= round {
            return Ok((Flow::Blocked, std::rc::Rc::from([])));
        }
        let result = std::rc::Rc::clone(&meeting.result);
        self.acquirer.acquire(&mut agent.view, &meeting.released);
        agent.inside = None;
        Ok((Flow::Next, result))
    }

    /// The threads of a warp come to what they do together; at once, if that is known. Where some of
    /// them have ended, there is a reason for doubt.
    pub(super) fn come_together(&mut self, stmt: &Stmt, at: Together, doubt: Why) -> Step<Flow> {
        if self.input.code.slice.is_whole_warp(stmt.id) {
            return Ok(Flow::Next);
        }
        let brings = self.me().threads.iter().map(|&thread| (thread, None)).collect();
        let (flow, all) = self.warp(stmt.id, at, brings)?;
        if flow == Flow::Next && (all.len() as u32) < self.input.threads_of_warp(warp_of(self.me())) {
            self.doubt(doubt, stmt.origin.span);
        }
        Ok(flow)
    }

    fn arrive_in_cluster(&mut self, stmt: StmtId, aligned: bool) -> Step {
        if self.me().in_cluster.is_some() {
            let does = Act::ArriveTwice;
            return self.found(Rule::Parted, (stmt, does), vec![], Detail::Nothing);
        }
        let live: u32 =
            self.agents.iter().filter(|agent| !agent.is_done).map(|agent| agent.threads.len() as u32).sum();
        let site = self.site(stmt);
        let warps = numbered_warps(self.me());
        if let Some(other) = self.cluster.at_another_place(&warps, (site, aligned)) {
            let other = Party { site: other, does: Act::ComeOtherwise };
            return self.found(Rule::Parted, (stmt, Act::Come), vec![other], Detail::Nothing);
        }
        let agent = &mut self.agents[self.current];
        agent.in_cluster = Some(self.cluster.round);
        self.cluster.releases.release(&mut agent.view);
        self.cluster.first.get_or_insert(site);
        self.cluster.arrived += agent.threads.len() as u32;
        if self.cluster.arrived >= live {
            self.cluster.next_round();
            self.news += 1;
        }
        Ok(())
    }

    fn wait_in_cluster(&mut self, stmt: StmtId) -> Step<Flow> {
        let Some(round) = self.me().in_cluster else {
            let does = Act::WaitUnarrived;
            return self.found(Rule::Parted, (stmt, does), vec![], Detail::Nothing);
        };
        if self.cluster.round <= round {
            return Ok(Flow::Blocked);
        }
        let agent = &mut self.agents[self.current];
        self.acquirer.acquire(&mut agent.view, &self.cluster.released);
        agent.in_cluster = None;
        Ok(Flow::Next)
    }

    /// A group of threads has ended: the cluster does not wait for it.
    pub(super) fn leave_cluster(&mut self) {
        let threads = self.me().threads.len() as u32;
        if self.me().in_cluster == Some(self.cluster.round) {
            self.cluster.arrived = self.cluster.arrived.saturating_sub(threads);
        }
        let live: u32 =
            self.agents.iter().filter(|agent| !agent.is_done).map(|agent| agent.threads.len() as u32).sum();
        if self.cluster.arrived > 0 && self.cluster.arrived >= live {
            self.cluster.next_round();
            self.news += 1;
        }
    }

    /// All threads of the grid meet, of which those of the cluster stand for all.
    pub(super) fn meet_grid(&mut self, stmt: StmtId) -> Step<Flow> {
        let site = self.site(stmt);
        if let Some(span) = self.input.code.slice.by_block(stmt) {
            self.doubt(Why::Grid, span);
        }
        if self.me().inside.is_none() {
            let warps = numbered_warps(self.me());
            if let Some(other) = self.grid.at_another_place(&warps, (site, true)) {
                let other = Party { site: other, does: Act::ComeOtherwise };
                return self.found(Rule::Parted, (stmt, Act::Come), vec![other], Detail::Nothing);
            }
        }
        let all: u32 = self.agents.iter().map(|agent| agent.threads.len() as u32).sum();
        let agent = &mut self.agents[self.current];
        let round = match agent.inside {
            Some(round) => round,
            None => {
                self.grid.releases.release(&mut agent.view);
                self.grid.first.get_or_insert(site);
                self.grid.arrived += agent.threads.len() as u32;
                (agent.inside, agent.meets) = (Some(self.grid.round), Meets::Grid);
                let round = self.grid.round;
                if self.grid.arrived >= all {
                    self.grid.next_round();
                    self.news += 1;
                }
                round
            }
        };
        if self.grid.round <= round {
            return Ok(Flow::Blocked);
        }
        self.acquirer.acquire(&mut agent.view, &self.grid.released);
        agent.inside = None;
        Ok(Flow::Next)
    }

    /// A warpgroup asks for registers, or gives some back.
    pub(super) fn registers(&mut self, stmt: StmtId, increase: bool, registers: u32) -> Flow {
        let Some(begins) = self.input.registers else { return Flow::Next };
        let (index, warpgroup) = (self.me().block, self.warpgroup());
        let (step, past) = (self.epoch(), self.me().view.knows().past().clone());
        let site = self.site(stmt);
        let block = &mut self.blocks[index];
        let held = block.registers.get(&warpgroup).copied().unwrap_or(begins);
        let amount = held.abs_diff(registers) * WARPGROUP_THREADS;
        if increase && registers > held {
            let Some(left) = block.free_registers.checked_sub(amount) else { return Flow::Blocked };
            block.free_registers = left;
        } else if !increase && registers < held {
            block.free_registers += amount;
            self.news += 1;
        }
        if amount > 0 {
            block.changes.push(Change { increase, amount, step, past, site });
        }
        block.registers.insert(warpgroup, registers);
        Flow::Next
    }

    /// Whether registers suffice in whatever order warpgroups ask for them: what each increase finds
    /// in any order covers it and all increases that need not come after it.
    pub(super) fn registers_suffice(&mut self, block: usize) {
        let changes = &self.blocks[block].changes;
        let (increases, decreases): (Vec<&Change>, Vec<&Change>) =
            changes.iter().partition(|change| change.increase);
        let is_free = |decrease: &&&Change| !increases.iter().any(|increase| decrease.comes_after(increase));
        let lacks = |increase: &&&Change| {
            let given =
                decreases.iter().filter(|decrease| increase.comes_after(decrease) || is_free(decrease));
            let taken = increases.iter().filter(|other| !other.comes_after(increase));
            let sum = |changes: &mut dyn Iterator<Item = u64>| changes.sum::<u64>();
            sum(&mut taken.map(|change| u64::from(change.amount)))
                > sum(&mut given.map(|change| u64::from(change.amount)))
        };
        let site = increases.iter().find(lacks).map(|change| change.site);
        if let Some(site) = site {
            self.doubt(Why::Registers, self.span_of(site.stmt));
        }
    }

    /// What the lanes of a warp make of the value of each.
    pub(super) fn warp_operation(
        &mut self,
        stmt: &Stmt,
        (dest, value): (LocalId, &Expr),
        op: &WarpOp,
    ) -> Step<Flow> {
        let values = self.numbers(value);
        let threads = std::rc::Rc::clone(&self.me().threads);
        let of_lane = |lane: usize| values.as_ref().and_then(|values| values.get(lane));
        let brings = threads.iter().enumerate().map(|(lane, &thread)| (thread, of_lane(lane)));
        let scalar = value.ty.as_scalar().unwrap_or(Scalar::U32);
        let (flow, all) = self.warp(stmt.id, Together::of(op, scalar), brings.collect())?;
        if flow == Flow::Blocked {
            return Ok(flow);
        }
        let result = self.combine(stmt, op, &all)?;
        self.set(dest, result);
        Ok(Flow::Next)
    }

    fn combine(&mut self, stmt: &Stmt, op: &WarpOp, all: &[(u32, Option<Term>)]) -> Step<Value> {
        let known: Option<Vec<Term>> = all.iter().map(|(_, term)| *term).collect();
        let same = known.as_ref().and_then(|all| {
            let first = *all.first()?;
            all.iter().all(|term| *term == first).then_some(first)
        });
        let number = |term| Value::Number(super::lanes::Lanes::Same(term));
        // What a lane has that has ended, or never was, is undefined (PTX ISA, "shfl.sync").
        let is_whole = all.len() == WARP_THREADS as usize;
        Ok(match op {
            // One value of all lanes is what each reads, whichever it reads.
            WarpOp::Shuffle { op, by } => match (same.filter(|_| is_whole), op) {
                (Some(term), _) => number(term),
                (None, ShuffleOp::Idx) => {
                    let lane = self.numbers(by).and_then(|lanes| lanes.uniform());
                    let lane = lane.and_then(|lane| self.facts.number(self.terms, lane));
                    let is_lane = |thread: u32| lane == Some(i128::from(thread % WARP_THREADS));
                    let read = all.iter().find(|(thread, _)| is_lane(*thread));
                    if read.is_none() && !is_whole {
                        self.doubt(Why::Undefined, stmt.origin.span);
                    }
                    read.and_then(|(_, term)| *term).map_or(Value::Unknown, number)
                }
                (None, ShuffleOp::Xor | ShuffleOp::Up | ShuffleOp::Down) => {
                    if !is_whole {
                        self.doubt(Why::Undefined, stmt.origin.span);
                    }
                    Value::Unknown
                }
            },
            WarpOp::Vote(vote) => match (self.votes(known.as_deref()), vote) {
                (Some(votes), VoteOp::All) => number(self.terms.truth(votes.iter().all(|(_, yes)| *yes))),
                (Some(votes), VoteOp::Any) => number(self.terms.truth(votes.iter().any(|(_, yes)| *yes))),
                (Some(_), VoteOp::Ballot) | (None, VoteOp::All | VoteOp::Any | VoteOp::Ballot) => {
                    match same {
                        Some(term) if *vote != VoteOp::Ballot => number(term),
                        Some(_) | None => {
                            self.doubt(Why::Condition, stmt.origin.span);
                            number(self.terms.fresh(vote.result()))
                        }
                    }
                }
            },
            // What all lanes have is the least and the greatest of it.
            WarpOp::Reduce(op) => match (same, op) {
                (
                    Some(term),
                    WarpReduceOp::Min | WarpReduceOp::Max | WarpReduceOp::And | WarpReduceOp::Or,
                ) => number(term),
                (Some(_), WarpReduceOp::Add | WarpReduceOp::Xor) | (None, _) => Value::Unknown,
            },
            WarpOp::Match(_) => Value::Unknown,
        })
    }

    fn votes(&self, all: Option<&[Term]>) -> Option<Vec<(usize, bool)>> {
        let known = |(lane, term): (usize, &Term)| Some((lane, self.facts.known(self.terms, *term)?));
        all?.iter().enumerate().map(known).collect()
    }
}

fn warps_of(agent: &Agent) -> Vec<u32> {
    let mut warps: Vec<u32> = agent.threads.iter().map(|thread| thread / WARP_THREADS).collect();
    warps.dedup();
    warps
}

/// The warps of a group, with numbers that those of other blocks do not have.
fn numbered_warps(agent: &Agent) -> Vec<u32> {
    let of_block = agent.block as u32 * NAMED_APART;
    warps_of(agent).into_iter().map(|warp| of_block + warp).collect()
}

/// More than the warps of a block.
const NAMED_APART: u32 = 1 << 8;

impl Change {
    /// Whether the other one has happened before this, in any order of threads.
    fn comes_after(&self, other: &Self) -> bool {
        let own = other.step.component() == self.step.component() && other.step.count() < self.step.count();
        own || self.past.knows(other.step)
    }
}

impl Meeting {
    /// Notes where warps come, and whether the instruction is one that all their threads must come
    /// to; the other place to which some of them have come.
    fn at_another_place(&mut self, warps: &[u32], (site, aligned): (Site, bool)) -> Option<Site> {
        let mut elsewhere = None;
        for warp in warps {
            match self.places.iter().find(|place| place.warp == *warp) {
                Some(place)
                    if (aligned || place.aligned)
                        && (place.site.stmt, place.site.turn) != (site.stmt, site.turn) =>
                {
                    elsewhere = Some(place.site);
                }
                Some(_) => {}
                None => self.places.push(Came { warp: *warp, site, aligned }),
            }
        }
        elsewhere
    }

    /// How many threads the warps have that have come to a barrier of the block.
    fn of_warps(&self) -> u32 {
        WARP_THREADS * self.warps.len() as u32
    }

    /// All have come.
    fn next_round(&mut self) {
        self.round += 1;
        (self.arrived, self.expected, self.first) = (0, None, None);
        self.places.clear();
        self.warps.clear();
        self.released = std::mem::take(&mut self.releases).join();
        if let Some(component) = self.component {
            self.released.learn(Epoch::new(component, self.round));
        }
        self.result = std::mem::take(&mut self.brought).into();
    }
}
