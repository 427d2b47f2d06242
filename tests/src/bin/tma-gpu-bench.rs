//! Measures kernels on the first GPU: a JSON line a result and last 'N passed, N failed', judged
//! against the targets that the project has set itself.

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
    /// Only benchmarks and contestants whose `benchmark/contestant` contains this, such as
    /// `multicast/`.
    #[arg(long, default_value = "")]
    only: String,
    /// Measures nothing, but launches each contestant so often: for a profiler.
    #[arg(long)]
    launches: Option<usize>,
    /// Measures nothing, but checks what contestants compute, of the benchmarks that can.
    #[arg(long)]
    check_only: bool,
    /// M, N and K of the products, such as `2048,4096x4096x16384`.
    #[arg(long, value_delimiter = ',', value_parser = products::shape)]
    shapes: Vec<[usize; 3]>,
    /// The shapes of docs/benchmarks-gemm.md: twelve for bf16, ten for e4m3, 8192 for others.
    #[arg(long, conflicts_with = "shapes")]
    suite: bool,
    /// Rounds in which products are measured.
    #[arg(long, default_value_t = products::Options::default().rounds)]
    rounds: usize,
    /// Milliseconds for which a product is repeated in a round.
    #[arg(long, default_value_t = products::Options::default().slice_ms)]
    slice_ms: f64,
    /// The folder of libcublas.so and libcublasLt.so, if neither the loader nor Python finds them.
    #[arg(long)]
    cublas: Option<PathBuf>,
    /// Of how many algorithms that cuBLASLt proposes the fastest takes part in the products.
    #[arg(long, default_value_t = products::Options::default().algorithms)]
    algorithms: usize,
    /// What `tma_kernels::gemm` is told to choose in contestants of their own, such as
    /// `pair,square:halved,pair:even,low64:2`.
    #[arg(long, value_delimiter = ',', value_parser = choices::parse)]
    choices: Vec<Choice>,
    /// A folder with PTX from elsewhere and an `index.json`, which multiplies in the same rounds.
    #[arg(long)]
    yardstick: Option<PathBuf>,
    /// Reads names of contestants with shapes from the standard input, such as
    /// `attention/causal/example 16x4096x128`, and answers each line with a slice.
    #[arg(long)]
    serve: bool,
    /// How products are printed.
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
