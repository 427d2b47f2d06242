//! The results as tables for the book.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::trial::{Trial, Verdict};
use super::unreported::Lists;

/// Counts of mutants of one kind or kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The total.
    pub mutants: usize,
    /// Reported by the simulator.
    pub found: usize,
    /// The greatest seed that was needed for one of them.
    pub latest_seed: u64,
    /// Listed as harmless, and not reported.
    pub harmless: usize,
    /// Not reported, but should be.
    pub missed: usize,
}

impl Tally {
    /// Counts mutants.
    pub fn of<'t>(trials: impl IntoIterator<Item = &'t Trial>, lists: &Lists) -> Self {
        let mut tally = Self::default();
        for trial in trials {
            tally.mutants += 1;
            match trial.verdict {
                Verdict::Found { seed } => {
                    tally.found += 1;
                    tally.latest_seed = tally.latest_seed.max(seed);
                }
                Verdict::Unseen if lists.is_harmless(trial) => tally.harmless += 1,
                Verdict::Unseen | Verdict::OnlyWrong => tally.missed += 1,
            }
        }
        tally
    }

    fn row(self, name: &str) -> String {
        let Self { mutants, found, latest_seed, harmless, missed } = self;
        let seed = if found == 0 { String::new() } else { latest_seed.to_string() };
        format!("| {name} | {mutants} | {found} | {seed} | {harmless} | {missed} |\n")
    }
}

/// Returns unexpected results, one per line: mutants that were missed, and mutants that are listed
/// as unreported but were reported.
pub fn surprises(trials: &[Trial], lists: &Lists) -> Vec<String> {
    let mut all = vec![];
    for trial in trials {
        let Trial { kernel, line, instruction, index, change, .. } = trial;
        let what = format!("{kernel}, PTX line {line}: `{instruction}` (no. {}), {change}", index + 1);
        let (is_harmless, is_missed) = (lists.is_harmless(trial), lists.is_missed(trial));
        let problem = match trial.verdict {
            Verdict::Found { .. } if !is_harmless && !is_missed => continue,
            Verdict::Found { seed } => format!("listed as unreported, but found under seed {seed}"),
            Verdict::OnlyWrong if is_missed => continue,
            Verdict::OnlyWrong => "computes something else, and nothing is reported".to_owned(),
            Verdict::Unseen if is_harmless || is_missed => continue,
            Verdict::Unseen => "not found under any seed".to_owned(),
        };
        all.push(format!("{what}: {problem}"));
    }
    all
}

/// Returns entries of the lists that match no mutant. `trials` must be those of all their kernels.
pub fn unused_entries(trials: &[Trial], lists: &Lists) -> Vec<String> {
    let unused = lists
        .harmless
        .iter()
        .chain(lists.missed)
        .filter(|entry| !trials.iter().any(|trial| entry.is_of(trial)));
    unused.map(|entry| format!("listed as unreported, but there is no such mutant: {entry}")).collect()
}

/// Formats all results as Markdown.
pub fn tables(trials: &[Trial], lists: &Lists) -> String {
    let mut by_change = BTreeMap::<_, Vec<_>>::new();
    let mut by_kernel: Vec<(&str, Vec<_>)> = vec![];
    for trial in trials {
        by_change.entry(trial.change).or_default().push(trial);
        match by_kernel.iter_mut().find(|(kernel, _)| *kernel == trial.kernel) {
            Some((_, list)) => list.push(trial),
            None => by_kernel.push((trial.kernel, vec![trial])),
        }
    }
    let head = |first: &str| {
        format!(
            "| {first} | mutants | found | latest seed | harmless | missed |\n| --- | --: | --: | --: | --: | --: |\n"
        )
    };
    let mut text = format!("## By step\n\n{}", head("step"));
    for (change, trials) in &by_change {
        text += &Tally::of(trials.iter().copied(), lists).row(&change.to_string());
    }
    text += &Tally::of(trials, lists).row("all");
    let _ = write!(text, "\n## By kernel\n\n{}", head("kernel"));
    for (kernel, trials) in &by_kernel {
        text += &Tally::of(trials.iter().copied(), lists).row(&format!("`{kernel}`"));
    }
    text += "\n## Harmless\n\n| kernel | instruction | change | why it does no harm |\n| --- | --- | --- | --- |\n";
    for entry in lists.harmless {
        let _ = writeln!(text, "{entry}");
    }
    text +=
        "\n## Missed\n\n| kernel | instruction | change | why it is not seen |\n| --- | --- | --- | --- |\n";
    for entry in lists.missed {
        let _ = writeln!(text, "{entry}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::steps::Change;
    use crate::mutation::unreported::TREE;

    fn trial(index: usize, change: Change, verdict: Verdict) -> Trial {
        let instruction = "barrier.sync %r1, %r2;".to_owned();
        Trial { kernel: "place_named_barriers", line: 7, instruction, index, change, verdict }
    }

    #[test]
    fn the_tally_tells_missed_from_harmless() {
        let trials = [
            trial(0, Change::SyncRemoved, Verdict::Found { seed: 3 }),
            trial(4, Change::SyncRemoved, Verdict::Unseen),
            trial(1, Change::SyncRemoved, Verdict::Unseen),
            trial(2, Change::SyncRemoved, Verdict::OnlyWrong),
        ];
        let wanted = Tally { mutants: 4, found: 1, latest_seed: 3, harmless: 1, missed: 2 };
        assert_eq!(Tally::of(&trials, &TREE), wanted);
        assert!(tables(&trials, &TREE).contains("| sync removed | 4 | 1 | 3 | 1 | 2 |\n"));
    }

    #[test]
    fn both_sides_of_the_lists_are_held_to() {
        let surprise = |trial| surprises(&[trial], &TREE).remove(0);
        assert!(
            surprise(trial(1, Change::SyncRemoved, Verdict::Unseen)).ends_with("not found under any seed")
        );
        let found = Verdict::Found { seed: 5 };
        assert!(
            surprise(trial(4, Change::SyncRemoved, found)).ends_with("unreported, but found under seed 5")
        );
        let expected = [trial(4, Change::SyncRemoved, Verdict::Unseen)];
        assert!(surprises(&expected, &TREE).is_empty());
        let unused = unused_entries(&expected, &TREE);
        assert_eq!(unused.len(), TREE.harmless.len() + TREE.missed.len() - 1);
        assert!(unused[0].starts_with("listed as unreported, but there is no such mutant"));
    }
}
