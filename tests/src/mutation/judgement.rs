//! Mutants of the IR, judged by the protocol checker, which has only the compiler's information,
//! and by the simulator, which runs their PTX.

use std::sync::{Arc, Mutex, PoisonError};

use ptx_sim::{Finding, FindingKind, Findings};
use tma_codegen::check::{CheckedKernel, check, for_target};
use tma_codegen::diag::{Code, Diagnostic, Sink};
use tma_codegen::protocol::{Budget, Verdict, judge};
use tma_codegen::{Checks, Target, compile_kernel};
use tma_runtime::testing::under_seeds;

use super::ir::{Change, Mutant, mutants};
use super::subjects::Subject;
use crate::parallel::on_all_cores;
use crate::sources::{self, Source};

/// Thread instructions of a cluster after which a mutant counts as non-terminating: several times
/// those of the longest kernel.
const INSTRUCTIONS: u64 = 1 << 26;

/// The compiler's verdict on a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// Rejected by a rule outside of the protocol.
    OtherRule(Code),
    /// Rejected because its protocol is wrong, by this rule, with these lines. The reported line is
    /// first.
    Rejected(Code, Vec<usize>),
    /// Not decided, for this reason.
    Undecided(String),
    /// Correct as far as loops were followed.
    Checked,
    /// Proved correct.
    Proved,
}

/// The simulator's verdict on a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Simulator {
    /// A violation of this rule, first under this seed, in these lines of the source.
    Found {
        /// The rule.
        kind: FindingKind,
        /// The seed.
        seed: u64,
        /// The lines.
        lines: Vec<usize>,
        /// Whether the violation is about global memory.
        is_global: bool,
    },
    /// Only wrong results.
    OnlyWrong,
    /// No finding under any seed.
    NoFinding,
}

/// A mutant and the verdicts on it.
#[derive(Clone, Debug)]
pub struct MutantJudgement {
    /// The kernel's name.
    pub kernel: String,
    /// The line of the statement.
    pub line: usize,
    /// The kind of the statement.
    pub step: &'static str,
    /// The change to the statement.
    pub change: Change,
    /// The compiler's verdict.
    pub compiler: Compiler,
    /// The simulator's verdict. Mutants that another rule rejects have no PTX.
    pub simulator: Simulator,
}

impl MutantJudgement {
    /// Returns whether the simulator finds a violation of a protocol rule.
    pub fn is_wrong(&self) -> bool {
        matches!(self.simulator, Simulator::Found { kind, .. } if kind.rule().is_some())
    }

    /// Returns whether the simulator's finding is about global memory. The compiler decides little
    /// about the order of blocks.
    pub fn is_of_global_memory(&self) -> bool {
        matches!(self.simulator, Simulator::Found { is_global: true, .. })
    }

    /// Returns whether a rejection names the changed line, or a line that the simulator names.
    pub fn has_right_line(&self) -> bool {
        let Compiler::Rejected(_, named) = &self.compiler else { return false };
        let found = if let Simulator::Found { lines, .. } = &self.simulator { lines.as_slice() } else { &[] };
        named.iter().any(|line| *line == self.line || found.contains(line))
    }
}

/// The jobs that all mutants of a kernel are divided into. One kernel may take as long as all
/// others.
const JOBS_OF_A_KERNEL: usize = 8;

/// Judges every `nth` mutant of the subjects, on all cores.
///
/// # Errors
///
/// A mutant that cannot be compiled or run.
pub fn judge_all(subjects: &[Subject], nth: usize, seeds: u64) -> anyhow::Result<Vec<MutantJudgement>> {
    // Each job parses its kernel again, since the spans of a kernel belong to a thread.
    let of_a_kernel = JOBS_OF_A_KERNEL.div_ceil(nth);
    let jobs =
        subjects.iter().enumerate().flat_map(|subject| (0..of_a_kernel).map(move |job| (job, subject)));
    let judged = on_all_cores(jobs.collect(), |(job, (number, subject))| {
        let Some((source, kernel)) = kernel_of(subject) else { return Ok(vec![]) };
        // The first index varies, so that every kind of step is covered.
        let all = mutants(kernel.kernel()).skip(number % nth).step_by(nth).enumerate();
        let of_job = all.skip(job).step_by(of_a_kernel);
        let judged = of_job
            .map(|(index, mutant)| anyhow::Ok(((number, index), judgement(subject, source, mutant, seeds)?)));
        judged.collect::<anyhow::Result<Vec<_>>>()
    });
    let mut all: Vec<_> =
        judged.into_iter().collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect();
    all.sort_by_key(|(order, _)| *order);
    Ok(all.into_iter().map(|(_, judgement)| judgement).collect())
}

