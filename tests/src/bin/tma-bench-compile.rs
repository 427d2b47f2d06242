//! Measures how long the PTX of one kernel takes inside a running process, over the examples.
//!
//! Prints one JSON line a kernel, and one for their median; first as release builds compile, then
//! checked, as debug builds do. Needs no GPU.

use std::time::Instant;

use tma_codegen::{Checks, Ptx, Target, compile_with};
use tma_tests::sources::{Source, examples};

/// Compilations of each kernel, after one that warms up.
const ROUNDS: usize = 25;

fn main() -> anyhow::Result<()> {
    for checks in [Checks::Off, Checks::On] {
        let mut medians = vec![];
        for source in examples() {
            compiled(source, checks)?;
            let mut times = vec![];
            for _ in 0..ROUNDS {
                let start = Instant::now();
                compiled(source, checks)?;
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            medians.push(report(source.name, checks, &mut times));
        }
        report("median of the kernels", checks, &mut medians);
    }
    Ok(())
}

fn compiled(source: &Source, checks: Checks) -> anyhow::Result<Vec<Ptx>> {
    let compiled = compile_with(source.path, source.text, Target::default(), checks);
    // The error itself is tied to this thread.
    compiled.map(|compiled| compiled.kernels).map_err(|error| anyhow::anyhow!("{error}"))
}

/// Prints the median and the extremes of some times, and returns the median.
fn report(kernel: &str, checks: Checks, milliseconds: &mut [f64]) -> f64 {
    milliseconds.sort_by(f64::total_cmp);
    let median = milliseconds[milliseconds.len() / 2];
    let (least, greatest) = (milliseconds[0], milliseconds[milliseconds.len() - 1]);
    println!(
        "{{\"benchmark\": \"compile\", \"kernel\": \"{kernel}\", \"checks\": \"{}\", \"milliseconds\": {median:.2}, \
         \"least\": {least:.2}, \"greatest\": {greatest:.2}}}",
        checks.name()
    );
    median
}
