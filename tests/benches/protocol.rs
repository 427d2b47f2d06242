//! How long the protocol checker takes for each kernel of the repository, with the steps that a
//! macro has, and what it says with these. Prints the slowest kernels.
//!
//! `cargo bench -p tma-tests --bench protocol`, and with `--profile dev` as macros run in debug
//! builds; with a part of a name behind `--`, of the kernels that have it. `docs/protocol.md` has
//! the figures, and the targets. Needs no GPU.

use std::env;
use std::time::{Duration, Instant};

use tma_codegen::check;
use tma_codegen::check::CheckedKernel;
use tma_codegen::check::protocol::{Budget, Verdict, judge};
use tma_tests::sources::{Source, benchmarks, conformance, corpus, examples, library};

/// How often each kernel is judged; the shortest time counts.
const TIMES: u32 = 5;
/// How many kernels are printed.
const SLOWEST: usize = 5;
/// What each kernel may take where the compiler is optimised.
const TARGET: Duration = Duration::from_millis(5);
/// So many instances of a kernel are judged: the others differ in types more than in order.
const INSTANCES: usize = 3;

struct Row {
    name: String,
    verdict: &'static str,
    steps: u64,
    time: Duration,
}

/// The first instances of each kernel.
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
        Verdict::CheckedUpTo(_) => "checked up to a number of turns",
        Verdict::NotDecided(_) => "not decided",
        Verdict::Broken(_) => "broken",
    };
    Row { name: name.to_owned(), verdict, steps: judgement.steps, time }
}

fn main() {
    // cargo adds `--bench`.
    let part = env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let kernels = kernels().into_iter().filter(|(name, _)| name.contains(&part));
    let mut rows: Vec<_> = kernels.map(|(name, kernel)| judged(&name, &kernel)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.time));
    let all: Duration = rows.iter().map(|row| row.time).sum();
    println!("{} kernels, {:.2?} each in the mean", rows.len(), all / rows.len().max(1) as u32);
    for verdict in ["proved", "checked up to a number of turns", "not decided", "broken"] {
        println!("{:>6} {verdict}", rows.iter().filter(|row| row.verdict == verdict).count());
    }
    println!("{:>6} in at most {TARGET:?}", rows.iter().filter(|row| row.time <= TARGET).count());
    for row in &rows[..SLOWEST.min(rows.len())] {
        println!("{:>9.2?}, {:>5} steps, {} ({})", row.time, row.steps, row.name, row.verdict);
    }
}
