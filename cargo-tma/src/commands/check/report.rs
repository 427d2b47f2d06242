//! The report of `cargo tma check`.

use serde_json::{Value, json};
use tma_codegen::check::protocol::{Doubt, Judgement, SharedAccess, Verdict};
use tma_codegen::diag::Suspect;
use tma_model::banks::Wavefronts;

use super::super::assembled::Assembled;
use super::judged::{Believed, Exception, Fault, Judged, Refused};
use crate::arguments::Deny;
use crate::output::Output;
use crate::style::{bad, bold, dim, good, warning};

/// The results of all checks.
pub(super) struct Report {
    pub(super) kernels: Vec<Judged>,
    pub(super) refused: Vec<Refused>,
    pub(super) ptxas: Ptxas,
    /// Whether the whole package builds, or was not built.
    pub(super) is_whole: bool,
}

/// The results of ptxas.
pub(super) enum Ptxas {
    NotAsked,
    Missing,
    /// The result for each kernel, if it was compiled.
    Said(Vec<Option<Assembled>>),
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
    /// Kernels that spill, or that ptxas complains about.
    complaints: u32,
}

impl Report {
    pub(super) fn output(&self, deny: &[Deny]) -> Output {
        let mut tally = Tally::default();
        let (mut text, mut texts, mut json) = (String::new(), vec![], vec![]);
        for refused in &self.refused {
            text += &format!("{}  {}\n{}\n", bold(&refused.file), bad("refused"), refused.text);
        }
        for (index, kernel) in self.kernels.iter().enumerate() {
            let assembled = match &self.ptxas {
                Ptxas::Said(all) => all.get(index).and_then(Option::as_ref),
                Ptxas::NotAsked | Ptxas::Missing => None,
            };
            tally.add(kernel, assembled);
            texts.push(kernel_text(kernel, assembled));
            json.push(kernel_json(kernel, assembled));
        }
        text += &grouped(&self.kernels, texts);
        text += &self.last_lines(&tally);
        let is_denied = |what: &Deny| match what {
            Deny::Conflicts => tally.conflicts > 0,
            Deny::Undecided => tally.undecided > 0,
        };
        let is_clean = self.refused.is_empty()
            && self.is_whole
            && tally.broken == 0
            && tally.complaints == 0
            && !deny.iter().any(is_denied);
        let refused = self.refused.iter().map(|Refused { file, errors, .. }| {
            json!({ "file": file, "errors": errors.iter().map(fault_json).collect::<Vec<_>>() })
        });
        let json = json!({
            "kernels": json,
            "refused": refused.collect::<Vec<_>>(),
            "builds": self.is_whole,
            "summary": tally.json(),
            "clean": is_clean,
        });
        Output { text, json, is_clean }
    }

    fn last_lines(&self, tally: &Tally) -> String {
        let mut text = String::new();
        match &self.ptxas {
            Ptxas::Missing => {
                let advice = "registers and spills are not known: `cargo tma setup` fetches ptxas";
                text += &format!("{}\n", dim(advice));
            }
            Ptxas::NotAsked | Ptxas::Said(_) => {}
        }
        if !self.is_whole {
            text += &format!("{}\n", bad("the package does not build"));
        }
        text + &tally.text(self.kernels.len(), self.refused.len())
    }
}

impl Tally {
    fn add(&mut self, kernel: &Judged, assembled: Option<&Assembled>) {
        match &kernel.report.judgement.verdict {
            Verdict::Proved => self.proved += 1,
            Verdict::CheckedUpTo(_) => self.checked += 1,
            Verdict::NotDecided(_) => self.undecided += 1,
            Verdict::Broken(_) if kernel.trusted.is_some() => self.trusted += 1,
            Verdict::Broken(_) => self.broken += 1,
        }
        self.conflicts += u32::from(kernel.report.accesses.iter().any(|access| conflicts(access) > 0));
        self.complaints += u32::from(assembled.is_some_and(|assembled| !assembled.said.is_clean()));
    }

