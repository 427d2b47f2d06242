//! Running time of the protocol checker for each kernel of the repository, with the budget that a
//! macro has, and its verdicts under that budget. Prints the slowest kernels.
//!
//! `cargo bench -p tma-tests --bench protocol`, and with `--profile dev` for macros as debug builds
//! run them. A part of a name after `--` selects the kernels that contain it. `lab/checker-cost.md`
//! has the figures. Needs no GPU.

use std::env;
use std::time::{Duration, Instant};

use tma_codegen::check;
use tma_codegen::check::CheckedKernel;
use tma_codegen::protocol::{Budget, Verdict, judge};
use tma_tests::sources::{Source, benchmarks, conformance, corpus, examples, library};

/// The number of runs per kernel. The shortest time counts.
const TIMES: u32 = 5;
/// The number of kernels to print.
const SLOWEST: usize = 5;
/// The target time per kernel with an optimised compiler.
const TARGET: Duration = Duration::from_millis(5);
/// The maximum number of instances per kernel: further ones differ in types rather than in order.
const INSTANCES: usize = 3;

struct Row {
    name: String,
    verdict: &'static str,
    steps: u64,
    time: Duration,
}

/// Returns the first instances of each kernel.
fn kernels() -> Vec<(String, CheckedKernel)> {
    let mut kernels: Vec<(String, CheckedKernel)> = vec![];
    let lists: [&[Source]; 5] = [examples(), corpus(), conformance(), benchmarks(), library()];
    for source in lists.into_iter().flatten() {
        let accepted = check(source.path, source.text).unwrap_or_else(|failure| panic!("{failure}"));
        for checked in accepted.kernels {
            let name = format!("{}: {}", source.path, checked.kernel.kernel().name);
            if kernels.iter().filter(|(known, _)| *known == name).count() < INSTANCES {
                kernels.push((name, checked.kernel));
            }
        }
    }
    kernels
}

fn judged(name: &str, kernel: &CheckedKernel) -> Row {
    let runs = (0..TIMES).map(|_| {
        let start = Instant::now();
        let judgement = judge(kernel, Budget::MACRO);
        (start.elapsed(), judgement)
    });
    let (time, judgement) = runs.min_by_key(|(time, _)| *time).expect("it was judged");
    let verdict = match judgement.verdict {
        Verdict::Proved => "proved",
        Verdict::CheckedUpTo(_) => "checked up to a number of iterations",
        Verdict::NotDecided(_) => "not decided",
        Verdict::Broken(_) => "broken",
    };
    Row { name: name.to_owned(), verdict, steps: judgement.steps, time }
}

fn main() {
    // cargo adds `--bench` to the arguments.
    let part = env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let kernels = kernels().into_iter().filter(|(name, _)| name.contains(&part));
    let mut rows: Vec<_> = kernels.map(|(name, kernel)| judged(&name, &kernel)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.time));
    let all: Duration = rows.iter().map(|row| row.time).sum();
    println!("{} kernels, {:.2?} each in the mean", rows.len(), all / rows.len().max(1) as u32);
    for verdict in ["proved", "checked up to a number of iterations", "not decided", "broken"] {
        println!("{:>6} {verdict}", rows.iter().filter(|row| row.verdict == verdict).count());
    }
    println!("{:>6} in at most {TARGET:?}", rows.iter().filter(|row| row.time <= TARGET).count());
    for row in &rows[..SLOWEST.min(rows.len())] {
        println!("{:>9.2?}, {:>5} steps, {} ({})", row.time, row.steps, row.name, row.verdict);
    }
}
