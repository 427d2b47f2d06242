//! Exploration of all executions of a kernel: each free decision is taken both ways.

pub(super) mod allowance;
pub(super) mod elections;
mod grid;
pub(super) mod input;
mod results;

use std::collections::VecDeque;

use tma_front::check::{CheckedKernel, plain_polls, registers};
use tma_front::diag::{Diagnostic, Suspect};
use tma_front::ir::{Cluster, Kernel, StmtKind};

use self::allowance::{Allowance, MAX_BYTES};
use self::elections::{Elected, Elections};
use self::input::Input;
use self::results::{Conclusion, Ended, Path, Results, max_stages};
use super::banks::{BankConflictLog, SharedAccess};
use super::choices::{Iterations, Policy};
use super::code::{Op, Steps};
use super::effects;
use super::explain;
use super::finding::{Party, ThreadAct, Undecided, UndecidedReason, Violation};
use super::groups;
use super::launch::{self, Numbers};
use super::proof::{self, Precision, Statics};
use super::run::{Run, Stop};
use super::term::Terms;
use crate::global;

/// How much is explored, in steps of groups of threads. It is a count and not a time, so that a
/// kernel gets the same verdict wherever it is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Budget(pub u64);

impl Budget {
    /// The budget of a macro.
    pub const MACRO: Self = Self(10_000);
    /// The budget of a report.
    pub const REPORT: Self = Self(1_000_000);

    /// Returns the budget of a proof, in addition to that of the search for mistakes. A macro
    /// reports only mistakes. There a proof is useful if it is short, since nothing else is
    /// explored then.
    fn to_prove(self) -> u64 {
        if self.0 > Self::MACRO.0 { self.0 } else { self.0 / 4 }
    }
}

/// The verdict on a kernel's protocol.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Right in every launch, with any data.
    Proved,
    /// Right in everything that was explored: loops of up to this many iterations.
    CheckedUpTo(u32),
    /// No violation was found, and some things were not followed, for these reasons.
    NotDecided(Vec<Undecided>),
    /// Wrong.
    Broken(Box<Diagnostic>),
}

/// A verdict, and its cost.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Steps of groups of threads.
    pub steps: u64,
    /// Executions that were explored, and states that proofs have compared.
    pub executions: u32,
    /// The violations behind reasons undecided, which occur in some launches or with some data.
    pub suspects: Vec<Suspect>,
}

/// A report on a kernel.
#[derive(Clone, Debug)]
pub struct Report {
    /// The judgement of its protocol.
    pub judgement: Judgement,
    /// Its accesses to shared memory, in the order of the source.
    pub accesses: Vec<SharedAccess>,
    /// The parameters in whose global memory threads and blocks are assumed to write elements of
    /// their own. Whether two of them write the same element is not judged.
    pub assumed_disjoint: Vec<String>,
}

/// The clusters that are explored if the launch determines the cluster.
const CLUSTERS: [[u32; 3]; 3] = [[1, 1, 1], [2, 1, 1], [4, 1, 1]];
/// The most blocks of a cluster that are followed.
const MAX_BLOCKS: u32 = 16;
/// How many conditions are tried with numbers of a launch for the cost of a step.
const TRIALS_PER_STEP: u64 = 4;
/// The iterations of loops with other loops inside that are explored first.
const FIRST_OUTER_ITERATIONS: u32 = 2;
/// The fewest iterations of a loop that are explored.
const MIN_ITERATIONS: u32 = 4;

/// Judges a kernel, and counts the bank conflicts of its accesses to shared memory.
pub fn report(kernel: &CheckedKernel, budget: Budget) -> Report {
    let mut all = Exploration::new(budget);
    all.banks = Some(BankConflictLog::default());
    let judgement = all.judge(kernel, budget);
    let accesses = all.banks.unwrap_or_default().of_kernel(kernel.kernel());
    let assumed_disjoint = global::assumed_disjoint(kernel.kernel()).into_iter();
    let assumed_disjoint = assumed_disjoint.map(|param| kernel.kernel().param(param).name.clone()).collect();
    Report { judgement, accesses, assumed_disjoint }
}

