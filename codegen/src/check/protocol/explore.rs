//! All worlds of a kernel: each free decision is taken both ways.

use std::collections::VecDeque;
use std::rc::Rc;

use super::banks::{Banks, SharedAccess};
use super::code::{Op, Steps};
use super::explain;
use super::facts::Facts;
use super::finding::{Doubt, Found, Why};
use super::launch;
use super::proof::{self, Outcome, Statics};
use super::run::{Choices, Input, Run, Stop};
use super::term::{Term, Terms};
use crate::check::{CheckedKernel, registers};
use crate::diag::Diagnostic;
use crate::ir::{Cluster, Kernel, SharedVar, StmtKind, Sync, Type};
use crate::limits::{WARP_THREADS, WARPGROUP_THREADS};
use crate::quick::QuickMap;

/// How much is looked at, in steps of groups of threads: a number and no time, so that a kernel is
/// judged alike wherever it is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Budget(pub u64);

impl Budget {
    /// What a macro looks at.
    pub const MACRO: Self = Self(6_000);
    /// What a report looks at.
    pub const REPORT: Self = Self(1_000_000);

    /// What of it a proof may take, beside what is looked at for mistakes. A macro reports mistakes
    /// alone: there a proof is of use where it is short, since then nothing else is looked at.
    fn to_prove(self) -> u64 {
        if self.0 > Self::MACRO.0 { self.0 } else { self.0 / 3 }
    }
}

/// What is said of a kernel's protocol.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Right, whatever the launch and the data.
    Proved,
    /// Right in everything that was looked at: loops of up to so many turns.
    CheckedUpTo(u32),
    /// Nothing wrong was found, and some things were not looked at.
    NotDecided(Vec<Doubt>),
    /// Wrong.
    Broken(Box<Diagnostic>),
}

/// A verdict, and what it took.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Steps of groups of threads.
    pub steps: u64,
    /// Worlds that were looked at.
    pub worlds: u32,
}

/// What is reported of a kernel.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its protocol.
    pub judgement: Judgement,
    /// Its accesses to shared memory, in the order of the source.
    pub accesses: Vec<SharedAccess>,
}

/// Clusters that are looked at where the launch says how large they are.
const CLUSTERS: [[u32; 3]; 3] = [[1, 1, 1], [2, 1, 1], [4, 1, 1]];
/// The most blocks of a cluster that are followed.
const MOST_BLOCKS: u32 = 16;
/// The fewest turns of a loop that are looked at.
const FEWEST_TURNS: u32 = 4;

/// Judges a kernel, and counts the bank conflicts of its accesses to shared memory.
pub fn report(kernel: &CheckedKernel, budget: Budget) -> Report {
    let mut all = Exploration::new(budget);
    all.banks = Some(Banks::default());
    let judgement = all.judge(kernel, budget);
    let accesses = all.banks.unwrap_or_default().of_kernel(kernel.kernel());
    Report { judgement, accesses }
}

/// Judges a kernel.
pub fn judge(kernel: &CheckedKernel, budget: Budget) -> Judgement {
    Exploration::new(budget).judge(kernel, budget)
}

/// The clusters that a kernel is looked at in.
fn extents(kernel: &Kernel) -> Vec<[u32; 3]> {
    match kernel.launch.cluster {
        Cluster::None => vec![[1, 1, 1]],
        Cluster::Fixed(extents) => vec![extents],
        Cluster::AtLaunch => CLUSTERS.to_vec(),
    }
}

/// A kernel in clusters of these extents.
fn input(kernel: &CheckedKernel, cluster: [u32; 3]) -> Input<'_> {
    let code = Steps::of(kernel.kernel());
    let groups = first_groups(kernel.kernel(), &code, Elected::Together);
    let (most_turns, registers) = (most_turns(kernel.kernel()), registers::at_entry(kernel.kernel()));
    Input { kernel, code, groups, cluster, most_turns, registers }
}

/// What was looked at so far.
struct Exploration {
    left: u64,
    /// How much is left to prove it.
    to_prove: u64,
    worlds: u32,
    doubts: Vec<Doubt>,
    /// Whether a loop could have gone on.
    is_cut: bool,
    /// Accesses to shared memory, where they are noted.
    banks: Option<Banks>,
}

/// How a world ended, and what it had decided.
struct Ended {
    turns: u32,
    decided: QuickMap<Term, bool>,
}

/// The worlds of a kernel in clusters of one size.
#[derive(Default)]
struct Results {
    passed: Vec<Ended>,
    failed: Vec<(Ended, Box<Diagnostic>)>,
    /// Free decisions of the world that was looked at last, and its turns.
    taken: Vec<bool>,
    turns: u32,
    /// Whether the last world ended before its end.
    is_unknown: bool,
    /// Whether a world with as many turns of its loops as go around every ring was looked at.
    is_typical: bool,
}

