//! The report of `cargo tma check`.

use serde_json::{Value, json};
use tma_codegen::diag::Suspect;
use tma_codegen::protocol::{Judgement, SharedAccess, Undecided, Verdict};
use tma_model::banks::Wavefronts;

use super::super::assembled::Assembled;
use super::kernels::{CheckedKernel, Exception, Fault, RejectedFile, TrustedItem};
use crate::arguments::Deny;
use crate::output::Output;
use crate::style::{bad, bold, dim, good, warning};

/// The results of all checks.
pub(super) struct Report {
    pub(super) kernels: Vec<CheckedKernel>,
    pub(super) rejected: Vec<RejectedFile>,
    pub(super) ptxas: Ptxas,
    /// Whether the whole package builds, or was not built.
    pub(super) all_built: bool,
}

/// The results of ptxas.
pub(super) enum Ptxas {
    Skipped,
    Missing,
    /// The result for each kernel, if it was compiled.
    Finished(Vec<Option<Assembled>>),
}

/// The number of kernels with each result.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    proved: u32,
    checked: u32,
    undecided: u32,
    broken: u32,
    /// Broken kernels whose protocol is trusted.
    trusted: u32,
    conflicts: u32,
    /// Kernels with instructions of their own, which are not checked.
    with_ptx: u32,
    /// Kernels that spill, or that ptxas complains about.
    ptxas_warnings: u32,
}

impl Report {
    pub(super) fn output(&self, deny: &[Deny]) -> Output {
        let mut tally = Tally::default();
        let (mut text, mut texts, mut json) = (String::new(), vec![], vec![]);
        for rejected in &self.rejected {
            text += &format!("{}  {}\n{}\n", bold(&rejected.file), bad("rejected"), rejected.text);
        }
        for (index, kernel) in self.kernels.iter().enumerate() {
            let assembled = match &self.ptxas {
                Ptxas::Finished(all) => all.get(index).and_then(Option::as_ref),
                Ptxas::Skipped | Ptxas::Missing => None,
            };
            tally.add(kernel, assembled);
            texts.push(kernel_text(kernel, assembled));
            json.push(kernel_json(kernel, assembled));
        }
        text += &grouped(&self.kernels, texts);
        text += &self.last_lines(&tally);
        let is_denied = |denied: &Deny| match denied {
            Deny::Conflicts => tally.conflicts > 0,
            Deny::Undecided => tally.undecided > 0,
        };
        let is_clean = self.rejected.is_empty()
            && self.all_built
            && tally.broken == 0
            && tally.ptxas_warnings == 0
            && !deny.iter().any(is_denied);
        let rejected = self.rejected.iter().map(|RejectedFile { file, errors, .. }| {
            json!({ "file": file, "errors": errors.iter().map(fault_json).collect::<Vec<_>>() })
        });
        let json = json!({
            "kernels": json,
            "refused": rejected.collect::<Vec<_>>(),
            "builds": self.all_built,
            "summary": tally.json(),
            "clean": is_clean,
        });
        Output { text, json, is_clean }
    }

    fn last_lines(&self, tally: &Tally) -> String {
        let mut text = String::new();
        match &self.ptxas {
            Ptxas::Missing => {
                let advice = "registers and spills are unknown: run `cargo tma setup` to install ptxas";
                text += &format!("{}\n", dim(advice));
            }
            Ptxas::Skipped | Ptxas::Finished(_) => {}
        }
        if !self.all_built {
            text += &format!("{}\n", bad("the package does not build"));
        }
        text + &tally.text(self.kernels.len(), self.rejected.len())
    }
}

impl Tally {
    fn add(&mut self, kernel: &CheckedKernel, assembled: Option<&Assembled>) {
        match &kernel.report.judgement.verdict {
            Verdict::Proved => self.proved += 1,
            Verdict::CheckedUpTo(_) => self.checked += 1,
            Verdict::NotDecided(_) => self.undecided += 1,
            Verdict::Broken(_) if kernel.trusted.is_some() => self.trusted += 1,
            Verdict::Broken(_) => self.broken += 1,
        }
        self.conflicts += u32::from(kernel.report.accesses.iter().any(|access| conflicts(access) > 0));
        self.with_ptx +=
            u32::from(kernel.exceptions.iter().any(|exception| exception.item == TrustedItem::Ptx));
        self.ptxas_warnings +=
            u32::from(assembled.is_some_and(|assembled| !assembled.ptxas_report.is_clean()));
    }

