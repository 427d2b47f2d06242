//! What the two judges say of the mutants of the IR, as tables of the book.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::judged::{Compiler, Judged, Simulator, is_of_protocol};

/// Mutants of one kind, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All of them.
    pub mutants: usize,
    /// Those that rules for single statements refuse.
    pub other_rules: usize,
    /// Those that the simulator finds to break a rule of the protocol.
    pub wrong: usize,
    /// Those of the wrong ones that the compiler refuses.
    pub refused: usize,
    /// Those of them of which it names a right line.
    pub right_line: usize,
    /// Those of the wrong ones that it does not decide.
    pub undecided: usize,
    /// Those of the wrong ones that it accepts.
    pub accepted: usize,
    /// Those that the compiler alone refuses.
    pub compiler_alone: usize,
    /// Those of which neither says anything.
    pub neither: usize,
}

impl Tally {
    /// Counts mutants.
    pub fn of<'j>(all: impl IntoIterator<Item = &'j Judged>) -> Self {
        let mut tally = Self::default();
        for judged in all {
            tally.mutants += 1;
            if let Compiler::OtherRule(_) = judged.compiler {
                tally.other_rules += 1;
                continue;
            }
            let is_refused = matches!(judged.compiler, Compiler::Refused(..));
            if !judged.is_wrong() {
                tally.compiler_alone += usize::from(is_refused);
                tally.neither += usize::from(!is_refused);
                continue;
            }
            tally.wrong += 1;
            tally.right_line += usize::from(judged.has_right_line());
            match judged.compiler {
                Compiler::Refused(..) => tally.refused += 1,
                Compiler::Undecided(_) => tally.undecided += 1,
                Compiler::Checked | Compiler::Proved => tally.accepted += 1,
                Compiler::OtherRule(_) => {}
            }
        }
        tally
    }

    fn row(self, name: &str) -> String {
        let Self { mutants, other_rules, wrong, refused, right_line, undecided, .. } = self;
        let Self { accepted, compiler_alone, neither, .. } = self;
        format!(
            "| {name} | {mutants} | {other_rules} | {wrong} | {refused} | {right_line} | {undecided} | {accepted} | \
             {compiler_alone} | {neither} |\n"
        )
    }
}

fn named(judged: &Judged) -> String {
    let Judged { kernel, line, step, change, .. } = judged;
    format!("`{kernel}`, line {line}: {step}, {change}")
}

/// Those that the compiler accepts and the simulator finds wrong, a line each.
pub fn accepted_and_wrong(all: &[Judged]) -> Vec<String> {
    let accepted = |judged: &&Judged| matches!(judged.compiler, Compiler::Checked | Compiler::Proved);
    let wrong = all.iter().filter(accepted).filter(|judged| judged.is_wrong());
    wrong.map(|judged| format!("{}: {:?}", named(judged), judged.simulator)).collect()
}

/// Why neither of the two finds a mutant, or the compiler does not.
fn reason(judged: &Judged) -> String {
    if let Compiler::Undecided(why) = &judged.compiler
        && judged.is_wrong()
    {
        return format!("not decided: {why}");
    }
    match &judged.simulator {
        Simulator::Found { kind, .. } if !is_of_protocol(*kind) => {
            format!(
                "the simulator finds it ({kind}): bounds, values and registers are no matter of the protocol"
            )
        }
        Simulator::Found { .. } => "accepted".to_owned(),
        Simulator::OnlyWrong => "the order is right, and the values are others".to_owned(),
        Simulator::Quiet => "the same results under every seed: the step is redundant there".to_owned(),
    }
}

/// The columns of a tally.
fn head(first: &str) -> String {
    format!(
        "| {first} | mutants | other rules | wrong | refused | right line | not decided | accepted | compiler alone | \
         neither |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n"
    )
}

/// The results for each kernel, as Markdown.
pub fn table_of_kernels(all: &[Judged]) -> String {
    let mut by_kernel = BTreeMap::<&str, Vec<_>>::new();
    for judged in all {
        by_kernel.entry(&judged.kernel).or_default().push(judged);
    }
    let mut text = format!("\n## The kernels of `tma-kernels`\n\n{}", head("kernel"));
    for (kernel, some) in &by_kernel {
        text += &Tally::of(some.iter().copied()).row(&format!("`{kernel}`"));
    }
    text + &Tally::of(all).row("all")
}

/// The results of one in `nth` mutants, as Markdown.
pub fn tables(all: &[Judged], nth: usize) -> String {
    let mut by_step = BTreeMap::<_, Vec<_>>::new();
    for judged in all {
        by_step.entry((judged.step, judged.change)).or_default().push(judged);
    }
    let which = if nth == 1 { "all mutants".to_owned() } else { format!("one in {nth} mutants") };
    let mut text = format!("These are the results of {which}.\n\n## By step\n\n{}", head("step"));
    for ((step, change), some) in &by_step {
        text += &Tally::of(some.iter().copied()).row(&format!("{step}, {change}"));
    }
    text += &Tally::of(all).row("all");
    let mut reasons = BTreeMap::<String, usize>::new();
    for judged in all {
        let is_refused = matches!(judged.compiler, Compiler::Refused(..) | Compiler::OtherRule(_));
        if !is_refused {
            *reasons.entry(reason(judged)).or_default() += 1;
        }
    }
    text += "\n## Those that are not refused, by reason\n\n| reason | mutants |\n| --- | --: |\n";
    for (reason, count) in &reasons {
        let _ = writeln!(text, "| {reason} | {count} |");
    }
    text += "\n## Wrong, and not refused\n\n| mutant | rule of the simulator | why the compiler does not refuse it |\n\
             | --- | --- | --- |\n";
    for judged in all {
        if let (true, Simulator::Found { kind, .. }) = (judged.is_wrong(), &judged.simulator)
            && !matches!(judged.compiler, Compiler::Refused(..))
        {
            let _ = writeln!(text, "| {} | {kind} | {} |", named(judged), reason(judged));
        }
    }
    text += "\n## Refused, and not found by the simulator\n\n| mutant | rule | what the simulator says |\n| --- | \
             --- | --- |\n";
    for judged in all {
        if let Compiler::Refused(code, _) = &judged.compiler
            && !judged.is_wrong()
        {
            let _ = writeln!(text, "| {} | {code} | {} |", named(judged), reason(judged));
        }
    }
    text
}
