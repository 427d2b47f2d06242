//! Measures kernels on the first GPU: a JSON line a result and last 'N passed, N failed', judged
//! against the targets that the project has set itself.

use std::process::ExitCode;

use clap::Parser;
use tma_runtime::Device;
use tma_tests::gpu::bench::{self, measure::Plan, products};

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
    /// Rounds in which products are measured.
    #[arg(long, default_value_t = products::Options::default().rounds)]
    rounds: usize,
    /// Milliseconds for which a product is repeated in a round.
    #[arg(long, default_value_t = products::Options::default().slice_ms)]
    slice_ms: f64,
    /// The path of libcublas.so, if the loader does not find it.
    #[arg(long)]
    cublas: Option<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let Args { only, launches, check_only, shapes, rounds, slice_ms, cublas } = Args::parse();
    let products = products::Options { shapes, rounds, slice_ms, cublas };
    let tally = bench::run(&Device::open()?, &Plan { only, launches, check_only, products })?;
    println!("{}", tally.line());
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
