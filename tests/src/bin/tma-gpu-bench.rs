//! Measures kernels on the first GPU. Prints a JSON line per result and last 'N passed, N failed',
//! judged against the project's own targets.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tma_kernels::gemm::Choice;
use tma_runtime::Device;
use tma_tests::gpu::bench::{
    self, measure::Plan, products, products::contestants::choices, products::report::Format,
};

/// Measures kernels on the first GPU.
#[derive(Parser)]
struct Args {
    /// Only run benchmarks and contestants whose `benchmark/contestant` contains this, such as
    /// `multicast/`.
    #[arg(long, default_value = "")]
    only: String,
    /// Instead of measuring, launch each contestant this many times: for a profiler.
    #[arg(long)]
    launches: Option<usize>,
    /// Instead of measuring, check the results of the contestants, where a benchmark supports it.
    #[arg(long)]
    check_only: bool,
    /// M, N and K of the GEMMs, such as `2048,4096x4096x16384`.
    #[arg(long, value_delimiter = ',', value_parser = products::shape)]
    shapes: Vec<[usize; 3]>,
    /// The shapes of docs/benchmarks-gemm.md: twelve for bf16, ten for e4m3, 8192 for others.
    #[arg(long, conflicts_with = "shapes")]
    suite: bool,
    /// Number of rounds in which GEMMs are measured.
    #[arg(long, default_value_t = products::Options::default().rounds)]
    rounds: usize,
    /// Milliseconds for which a GEMM is repeated in a round.
    #[arg(long, default_value_t = products::Options::default().slice_ms)]
    slice_ms: f64,
    /// Folder of libcublas.so and libcublasLt.so, if neither the loader nor Python finds them.
    #[arg(long)]
    cublas: Option<PathBuf>,
    /// Number of algorithms proposed by cuBLASLt, the fastest of which takes part in the GEMMs.
    #[arg(long, default_value_t = products::Options::default().algorithms)]
    algorithms: usize,
    /// Choices of `tma_kernels::gemm` that take part as separate contestants, such as
    /// `t128x256cluster2x1,t128x128cluster2x1:halved,t64x64:2`.
    #[arg(long, value_delimiter = ',', value_parser = choices::parse)]
    choices: Vec<Choice>,
    /// Folder with PTX from elsewhere and an `index.json`, which takes part in the same rounds.
    #[arg(long)]
    yardstick: Option<PathBuf>,
    /// Read names of contestants with shapes from standard input, such as
    /// `attention/causal/example 16x4096x128`, and print a slice for each line.
    #[arg(long)]
    serve: bool,
    /// Format in which GEMMs are printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    if args.serve {
        bench::serve::serve(&Device::open()?, args.slice_ms, io::stdin().lock(), io::stdout())?;
        return Ok(ExitCode::SUCCESS);
    }
    let products = products::Options {
        shapes: args.shapes,
        suite: args.suite,
        rounds: args.rounds,
        slice_ms: args.slice_ms,
        cublas: args.cublas,
        algorithms: args.algorithms,
        choices: args.choices,
        yardstick: args.yardstick,
        format: args.format,
    };
    let Args { only, launches, check_only, .. } = args;
    let tally = bench::run(&Device::open()?, &Plan { only, launches, check_only, products })?;
    println!("{}", tally.line());
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
