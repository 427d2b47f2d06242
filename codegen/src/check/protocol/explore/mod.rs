//! Exploration of all executions of a kernel: each free decision is taken both ways.

pub(super) mod allowance;
pub(super) mod elections;
mod grid;
pub(super) mod input;
mod results;

use std::collections::VecDeque;

use self::allowance::{Allowance, MOST_BYTES};
use self::elections::{Elected, Elections};
use self::input::Input;
use self::results::{Ended, Outcome, Path, Results, most_stages};
use super::banks::{Banks, SharedAccess};
use super::choices::{Choices, Turns};
use super::code::{Op, Steps};
use super::explain;
use super::facts::Facts;
use super::finding::{Act, Doubt, Found, Party, Why};
use super::groups;
use super::launch::{self, Numbers};
use super::proof::{self, Precision, Statics};
use super::run::{Run, Stop};
use super::term::Terms;
use crate::check::{CheckedKernel, global, plain_polls, registers};
use crate::diag::{Diagnostic, Suspect};
use crate::ir::{Cluster, Kernel, StmtKind};

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
    NotDecided(Vec<Doubt>),
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
    pub worlds: u32,
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
    pub apart: Vec<String>,
}

/// The clusters that are explored if the launch determines the cluster.
const CLUSTERS: [[u32; 3]; 3] = [[1, 1, 1], [2, 1, 1], [4, 1, 1]];
/// The most blocks of a cluster that are followed.
const MOST_BLOCKS: u32 = 16;
/// How many conditions are tried with numbers of a launch for the cost of a step.
const TRIALS_OF_A_STEP: u64 = 4;
/// The iterations of loops with other loops inside that are explored first.
const FEW_TURNS: u32 = 2;
/// The fewest iterations of a loop that are explored.
const FEWEST_TURNS: u32 = 4;

/// Judges a kernel, and counts the bank conflicts of its accesses to shared memory.
pub fn report(kernel: &CheckedKernel, budget: Budget) -> Report {
    let mut all = Exploration::new(budget);
    all.banks = Some(Banks::default());
    let judgement = all.judge(kernel, budget);
    let accesses = all.banks.unwrap_or_default().of_kernel(kernel.kernel());
    let apart = global::taken_apart(kernel.kernel()).into_iter();
    let apart = apart.map(|param| kernel.kernel().param(param).name.clone()).collect();
    Report { judgement, accesses, apart }
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
    let (most_turns, registers) = (most_turns(kernel.kernel()), registers::at_entry(kernel.kernel()));
    Input { kernel, code, groups, cluster, most_turns, registers, elected: Elected::new() }
}

/// The progress of an exploration.
struct Exploration {
    left: Allowance,
    /// The budget that is left for proofs.
    to_prove: Allowance,
    worlds: u32,
    doubts: Vec<Doubt>,
    /// The violations behind these reasons, where one was found.
    suspects: Vec<Suspect>,
    /// Whether a loop could have continued.
    is_cut: bool,
    /// The bank-conflict log, if accesses are recorded.
    banks: Option<Banks>,
    /// The threads that may be elected.
    elections: Elections,
}

/// The next action after an execution.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    /// All executions are explored again.
    Again,
    /// Nothing more is explored.
    Enough,
}

impl Exploration {
    fn new(budget: Budget) -> Self {
        let (left, to_prove) = (Allowance::of(budget.0), Allowance::of(budget.to_prove()));
        let elections = Elections::default();
        let (doubts, suspects) = (vec![], vec![]);
        Self { left, to_prove, worlds: 0, doubts, suspects, is_cut: false, banks: None, elections }
    }

    fn judge(&mut self, kernel: &CheckedKernel, budget: Budget) -> Judgement {
        let broken = extents(kernel.kernel()).into_iter().find_map(|extents| self.clusters(kernel, extents));
        let broken = broken.or_else(|| self.global(kernel.kernel()).err());
        let doubts = std::mem::take(&mut self.doubts);
        let verdict = match broken {
            Some(diagnostic) => Verdict::Broken(diagnostic),
            None if !doubts.is_empty() => Verdict::NotDecided(doubts),
            None if self.is_cut => Verdict::CheckedUpTo(most_turns(kernel.kernel())),
            None => Verdict::Proved,
        };
        let steps = budget.0 + budget.to_prove() - self.left.steps() - self.to_prove.steps();
        let suspects = std::mem::take(&mut self.suspects);
        Judgement { verdict, steps, worlds: self.worlds, suspects }
    }

    /// Judges the accesses to global memory that other blocks may write.
    fn global(&mut self, kernel: &Kernel) -> Result<(), Box<Diagnostic>> {
        let doubts = global::judge(kernel)?;
        // Loops that wait for a write by another block are not followed.
        let waits = plain_polls::waits(kernel);
        waits.into_iter().for_each(|span| self.doubt(Doubt { why: Why::Waits, span }));
        doubts.into_iter().for_each(|doubt| self.doubt(doubt));
        Ok(())
    }

