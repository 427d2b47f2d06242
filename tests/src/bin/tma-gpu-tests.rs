//! Tests everything that needs a GPU. Prints a line per test and last 'N passed, N failed'.

use std::process::ExitCode;

use clap::Parser;
use tma_tests::case::Options;
use tma_tests::gpu::runner::{Selection, run};
use tma_tests::kernels::faults;

/// Tests kernels and runtime on the first GPU.
#[derive(Parser)]
struct Args {
    /// Use small inputs, and no kernel that stops with an error: for compute-sanitizer.
    #[arg(long)]
    quick: bool,
    /// Only run tests whose name contains this.
    #[arg(long, default_value = "")]
    filter: String,
    /// Skip this many of them at the start.
    #[arg(long, default_value_t = 0)]
    skip: usize,
    /// Run one kernel that prints or stops with an error, in this process.
    #[arg(long, hide = true)]
    fault: Option<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    if let Some(name) = args.fault {
        faults::run_here(&name)?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = Options { quick: args.quick };
    let tally = run(&Selection { options, filter: args.filter, skip: args.skip })?;
    println!("{}", tally.line());
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
