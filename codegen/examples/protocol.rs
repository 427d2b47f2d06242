//! Judges the protocol of every kernel in files and folders, and prints what it found of each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use tma_codegen::check::protocol::{Budget, Judgement, Verdict, judge, with_missing_step};
use tma_codegen::ir::{Kernel, StmtKind, visit};

/// Judges the protocol of barriers of every kernel: who waits for whom, and who may use which
/// memory when.
#[derive(Parser)]
struct Arguments {
    /// Source files, and folders of them
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// How many steps are looked at
    #[arg(long)]
    budget: Option<u64>,
    /// Prints the time that each kernel takes
    #[arg(long)]
    times: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let budget = arguments.budget.map_or(Budget::REPORT, Budget);
    let mut tally = Tally::default();
    for path in arguments.paths.iter().flat_map(|path| sources(path)) {
        let Ok(source) = std::fs::read_to_string(&path) else {
            eprintln!("{}: cannot be read", path.display());
            return ExitCode::FAILURE;
        };
        if !source.contains("#[tma_kernel") {
            continue;
        }
        let name = path.display().to_string();
        match tma_codegen::check(&name, &source) {
            Err(failure) => println!("{name}: refused\n{failure}"),
            Ok(accepted) => {
                for checked in accepted.kernels {
                    let begin = Instant::now();
                    let mut judgement = judge(&checked.kernel, budget);
                    let time = arguments.times.then(|| begin.elapsed());
                    if let Verdict::Broken(found) = judgement.verdict {
                        judgement.verdict =
                            Verdict::Broken(with_missing_step(&checked.kernel, found, Budget::MACRO));
                    }
                    let kernel = checked.kernel.kernel().path();
                    tally.add(&judgement.verdict);
                    print(&name, &kernel, &judgement);
                    print_exceptions(checked.kernel.kernel(), &source);
                    if let Some(time) = time {
                        println!("    {:.3} ms", time.as_secs_f64() * 1e3);
                    }
                }
            }
        }
    }
    let Tally { proved, checked, undecided, broken } = tally;
    println!(
        "{proved} proved, {checked} checked up to a number of turns, {undecided} not decided, {broken} broken"
    );
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How many kernels got which verdict.
#[derive(Default)]
struct Tally {
    proved: u32,
    checked: u32,
    undecided: u32,
    broken: u32,
}

impl Tally {
    fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Proved => self.proved += 1,
            Verdict::CheckedUpTo(_) => self.checked += 1,
            Verdict::NotDecided(_) => self.undecided += 1,
            Verdict::Broken(_) => self.broken += 1,
        }
    }
}

fn print(path: &str, kernel: &str, Judgement { verdict, steps, worlds }: &Judgement) {
    let looked_at = format!("{worlds} worlds, {steps} steps");
    match verdict {
        Verdict::Proved => println!("{path}: {kernel}: proved ({looked_at})"),
        Verdict::CheckedUpTo(turns) => {
            println!("{path}: {kernel}: checked up to {turns} turns ({looked_at})");
        }
        Verdict::NotDecided(doubts) => {
            println!("{path}: {kernel}: not decided ({looked_at})");
            for doubt in doubts {
                println!("    line {}: {}", doubt.span.start().line, doubt.why);
            }
        }
        Verdict::Broken(diagnostic) => {
            println!("{path}: {kernel}: broken ({looked_at})");
            let line = diagnostic.span.start().line;
            println!("    line {line}: {}", diagnostic.text().replace('\n', "\n    "));
        }
    }
}

/// What the kernel asks to be believed: assumptions, and what is not judged.
fn print_exceptions(kernel: &Kernel, source: &str) {
    if let Some(reason) = &kernel.trusted {
        println!("    trusted, so that macro and build script do not judge it: {reason}");
    }
    for (span, reason) in kernel.trusted_statements() {
        println!("    line {}: a statement is trusted: {reason}", span.start().line);
    }
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::Assert { assumed: true, .. } = stmt.kind {
            let line = stmt.origin.span.start().line;
            let text = source.lines().nth(line - 1).unwrap_or_default().trim();
            println!("    line {line}: assumed: {text}");
        }
    });
}

/// The source files at a path.
fn sources(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut entries: Vec<_> = entries.collect();
    entries.sort();
    let inside = entries.iter().flat_map(|path| sources(path));
    inside.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}