impl Results {
    /// The worlds that differ from the last one in a decision after the first `known`.
    fn others(&self, known: usize) -> impl Iterator<Item = Vec<bool>> {
        let flipped = |index: usize| self.taken[..index].iter().copied().chain([true]).collect();
        (known..self.taken.len()).map(flipped)
    }
}

/// What follows from a world's end.
enum Next {
    GoOn,
    /// With these threads told apart, all of it again.
    Again(Vec<Vec<u32>>),
    /// Nothing more is looked at.
    Enough,
}

impl Exploration {
    fn new(budget: Budget) -> Self {
        let (left, to_prove) = (budget.0, budget.to_prove());
        Self { left, to_prove, worlds: 0, doubts: vec![], is_cut: false, banks: None }
    }

    fn judge(&mut self, kernel: &CheckedKernel, budget: Budget) -> Judgement {
        let broken = extents(kernel.kernel()).into_iter().find_map(|extents| self.clusters(kernel, extents));
        let doubts = std::mem::take(&mut self.doubts);
        let verdict = match broken {
            Some(diagnostic) => Verdict::Broken(diagnostic),
            None if !doubts.is_empty() => Verdict::NotDecided(doubts),
            None if self.is_cut => Verdict::CheckedUpTo(most_turns(kernel.kernel())),
            None => Verdict::Proved,
        };
        let steps = budget.0 + budget.to_prove() - self.left - self.to_prove;
        Judgement { verdict, steps, worlds: self.worlds }
    }

    fn doubt(&mut self, doubt: Doubt) {
        let at = doubt.span.start();
        let is_known = |known: &Doubt| known.why == doubt.why && known.span.start() == at;
        if !self.doubts.iter().any(is_known) {
            self.doubts.push(doubt);
        }
    }

    /// A proof with clusters of these extents, or else all worlds.
    fn clusters(&mut self, kernel: &CheckedKernel, cluster: [u32; 3]) -> Option<Box<Diagnostic>> {
        let (mut input, mut terms) = (input(kernel, cluster), Terms::default());
        let is_small = cluster.iter().product::<u32>() <= MOST_BLOCKS;
        let is_right =
            !input.code.steps().any(synchronises) || is_small && self.proves(&mut input, &mut terms);
        if is_right {
            self.note_accesses(&mut input, &mut terms);
            return None;
        }
        self.follow(&mut input, &mut terms)
    }

    /// Notes the accesses of a kernel that was not followed with numbers, which they need.
    fn note_accesses(&mut self, input: &mut Input<'_>, terms: &mut Terms) {
        let Some(banks) = self.banks.take() else { return };
        let mut all = Self { banks: Some(banks), ..Self::new(Budget(self.left)) };
        _ = all.follow(input, terms);
        self.banks = all.banks;
    }

    /// All worlds.
    fn follow(&mut self, input: &mut Input<'_>, terms: &mut Terms) -> Option<Box<Diagnostic>> {
        let span = input.kernel.kernel().span;
        if input.cluster.iter().product::<u32>() > MOST_BLOCKS {
            self.doubt(Doubt { why: Why::Cluster, span });
            return None;
        }
        let mut results = Results::default();
        input.groups = first_groups(input.kernel.kernel(), &input.code, Elected::ByWarp);
        let (doubts, is_cut) = (self.doubts.len(), self.is_cut);
        loop {
            match self.worlds(input, terms, &mut results) {
                Next::GoOn | Next::Enough => return self.certain(input, terms, results),
                Next::Again(classes) => {
                    if !refine(&mut input.groups, &classes) {
                        self.doubt(Doubt { why: Why::Cut, span });
                        return None;
                    }
                    results = Results::default();
                    self.doubts.truncate(doubts);
                    self.is_cut = is_cut;
                }
            }
        }
    }

    /// Whether all worlds are right, whatever the counts. The budget is one of its own, so that what
    /// is looked at for mistakes does not depend on it.
    fn proves(&mut self, input: &mut Input<'_>, terms: &mut Terms) -> bool {
        let statics = Statics::of(&input.code, input.kernel.kernel().locals.len());
        let mut left = self.to_prove;
        let proved = loop {
            match proof::prove((input, &statics), terms, &mut left, &mut self.worlds) {
                Outcome::Proved => break true,
                Outcome::Open | Outcome::Budget => break false,
                Outcome::Split(classes) if refine(&mut input.groups, &classes) => {}
                Outcome::Split(_) => break false,
            }
        };
        self.to_prove = left;
        proved
    }

