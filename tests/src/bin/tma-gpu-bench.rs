//! Measures the examples on the first GPU: a JSON line a benchmark and last 'N passed, N failed', judged against the
//! targets that the project has set itself.

use std::process::ExitCode;

use tma_runtime::Device;
use tma_tests::gpu::bench;

fn main() -> anyhow::Result<ExitCode> {
    let tally = bench::run(&Device::open()?)?;
    println!("{}", tally.line());
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