/// Returns the kernel of a subject, and the file that contains it.
fn kernel_of(subject: &Subject) -> Option<(&'static Source, CheckedKernel)> {
    let path = subject.kernel.name;
    let name = format!("fn {}", path.split("::").next().unwrap_or_default());
    let mut sources = sources::examples().iter().chain(sources::corpus()).chain(sources::library());
    sources.find_map(|source| {
        if !source.text.contains(&name) {
            return None;
        }
        let kernels = source.checked().ok()?.kernels;
        let kernel =
            kernels.into_iter().map(|checked| checked.kernel).find(|kernel| kernel.kernel().path() == path);
        Some((source, kernel?))
    })
}

/// Returns the lines that a diagnostic names, its own first.
pub fn lines(diagnostic: &Diagnostic) -> Vec<usize> {
    let others = diagnostic.notes().into_iter().filter_map(|note| Some(note.span?.start().line));
    [diagnostic.span.start().line].into_iter().chain(others).collect()
}

fn judgement(
    subject: &Subject,
    source: &Source,
    mutant: Mutant,
    seeds: u64,
) -> anyhow::Result<MutantJudgement> {
    let Mutant { step, change, span, kernel } = mutant;
    let (name, line) = (kernel.path(), span.start().line);
    let judgement = |compiler, simulator| MutantJudgement {
        kernel: name.clone(),
        line,
        step,
        change,
        compiler,
        simulator,
    };
    let mut sink = Sink::default();
    let checked = match check(kernel, &mut sink) {
        Ok(checked) => *checked,
        Err(_) => {
            let errors = sink.into_diagnostics().errors;
            let code = errors.first().map_or(Code::Deadlock, Diagnostic::code);
            return Ok(judgement(Compiler::OtherRule(code), Simulator::NoFinding));
        }
    };
    let compiler = match judge(&checked, Budget::MACRO).verdict {
        Verdict::Broken(diagnostic) => Compiler::Rejected(diagnostic.code(), lines(&diagnostic)),
        Verdict::NotDecided(undecided) => {
            Compiler::Undecided(undecided.first().map_or_else(String::new, |case| case.reason.to_string()))
        }
        Verdict::CheckedUpTo(_) => Compiler::Checked,
        Verdict::Proved => Compiler::Proved,
    };
    let target = for_target(checked, Target::default(), &mut Sink::default())
        .ok_or_else(|| anyhow::anyhow!("{name} is not for the target"))?;
    let ptx =
        compile_kernel(source.path, &target, Checks::Off).map_err(|failure| anyhow::anyhow!("{failure}"))?;
    let simulator = simulate(subject, &ptx.text, seeds)
        .map_err(|error| error.context(format!("{name}, line {line}, {step} {change}")))?;
    Ok(judgement(compiler, simulator))
}

/// Runs the subject's check with other PTX, until there is a finding.
fn simulate(subject: &Subject, ptx: &str, seeds: u64) -> anyhow::Result<Simulator> {
    let first: Arc<Mutex<Option<Simulator>>> = Arc::default();
    let mut is_wrong = false;
    let outcome = under_seeds(seeds, |device| {
        let (name, note) = (subject.kernel.name, Arc::clone(&first));
        let device = device.clone().reporting(0, move |kernel, report| {
            let mut note = note.lock().unwrap_or_else(PoisonError::into_inner);
            if kernel.name == name && note.is_none() {
                *note = simulator_verdict(&report.findings);
            }
        });
        // For a wrong result, another seed may show the cause.
        is_wrong |= !subject.try_with(ptx, &device, INSTRUCTIONS)?;
        Ok(())
    });
    let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (outcome, first) {
        (Err(failure), Some(Simulator::Found { kind, lines, is_global, .. })) => {
            Ok(Simulator::Found { kind, seed: failure.seed, lines, is_global })
        }
        (Err(failure), _) => Err(failure.error),
        (Ok(()), _) if is_wrong => Ok(Simulator::OnlyWrong),
        (Ok(()), _) => Ok(Simulator::NoFinding),
    }
}

/// Returns the first finding about the protocol, or else the first of all, with the lines of all.
fn simulator_verdict(findings: &Findings) -> Option<Simulator> {
    let is_global = |finding: &Finding| finding.message.contains("global memory");
    let of_protocol = |finding: &&Finding| finding.kind.rule().is_some() && !is_global(finding);
    let first = findings.iter().find(of_protocol).or(findings.iter().next())?;
    let lines = findings.iter().flat_map(lines_of).collect();
    Some(Simulator::Found { kind: first.kind, seed: 0, lines, is_global: is_global(first) })
}

/// Returns the source lines that a finding of the simulator names.
pub fn lines_of(finding: &Finding) -> Vec<usize> {
    let lines = finding.parties.iter().filter_map(|party| Some(party.site.source?.1 as usize));
    lines.collect()
}
