//! Rendezvous of the threads of a warp, and operations that they execute together.

use std::rc::Rc;

use tma_front::ir::{BinaryOp, Expr, LocalId, Scalar, ShuffleOp, Stmt, StmtId, VoteOp, WarpOp, WarpReduceOp};
use tma_model::limits::WARP_THREADS;

use super::warp_of;
use crate::explain::span_of;
use crate::finding::UndecidedReason;
use crate::lanes::Lanes;
use crate::run::{Run, StepFlow, StepResult, Stop};
use crate::state::{Agent, RendezvousKind, WarpRendezvous};
use crate::term::{Symbol, Term};
use crate::value::Value;

/// The operands that the lanes of a warp have brought to a rendezvous, by thread.
type LaneOperands = Rc<[(u32, Option<Term>)]>;

impl Run<'_, '_> {
    /// Lets threads of a warp arrive at an operation, each with an operand. Returns the operands of
    /// all lanes once all live threads of the warp have arrived.
    pub(super) fn warp(
        &mut self,
        stmt: StmtId,
        at: WarpRendezvous,
        brings: Vec<(u32, Option<Term>)>,
    ) -> StepResult<(StepFlow, LaneOperands)> {
        let (block, warp) = (self.agent().block, warp_of(self.agent()));
        let of_warp = |agent: &&Agent| agent.block == block && warp_of(agent) == warp && !agent.is_done;
        let live: u32 =
            self.state.agents.iter().filter(of_warp).map(|agent| agent.threads.len() as u32).sum();
        let site = self.site(stmt);
        let inside = self.agent().arrived_round;
        let agent = &mut self.state.agents[self.state.current];
        let rendezvous = self.state.blocks[block].warps.entry((warp, at)).or_default();
        let round = match inside {
            Some(round) => round,
            None => {
                if at == WarpRendezvous::Sync {
                    rendezvous.releases.release(&mut agent.view);
                }
                let first = *rendezvous.first.get_or_insert(site);
                rendezvous.arrived += agent.threads.len() as u32;
                rendezvous.operands.extend(brings);
                // PTX allows lanes at two statements to rendezvous, but compilers may merge the
                // statements.
                if first.stmt != stmt && at != WarpRendezvous::Sync {
                    self.findings.note(UndecidedReason::Undefined, span_of(self.input, stmt));
                }
                (agent.arrived_round, agent.rendezvous) =
                    (Some(rendezvous.round), RendezvousKind::Warp(warp, at));
                rendezvous.round
            }
        };
        if rendezvous.round <= round && rendezvous.arrived >= live {
            rendezvous.next_round();
            self.state.event_count += 1;
        }
        if rendezvous.round <= round {
            return Ok((StepFlow::Blocked, Rc::from([])));
        }
        let result = Rc::clone(&rendezvous.result);
        self.acquirer.acquire(&mut agent.view, &rendezvous.released);
        agent.arrived_round = None;
        Ok((StepFlow::Next, result))
    }

    /// Lets threads of a warp arrive at a statement that they execute together. They continue at
    /// once if they are known to arrive together. If some threads of the warp have ended, `case`
    /// is recorded as a reason undecided.
    pub(crate) fn arrive_together(
        &mut self,
        stmt: &Stmt,
        at: WarpRendezvous,
        reason: UndecidedReason,
    ) -> StepResult<StepFlow> {
        if self.input.code.slice.is_whole_warp(stmt.id) {
            return Ok(StepFlow::Next);
        }
        let brings = self.agent().threads.iter().map(|&thread| (thread, None)).collect();
        let (flow, all) = self.warp(stmt.id, at, brings)?;
        if flow == StepFlow::Next && (all.len() as u32) < self.input.threads_of_warp(warp_of(self.agent())) {
            self.note_undecided(reason, stmt.origin.span);
        }
        Ok(flow)
    }