/// Judges a kernel.
pub fn judge(kernel: &CheckedKernel, budget: Budget) -> Judgement {
    Exploration::new(budget).judge(kernel, budget)
}

/// Returns the extents of the clusters that a kernel is explored in.
fn extents(kernel: &Kernel) -> Vec<[u32; 3]> {
    match kernel.launch.cluster {
        Cluster::None => vec![[1, 1, 1]],
        Cluster::Fixed(extents) => vec![extents],
        Cluster::AtLaunch => CLUSTERS.to_vec(),
    }
}

/// Returns the input for a kernel in clusters of these extents.
fn input(kernel: &CheckedKernel, cluster: [u32; 3]) -> Input<'_> {
    let code = Steps::of(kernel.kernel());
    let groups = groups::first(kernel.kernel(), &code);
    let (max_iterations, registers) = (max_iterations(kernel.kernel()), registers::at_entry(kernel.kernel()));
    Input { kernel, code, groups, cluster, max_iterations, registers, elected: Elected::new() }
}

/// The progress of an exploration.
struct Exploration {
    left: Allowance,
    /// The budget that is left for proofs.
    to_prove: Allowance,
    executions: u32,
    undecided: Vec<Undecided>,
    /// The violations behind these reasons, where one was found.
    suspects: Vec<Suspect>,
    /// Whether a loop could have continued.
    is_cut: bool,
    /// The bank-conflict log, if accesses are recorded.
    banks: Option<BankConflictLog>,
    /// The threads that may be elected.
    elections: Elections,
}

/// The next action after an execution.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Continue,
    /// All executions are explored again.
    Restart,
    /// Nothing more is explored.
    Stop,
}

impl Exploration {
    fn new(budget: Budget) -> Self {
        let (left, to_prove) = (Allowance::of(budget.0), Allowance::of(budget.to_prove()));
        let elections = Elections::default();
        let (undecided, suspects) = (vec![], vec![]);
        Self { left, to_prove, executions: 0, undecided, suspects, is_cut: false, banks: None, elections }
    }

    fn judge(&mut self, kernel: &CheckedKernel, budget: Budget) -> Judgement {
        let broken = extents(kernel.kernel()).into_iter().find_map(|extents| self.clusters(kernel, extents));
        let broken = broken.or_else(|| self.global(kernel.kernel()).err());
        let undecided = std::mem::take(&mut self.undecided);
        let verdict = match broken {
            Some(diagnostic) => Verdict::Broken(diagnostic),
            None if !undecided.is_empty() => Verdict::NotDecided(undecided),
            None if self.is_cut => Verdict::CheckedUpTo(max_iterations(kernel.kernel())),
            None => Verdict::Proved,
        };
        let steps = budget.0 + budget.to_prove() - self.left.steps() - self.to_prove.steps();
        let suspects = std::mem::take(&mut self.suspects);
        Judgement { verdict, steps, executions: self.executions, suspects }
    }

    /// Judges the accesses to global memory that other blocks may write.
    fn global(&mut self, kernel: &Kernel) -> Result<(), Box<Diagnostic>> {
        let own = effects::untracked_ptx(kernel);
        let undecided = match global::judge(kernel) {
            // Instructions of the kernel's own may order accesses.
            Err(_) if !own.is_empty() => vec![],
            judged => judged?,
        };
        own.into_iter()
            .for_each(|span| self.note_undecided(Undecided { reason: UndecidedReason::Ptx, span }));
        // Loops that wait for a write by another block are not followed.
        let waits = plain_polls::waits(kernel);
        waits
            .into_iter()
            .for_each(|span| self.note_undecided(Undecided { reason: UndecidedReason::WaitLoop, span }));
        undecided.into_iter().for_each(|case| self.note_undecided(case));
        Ok(())
    }

    fn note_undecided(&mut self, case: Undecided) {
        let at = case.span.start();
        let is_known = |known: &Undecided| known.reason == case.reason && known.span.start() == at;
        if !self.undecided.iter().any(is_known) {
            self.undecided.push(case);
        }
    }