    fn text(&self, kernels: usize, rejected: usize) -> String {
        let shown = |count: u32, text: String| if count > 0 { text } else { dim(text) };
        let mut parts = vec![
            shown(self.proved, format!("{} proved", self.proved)),
            shown(self.checked, format!("{} checked up to a number of iterations", self.checked)),
            shown(self.undecided, format!("{} not decided", self.undecided)),
            if self.broken > 0 { bad(format!("{} broken", self.broken)) } else { dim("0 broken") },
        ];
        if self.trusted > 0 {
            parts.push(warning(format!("{} broken and trusted", self.trusted)));
        }
        let counted = |count: usize, noun: &str| match count {
            1 => format!("1 {noun}"),
            count => format!("{count} {noun}s"),
        };
        let mut text = format!("{}: {}\n", counted(kernels, "kernel"), parts.join(", "));
        if rejected > 0 {
            text += &format!("{} with kernels that break rules\n", bad(counted(rejected, "file")));
        }
        if self.conflicts > 0 {
            text += &format!("{}\n", warning(format!("{} with bank conflicts", self.conflicts)));
        }
        if self.with_ptx > 0 {
            let verb = if self.with_ptx == 1 { "uses" } else { "use" };
            let count = counted(self.with_ptx as usize, "kernel");
            text += &format!("{}\n", warning(format!("{count} {verb} `ptx!`, which is not checked")));
        }
        if self.ptxas_warnings > 0 {
            text += &format!("{}\n", bad(format!("{} with spills or ptxas notes", self.ptxas_warnings)));
        }
        text
    }

    fn json(&self) -> Value {
        json!({
            "proved": self.proved,
            "checked_up_to": self.checked,
            "not_decided": self.undecided,
            "broken": self.broken,
            "broken_and_trusted": self.trusted,
            "with_bank_conflicts": self.conflicts,
            "with_ptx": self.with_ptx,
            "with_ptxas_complaints": self.ptxas_warnings,
        })
    }
}

fn conflicts(access: &SharedAccess) -> u32 {
    access.worst.map_or(0, Wavefronts::conflicts)
}

/// Returns the text below a kernel's name.
fn kernel_text(kernel: &CheckedKernel, assembled: Option<&Assembled>) -> String {
    let mut lines = protocol_text(kernel);
    lines += &banks_text(kernel);
    lines += &assembled.map(Assembled::text).unwrap_or_default();
    lines.lines().map(|line| format!("    {line}\n")).collect()
}

/// Joins kernels with their texts. Instances of a kernel with the same text are shown once.
fn grouped(kernels: &[CheckedKernel], texts: Vec<String>) -> String {
    let mut groups: Vec<(&CheckedKernel, String, usize)> = vec![];
    for (kernel, text) in kernels.iter().zip(texts) {
        let is_same_group = |(first, known, _): &&mut (&CheckedKernel, String, usize)| {
            let [a, b] = [first, kernel].map(|kernel| (&kernel.file, kernel.line, &kernel.made_in));
            a == b && *known == text
        };
        match groups.iter_mut().find(is_same_group) {
            Some((_, _, count)) => *count += 1,
            None => groups.push((kernel, text, 1)),
        }
    }
    let one = |(kernel, text, count): (&CheckedKernel, String, usize)| {
        let others = match count {
            1 => String::new(),
            2 => " and another instance".to_owned(),
            more => format!(" and {} other instances", more - 1),
        };
        let made = kernel.made_in.as_ref().map(|file| format!(", made in {file}")).unwrap_or_default();
        let at = dim(location(kernel, kernel.line) + &made);
        format!("{}{others}  {at}\n{text}", bold(&kernel.name))
    };
    groups.into_iter().map(one).collect()
}

fn protocol_text(kernel: &CheckedKernel) -> String {
    let judgement = &kernel.report.judgement;
    let exploration_summary = dim(exploration_summary(judgement));
    let mut text = match &judgement.verdict {
        Verdict::Proved if judgement.steps == 0 => {
            format!("{}: nothing to prove, since no thread waits for another\n", good("proved"))
        }
        Verdict::Proved => format!("{} {exploration_summary}\n", good("proved")),
        Verdict::CheckedUpTo(iterations) => {
            format!("{} {exploration_summary}\n", good(format!("checked up to {iterations} iterations")))
        }
        Verdict::NotDecided(undecided) => {
            let one = |case: &Undecided| {
                let example = example(judgement, case).map(|text| format!("        {text}\n"));
                let line = case.span.start().line;
                format!("    {}: {}\n{}", location(kernel, line), case.reason, example.unwrap_or_default())
            };
            format!("{} {exploration_summary}\n", warning("not decided"))
                + &undecided.iter().map(one).collect::<String>()
        }
        Verdict::Broken(diagnostic) => {
            let at = location(kernel, diagnostic.span.start().line);
            format!(
                "{} {exploration_summary}\n    {at}: {}\n",
                bad("broken"),
                diagnostic.text().replace('\n', "\n    ")
            )
        }
    };
    if let Some(reason) = &kernel.trusted {
        text += &format!("trusted, so the macro and the build script do not check it: {reason}\n");
    }
    for Exception { line, item } in &kernel.exceptions {
        let description = match item {
            TrustedItem::Statement(reason) => format!("a statement is trusted: {reason}"),
            TrustedItem::Assumption(text) => format!("assumed: {text}"),
            TrustedItem::Ptx => "not checked: the instructions of `ptx!`".to_owned(),
        };
        text += &format!("{}: {description}\n", location(kernel, *line));
    }
    let names: Vec<_> = kernel.report.assumed_disjoint.iter().map(|name| format!("`{name}`")).collect();
    if !names.is_empty() && matches!(judgement.verdict, Verdict::Proved | Verdict::CheckedUpTo(_)) {
        text += &dim(format!(
            "not checked: whether several threads write the same elements of {}\n",
            names.join(", ")
        ));
    }
    text
}