    fn text(&self, kernels: usize, refused: usize) -> String {
        let shown = |count: u32, what: String| if count > 0 { what } else { dim(what) };
        let mut parts = vec![
            shown(self.proved, format!("{} proved", self.proved)),
            shown(self.checked, format!("{} checked up to a number of turns", self.checked)),
            shown(self.undecided, format!("{} not decided", self.undecided)),
            if self.broken > 0 { bad(format!("{} broken", self.broken)) } else { dim("0 broken") },
        ];
        if self.trusted > 0 {
            parts.push(warning(format!("{} broken and trusted", self.trusted)));
        }
        let counted = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let mut text = format!("{}: {}\n", counted(kernels, "kernel"), parts.join(", "));
        if refused > 0 {
            text += &format!("{} with kernels that break rules\n", bad(counted(refused, "file")));
        }
        if self.conflicts > 0 {
            text += &format!("{}\n", warning(format!("{} with bank conflicts", self.conflicts)));
        }
        if self.complaints > 0 {
            text += &format!("{}\n", bad(format!("{} with spills or notes of ptxas", self.complaints)));
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
            "with_ptxas_complaints": self.complaints,
        })
    }
}

fn conflicts(access: &SharedAccess) -> u32 {
    access.worst.map_or(0, Wavefronts::conflicts)
}

/// Returns the text below a kernel's name.
fn kernel_text(kernel: &Judged, assembled: Option<&Assembled>) -> String {
    let mut lines = protocol_text(kernel);
    lines += &banks_text(kernel);
    lines += &assembled.map(Assembled::text).unwrap_or_default();
    lines.lines().map(|line| format!("    {line}\n")).collect()
}

/// Joins kernels with their texts. Instances of a kernel with the same text are shown once.
fn grouped(kernels: &[Judged], texts: Vec<String>) -> String {
    let mut groups: Vec<(&Judged, String, usize)> = vec![];
    for (kernel, text) in kernels.iter().zip(texts) {
        let is_alike = |(first, known, _): &&mut (&Judged, String, usize)| {
            let [a, b] = [first, kernel].map(|kernel| (&kernel.file, kernel.line, &kernel.made_in));
            a == b && *known == text
        };
        match groups.iter_mut().find(is_alike) {
            Some((_, _, count)) => *count += 1,
            None => groups.push((kernel, text, 1)),
        }
    }
    let one = |(kernel, text, count): (&Judged, String, usize)| {
        let others = match count {
            1 => String::new(),
            2 => " and another instance".to_owned(),
            more => format!(" and {} other instances", more - 1),
        };
        let made = kernel.made_in.as_ref().map(|file| format!(", made in {file}")).unwrap_or_default();
        let at = dim(place(kernel, kernel.line) + &made);
        format!("{}{others}  {at}\n{text}", bold(&kernel.name))
    };
    groups.into_iter().map(one).collect()
}

fn protocol_text(kernel: &Judged) -> String {
    let judgement = &kernel.report.judgement;
    let looked_at = dim(looked_at(judgement));
    let mut text = match &judgement.verdict {
        Verdict::Proved if judgement.steps == 0 => {
            format!("{}: nothing to prove, since no thread waits for another\n", good("proved"))
        }
        Verdict::Proved => format!("{} {looked_at}\n", good("proved")),
        Verdict::CheckedUpTo(turns) => {
            format!("{} {looked_at}\n", good(format!("checked up to {turns} turns")))
        }
        Verdict::NotDecided(doubts) => {
            let one = |doubt: &Doubt| {
                let example = example(judgement, doubt).map(|text| format!("        {text}\n"));
                let line = doubt.span.start().line;
                format!("    {}: {}\n{}", place(kernel, line), doubt.why, example.unwrap_or_default())
            };
            format!("{} {looked_at}\n", warning("not decided")) + &doubts.iter().map(one).collect::<String>()
        }
        Verdict::Broken(diagnostic) => {
            let at = place(kernel, diagnostic.span.start().line);
            format!(
                "{} {looked_at}\n    {at}: {}\n",
                bad("broken"),
                diagnostic.text().replace('\n', "\n    ")
            )
        }
    };
    if let Some(reason) = &kernel.trusted {
        text += &format!("trusted, so that macro and build script do not judge it: {reason}\n");
    }
    for Exception { line, what } in &kernel.exceptions {
        let what = match what {
            Believed::Statement(reason) => format!("a statement is trusted: {reason}"),
            Believed::Assumption(text) => format!("assumed: {text}"),
        };
        text += &format!("{}: {what}\n", place(kernel, *line));
    }
    let names: Vec<_> = kernel.report.apart.iter().map(|name| format!("`{name}`")).collect();
    if !names.is_empty() && matches!(judgement.verdict, Verdict::Proved | Verdict::CheckedUpTo(_)) {
        text += &dim(format!(
            "not judged: whether several threads write the same elements of {}\n",
            names.join(", ")
        ));
    }
    text
}