    /// Records a violation that is not an error, for this reason. Only the first at each location
    /// is kept.
    fn suspect(&mut self, reason: UndecidedReason, diagnostic: Diagnostic) {
        let span = diagnostic.span;
        self.note_undecided(Undecided { reason, span });
        let is_new = |known: &Suspect| (known.reason, known.span().start()) != (reason, span.start());
        if self.suspects.iter().all(is_new) {
            self.suspects.push(Suspect { reason, diagnostic: Box::new(diagnostic) });
        }
    }

    /// Explores clusters of these extents, with every kind of thread elected.
    fn clusters(&mut self, kernel: &CheckedKernel, cluster: [u32; 3]) -> Option<Box<Diagnostic>> {
        let (mut input, mut terms) = (input(kernel, cluster), Terms::default());
        self.elections = Elections::of(input.threads());
        let mut followed: Vec<Elected> = vec![];
        let mut next = Some(Elected::new());
        while let Some(elected) = next {
            input.elected = elected;
            input.groups = groups::first(kernel.kernel(), &input.code);
            if let Some(broken) = self.election(&mut input, &mut terms) {
                return Some(broken);
            }
            followed.push(std::mem::take(&mut input.elected));
            // An undecided kernel is not explored any further.
            if !self.undecided.is_empty() {
                return None;
            }
            let elections = self.elections.all(&input).ok_or(kernel.kernel().span);
            let elections = elections.and_then(|all| input.code.slice.numbered().map_or(Ok(all), Err));
            let all = match elections {
                Ok(all) => all,
                Err(span) => {
                    self.note_undecided(Undecided { reason: UndecidedReason::Elected, span });
                    return None;
                }
            };
            next = all.into_iter().find(|elected| !followed.contains(elected));
        }
        None
    }

    /// Tries a proof with these threads elected, and explores all executions if that fails.
    fn election(&mut self, input: &mut Input<'_>, terms: &mut Terms) -> Option<Box<Diagnostic>> {
        let is_small = input.cluster.iter().product::<u32>() <= MAX_BLOCKS;
        let is_right = !input.code.steps().any(synchronises) || is_small && self.proves(input, terms);
        if is_right {
            self.note_accesses(input, terms);
            return None;
        }
        self.follow(input, terms)
    }

    /// Records the accesses of a kernel whose addresses are not known yet, since only its symbols
    /// were followed.
    fn note_accesses(&mut self, input: &mut Input<'_>, terms: &mut Terms) {
        let Some(banks) = self.banks.take() else { return };
        let mut all = Self { banks: Some(banks), ..Self::new(Budget(self.left.steps())) };
        _ = all.follow(input, terms);
        self.banks = all.banks;
    }

    /// Explores all executions.
    fn follow(&mut self, input: &mut Input<'_>, terms: &mut Terms) -> Option<Box<Diagnostic>> {
        let span = input.kernel.kernel().span;
        if input.cluster.iter().product::<u32>() > MAX_BLOCKS {
            self.note_undecided(Undecided { reason: UndecidedReason::Cluster, span });
            return None;
        }
        let mut results = Results::default();
        input.groups = groups::first(input.kernel.kernel(), &input.code);
        self.executions(input, terms, &mut results);
        let has_ended = results.has_passed();
        let grid_divergence = grid::grid_divergence(input, terms, results.passed());
        let Conclusion { broken, suspects } = results.conclusion(input, terms);
        let broken = broken.or(grid_divergence);
        if !has_ended && broken.is_none() && self.undecided.is_empty() && suspects.is_empty() {
            self.note_undecided(Undecided { reason: UndecidedReason::NoEnd, span });
        }
        suspects.into_iter().for_each(|found| self.suspect(UndecidedReason::Launch, found));
        broken
    }

