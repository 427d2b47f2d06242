//! The verdicts on the mutants of the IR, as tables for the book.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::judgement::{Compiler, MutantJudgement, Simulator};

/// Counts of mutants of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The total.
    pub mutants: usize,
    /// Rejected by rules for single statements.
    pub other_rules: usize,
    /// Found by the simulator to violate a protocol rule.
    pub wrong: usize,
    /// Wrong ones that the compiler rejects.
    pub rejected: usize,
    /// Rejected ones for which it names a right line.
    pub right_line: usize,
    /// Wrong ones that it does not decide.
    pub undecided: usize,
    /// Wrong ones that it accepts.
    pub accepted: usize,
    /// Rejected by the compiler only.
    pub compiler_alone: usize,
    /// Reported by neither.
    pub neither: usize,
}

impl Tally {
    /// Counts mutants.
    pub fn of<'j>(all: impl IntoIterator<Item = &'j MutantJudgement>) -> Self {
        let mut tally = Self::default();
        for judgement in all {
            tally.mutants += 1;
            if let Compiler::OtherRule(_) = judgement.compiler {
                tally.other_rules += 1;
                continue;
            }
            let is_rejected = matches!(judgement.compiler, Compiler::Rejected(..));
            if !judgement.is_wrong() {
                tally.compiler_alone += usize::from(is_rejected);
                tally.neither += usize::from(!is_rejected);
                continue;
            }
            tally.wrong += 1;
            tally.right_line += usize::from(judgement.has_right_line());
            match judgement.compiler {
                Compiler::Rejected(..) => tally.rejected += 1,
                Compiler::Undecided(_) => tally.undecided += 1,
                Compiler::Checked | Compiler::Proved => tally.accepted += 1,
                Compiler::OtherRule(_) => {}
            }
        }
        tally
    }

    fn row(self, name: &str) -> String {
        let Self { mutants, other_rules, wrong, rejected, right_line, undecided, .. } = self;
        let Self { accepted, compiler_alone, neither, .. } = self;
        format!(
            "| {name} | {mutants} | {other_rules} | {wrong} | {rejected} | {right_line} | {undecided} | {accepted} | \
             {compiler_alone} | {neither} |\n"
        )
    }
}

fn named(judgement: &MutantJudgement) -> String {
    let MutantJudgement { kernel, line, step, change, .. } = judgement;
    format!("`{kernel}`, line {line}: {step}, {change}")
}

/// Returns the mutants that the compiler accepts and the simulator finds wrong, one per line.
pub fn accepted_and_wrong(all: &[MutantJudgement]) -> Vec<String> {
    let accepted =
        |judgement: &&MutantJudgement| matches!(judgement.compiler, Compiler::Checked | Compiler::Proved);
    let wrong = all.iter().filter(accepted).filter(|judgement| judgement.is_wrong());
    wrong.map(|judgement| format!("{}: {:?}", named(judgement), judgement.simulator)).collect()
}

/// Returns the reason why neither reports a mutant, or why the compiler does not.
fn reason(judgement: &MutantJudgement) -> String {
    if let Compiler::Undecided(why) = &judgement.compiler
        && judgement.is_wrong()
    {
        return format!("not decided: {why}");
    }
    match &judgement.simulator {
        Simulator::Found { kind, .. } if kind.rule().is_none() => {
            format!(
                "the simulator finds it ({kind}): bounds, values and registers are no matter of the protocol"
            )
        }
        Simulator::Found { .. } => "accepted".to_owned(),
        Simulator::OnlyWrong => "the order is right, and the values are others".to_owned(),
        Simulator::NoFinding => "the same results under every seed: the step is redundant there".to_owned(),
    }
}

/// Returns the head of a table of tallies.
fn head(first: &str) -> String {
    format!(
        "| {first} | mutants | other rules | wrong | refused | right line | not decided | accepted | compiler alone | \
         neither |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n"
    )
}

/// Formats the results per kernel as Markdown.
pub fn table_of_kernels(all: &[MutantJudgement]) -> String {
    let mut by_kernel = BTreeMap::<&str, Vec<_>>::new();
    for judgement in all {
        by_kernel.entry(&judgement.kernel).or_default().push(judgement);
    }
    let mut text = format!("\n## The kernels of `tma-kernels`\n\n{}", head("kernel"));
    for (kernel, some) in &by_kernel {
        text += &Tally::of(some.iter().copied()).row(&format!("`{kernel}`"));
    }
    text + &Tally::of(all).row("all")
}

/// Formats the results of one in `nth` mutants as Markdown.
pub fn tables(all: &[MutantJudgement], nth: usize) -> String {
    let mut by_step = BTreeMap::<_, Vec<_>>::new();
    for judgement in all {
        by_step.entry((judgement.step, judgement.change)).or_default().push(judgement);
    }
    let setting = if nth == 1 { "all mutants".to_owned() } else { format!("one in {nth} mutants") };
    let mut text = format!("These are the results of {setting}.\n\n## By step\n\n{}", head("step"));
    for ((step, change), some) in &by_step {
        text += &Tally::of(some.iter().copied()).row(&format!("{step}, {change}"));
    }
    text += &Tally::of(all).row("all");
    let mut reasons = BTreeMap::<String, usize>::new();
    for judgement in all {
        let is_rejected = matches!(judgement.compiler, Compiler::Rejected(..) | Compiler::OtherRule(_));
        if !is_rejected {
            *reasons.entry(reason(judgement)).or_default() += 1;
        }
    }
    text += "\n## Those that are not refused, by reason\n\n| reason | mutants |\n| --- | --: |\n";
    for (reason, count) in &reasons {
        let _ = writeln!(text, "| {reason} | {count} |");
    }
    text += "\n## Wrong, and not refused\n\n| mutant | rule of the simulator | why the compiler does not refuse it |\n\
             | --- | --- | --- |\n";
    for judgement in all {
        if let (true, Simulator::Found { kind, .. }) = (judgement.is_wrong(), &judgement.simulator)
            && !matches!(judgement.compiler, Compiler::Rejected(..))
        {
            let _ = writeln!(text, "| {} | {kind} | {} |", named(judgement), reason(judgement));
        }
    }
    text += "\n## Refused, and not found by the simulator\n\n| mutant | rule | what the simulator says |\n| --- | \
             --- | --- |\n";
    for judgement in all {
        if let Compiler::Rejected(code, _) = &judgement.compiler
            && !judgement.is_wrong()
        {
            let _ = writeln!(text, "| {} | {code} | {} |", named(judgement), reason(judgement));
        }
    }
    text
}
