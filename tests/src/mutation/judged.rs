//! Mutants of the IR before two judges: the protocol checker, which sees no more than the compiler,
//! and the simulator, which runs their PTX.

use std::sync::{Arc, Mutex, PoisonError};

use ptx_sim::{Finding, FindingKind, Findings};
use tma_codegen::check::protocol::{Budget, Verdict, judge};
use tma_codegen::check::{CheckedKernel, check, for_target};
use tma_codegen::diag::{Code, Diagnostic, Sink};
use tma_codegen::{Checks, Target, compile_kernel};
use tma_runtime::testing::under_seeds;

use super::ir::{Change, Mutant, mutants};
use super::subjects::Subject;
use crate::parallel::on_all_cores;
use crate::sources::{self, Source};

/// Thread-instructions of a cluster after which a mutant counts as not ending: some times what the
/// longest kernel runs.
const INSTRUCTIONS: u64 = 1 << 26;

/// What the compiler says of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// Another rule than those of the protocol refuses it.
    OtherRule(Code),
    /// Its protocol is wrong, by this rule, with these lines: first the one that is reported.
    Refused(Code, Vec<usize>),
    /// Not decided, for this reason.
    Undecided(String),
    /// Right as far as loops were followed.
    Checked,
    /// Right.
    Proved,
}

/// What the simulator says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Simulator {
    /// It breaks this rule, first under this seed, in these lines of the source.
    Found {
        /// The rule.
        kind: FindingKind,
        /// The seed.
        seed: u64,
        /// The lines.
        lines: Vec<usize>,
        /// Whether it is about global memory.
        is_global: bool,
    },
    /// It computes what it should not.
    OnlyWrong,
    /// Nothing, under every seed.
    Quiet,
}

/// A mutant and what was said of it.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The kernel's name.
    pub kernel: String,
    /// The line of the statement.
    pub line: usize,
    /// What kind of statement it was.
    pub step: &'static str,
    /// What was done to it.
    pub change: Change,
    /// What the compiler says.
    pub compiler: Compiler,
    /// What the simulator says; of what another rule refuses there is no PTX.
    pub simulator: Simulator,
}

/// Whether the protocol checker looks for what breaks a rule of the simulator: those of memory's
/// bounds and of registers are others' matter.
pub fn is_of_protocol(kind: FindingKind) -> bool {
    match kind {
        FindingKind::ReadBeforeWait
        | FindingKind::InFlight
        | FindingKind::RefillBeforeRelease
        | FindingKind::MissingProxyFence
        | FindingKind::UnfencedRefill
        | FindingKind::BarrierNotVisible
        | FindingKind::BarrierMisuse
        | FindingKind::TransactionBytes
        | FindingKind::Overrun
        | FindingKind::Deadlock
        | FindingKind::Race
        | FindingKind::ScopeTooNarrow
        | FindingKind::MixedProxies
        | FindingKind::DivergentBarrier
        | FindingKind::Leak
        | FindingKind::BlockGone
        | FindingKind::OpaqueAccess
        | FindingKind::InstructionLimit => true,
        FindingKind::RegisterInFlight
        | FindingKind::MissingRegisterFence
        | FindingKind::DivergentMultiplication
        | FindingKind::UnwaitedMultiplication
        | FindingKind::Uninitialised
        | FindingKind::OutOfBounds
        | FindingKind::Misaligned
        | FindingKind::IllegalCopy
        | FindingKind::IllegalMultiplication
        | FindingKind::SwizzleMismatch
        | FindingKind::LayoutMismatch
        | FindingKind::Trap
        | FindingKind::Execution
        | FindingKind::BoxOutside
        | FindingKind::Internal => false,
    }
}

impl Judged {
    /// Whether the simulator finds that it breaks a rule of the protocol.
    pub fn is_wrong(&self) -> bool {
        matches!(self.simulator, Simulator::Found { kind, .. } if is_of_protocol(kind))
    }

    /// Whether what the simulator finds is about global memory: of the order of blocks the compiler
    /// decides little.
    pub fn is_of_global_memory(&self) -> bool {
        matches!(self.simulator, Simulator::Found { is_global: true, .. })
    }

    /// Whether a refusal names the line that was changed, or one that the simulator names.
    pub fn has_right_line(&self) -> bool {
        let Compiler::Refused(_, named) = &self.compiler else { return false };
        let found = if let Simulator::Found { lines, .. } = &self.simulator { lines.as_slice() } else { &[] };
        named.iter().any(|line| *line == self.line || found.contains(line))
    }
}