/// Describes the extent of the exploration. A proof visits states, and follows no execution to its
/// end.
fn looked_at(Judgement { worlds, steps, .. }: &Judgement) -> String {
    match worlds {
        0 => format!("({steps} steps)"),
        worlds => format!("({worlds} worlds, {steps} steps)"),
    }
}

/// Returns the suspected mistake because of which a kernel is undecided.
fn example(judgement: &Judgement, doubt: &Doubt) -> Option<String> {
    let is_of = |suspect: &&Suspect| suspect.why == doubt.why && suspect.span().start() == doubt.span.start();
    judgement.suspects.iter().find(is_of).map(ToString::to_string)
}

fn banks_text(kernel: &Judged) -> String {
    let accesses = &kernel.report.accesses;
    let (known, unknown): (Vec<_>, Vec<_>) = accesses.iter().partition(|access| access.worst.is_some());
    let mut text = String::new();
    for access in known.iter().filter(|access| conflicts(access) > 0) {
        let Some(worst) = access.worst else { continue };
        let what = if access.writes { "writes" } else { "reads" };
        text += &format!(
            "{}: {}: a warp {what} in {} wavefronts instead of {}\n",
            warning("bank conflict"),
            place(kernel, access.span.start().line),
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
        let what = accesses_in_words(unknown.len());
        let text_of = format!(
            "banks not known of {what} by addresses that are not followed: line {}",
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
fn place(kernel: &Judged, line: usize) -> String {
    format!("{}:{line}", kernel.file)
}

fn kernel_json(kernel: &Judged, assembled: Option<&Assembled>) -> Value {
    let judgement = &kernel.report.judgement;
    let (verdict, turns, doubts, error) = match &judgement.verdict {
        Verdict::Proved => ("proved", None, &[][..], None),
        Verdict::CheckedUpTo(turns) => ("checked_up_to", Some(turns), &[][..], None),
        Verdict::NotDecided(doubts) => ("not_decided", None, doubts.as_slice(), None),
        Verdict::Broken(diagnostic) => ("broken", None, &[][..], Some(fault_json(&Fault::of(diagnostic)))),
    };
    let doubts = doubts.iter().map(|doubt| {
        let line = doubt.span.start().line;
        json!({ "line": line, "why": doubt.why.to_string(), "example": example(judgement, doubt) })
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
    let exceptions = kernel.exceptions.iter().map(|Exception { line, what }| match what {
        Believed::Statement(reason) => json!({ "line": line, "trusted": reason }),
        Believed::Assumption(text) => json!({ "line": line, "assumed": text }),
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
            "turns": turns,
            "doubts": doubts.collect::<Vec<_>>(),
            "error": error,
            "not_judged": kernel.report.apart,
            "worlds": judgement.worlds,
            "steps": judgement.steps,
        },
        "shared_accesses": accesses.collect::<Vec<_>>(),
        "ptxas": assembled.map(Assembled::json),
    })
}

fn fault_json(fault: &Fault) -> Value {
    json!({ "code": fault.code, "line": fault.line, "text": fault.text })
}