    fn doubt(&mut self, doubt: Doubt) {
        let at = doubt.span.start();
        let is_known = |known: &Doubt| known.why == doubt.why && known.span.start() == at;
        if !self.doubts.iter().any(is_known) {
            self.doubts.push(doubt);
        }
    }

    /// Records a violation that is not an error, for this reason. Only the first at each location
    /// is kept.
    fn suspect(&mut self, why: Why, diagnostic: Diagnostic) {
        let span = diagnostic.span;
        self.doubt(Doubt { why, span });
        let is_new = |known: &Suspect| (known.why, known.span().start()) != (why, span.start());
        if self.suspects.iter().all(is_new) {
            self.suspects.push(Suspect { why, diagnostic: Box::new(diagnostic) });
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
            if !self.doubts.is_empty() {
                return None;
            }
            let elections = self.elections.all(&input).ok_or(kernel.kernel().span);
            let elections = elections.and_then(|all| input.code.slice.numbered().map_or(Ok(all), Err));
            let all = match elections {
                Ok(all) => all,
                Err(span) => {
                    self.doubt(Doubt { why: Why::Elected, span });
                    return None;
                }
            };
            next = all.into_iter().find(|elected| !followed.contains(elected));
        }
        None
    }

    /// Tries a proof with these threads elected, and explores all executions if that fails.
    fn election(&mut self, input: &mut Input<'_>, terms: &mut Terms) -> Option<Box<Diagnostic>> {
        let is_small = input.cluster.iter().product::<u32>() <= MOST_BLOCKS;
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
        if input.cluster.iter().product::<u32>() > MOST_BLOCKS {
            self.doubt(Doubt { why: Why::Cluster, span });
            return None;
        }
        let mut results = Results::default();
        input.groups = groups::first(input.kernel.kernel(), &input.code);
        self.worlds(input, terms, &mut results);
        let has_ended = results.has_passed();
        let parted = grid::parted(input, terms, results.passed());
        let Outcome { broken, suspects } = results.outcome(input, terms);
        let broken = broken.or(parted);
        if !has_ended && broken.is_none() && self.doubts.is_empty() && suspects.is_empty() {
            self.doubt(Doubt { why: Why::NoEnd, span });
        }
        suspects.into_iter().for_each(|found| self.suspect(Why::Launch, found));
        broken
    }

    /// Whether a proof shows all executions to be right, for any number of iterations. Its budget
    /// is separate, so that the search for mistakes does not depend on it.
    fn proves(&mut self, input: &mut Input<'_>, terms: &mut Terms) -> bool {
        let mut statics = Statics::of(&input.code, input.kernel.kernel().locals.len());
        let mut finer = Some(Precision::of_ring(most_stages(input.kernel.kernel())));
        let mut left = self.to_prove;
        let proved = loop {
            let spent = (&mut left, &mut self.worlds);
            match proof::prove((input, &statics), terms, &mut self.elections, spent) {
                proof::Outcome::Proved => break true,
                proof::Outcome::Open if let Some(precision) = finer.take() => {
                    statics = statics.with(precision);
                }
                proof::Outcome::Open | proof::Outcome::Budget => break false,
                proof::Outcome::Split(classes) if groups::refine(&mut input.groups, &classes) => {}
                proof::Outcome::Split(_) => break false,
            }
        };
        self.to_prove = left;
        proved
    }

    /// Explores executions in which all loops take the same number of iterations, and then all.
    fn worlds(&mut self, input: &mut Input<'_>, terms: &mut Terms, results: &mut Results) {
        let around = most_stages(input.kernel.kernel()) + 2;
        let others = (2..=input.most_turns).filter(|turns| *turns != around).map(Turns::of_all);
        // Inner loops go around a ring in few iterations of the outer ones.
        let inner = around.div_ceil(FEW_TURNS) + 1;
        let nested = Some(Turns { inner, outer: FEW_TURNS, silent: 1 }).filter(|_| input.code.has_outer());
        let [none, one, most] = [0, 1, around].map(Turns::of_all);
        let first = nested.into_iter().chain([none, one, most]);
        for turns in first.chain(others) {
            if self.world(input, terms, results, (&[], turns)) == Next::Enough {
                return;
            }
            // An execution that stopped undecided shows nothing of a typical launch.
            let has_ended = results.turns < turns.inner.min(turns.outer) || results.taken.is_empty();
            let goes_around = turns == most || Some(turns) == nested;
            results.is_typical |= (goes_around || has_ended) && !results.is_unknown;
            // Either no loop has a free end, or none continues for so long.
            if has_ended {
                break;
            }
        }
        if results.all_failed() {
            return;
        }
        while self.other_worlds(input, terms, results) == Next::Again {}
    }

    /// Explores all executions. Has to start again if groups were split, since decisions may then
    /// come in another order.
    fn other_worlds(&mut self, input: &mut Input<'_>, terms: &mut Terms, results: &mut Results) -> Next {
        let groups = input.groups.len();
        let mut open = VecDeque::from([Path::default()]);
        while let Some(path) = open.pop_front() {
            let path = path.decisions();
            if self.world(input, terms, results, (&path, Turns::default())) == Next::Enough {
                return Next::Enough;
            }
            if input.groups.len() > groups {
                return Next::Again;
            }
            open.extend(results.others(path.len()));
            results.open = open.len();
        }
        Next::GoOn
    }