    /// First worlds in which all loops take the same number of turns, then all.
    fn worlds(&mut self, input: &Input<'_>, terms: &mut Terms, results: &mut Results) -> Next {
        let mut open = VecDeque::new();
        let around = most_stages(input.kernel.kernel()) + 2;
        let others = (2..=input.most_turns).filter(|turns| *turns != around);
        for turns in [0, 1, around].into_iter().chain(others) {
            match self.world(input, terms, results, Choices { turns, ..Choices::default() }) {
                Next::GoOn => {}
                other @ (Next::Again(_) | Next::Enough) => return other,
            }
            if turns == 0 {
                open.extend(results.others(0));
            }
            // What ended where nothing more can be said says nothing of a typical launch.
            let is_typical = turns == around || results.turns < turns || results.taken.is_empty();
            results.is_typical |= is_typical && !results.is_unknown;
            // No loop has an end that is free, or none goes on for so long.
            if results.turns < turns || results.taken.is_empty() {
                break;
            }
        }
        if results.passed.is_empty() && !results.failed.is_empty() {
            return Next::Enough;
        }
        while let Some(path) = open.pop_front() {
            let known = path.len();
            match self.world(input, terms, results, Choices { path, ..Choices::default() }) {
                Next::GoOn => {}
                other @ (Next::Again(_) | Next::Enough) => return other,
            }
            open.extend(results.others(known));
        }
        Next::GoOn
    }

    fn world(
        &mut self,
        input: &Input<'_>,
        terms: &mut Terms,
        results: &mut Results,
        choices: Choices,
    ) -> Next {
        self.worlds += 1;
        let mut run = Run::new(input, terms, choices, self.left);
        run.banks = self.banks.take();
        let end = run.go();
        self.banks = run.banks.take();
        if let Some(banks) = &mut self.banks {
            banks.end_world(!matches!(end, Err(Stop::Split(_))));
        }
        self.left = run.budget;
        let (choices, doubts, facts) = (run.choices, run.doubts, run.facts);
        (results.taken, results.turns) = (choices.taken, choices.most_turns);
        results.is_unknown = matches!(end, Err(Stop::Unknown(_) | Stop::Budget));
        doubts.into_iter().for_each(|doubt| self.doubt(doubt));
        let ended = || Ended { turns: choices.most_turns, decided: facts.decided().collect() };
        match end {
            Ok(()) => results.passed.push(ended()),
            Err(Stop::Over | Stop::Fork(_)) => {}
            Err(Stop::Cut) => self.is_cut = true,
            Err(Stop::Unknown(doubt)) => self.doubt(doubt),
            Err(Stop::Budget) => {
                self.doubt(Doubt { why: Why::Budget, span: input.kernel.kernel().span });
                return Next::Enough;
            }
            Err(Stop::Split(classes)) => return Next::Again(classes),
            Err(Stop::Found(found)) => {
                let turns = choices.most_turns;
                if let Some(broken) = self.found(input, terms, &facts, *found) {
                    results.failed.push((ended(), broken));
                    // With so many turns no launch is meant to be left out.
                    if turns > most_stages(input.kernel.kernel()) + 1 {
                        return Next::Enough;
                    }
                }
            }
        }
        Next::GoOn
    }

    /// Something is wrong in a world: an error if there is such a launch.
    fn found(
        &mut self,
        input: &Input<'_>,
        terms: &mut Terms,
        facts: &Facts,
        found: Found,
    ) -> Option<Box<Diagnostic>> {
        let span = explain::span_of(input, found.at.site.stmt);
        let mut parties = std::iter::once(&found.at).chain(&found.others);
        if let Some(trusted) = parties.find(|party| input.code.trusts(party.site.stmt)) {
            self.doubt(Doubt { why: Why::Trusted, span: explain::span_of(input, trusted.site.stmt) });
            return None;
        }
        let Some(numbers) = launch::find(terms, facts, input.cluster) else {
            self.doubt(Doubt { why: Why::Infeasible, span });
            return None;
        };
        if launch::data(terms, &numbers) > 1 {
            self.doubt(Doubt { why: Why::Data, span });
            return None;
        }
        Some(Box::new(explain::diagnostic(input, terms, &numbers, &found)))
    }