/// Describes the extent of the exploration. A proof visits states, and follows no execution to its
/// end.
fn exploration_summary(Judgement { executions, steps, .. }: &Judgement) -> String {
    let states = if *steps == 1 { "1 visited state".to_owned() } else { format!("{steps} visited states") };
    match executions {
        0 => format!("({states})"),
        1 => format!("(1 path, {states})"),
        paths => format!("({paths} paths, {states})"),
    }
}

/// Returns the suspected mistake because of which a kernel is undecided.
fn example(judgement: &Judgement, case: &Undecided) -> Option<String> {
    let is_of =
        |suspect: &&Suspect| suspect.reason == case.reason && suspect.span().start() == case.span.start();
    judgement.suspects.iter().find(is_of).map(ToString::to_string)
}

fn banks_text(kernel: &CheckedKernel) -> String {
    let accesses = &kernel.report.accesses;
    let (known, unknown): (Vec<_>, Vec<_>) = accesses.iter().partition(|access| access.worst.is_some());
    let mut text = String::new();
    for access in known.iter().filter(|access| conflicts(access) > 0) {
        let Some(worst) = access.worst else { continue };
        let verb = if access.writes { "writes" } else { "reads" };
        text += &format!(
            "{}: {}: a warp {verb} in {} wavefronts instead of {}\n",
            warning("bank conflict"),
            location(kernel, access.span.start().line),
            worst.needed,
            worst.ideal
        );
    }
    if text.is_empty() && !known.is_empty() {
        text += &format!("no bank conflicts in {}\n", accesses_in_words(known.len()));
    }
    if !unknown.is_empty() {
        let mut lines: Vec<_> = unknown.iter().map(|access| access.span.start().line).collect();
        lines.dedup();
        let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
        let count = accesses_in_words(unknown.len());
        let text_of = format!(
            "bank conflicts unknown for {count} at addresses that are not tracked: line {}",
            lines.join(", ")
        );
        text += &format!("{}\n", dim(text_of));
    }
    text
}

fn accesses_in_words(count: usize) -> String {
    if count == 1 { "1 access".to_owned() } else { format!("{count} accesses") }
}

/// Formats a location: `src/lib.rs:12`.
fn location(kernel: &CheckedKernel, line: usize) -> String {
    format!("{}:{line}", kernel.file)
}

fn kernel_json(kernel: &CheckedKernel, assembled: Option<&Assembled>) -> Value {
    let judgement = &kernel.report.judgement;
    let (verdict, iterations, undecided, error) = match &judgement.verdict {
        Verdict::Proved => ("proved", None, &[][..], None),
        Verdict::CheckedUpTo(iterations) => ("checked_up_to", Some(iterations), &[][..], None),
        Verdict::NotDecided(undecided) => ("not_decided", None, undecided.as_slice(), None),
        Verdict::Broken(diagnostic) => ("broken", None, &[][..], Some(fault_json(&Fault::of(diagnostic)))),
    };
    let undecided = undecided.iter().map(|case| {
        let line = case.span.start().line;
        json!({ "line": line, "why": case.reason.to_string(), "example": example(judgement, case) })
    });
    let accesses = kernel.report.accesses.iter().map(|access| {
        let at = access.span.start();
        json!({
            "line": at.line,
            "column": at.column + 1,
            "writes": access.writes,
            "wavefronts": access.worst.map(|worst| worst.needed),
            "ideal": access.worst.map(|worst| worst.ideal),
        })
    });
    let exceptions = kernel.exceptions.iter().map(|Exception { line, item }| match item {
        TrustedItem::Statement(reason) => json!({ "line": line, "trusted": reason }),
        TrustedItem::Assumption(text) => json!({ "line": line, "assumed": text }),
        TrustedItem::Ptx => json!({ "line": line, "ptx": true }),
    });
    json!({
        "kernel": kernel.name,
        "file": kernel.file,
        "line": kernel.line,
        "made_in": kernel.made_in,
        "protocol": {
            "verdict": verdict,
            "trusted": kernel.trusted,
            "exceptions": exceptions.collect::<Vec<_>>(),
            "iterations": iterations,
            "undecided": undecided.collect::<Vec<_>>(),
            "error": error,
            "not_judged": kernel.report.assumed_disjoint,
            "executions": judgement.executions,
            "steps": judgement.steps,
        },
        "shared_accesses": accesses.collect::<Vec<_>>(),
        "ptxas": assembled.map(Assembled::json),
    })
}

fn fault_json(fault: &Fault) -> Value {
    json!({ "code": fault.code, "line": fault.line, "text": fault.text })
}
