//! Measures how long the PTX of one kernel takes inside a running process, over the examples.
//!
//! Prints one JSON line a kernel, and one for their median. Needs no GPU.

use std::time::Instant;

use tma_codegen::{Ptx, Target, compile};
use tma_tests::sources::{Source, examples};

/// Compilations of each kernel, after one that warms up.
const ROUNDS: usize = 25;

fn main() -> anyhow::Result<()> {
    let mut medians = vec![];
    for source in examples() {
        compiled(source)?;
        let mut times = vec![];
        for _ in 0..ROUNDS {
            let start = Instant::now();
            compiled(source)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        medians.push(report(source.name, &mut times));
    }
    report("median of the kernels", &mut medians);
    Ok(())
}

fn compiled(source: &Source) -> anyhow::Result<Vec<Ptx>> {
    // The error itself is tied to this thread.
    compile(source.path, source.text, Target::default()).map_err(|error| anyhow::anyhow!("{error}"))
}

/// Prints the median and the extremes of some times, and returns the median.
fn report(kernel: &str, milliseconds: &mut [f64]) -> f64 {
    milliseconds.sort_by(f64::total_cmp);
    let median = milliseconds[milliseconds.len() / 2];
    let (least, greatest) = (milliseconds[0], milliseconds[milliseconds.len() - 1]);
    println!(
        "{{\"benchmark\": \"compile\", \"kernel\": \"{kernel}\", \"milliseconds\": {median:.2}, \"least\": {least:.2}, \
         \"greatest\": {greatest:.2}}}"
    );
    median
}
