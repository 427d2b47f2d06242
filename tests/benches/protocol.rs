//! How long the protocol checker takes for each kernel of the repository, with the steps that a
//! macro has, and what it says with these. Prints the slowest kernels.
//!
//! `cargo bench -p tma-tests --bench protocol`, and with `--profile dev` as macros run in debug
//! builds. `docs/protocol.md` has the figures, and the targets. Needs no GPU.

use std::time::{Duration, Instant};

use tma_codegen::check;
use tma_codegen::check::CheckedKernel;
use tma_codegen::check::protocol::{Budget, Verdict, judge};
use tma_tests::sources::{Source, benchmarks, conformance, corpus, examples, library};

/// How often each kernel is judged; the shortest time counts.
const TIMES: u32 = 5;
/// How many kernels are printed.
const SLOWEST: usize = 5;
/// So many instances of a kernel are judged: the others differ in types more than in order.
const INSTANCES: usize = 3;

struct Row {
    name: String,
    verdict: &'static str,
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
        let verdict = judge(kernel, Budget::MACRO).verdict;
        (start.elapsed(), verdict)
    });
    let (time, verdict) = runs.min_by_key(|(time, _)| *time).expect("it was judged");
    let verdict = match verdict {
        Verdict::Proved => "proved",
        Verdict::CheckedUpTo(_) => "checked up to a number of turns",
        Verdict::NotDecided(_) => "not decided",
        Verdict::Broken(_) => "broken",
    };
    Row { name: name.to_owned(), verdict, time }
}

fn main() {
    let mut rows: Vec<_> = kernels().iter().map(|(name, kernel)| judged(name, kernel)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.time));
    let all: Duration = rows.iter().map(|row| row.time).sum();
    println!("{} kernels, {:.2?} each in the mean", rows.len(), all / rows.len() as u32);
    for verdict in ["proved", "checked up to a number of turns", "not decided", "broken"] {
        println!("{:>6} {verdict}", rows.iter().filter(|row| row.verdict == verdict).count());
    }
    for row in &rows[..SLOWEST.min(rows.len())] {
        println!("{:>9.2?} {} ({})", row.time, row.name, row.verdict);
    }
}