    /// What is certainly wrong: not only for launches that a kernel may well never get, such as
    /// those with no turn of a loop.
    fn certain(&mut self, input: &Input<'_>, terms: &Terms, results: Results) -> Option<Box<Diagnostic>> {
        let Results { passed, mut failed, is_typical, .. } = results;
        let most = most_stages(input.kernel.kernel()) + 1;
        let excuses =
            |failed: &Ended, passed: &Ended| passed.turns >= failed.turns && differs(terms, failed, passed);
        let is_certain = |(failed, _): &(Ended, Box<Diagnostic>)| {
            failed.turns > most || is_typical && !passed.iter().any(|passed| excuses(failed, passed))
        };
        // What goes wrong with most turns goes wrong for what a kernel is made for: of the worlds
        // with that mistake the first has the smallest numbers.
        let place = |(_, diagnostic): &(Ended, Box<Diagnostic>)| {
            (diagnostic.code(), diagnostic.span.start().line, diagnostic.span.start().column)
        };
        let typical = failed.iter().filter(|one| is_certain(one)).max_by_key(|(ended, _)| ended.turns);
        if let Some(typical) = typical.map(place)
            && let Some(index) = failed.iter().position(|one| is_certain(one) && place(one) == typical)
        {
            return Some(failed.swap_remove(index).1);
        }
        for (_, diagnostic) in failed {
            self.doubt(Doubt { why: Why::Launch, span: diagnostic.span });
        }
        None
    }
}

/// Whether a world differs from another in numbers that a launch chooses, and in nothing else.
fn differs(terms: &Terms, one: &Ended, other: &Ended) -> bool {
    let mut any = false;
    for (term, value) in &one.decided {
        if other.decided.get(term).is_some_and(|same| same != value) {
            any = true;
            if !launch::is_chosen(terms, *term) {
                return false;
            }
        }
    }
    any
}

/// Whether a step does anything that others could notice.
fn synchronises(step: &super::code::Step<'_>) -> bool {
    let Op::Do(stmt) = &step.op else { return false };
    !matches!(
        stmt.kind,
        StmtKind::Assign { .. }
            | StmtKind::GlobalGet { .. }
            | StmtKind::GlobalAtomic { .. }
            | StmtKind::Assert { .. }
            | StmtKind::ElectOne { .. }
            | StmtKind::Trap
    )
}

/// Whether threads that warps elect are followed together: a message speaks of those of one warp.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Elected {
    Together,
    ByWarp,
}

/// Groups of threads that are followed together at first: those that do something together.
fn first_groups(kernel: &Kernel, code: &Steps<'_>, elected: Elected) -> Vec<Rc<[u32]>> {
    let threads = u32::try_from(kernel.launch.thread_count()).unwrap_or(u32::MAX);
    let (mut of_warp, mut of_warpgroup) = (false, false);
    for step in code.steps() {
        let Op::Do(stmt) = &step.op else { continue };
        of_warp |= matches!(stmt.kind, StmtKind::Sync(Sync::Warp) | StmtKind::Warp { .. });
        of_warp |= elected == Elected::ByWarp && matches!(stmt.kind, StmtKind::ElectOne { .. });
        of_warpgroup |= matches!(
            stmt.kind,
            StmtKind::Sync(Sync::Warpgroup)
                | StmtKind::Mma(_)
                | StmtKind::MmaWait { .. }
                | StmtKind::StoreAccumulator { .. }
                | StmtKind::SetMaxRegisters { .. }
        );
    }
    let size = if of_warp {
        WARP_THREADS
    } else if of_warpgroup {
        WARPGROUP_THREADS
    } else {
        threads
    };
    let all: Vec<u32> = (0..threads).collect();
    all.chunks(size.max(1) as usize).map(Rc::from).collect()
}

/// Tells these classes of threads apart in all groups; false if they were.
fn refine(groups: &mut Vec<Rc<[u32]>>, classes: &[Vec<u32>]) -> bool {
    let before = groups.len();
    let mut refined: Vec<Rc<[u32]>> = vec![];
    for group in groups.iter() {
        let mut rest: Vec<u32> = group.to_vec();
        for class in classes {
            let (inside, outside): (Vec<u32>, Vec<u32>) =
                rest.iter().partition(|thread| class.contains(thread));
            if !inside.is_empty() {
                refined.push(inside.into());
            }
            rest = outside;
        }
        if !rest.is_empty() {
            refined.push(rest.into());
        }
    }
    *groups = refined;
    groups.len() > before
}

/// The stages of the largest ring.
fn most_stages(kernel: &Kernel) -> u32 {
    let of_var = |var: &SharedVar| if let Type::Stages(_, stages) = var.ty { stages } else { 1 };
    kernel.shared.iter().map(of_var).max().unwrap_or(1)
}

/// How many turns of a loop are looked at: twice around the largest ring, and two more.
fn most_turns(kernel: &Kernel) -> u32 {
    FEWEST_TURNS.max(2 * most_stages(kernel) + 2)
}