    /// Whether a proof shows all executions to be right, for any number of iterations. Its budget
    /// is separate, so that the search for mistakes does not depend on it.
    fn proves(&mut self, input: &mut Input<'_>, terms: &mut Terms) -> bool {
        let mut statics = Statics::of(&input.code, input.kernel.kernel().locals.len());
        let mut finer = Some(Precision::of_ring(max_stages(input.kernel.kernel())));
        let mut cost = proof::ProofCost { left: self.to_prove, states: self.executions };
        let proved = loop {
            match proof::prove(input, &statics, terms, &mut self.elections, &mut cost) {
                proof::ProofOutcome::Proved => break true,
                proof::ProofOutcome::Open if let Some(precision) = finer.take() => {
                    statics = statics.with(precision);
                }
                proof::ProofOutcome::Open | proof::ProofOutcome::Budget => break false,
                proof::ProofOutcome::Split(classes) if groups::refine(&mut input.groups, &classes) => {}
                proof::ProofOutcome::Split(_) => break false,
            }
        };
        (self.to_prove, self.executions) = (cost.left, cost.states);
        proved
    }

    /// Explores executions in which all loops take the same number of iterations, and then all.
    fn executions(&mut self, input: &mut Input<'_>, terms: &mut Terms, results: &mut Results) {
        let around = max_stages(input.kernel.kernel()) + 2;
        let others =
            (2..=input.max_iterations).filter(|iterations| *iterations != around).map(Iterations::of_all);
        // Inner loops go around a ring in few iterations of the outer ones.
        let inner = around.div_ceil(FIRST_OUTER_ITERATIONS) + 1;
        let nested = Some(Iterations { inner, outer: FIRST_OUTER_ITERATIONS, silent: 1 })
            .filter(|_| input.code.has_outer());
        let [none, one, most] = [0, 1, around].map(Iterations::of_all);
        let first = nested.into_iter().chain([none, one, most]);
        for iterations in first.chain(others) {
            if self.execution(input, terms, results, &[], iterations) == Next::Stop {
                return;
            }
            // An execution that stopped undecided shows nothing of a typical launch.
            let has_ended =
                results.iterations < iterations.inner.min(iterations.outer) || results.taken.is_empty();
            let covers_rings = iterations == most || Some(iterations) == nested;
            results.is_typical |= (covers_rings || has_ended) && !results.is_unknown;
            // Either no loop has a free end, or none continues for so long.
            if has_ended {
                break;
            }
        }
        if results.all_failed() {
            return;
        }
        while self.all_executions(input, terms, results) == Next::Restart {}
    }

    /// Explores all executions. Has to start again if groups were split, since decisions may then
    /// come in another order.
    fn all_executions(&mut self, input: &mut Input<'_>, terms: &mut Terms, results: &mut Results) -> Next {
        let groups = input.groups.len();
        let mut open = VecDeque::from([Path::default()]);
        while let Some(path) = open.pop_front() {
            let path = path.decisions();
            if self.execution(input, terms, results, &path, Iterations::default()) == Next::Stop {
                return Next::Stop;
            }
            if input.groups.len() > groups {
                return Next::Restart;
            }
            open.extend(results.others(path.len()));
            results.open = open.len();
        }
        Next::Continue
    }

    /// Explores an execution, and splits groups as far as that needs. Results of earlier executions
    /// also hold for smaller groups.
    fn execution(
        &mut self,
        input: &mut Input<'_>,
        terms: &mut Terms,
        results: &mut Results,
        path: &[bool],
        iterations: Iterations,
    ) -> Next {
        loop {
            let policy = Policy::search(path, iterations, self.left);
            match self.attempt(input, terms, results, policy) {
                Ok(next) => return next,
                Err(classes) if groups::refine(&mut input.groups, &classes) => {}
                Err(_) => {
                    self.note_undecided(Undecided {
                        reason: UndecidedReason::Divergence,
                        span: input.kernel.kernel().span,
                    });
                    *results = Results::default();
                    return Next::Stop;
                }
            }
        }
    }