    /// Explores an execution, and splits groups as far as that needs. Results of earlier executions
    /// also hold for smaller groups.
    fn world(
        &mut self,
        input: &mut Input<'_>,
        terms: &mut Terms,
        results: &mut Results,
        (path, turns): (&[bool], Turns),
    ) -> Next {
        loop {
            let choices = Choices { path: path.to_vec(), turns, ..Choices::default() };
            match self.attempt(input, terms, results, choices) {
                Ok(next) => return next,
                Err(classes) if groups::refine(&mut input.groups, &classes) => {}
                Err(_) => {
                    self.doubt(Doubt { why: Why::Cut, span: input.kernel.kernel().span });
                    *results = Results::default();
                    return Next::Enough;
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
        choices: Choices,
    ) -> Result<Next, Vec<Vec<u32>>> {
        self.worlds += 1;
        if Run::bytes_at_start(input) > MOST_BYTES {
            self.doubt(Doubt { why: Why::Size, span: input.kernel.kernel().span });
            return Ok(Next::Enough);
        }
        let mut run = Run::new(input, terms, choices, self.left);
        run.held_beside = results.bytes();
        run.banks = self.banks.take();
        let end = run.go();
        self.banks = run.banks.take();
        if let Some(banks) = &mut self.banks {
            banks.end_world(!matches!(end, Err(Stop::Split { .. })));
        }
        self.left = run.budget;
        self.elections.note(&run.electing, &run.named.take());
        let (mut choices, doubts, facts, grid_met) = (run.choices, run.doubts, run.facts, run.grid_met);
        let returned: Vec<_> = run.history.returned().collect();
        if let Err(Stop::Split { classes, .. }) = end {
            return Err(classes);
        }
        (results.taken, results.turns) = (std::mem::take(&mut choices.taken), choices.most_turns);
        results.is_unknown = matches!(end, Err(Stop::Unknown(_) | Stop::Budget | Stop::Size));
        doubts.into_iter().for_each(|doubt| self.doubt(doubt));
        let (turns, fewest) = (choices.most_turns, choices.fewest_turns);
        let ended = || {
            let (decided, grid_met) = (facts.decided().collect(), grid_met.clone());
            Ended { turns, fewest, decided, grid_met, returned: returned.clone() }
        };
        match end {
            Ok(()) => results.pass(ended()),
            Err(Stop::Over | Stop::Fork(_) | Stop::Split { .. }) => {}
            Err(Stop::Cut) => self.is_cut = true,
            Err(Stop::Unknown(doubt)) => self.doubt(doubt),
            Err(stop @ (Stop::Budget | Stop::Size)) => {
                let why = if matches!(stop, Stop::Size) { Why::Size } else { Why::Budget };
                self.doubt(Doubt { why, span: input.kernel.kernel().span });
                return Ok(Next::Enough);
            }
            Err(Stop::Found(found)) => {
                if let Some(broken) = self.found((input, terms), &facts, &choices, *found) {
                    results.fail(ended(), broken);
                    if ended().is_typical(most_stages(input.kernel.kernel()) + 1) {
                        return Ok(Next::Enough);
                    }
                }
            }
        }
        Ok(Next::GoOn)
    }

    /// Judges a violation in an execution. It is an error if some launch leads to it.
    fn found(
        &mut self,
        (input, terms): (&Input<'_>, &mut Terms),
        facts: &Facts,
        choices: &Choices,
        found: Found,
    ) -> Option<Box<Diagnostic>> {
        let span = explain::span_of(input, found.at.site.stmt);
        let is_gone = |party: &&Party| matches!(party.does, Act::Return | Act::EndElsewhere);
        let mut parties = std::iter::once(&found.at).chain(&found.others).filter(|party| !is_gone(party));
        if let Some(trusted) = parties.find(|party| input.code.trusts(party.site.stmt)) {
            self.doubt(Doubt { why: Why::Trusted, span: explain::span_of(input, trusted.site.stmt) });
            return None;
        }
        // An order that is not followed may hold between the two.
        if input.code.acquires && found.rule.is_of_order() {
            self.doubt(Doubt { why: Why::Atomics, span });
            return None;
        }
        let (numbers, trials) = launch::find(terms, facts, input.cluster);
        self.left.take_up_to(trials / TRIALS_OF_A_STEP);
        let Some(numbers) = numbers else {
            let found = explain::diagnostic(input, terms, &Numbers::default(), &found);
            self.suspect(Why::Infeasible, found);
            return None;
        };
        if choices.may_not_go_together(launch::data(terms, &numbers)) {
            self.suspect(Why::Data, explain::diagnostic(input, terms, &numbers, &found));
            return None;
        }
        Some(Box::new(explain::diagnostic(input, terms, &numbers, &found)))
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
fn most_turns(kernel: &Kernel) -> u32 {
    FEWEST_TURNS.max(2 * most_stages(kernel) + 2)
}
