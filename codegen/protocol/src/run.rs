//! One execution: the steps of a kernel in one schedule, with the numbers of a launch as symbols.
//!
//! Groups of threads take turns, and each continues until it has to wait. Copies count at their
//! barriers at once. Clocks alone decide which threads may use the copied data, as in the
//! simulator.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use tma_front::ir::{BinaryOp, Expr, For, LocalId, Scalar, Span, Stmt, StmtId};
use tma_front::quick::QuickSet;
use tma_model::sync::{Acquirer, Component, Epoch, Issue};

use super::banks::BankConflictLog;
use super::choices::Policy;
use super::code::{LoopEnding, Op};
use super::explore::allowance::WORK_BETWEEN_COUNTS;
use super::explore::input::Input;
use super::finding::{Detail, Party, Rule, ThreadAct, Undecided, UndecidedReason, Violation};
use super::lanes::Lanes;
use super::memory::Site;
use super::state::{Agent, Counter, Execution};
use super::term::{NumberedKind, Term, Terms};
use super::value::{Scope, Value};

/// The most iterations of a loop that is followed iteration by iteration although its end is free.
const MAX_SHORT_ITERATIONS: i128 = 64;

/// The reason why an execution stops early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The threads of a group diverge, and have to be split into these classes. Unless `alone`,
    /// similar groups are split alike.
    Split { classes: Vec<Vec<u32>>, alone: bool },
    /// A rule is broken.
    Violation(Box<Violation>),
    /// The kernel stops with an error of its own, or no launch takes these decisions.
    Discarded,
    /// A loop has taken as many iterations as are followed.
    IterationLimit,
    /// A condition is free. The caller follows both branches from here.
    Fork(Term),
    /// Nothing more can be said, for this reason.
    Undecided(Undecided),
    /// The budget of steps is used up.
    Budget,
    /// The budget of work or memory is used up: too many groups and barriers are followed at once.
    Size,
}

impl From<Violation> for Stop {
    fn from(found: Violation) -> Self {
        Self::Violation(Box::new(found))
    }
}

pub(super) type StepResult<T = ()> = Result<T, Stop>;

/// The control flow after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepFlow {
    Next,
    Goto(usize),
    /// The group waits. The step is retried when other groups have progressed.
    Blocked,
}

/// The transition that the current group has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    /// The group is at its next step. `iteration` says whether an iteration has begun.
    Advanced { began_iteration: bool },
    /// The group waits, and retries the step when others have progressed. `arrived` says whether it
    /// has arrived at a rendezvous.
    Blocked { arrived: bool },
}

/// An execution that is being followed.
pub(super) struct Run<'r, 'k> {
    pub(super) input: &'r Input<'k>,
    pub(super) terms: &'r mut Terms,
    pub(super) state: Execution,
    pub(super) policy: Policy,
    pub(super) findings: Findings,
    /// A cache of joined clocks, which holds for any state.
    pub(super) acquirer: Acquirer,
}

/// The results of following executions. A proof collects them from all states.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) undecided: Vec<Undecided>,
    /// The bank-conflict log, if accesses are recorded.
    pub(super) banks: Option<BankConflictLog>,
    /// The warps that elect a thread.
    pub(super) electing_warps: BTreeSet<u32>,
    /// Classes of threads that the kernel distinguishes by thread index.
    pub(super) thread_classes: RefCell<Vec<Vec<Vec<u32>>>>,
    /// In a proof, the loops whose ends depend on the launch or on data.
    pub(super) free_loops: QuickSet<StmtId>,
}

impl Findings {
    /// Records a reason why the kernel is undecided.
    pub(super) fn note(&mut self, reason: UndecidedReason, span: Span) {
        self.undecided.push(Undecided { reason, span });
    }
}

impl<'r, 'k> Run<'r, 'k> {
    /// Creates an execution at its start.
    pub(super) fn new(input: &'r Input<'k>, terms: &'r mut Terms, mut policy: Policy) -> Self {
        // If this exceeds the budget, the first step reports that.
        _ = policy.budget.take_work(Self::bytes_at_start(input) / 64);
        policy.next_count = policy.budget.work().saturating_sub(WORK_BETWEEN_COUNTS);
        let (state, findings) = (Execution::new(input), Findings::default());
        Self { input, terms, state, policy, findings, acquirer: Acquirer::default() }
    }