/// Judges every `nth` mutant of the subjects, on all cores.
///
/// # Errors
///
/// A mutant that could not be compiled or run.
pub fn judge_all(subjects: &[Subject], nth: usize, seeds: u64) -> anyhow::Result<Vec<Judged>> {
    // Each job parses its kernel again: the spans of a kernel belong to a thread.
    let jobs: Vec<_> = subjects.iter().enumerate().collect();
    let all = on_all_cores(jobs, |(number, subject)| {
        let Some((source, kernel)) = kernel_of(subject) else { return Ok(vec![]) };
        // Where the first is taken differs, so that each kind of step has its turn.
        let some = mutants(kernel.kernel()).skip(number % nth).step_by(nth);
        some.map(|mutant| judged(subject, source, mutant, seeds)).collect::<anyhow::Result<Vec<_>>>()
    });
    Ok(all.into_iter().collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// The kernel of a subject, and the file that has it.
fn kernel_of(subject: &Subject) -> Option<(&'static Source, CheckedKernel)> {
    let path = subject.kernel.name;
    let name = format!("fn {}", path.split("::").next().unwrap_or_default());
    let mut sources = sources::examples().iter().chain(sources::corpus()).chain(sources::library());
    sources.find_map(|source| {
        if !source.text.contains(&name) {
            return None;
        }
        let kernels = tma_codegen::check(source.path, source.text).ok()?.kernels;
        let kernel =
            kernels.into_iter().map(|checked| checked.kernel).find(|kernel| kernel.kernel().path() == path);
        Some((source, kernel?))
    })
}

/// The lines that a diagnostic names, its own first.
pub fn lines(diagnostic: &Diagnostic) -> Vec<usize> {
    let others = diagnostic.notes().into_iter().filter_map(|note| Some(note.span?.start().line));
    [diagnostic.span.start().line].into_iter().chain(others).collect()
}

fn judged(subject: &Subject, source: &Source, mutant: Mutant, seeds: u64) -> anyhow::Result<Judged> {
    let Mutant { step, change, span, kernel } = mutant;
    let (name, line) = (kernel.path(), span.start().line);
    let judged =
        |compiler, simulator| Judged { kernel: name.clone(), line, step, change, compiler, simulator };
    let mut sink = Sink::default();
    let checked = match check(kernel, &mut sink) {
        Ok(checked) => *checked,
        Err(_) => {
            let errors = sink.into_diagnostics().errors;
            let code = errors.first().map_or(Code::Deadlock, Diagnostic::code);
            return Ok(judged(Compiler::OtherRule(code), Simulator::Quiet));
        }
    };
    let compiler = match judge(&checked, Budget::MACRO).verdict {
        Verdict::Broken(diagnostic) => Compiler::Refused(diagnostic.code(), lines(&diagnostic)),
        Verdict::NotDecided(doubts) => {
            Compiler::Undecided(doubts.first().map_or_else(String::new, |doubt| doubt.why.to_string()))
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
    Ok(judged(compiler, simulator))
}

/// Runs the subject's check with other PTX, until something is found.
fn simulate(subject: &Subject, ptx: &str, seeds: u64) -> anyhow::Result<Simulator> {
    let first: Arc<Mutex<Option<Simulator>>> = Arc::default();
    let mut is_wrong = false;
    let outcome = under_seeds(seeds, |device| {
        let (name, note) = (subject.kernel.name, Arc::clone(&first));
        let device = device.clone().reporting(0, move |kernel, report| {
            let mut note = note.lock().unwrap_or_else(PoisonError::into_inner);
            if kernel.name == name && note.is_none() {
                *note = told(&report.findings);
            }
        });
        // Of a wrong result, another seed may show why.
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
        (Ok(()), _) => Ok(Simulator::Quiet),
    }
}

/// The first of the findings that is about the protocol, or the first, with the lines of all.
fn told(findings: &Findings) -> Option<Simulator> {
    let is_global = |finding: &Finding| finding.message.contains("global memory");
    let of_protocol = |finding: &&Finding| is_of_protocol(finding.kind) && !is_global(finding);
    let first = findings.iter().find(of_protocol).or(findings.iter().next())?;
    let lines = findings.iter().flat_map(lines_of).collect();
    Some(Simulator::Found { kind: first.kind, seed: 0, lines, is_global: is_global(first) })
}

/// The lines of the source that a finding of the simulator names.
pub fn lines_of(finding: &Finding) -> Vec<usize> {
    let lines = finding.parties.iter().filter_map(|party| Some(party.site.source?.1 as usize));
    lines.collect()
}