    /// Executes `elect_one`. The elected lane is a symbol, because no kernel may rely on a certain
    /// lane. The kernel is followed once for each kind of lane.
    pub(crate) fn elect(&mut self, stmt: &Stmt, dest: LocalId) -> StepResult<StepFlow> {
        let threads = Rc::clone(&self.agent().threads);
        self.findings.electing_warps.extend(threads.iter().map(|thread| thread / WARP_THREADS));
        // PTX ISA, "elect.sync", does not exclude lanes that have ended.
        if self.arrive_together(stmt, WarpRendezvous::Elect, UndecidedReason::Elected)? == StepFlow::Blocked {
            return Ok(StepFlow::Blocked);
        }
        let mut all = vec![];
        for thread in threads.iter() {
            let (warp, lane) = (thread / WARP_THREADS, thread % WARP_THREADS);
            let symbol = self.terms.symbol(Symbol::Elected(warp), Scalar::U32);
            let [picked, lane] =
                [self.input.elected(warp), lane].map(|lane| self.terms.number(i128::from(lane), Scalar::U32));
            let is_picked = self.terms.binary(BinaryOp::Eq, symbol, picked);
            if !self.state.facts.assume(self.terms, is_picked, true) {
                return Err(Stop::Discarded);
            }
            all.push(self.terms.binary(BinaryOp::Eq, symbol, lane));
        }
        self.set(dest, Lanes::of(all).map_or(Value::Unknown, Value::Number));
        Ok(StepFlow::Next)
    }

    /// Executes an operation that combines the operands of the lanes of a warp.
    pub(crate) fn warp_operation(
        &mut self,
        stmt: &Stmt,
        dest: LocalId,
        value: &Expr,
        op: &WarpOp,
    ) -> StepResult<StepFlow> {
        let values = self.numbers(value);
        let threads = Rc::clone(&self.agent().threads);
        let of_lane = |lane: usize| values.as_ref().and_then(|values| values.get(lane));
        let brings = threads.iter().enumerate().map(|(lane, &thread)| (thread, of_lane(lane)));
        let scalar = value.ty.as_scalar().unwrap_or(Scalar::U32);
        let (flow, all) = self.warp(stmt.id, WarpRendezvous::of(op, scalar), brings.collect())?;
        if flow == StepFlow::Blocked {
            return Ok(flow);
        }
        let result = self.combine(stmt, op, &all)?;
        self.set(dest, result);
        Ok(StepFlow::Next)
    }

    fn combine(&mut self, stmt: &Stmt, op: &WarpOp, all: &[(u32, Option<Term>)]) -> StepResult<Value> {
        let known: Option<Vec<Term>> = all.iter().map(|(_, term)| *term).collect();
        let same = known.as_ref().and_then(|all| {
            let first = *all.first()?;
            all.iter().all(|term| *term == first).then_some(first)
        });
        let number = |term| Value::Number(Lanes::Same(term));
        // The operand of a lane that has ended, or does not exist, is undefined (PTX ISA,
        // "shfl.sync").
        let is_whole = all.len() == WARP_THREADS as usize;
        Ok(match op {
            // If all lanes have the same operand, each lane reads it, whichever lane it reads from.
            WarpOp::Shuffle { op, by } => match (same.filter(|_| is_whole), op) {
                (Some(term), _) => number(term),
                (None, ShuffleOp::Idx) => {
                    let lane = self.numbers(by).and_then(|lanes| lanes.uniform());
                    let lane = lane.and_then(|lane| self.state.facts.number(self.terms, lane));
                    let is_lane = |thread: u32| lane == Some(i128::from(thread % WARP_THREADS));
                    let read = all.iter().find(|(thread, _)| is_lane(*thread));
                    if read.is_none() && !is_whole {
                        self.note_undecided(UndecidedReason::Undefined, stmt.origin.span);
                    }
                    read.and_then(|(_, term)| *term).map_or(Value::Unknown, number)
                }
                (None, ShuffleOp::Xor | ShuffleOp::Up | ShuffleOp::Down) => {
                    if !is_whole {
                        self.note_undecided(UndecidedReason::Undefined, stmt.origin.span);
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
                            self.note_undecided(UndecidedReason::Condition, stmt.origin.span);
                            number(self.fresh(vote.result()))
                        }
                    }
                }
            },
            // An operand that is the same in all lanes is also the minimum and the maximum of them.
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
        let known = |(lane, term): (usize, &Term)| Some((lane, self.state.facts.known(self.terms, *term)?));
        all?.iter().enumerate().map(known).collect()
    }
}