    /// Explores an execution. Returns the threads that have to be split first as an error.
    fn attempt(
        &mut self,
        input: &Input<'_>,
        terms: &mut Terms,
        results: &mut Results,
        policy: Policy,
    ) -> Result<Next, Vec<Vec<u32>>> {
        self.executions += 1;
        let span = input.kernel.kernel().span;
        if Run::bytes_at_start(input) > MAX_BYTES {
            self.note_undecided(Undecided { reason: UndecidedReason::Size, span });
            return Ok(Next::Stop);
        }
        let mut run = Run::new(input, terms, policy);
        run.policy.other_held_bytes = results.bytes();
        run.findings.banks = self.banks.take();
        let end = run.run_to_end();
        self.banks = run.findings.banks.take();
        if let Some(banks) = &mut self.banks {
            banks.end_execution(!matches!(end, Err(Stop::Split { .. })));
        }
        self.left = run.policy.budget;
        self.elections.note(&run.findings);
        if let Err(Stop::Split { classes, .. }) = end {
            return Err(classes);
        }
        let decisions = &mut run.state.decisions;
        (results.taken, results.iterations) =
            (std::mem::take(&mut decisions.taken), decisions.max_iterations);
        results.is_unknown = matches!(end, Err(Stop::Undecided(_) | Stop::Budget | Stop::Size));
        std::mem::take(&mut run.findings.undecided).into_iter().for_each(|case| self.note_undecided(case));
        match end {
            Ok(()) => results.pass(Ended::of(run.state)),
            Err(Stop::Discarded | Stop::Fork(_) | Stop::Split { .. }) => {}
            Err(Stop::IterationLimit) => self.is_cut = true,
            Err(Stop::Undecided(case)) => self.note_undecided(case),
            Err(Stop::Budget) => {
                self.note_undecided(Undecided { reason: UndecidedReason::Budget, span });
                return Ok(Next::Stop);
            }
            Err(Stop::Size) => {
                self.note_undecided(Undecided { reason: UndecidedReason::Size, span });
                return Ok(Next::Stop);
            }
            Err(Stop::Violation(found)) => {
                if let Some(broken) = self.found(&mut run, &found) {
                    let ended = Ended::of(run.state);
                    let is_typical = ended.is_typical(max_stages(input.kernel.kernel()) + 1);
                    results.fail(ended, broken);
                    if is_typical {
                        return Ok(Next::Stop);
                    }
                }
            }
        }
        Ok(Next::Continue)
    }

    /// Judges a violation in an execution. It is an error if some launch leads to it.
    fn found(&mut self, run: &mut Run<'_, '_>, found: &Violation) -> Option<Box<Diagnostic>> {
        let Run { input, terms, state, policy, .. } = run;
        let span = explain::span_of(input, found.at.site.stmt);
        let is_gone = |party: &&Party| matches!(party.does, ThreadAct::Return | ThreadAct::EndElsewhere);
        let mut parties = std::iter::once(&found.at).chain(&found.others).filter(|party| !is_gone(party));
        if let Some(trusted) = parties.find(|party| input.code.trusts(party.site.stmt)) {
            self.note_undecided(Undecided {
                reason: UndecidedReason::Trusted,
                span: explain::span_of(input, trusted.site.stmt),
            });
            return None;
        }
        // An order that is not followed may hold between the two.
        if input.code.acquires && found.rule.is_of_order() {
            self.note_undecided(Undecided { reason: UndecidedReason::Atomics, span });
            return None;
        }
        let (numbers, trials) = launch::find(terms, &state.facts, input.cluster);
        self.left.take_up_to(trials / TRIALS_PER_STEP);
        let Some(numbers) = numbers else {
            let found = explain::diagnostic(input, terms, &Numbers::default(), found);
            self.suspect(UndecidedReason::Infeasible, found);
            return None;
        };
        let found = explain::diagnostic(input, terms, &numbers, found);
        if state.decisions.may_be_infeasible(launch::data(terms, &numbers), policy.path.is_empty()) {
            self.suspect(UndecidedReason::Data, found);
            return None;
        }
        Some(Box::new(found))
    }
}

/// Whether other threads may observe a step, or cause a violation in it.
fn synchronises(step: &super::code::Step<'_>) -> bool {
    let Op::Do(stmt) = &step.op else { return false };
    !matches!(
        stmt.kind,
        StmtKind::Assign { .. } | StmtKind::GlobalGet { .. } | StmtKind::Assert { .. } | StmtKind::Trap
    )
}

/// Returns how many iterations of a loop are explored: twice around the largest ring, and two more.
fn max_iterations(kernel: &Kernel) -> u32 {
    MIN_ITERATIONS.max(2 * max_stages(kernel) + 2)
}
