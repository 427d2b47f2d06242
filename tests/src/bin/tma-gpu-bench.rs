//! Measures kernels on the first GPU: a JSON line a result and last 'N passed, N failed', judged against the targets that
//! the project has set itself.

use std::process::ExitCode;

use clap::Parser;
use tma_runtime::Device;
use tma_tests::gpu::bench::{self, measure::Plan};

/// Measures kernels on the first GPU.
#[derive(Parser)]
struct Args {
    /// Only benchmarks and contestants whose `benchmark/contestant` contains this, such as `multicast/`.
    #[arg(long, default_value = "")]
    only: String,
    /// Measures nothing, but launches each contestant so often: for a profiler.
    #[arg(long)]
    launches: Option<usize>,
}

fn main() -> anyhow::Result<ExitCode> {
    let Args { only, launches } = Args::parse();
    let tally = bench::run(&Device::open()?, &Plan { only, launches })?;
    println!("{}", tally.line());
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