    /// Runs to the end.
    pub(super) fn run_to_end(&mut self) -> StepResult {
        // For each waiting group, the value of `event_count` at its last attempt.
        let mut waits = vec![None; self.state.agents.len()];
        loop {
            let mut any = false;
            for (agent, last_seen) in waits.iter_mut().enumerate() {
                if !self.state.agents[agent].is_done && *last_seen != Some(self.state.event_count) {
                    self.state.current = agent;
                    let progressed = self.advance()?;
                    *last_seen = (!progressed).then_some(self.state.event_count);
                    any |= progressed;
                }
            }
            if self.state.agents.iter().all(|agent| agent.is_done) {
                return Ok(());
            }
            if !any {
                return Err(self.deadlock());
            }
        }
    }

    /// Runs the current group until it has to wait. Returns whether it has progressed.
    fn advance(&mut self) -> StepResult<bool> {
        let mut any = false;
        loop {
            match self.single_step()? {
                Transition::Advanced { .. } => any = true,
                Transition::Blocked { arrived } => return Ok(any || arrived),
            }
        }
    }

    /// Executes one step of the current group.
    pub(super) fn single_step(&mut self) -> StepResult<Transition> {
        let me = self.agent();
        if me.is_done {
            return Ok(Transition::Blocked { arrived: false });
        }
        let (at, before) = (me.at, me.arrived_round);
        let input = self.input;
        let step = input.code.step(at);
        // A jump back is free, since the iteration that it leads to is charged.
        let cost = u64::from(!matches!(step.op, Op::Jump(_) | Op::Enter(_)));
        self.policy.budget.take_steps(cost)?;
        self.charge_work()?;
        let depth = step.loops.len();
        let entered = usize::from(matches!(step.op, Op::Enter(_)));
        self.agent_mut().iterations.truncate(depth - entered);
        match self.step(&step.op)? {
            StepFlow::Next => self.agent_mut().at = at + 1,
            StepFlow::Goto(to) => self.agent_mut().at = to,
            StepFlow::Blocked => {
                return Ok(Transition::Blocked { arrived: self.agent().arrived_round != before });
            }
        }
        Ok(Transition::Advanced { began_iteration: matches!(step.op, Op::BeginIteration(_)) })
    }

    pub(super) fn agent(&self) -> &Agent {
        &self.state.agents[self.state.current]
    }

    pub(super) fn agent_mut(&mut self) -> &mut Agent {
        &mut self.state.agents[self.state.current]
    }

    /// Allocates a clock component.
    pub(super) fn component(&mut self) -> Component {
        self.state.components += 1;
        Component::new(self.state.components - 1)
    }

    /// Creates a symbol of which nothing is known.
    pub(super) fn fresh(&mut self, scalar: Scalar) -> Term {
        self.terms.numbered(NumberedKind::Fresh, &mut self.state.symbols, scalar)
    }

    /// Returns the site of the current group at a statement.
    pub(super) fn site(&self, stmt: StmtId) -> Site {
        Site { agent: self.state.current, stmt, iteration: self.agent().iterations.last().copied() }
    }

    /// Returns the clock of an operation that the current group issues now.
    pub(super) fn issue(&self) -> Issue {
        Issue::of(&self.agent().view, self.agent().waited)
    }

    /// Returns the clock step that the current group is at.
    pub(super) fn epoch(&self) -> Epoch {
        self.agent().view.epoch()
    }

