//! The results of axioms, checker and simulator for a program.

use std::fmt;

use tma_codegen::protocol::{Budget, Verdict, judge};

use crate::executions::{self, Judgement};
use crate::program::{Action, Program};
use crate::simulated::{self, Runs};
use crate::source;

/// Counts of programs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) programs: usize,
    pub(crate) race_free: usize,
    /// Programs with two accesses that race in each execution in which both occur, and the number
    /// of these in which the simulator finds anything.
    pub(crate) racing: usize,
    pub(crate) racing_found: usize,
    /// The other programs with races.
    pub(crate) sometimes: usize,
    pub(crate) sometimes_found: usize,
    /// The verdicts of the checker.
    pub(crate) proved: usize,
    pub(crate) refused: usize,
    /// Outcomes of programs without races, those of an execution that is consistent with a global
    /// order in time, and those that the simulator has shown.
    pub(crate) outcomes: usize,
    pub(crate) in_time: usize,
    pub(crate) shown: usize,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { programs, race_free, racing, racing_found, sometimes, .. } = *other;
        let Self { sometimes_found, proved, refused, outcomes, in_time, shown, .. } = *other;
        self.programs += programs;
        self.race_free += race_free;
        self.racing += racing;
        self.racing_found += racing_found;
        self.sometimes += sometimes;
        self.sometimes_found += sometimes_found;
        self.proved += proved;
        self.refused += refused;
        self.outcomes += outcomes;
        self.in_time += in_time;
        self.shown += shown;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { programs, race_free, proved, refused, outcomes, in_time, shown, .. } = self;
        writeln!(
            f,
            "{programs} programs, {race_free} without a race; the checker proves {proved} and refuses {refused}"
        )?;
        writeln!(
            f,
            "{outcomes} outcomes without a race, {in_time} of them in an order of time; the simulator has shown {shown}"
        )?;
        write!(
            f,
            "races in every execution: {} of {} programs found; in some: {} of {}",
            self.racing_found, self.racing, self.sometimes_found, self.sometimes
        )
    }
}

/// The results for a program.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) text: String,
    pub(crate) judgement: Judgement,
    pub(crate) runs: Runs,
    pub(crate) tally: Tally,
    /// The contradictions between the results.
    pub(crate) disagreements: Vec<String>,
}

/// Whether a step waits in a loop, and thus may wait forever.
fn waits(program: &Program) -> bool {
    let waits = |step| match program.access(step).map(|access| access.action) {
        Some(Action::Await(_)) => true,
        Some(Action::Load | Action::Store(_) | Action::Update(_)) | None => false,
    };
    (0..program.steps.len()).any(waits)
}

/// Compares the results of axioms, checker and simulator for a program.
///
/// # Errors
///
/// A kernel that does not compile, or that the simulator does not launch.
pub(crate) fn compare(program: &Program, seeds: u64) -> anyhow::Result<Compared> {
    let text = source::kernel(program);
    let judgement = executions::judge(program);
    let accepted =
        tma_codegen::check("kernel.rs", &text).map_err(|failure| anyhow::anyhow!("{failure}\n{text}"))?;
    let [checked] = <[_; 1]>::try_from(accepted.kernels)
        .map_err(|kernels| anyhow::anyhow!("{} kernels", kernels.len()))?;
    let verdict = judge(&checked.kernel, Budget::MACRO).verdict;
    let runs = simulated::run(program, checked.kernel, seeds)?;
    let races = judgement.races();
    let mut tally = Tally { programs: 1, ..Tally::default() };
    let mut disagreements = vec![];
    if let Some((seed, finding)) = runs.hung.as_ref().filter(|_| !waits(program)) {
        disagreements.push(format!("nothing waits in a loop, and seed {seed} finds {finding}"));
    }
    match &verdict {
        Verdict::Proved => {
            tally.proved = 1;
            if !races.is_empty() {
                disagreements.push(format!("proved, and steps {races:?} race"));
            }
            if judgement.executions == 0 {
                disagreements.push("proved, and waits forever".to_owned());
            }
        }
        Verdict::Broken(diagnostic) => {
            tally.refused = 1;
            if races.is_empty() && !waits(program) {
                disagreements.push(format!("refused, and nothing is wrong: {}", diagnostic.text()));
            }
        }
        Verdict::NotDecided(_) | Verdict::CheckedUpTo(_) => {}
    }
    let is_found = runs.finds_anything;
    if races.is_empty() {
        tally.race_free = 1;
        tally.outcomes = judgement.outcomes.len();
        tally.in_time = judgement.outcomes.values().filter(|in_time| **in_time).count();
        tally.shown = runs.outcomes.len();
        for (seed, finding) in runs.findings.values() {
            disagreements.push(format!("no race, and seed {seed} finds {finding}"));
        }
        for (outcome, seed) in &runs.outcomes {
            if !judgement.outcomes.contains_key(outcome) {
                disagreements.push(format!("seed {seed} shows {outcome:?}, which the axioms forbid"));
            }
        }
    } else if judgement.always_races() {
        (tally.racing, tally.racing_found) = (1, usize::from(is_found));
    } else {
        (tally.sometimes, tally.sometimes_found) = (1, usize::from(is_found));
    }
    Ok(Compared { text, judgement, runs, tally, disagreements })
}
