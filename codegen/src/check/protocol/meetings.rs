//! Where threads meet: the block's barriers, warps, the cluster, and registers that are shared.

use tma_model::limits::{NAMED_BARRIERS, WARP_THREADS, WARPGROUP_THREADS};

use super::finding::{Act, Detail, Party, Rule, Why};
use super::run::{Flow, Run, Step};
use super::state::{Agent, Meeting, Meets};
use super::term::{Known, Term};
use super::value::Value;
use crate::ir::{Expr, LocalId, ShuffleOp, Stmt, StmtId, Sync, VoteOp, WarpOp, WarpReduceOp};

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
            Sync::Warp => self.warp(stmt.id, vec![]).map(|(flow, _)| flow),
            Sync::Warpgroup => {
                let all = self.input.kernel.barriers().of_warpgroups();
                let id = all.get(self.warpgroup() as usize).copied().unwrap_or(0);
                let named = Named { id, threads: Some(WARPGROUP_THREADS), aligned: false };
                self.named(stmt.id, named, false)
            }
            Sync::Cluster => {
                if self.me().in_cluster.is_none() {
                    self.arrive_in_cluster(stmt.id)?;
                }
                self.wait_in_cluster(stmt.id)
            }
            Sync::ClusterArrive => self.arrive_in_cluster(stmt.id).map(|()| Flow::Next),
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
        if id >= NAMED_BARRIERS || threads == 0 || !threads.is_multiple_of(WARP_THREADS) {
            return Err(super::run::Stop::Over);
        }
        self.named(stmt.id, Named { id, threads: Some(threads), aligned: false }, arrives_only)
    }

    fn live(&self, block: usize) -> u32 {
        let live = self.agents.iter().filter(|agent| agent.block == block && !agent.is_done);
        live.map(|agent| agent.threads.len() as u32).sum()
    }

    fn named(&mut self, stmt: StmtId, with: Named, arrives_only: bool) -> Step<Flow> {
        let block = self.me().block;
        if let Some(round) = self.me().inside {
            return Ok(self.leave_named(block, with.id, round));
        }
        let (site, live) = (self.site(stmt), self.live(block));
        let agent = &mut self.agents[self.current];
        let (warps, threads) = (warps_of(agent), agent.threads.len() as u32);
        let meeting = self.blocks[block].named.entry(with.id).or_default();
        meeting.releases.release(&mut agent.view);
        let round = meeting.round;
        let otherwise = meeting.first.filter(|_| meeting.expected != with.threads);
        if meeting.first.is_none() {
            (meeting.first, meeting.expected) = (Some(site), with.threads);
        }
        meeting.arrived += threads;
        let mut elsewhere = None;
        for warp in warps {
            match meeting.places.iter().find(|(known, _)| *known == warp) {
                Some((_, other)) if with.aligned && other.stmt != stmt => elsewhere = Some(*other),
                Some(_) => {}
                None => meeting.places.push((warp, site)),
            }
        }
        if let Some(other) = otherwise.or(elsewhere) {
            let other = Party { site: other, does: Act::ComeOtherwise };
            return self.found(Rule::Parted, (stmt, Act::Come), vec![other], Detail::Nothing);
        }
        self.end_round(block, with.id, live)?;
        if arrives_only {
            return Ok(Flow::Next);
        }
        (self.me_mut().inside, self.me_mut().meets) = (Some(round), Meets::Named(with.id));
        // Whoever comes last does not go on first.
        Ok(Flow::Blocked)
    }

    fn leave_named(&mut self, block: usize, id: u32, round: u32) -> Flow {
        let Some(meeting) = self.blocks[block].named.get(&id) else { return Flow::Blocked };
        if meeting.round <= round {
            return Flow::Blocked;
        }
        let agent = &mut self.agents[self.current];
        self.acquirer.acquire(&mut agent.view, &meeting.released);
        agent.inside = None;
        agent.failed_polls = 0;
        Flow::Next
    }

    /// Ends the round of a barrier if all have come; `live` threads of the block have not ended.
    fn end_round(&mut self, block: usize, id: u32, live: u32) -> Step {
        let all = self.input.kernel.kernel().launch.thread_count();
        let Some(meeting) = self.blocks[block].named.get_mut(&id) else { return Ok(()) };
        let Some(first) = meeting.first else { return Ok(()) };
        if meeting.arrived < meeting.expected.unwrap_or(live) {
            return Ok(());
        }
        let missing = meeting.expected.is_none() && u64::from(meeting.arrived) < all;
        meeting.next_round();
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
        let live = self.live(block);
        if live == 0 {
            return Ok(());
        }
        let ids: Vec<u32> = self.blocks[block].named.keys().copied().collect();
        ids.into_iter().try_for_each(|id| self.end_round(block, id, live))
    }

    /// The threads of a warp meet, each with a value.
    fn warp(&mut self, stmt: StmtId, brings: Vec<(u32, Option<Term>)>) -> Step<(Flow, Brought)> {
        let (block, warp) = (self.me().block, warp_of(self.me()));
        let of_warp = |agent: &&Agent| agent.block == block && warp_of(agent) == warp && !agent.is_done;
        let live: u32 = self.agents.iter().filter(of_warp).map(|agent| agent.threads.len() as u32).sum();
        let site = self.site(stmt);
        let inside = self.me().inside;
        let agent = &mut self.agents[self.current];
        let meeting = self.blocks[block].warps.entry(warp).or_default();
        let round = match inside {
            Some(round) => round,
            None => {
                if brings.is_empty() {
                    meeting.releases.release(&mut agent.view);
                }
                meeting.first.get_or_insert(site);
                meeting.arrived += agent.threads.len() as u32;
                meeting.brought.extend(brings);
                (agent.inside, agent.meets) = (Some(meeting.round), Meets::Warp(warp));
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

    fn arrive_in_cluster(&mut self, stmt: StmtId) -> Step {
        if self.me().in_cluster.is_some() {
            let does = Act::ArriveTwice;
            return self.found(Rule::Parted, (stmt, does), vec![], Detail::Nothing);
        }
        let live: u32 =
            self.agents.iter().filter(|agent| !agent.is_done).map(|agent| agent.threads.len() as u32).sum();
        let site = self.site(stmt);
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
    pub(super) fn meet_grid(&mut self, stmt: StmtId) -> Flow {
        let site = self.site(stmt);
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
            return Flow::Blocked;
        }
        self.acquirer.acquire(&mut agent.view, &self.grid.released);
        agent.inside = None;
        Flow::Next
    }

    /// A warpgroup asks for registers, or gives some back.
    pub(super) fn registers(&mut self, increase: bool, registers: u32) -> Flow {
        let Some(begins) = self.input.registers else { return Flow::Next };
        let (block, warpgroup) = (self.me().block, self.warpgroup());
        let block = &mut self.blocks[block];
        let held = block.registers.get(&warpgroup).copied().unwrap_or(begins);
        let change = held.abs_diff(registers) * WARPGROUP_THREADS;
        if increase && registers > held {
            let Some(left) = block.free_registers.checked_sub(change) else { return Flow::Blocked };
            block.free_registers = left;
        } else if !increase && registers < held {
            block.free_registers += change;
            self.news += 1;
        }
        block.registers.insert(warpgroup, registers);
        Flow::Next
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
        let (flow, all) = self.warp(stmt.id, brings.collect())?;
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
        Ok(match op {
            // One value of all lanes is what each reads, whichever it reads.
            WarpOp::Shuffle { op, by } => match (same, op) {
                (Some(term), _) => number(term),
                (None, ShuffleOp::Idx) => {
                    let lane = self.small(by)? % WARP_THREADS;
                    let read = all.iter().find(|(thread, _)| thread % WARP_THREADS == lane);
                    read.and_then(|(_, term)| *term).map_or(Value::Unknown, number)
                }
                (None, ShuffleOp::Xor | ShuffleOp::Up | ShuffleOp::Down) => Value::Unknown,
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
        let known = |(lane, term): (usize, &Term)| match self.terms.known(*term)? {
            Known::Bool(value) => Some((lane, value)),
            Known::Int(_) => None,
        };
        all?.iter().enumerate().map(known).collect()
    }
}

fn warps_of(agent: &Agent) -> Vec<u32> {
    let mut warps: Vec<u32> = agent.threads.iter().map(|thread| thread / WARP_THREADS).collect();
    warps.dedup();
    warps
}

impl Meeting {
    /// All have come.
    fn next_round(&mut self) {
        self.round += 1;
        (self.arrived, self.expected, self.first) = (0, None, None);
        self.places.clear();
        self.released = self.releases.join();
        self.result = std::mem::take(&mut self.brought).into();
    }
}