    fn scope(&mut self) -> Scope<'_> {
        let agent = &self.state.agents[self.state.current];
        Scope {
            kernel: self.input.kernel,
            code: &self.input.code,
            terms: self.terms,
            facts: &self.state.facts,
            threads: &agent.threads,
            locals: &agent.locals,
            block: agent.block,
            cluster: self.input.cluster,
        }
    }

    pub(super) fn value(&mut self, expr: &Expr) -> Value {
        self.scope().value(expr)
    }

    pub(super) fn numbers(&mut self, expr: &Expr) -> Option<Lanes<Term>> {
        self.scope().number(expr)
    }

    /// Evaluates an operand to a number that is the same for all threads of the group.
    pub(super) fn number(&mut self, expr: &Expr) -> StepResult<i128> {
        let Some(lanes) = self.numbers(expr) else {
            return Err(self.stop_undecided(UndecidedReason::Operand, expr.span));
        };
        let term = self.uniform(&lanes)?;
        self.state
            .facts
            .number(self.terms, term)
            .ok_or_else(|| self.stop_undecided(UndecidedReason::Operand, expr.span))
    }

    /// Like [`number`](Self::number), for a number that is a `u32`.
    pub(super) fn number_u32(&mut self, expr: &Expr) -> StepResult<u32> {
        let number = self.number(expr)?;
        u32::try_from(number).map_err(|_| self.stop_undecided(UndecidedReason::Operand, expr.span))
    }

    pub(super) fn stop_undecided(&self, reason: UndecidedReason, span: Span) -> Stop {
        Stop::Undecided(Undecided { reason, span })
    }

    /// Records a reason why the kernel is undecided, and continues.
    pub(super) fn note_undecided(&mut self, reason: UndecidedReason, span: Span) {
        self.findings.note(reason, span);
    }

    /// Reports a violation by the current group.
    pub(super) fn violation<T>(
        &self,
        rule: Rule,
        stmt: StmtId,
        does: ThreadAct,
        others: Vec<Party>,
        detail: Detail,
    ) -> StepResult<T> {
        let at = Party { site: self.site(stmt), does };
        Err(Violation { rule, at, others, detail }.into())
    }

    fn step(&mut self, op: &Op<'k>) -> StepResult<StepFlow> {
        match op {
            Op::Do(stmt) => self.effect(stmt),
            Op::Branch { stmt, condition, otherwise, ends } => {
                let Some(lanes) = self.numbers(condition) else {
                    return Err(self.stop_undecided(UndecidedReason::Condition, condition.span));
                };
                let holds = self.decide(&lanes, stmt, *ends)?;
                Ok(if holds { StepFlow::Next } else { StepFlow::Goto(*otherwise) })
            }
            Op::Choose { stmt, value, arms, otherwise } => {
                let Some(lanes) = self.numbers(value) else {
                    return Err(self.stop_undecided(UndecidedReason::Condition, value.span));
                };
                for (ranges, to) in arms {
                    let holds = lanes.map(|term| Some(self.within(term, ranges)));
                    if let Some(holds) = holds
                        && self.decide(&holds, stmt, LoopEnding::Neither)?
                    {
                        return Ok(StepFlow::Goto(*to));
                    }
                }
                Ok(StepFlow::Goto(*otherwise))
            }
            Op::Begin { inner, counter } => self.begin(inner, *counter),
            Op::Count { stmt, inner, counter, end } => self.count(stmt, inner, *counter, *end),
            Op::Next { counter } => self.next(*counter),
            Op::Enter(stmt) => {
                self.agent_mut().iterations.push((*stmt, 0));
                Ok(StepFlow::Next)
            }
            Op::BeginIteration(stmt) => {
                match self.agent_mut().iterations.last_mut() {
                    Some((id, iteration)) if id == stmt => *iteration += 1,
                    Some(_) | None => self.agent_mut().iterations.push((*stmt, 1)),
                }
                if self.policy.forks {
                    self.note_loop_changes(*stmt);
                }
                Ok(StepFlow::Next)
            }
            Op::Jump(to) => {
                if let Some(stmt) = self.input.code.returns(self.agent().at) {
                    self.state.history.note_return(self.site(stmt));
                }
                Ok(StepFlow::Goto(*to))
            }
            Op::End => {
                self.end()?;
                Ok(StepFlow::Blocked)
            }
        }
    }

    fn begin(&mut self, inner: &For, counter: usize) -> StepResult<StepFlow> {
        let scalar = inner.start.ty.as_scalar().unwrap_or(Scalar::U32);
        let mut of = |expr: &Expr| {
            let lanes = self.numbers(expr);
            lanes.ok_or_else(|| self.stop_undecided(UndecidedReason::Condition, expr.span))
        };
        let (value, end, step) = (of(&inner.start)?, of(&inner.end)?, of(&inner.step)?);
        self.agent_mut().counters[counter] = Some(Counter { value, end, step, scalar });
        Ok(StepFlow::Next)
    }

    fn count(&mut self, stmt: &Stmt, inner: &For, counter: usize, end: usize) -> StepResult<StepFlow> {
        let Some(now) = self.agent().counters.get(counter).cloned().flatten() else {
            return Ok(StepFlow::Goto(end));
        };
        let op = if inner.inclusive { BinaryOp::Le } else { BinaryOp::Lt };
        let more = now.value.zip(&now.end, |value, end| Some(self.terms.binary(op, value, end)));
        let Some(more) = more else {
            return Err(self.stop_undecided(UndecidedReason::Condition, inner.end.span));
        };
        let ends = if self.policy.forks && self.is_short(&now) {
            LoopEnding::Neither
        } else {
            LoopEnding::Otherwise
        };
        if !self.decide(&more, stmt, ends)? {
            return Ok(StepFlow::Goto(end));
        }
        self.set(inner.variable, Value::Number(now.value));
        Ok(StepFlow::Next)
    }

    /// Whether a loop has few iterations in any launch. Such a loop is followed iteration by
    /// iteration.
    fn is_short(&self, counter: &Counter) -> bool {
        let most = counter.end.uniform().map(|end| self.state.facts.range(self.terms, end).1);
        most.is_some_and(|most| most <= MAX_SHORT_ITERATIONS)
    }

    fn next(&mut self, counter: usize) -> StepResult<StepFlow> {
        let Some(now) = self.agent().counters.get(counter).cloned().flatten() else {
            return Ok(StepFlow::Next);
        };
        let next = now.value.zip(&now.step, |value, step| {
            let step = self.terms.cast(step, now.scalar)?;
            self.terms.binary(BinaryOp::Add, value, step).if_followable(self.terms)
        });
        let overflow = |run: &Self, value: Term| {
            run.terms
                .int(value)
                .is_some_and(|value| now.scalar.integer_range().is_some_and(|(_, most)| value == most))
        };
        if now.value.uniform().is_some_and(|value| overflow(self, value)) {
            // The next number would wrap, so the range has ended.
            self.agent_mut().counters[counter] = None;
            return Ok(StepFlow::Next);
        }
        let value = next.ok_or(Stop::Budget)?;
        self.agent_mut().counters[counter] = Some(Counter { value, ..now });
        Ok(StepFlow::Next)
    }

    /// Records which locals have changed since the last iteration of this loop.
    fn note_loop_changes(&mut self, stmt: StmtId) {
        let agent = self.agent_mut();
        agent.loop_changes.has_changed.resize(agent.locals.len(), false);
        if let Some(before) = agent.loop_changes.heads.get(&stmt) {
            let both = agent.locals.iter().zip(before.iter());
            for (moving, (now, before)) in agent.loop_changes.has_changed.iter_mut().zip(both) {
                *moving |= now != before;
            }
        }
        agent.loop_changes.heads.insert(stmt, Rc::from(agent.locals.as_slice()));
    }

    /// Returns the value of a variable, if the variable matters.
    pub(super) fn local(&self, local: LocalId) -> Option<&Value> {
        self.agent().locals.get(self.input.code.variable_index(local)?)
    }

    /// Sets the value of a local, if the local matters.
    pub(super) fn set(&mut self, local: LocalId, value: Value) {
        if let Some(index) = self.input.code.variable_index(local) {
            self.agent_mut().locals[index] = value;
        }
    }

    /// Sets a local to a truth value that is the same for all threads of the group.
    pub(super) fn set_truth(&mut self, local: LocalId, value: bool) {
        let term = self.terms.truth(value);
        self.set(local, Value::Number(Lanes::Same(term)));
    }
}
