//! How the mutants ended, as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{DeadlockTrial, Ending, Verdict};

/// The least part of the certain deadlocks whose barriers must be named, in percent.
const NAMED_PERCENT: usize = 95;

/// Returns whether no mutant hangs, and enough of the certain deadlocks are named.
pub fn passes(trials: &[DeadlockTrial]) -> bool {
    let (certain, _) = divided(trials);
    let named = count(&certain, Verdict::Named);
    trials.iter().all(|trial| trial.verdict != Verdict::Hang) && 100 * named >= NAMED_PERCENT * certain.len()
}

/// Returns the mutants of each step by verdict, first of certain deadlocks and then of the others,
/// and a list of all that are not named.
pub fn tables(trials: &[DeadlockTrial]) -> String {
    let (certain, others) = divided(trials);
    let mut text = String::new();
    for (title, trials) in [("Certain deadlocks", certain), ("With other findings", others)] {
        if !trials.is_empty() {
            _ = writeln!(text, "{title}:\n\n{}", table(&trials));
        }
    }
    let unnamed: Vec<_> = trials.iter().filter(|trial| trial.verdict != Verdict::Named).collect();
    if !unnamed.is_empty() {
        text += "Not named:\n\n";
        unnamed.iter().for_each(|trial| text += &line(trial));
    }
    text
}

/// Returns the line that ends a run.
pub fn summary(trials: &[DeadlockTrial]) -> String {
    let (certain, others) = divided(trials);
    let named = |trials: &[&DeadlockTrial]| {
        let (named, all) = (count(trials, Verdict::Named), trials.len());
        format!("{named} of {all} ({:.1} %)", 100.0 * named as f64 / all.max(1) as f64)
    };
    let hanging = trials.iter().filter(|trial| trial.verdict == Verdict::Hang).count();
    format!(
        "named: {} of the certain deadlocks, {} of those with other findings; {hanging} hang",
        named(&certain),
        named(&others)
    )
}

/// Divides mutants into certain deadlocks, and those with other findings.
fn divided(trials: &[DeadlockTrial]) -> (Vec<&DeadlockTrial>, Vec<&DeadlockTrial>) {
    trials.iter().partition(|trial| trial.mutant.is_certain())
}

fn table(trials: &[&DeadlockTrial]) -> String {
    let mut by_step: BTreeMap<&str, Vec<&DeadlockTrial>> = BTreeMap::new();
    for trial in trials {
        by_step.entry(&trial.mutant.step).or_default().push(trial);
    }
    let heads: Vec<_> = Verdict::ALL.iter().map(|verdict| verdict.text()).collect();
    let mut text = format!("| step | mutants | {} | longest launch |\n", heads.join(" | "));
    text += &format!("| --- | --: {}| --: |\n", "| --: ".repeat(heads.len()));
    for (step, trials) in &by_step {
        text += &row(step, trials);
    }
    text + &row("all", trials)
}

fn count(trials: &[&DeadlockTrial], verdict: Verdict) -> usize {
    trials.iter().filter(|trial| trial.verdict == verdict).count()
}

fn row(step: &str, trials: &[&DeadlockTrial]) -> String {
    let counts = Verdict::ALL.map(|verdict| count(trials, verdict).to_string());
    let longest = trials.iter().map(|trial| trial.launched.seconds).fold(0.0, f64::max);
    format!("| {step} | {} | {} | {longest:.2} s |\n", trials.len(), counts.join(" | "))
}

/// Describes a mutant that is not named: which it is, what was expected, and how it ended.
fn line(trial: &DeadlockTrial) -> String {
    let DeadlockTrial { mutant, verdict, launched, .. } = trial;
    let awaited: Vec<_> = mutant.awaited.iter().map(String::as_str).collect();
    let also: Vec<_> = mutant.also.iter().map(String::as_str).collect();
    let mut text = format!(
        "* `{}`, line {}, {} (`{}`): {}; the simulator: waits for {}",
        mutant.kernel,
        mutant.line,
        mutant.step,
        mutant.test,
        verdict.text(),
        awaited.join(", "),
    );
    if !also.is_empty() {
        _ = write!(text, "; {}", also.join(", "));
    }
    match &launched.ending {
        Ending::Deadlock { named, .. } => {
            _ = write!(
                text,
                "; reported: {}",
                named.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
            );
        }
        Ending::Error { text: error, .. } => _ = write!(text, "; {}", first_lines(error)),
        Ending::Right | Ending::Wrong | Ending::Hang => {}
    }
    text + "\n"
}

/// Returns the beginning of an error in one line.
fn first_lines(error: &str) -> String {
    error.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests {
    use super::super::{DeadlockMutant, Launched};
    use super::*;

    fn trial(step: &str, also: &[&str], ending: Ending) -> DeadlockTrial {
        let mutant = DeadlockMutant {
            test: "barriers::ring".to_owned(),
            kernel: "ring".to_owned(),
            entry: "ring_0".to_owned(),
            step: step.to_owned(),
            line: 7,
            awaited: ["barrier 0".to_owned()].into(),
            also: also.iter().map(|kind| (*kind).to_owned()).collect(),
        };
        let verdict = Verdict::of(&mutant, &ending);
        DeadlockTrial { mutant, verdict, launched: Launched { ending, seconds: 0.25 }, process_seconds: 1.0 }
    }

    fn deadlock(named: &str) -> Ending {
        Ending::Deadlock { named: [named.to_owned()].into(), text: named.to_owned() }
    }

    #[test]
    fn mutants_are_counted_by_step() {
        let error =
            Ending::Error { code: Some("TMA0613".to_owned()), text: "TMA0613: a trap\nhelp".to_owned() };
        let trials = [
            trial("sync removed", &[], deadlock("barrier 0")),
            trial("sync removed", &[], deadlock("barrier 1")),
            trial("wait removed", &["race"], error),
            trial("wait removed", &["race"], Ending::Hang),
        ];
        let text = tables(&trials);
        assert!(text.contains("| sync removed | 2 | 1 | 1 | 0 | 0 | 0 | 0 | 0.25 s |\n"), "{text}");
        assert!(text.contains("| all | 2 | 0 | 0 | 1 | 0 | 0 | 1 | 0.25 s |\n"), "{text}");
        let misnamed = "* `ring`, line 7, sync removed (`barriers::ring`): misnamed; the simulator: waits for \
                        barrier 0; reported: barrier 1\n";
        assert!(text.contains(misnamed), "{text}");
        assert!(text.contains("barrier 0; race; TMA0613: a trap / help\n"), "{text}");
        let wanted = "named: 1 of 2 (50.0 %) of the certain deadlocks, 0 of 2 (0.0 %) of those with other findings; 1 hang";
        assert_eq!(summary(&trials), wanted);
    }

    #[test]
    fn most_certain_deadlocks_must_be_named_and_nothing_may_hang() {
        let named = || trial("sync removed", &[], deadlock("barrier 0"));
        let mut trials: Vec<_> = (0..19).map(|_| named()).collect();
        trials.push(trial("sync removed", &[], Ending::Right));
        trials.push(trial("sync removed", &["race"], Ending::Wrong));
        assert!(passes(&trials));
        trials.push(trial("sync removed", &[], Ending::Wrong));
        assert!(!passes(&trials));
        trials.truncate(19);
        assert!(passes(&trials));
        trials.push(trial("sync removed", &["race"], Ending::Hang));
        assert!(!passes(&trials));
    }
}
