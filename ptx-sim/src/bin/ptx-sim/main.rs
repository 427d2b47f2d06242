//! The command `ptx-sim`: runs a kernel of a PTX file on the CPU, and shows what is wrong with it.
//!
//! Ends with 0 if nothing is, with 1 if something was found, and with 2 if the kernel could not be
//! started.

mod arguments;
mod buffers;
mod npy;
mod numbers;
mod show;
mod timeline;

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use ptx_sim::{Checks, GlobalMemory, LaunchConfig, Module, launch};

use crate::arguments::{Argument, Buffer};

/// Runs PTX on the CPU, and finds what a GPU shows as garbage or a hang.
#[derive(Debug, Parser)]
#[command(name = "ptx-sim", version)]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Run(Box<Run>),
}

/// Runs a kernel once.
///
/// Buffers have indices from 0: first those of --buffer, then those that --arg makes, each in the
/// order given.
#[derive(Debug, Args)]
struct Run {
    /// The PTX
    file: PathBuf,
    /// The kernel's symbol
    #[arg(long)]
    entry: String,
    /// Blocks, as X,Y,Z
    #[arg(long, value_parser = arguments::extents)]
    grid: [u32; 3],
    /// Threads of a block, as X,Y,Z
    #[arg(long, value_parser = arguments::extents)]
    block: [u32; 3],
    /// Blocks of a cluster, as X,Y,Z [default: what the kernel requires, or 1]
    #[arg(long, value_parser = arguments::extents)]
    cluster: Option<[u32; 3]>,
    /// Dynamic shared memory of a block in bytes
    #[arg(long, default_value_t = 0)]
    shared: u32,
    /// Picks what hardware is free to choose: the order of warps, when copies land
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many clusters run at a time [default: one a core, or one at a time if the kernel shares
    /// global memory between blocks, by atomic operations and the like: then what comes out would
    /// be a matter of chance]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: Option<u32>,
    /// The most blocks that the grid may have; each takes some microseconds
    #[arg(long, value_name = "N", default_value_t = LaunchConfig::default().block_limit)]
    block_limit: u64,
    /// Looks for nothing but accesses that are out of bounds or misaligned
    #[arg(long)]
    no_checks: bool,
    /// A buffer that is no argument itself: zeros:TYPE:SHAPE, random:TYPE:SHAPE[:SEED] or npy:FILE
    #[arg(long = "buffer", value_name = "BUFFER", value_parser = arguments::buffer)]
    buffers: Vec<Buffer>,
    /// An argument, in the kernel's order: TYPE:NUMBER, a buffer (passed as its address),
    /// address:INDEX, len:INDEX, or
    /// map:INDEX:TYPE:extents=1000x520:box=128x64[:swizzle=128][:strides=520][:steps=1x1][:fill=nan],
    /// outermost dimension first
    #[arg(long = "arg", value_name = "ARGUMENT", value_parser = arguments::argument)]
    args: Vec<Argument>,
    /// Prints the first N elements of a buffer, 16 if not said
    #[arg(long, value_name = "INDEX[:N]", value_parser = arguments::show)]
    show: Vec<(usize, Option<usize>)>,
    /// Writes a buffer to a file
    #[arg(long, value_name = "INDEX=FILE.npy", value_parser = arguments::out)]
    out: Vec<(usize, PathBuf)>,
    /// Writes what warps, engines and mbarriers did and when, in the Chrome trace event format;
    /// ui.perfetto.dev shows it. Time is steps of the simulator, not a GPU's
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
    /// The most events that the trace keeps
    #[arg(long, value_name = "N", default_value_t = 500_000, requires = "trace")]
    trace_events: usize,
}

/// The exit code where something was found.
const FOUND: u8 = 1;
/// The exit code where the kernel could not be started, or results not be given; clap's own too.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let Task::Run(options) = Command::parse().task;
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FOUND),
        Err(error) => {
            // Where not even this can be said, the exit code does.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(FAILED)
        }
    }
}

/// Whether nothing was found.
fn run(options: &Run) -> Result<bool, String> {
    let file = options.file.display();
    let ptx = fs::read_to_string(&options.file).map_err(|error| format!("{file}: {error}"))?;
    let module = Module::load(&ptx).map_err(|error| format!("{file}: {error}"))?;
    let Some(kernel) = module.kernel(&options.entry) else {
        let names: Vec<_> = module.kernels().map(|kernel| kernel.name().to_owned()).collect();
        return Err(format!("{file} has no kernel `{}`; it has: {}", options.entry, names.join(", ")));
    };
    let cluster = options.cluster.or(kernel.required_cluster()).unwrap_or([1; 3]);
    let config = LaunchConfig {
        grid: options.grid,
        block: options.block,
        cluster,
        dynamic_shared_bytes: options.shared,
        seed: options.seed,
        checks: if options.no_checks { Checks::NONE } else { Checks::ALL },
        host_threads: options.jobs.map_or(0, |jobs| jobs as usize),
        block_limit: options.block_limit,
        profile: true,
        trace_events: if options.trace.is_some() { options.trace_events } else { 0 },
        ..LaunchConfig::default()
    };
    let mut memory = GlobalMemory::default();
    let (allocated, args) = buffers::allocate(&mut memory, &options.buffers, &options.args)?;
    // A wrong index is said before the kernel runs, not after.
    for index in options.show.iter().map(|show| show.0).chain(options.out.iter().map(|out| out.0)) {
        buffers::find(&allocated, index)?;
    }
    let report =
        launch(&module, &mut memory, &options.entry, &config, &args).map_err(|why| why.to_string())?;

    // A source file that is not here is left out: its lines still have their numbers.
    let sources = module.sources(|file| fs::read_to_string(file).ok());
    let mut text = show::report(&sources, &report);
    if let Some(path) = &options.trace {
        text.push_str(&timeline::write(path, &options.entry, &report.trace, &sources)?);
    }
    for (index, count) in &options.show {
        let array = buffers::find(&allocated, *index)?.read(&memory)?;
        text.push_str(&show::buffer(*index, &array, *count));
    }
    io::stdout().write_all(text.as_bytes()).map_err(|error| format!("standard output: {error}"))?;
    for (index, path) in &options.out {
        let array = buffers::find(&allocated, *index)?.read(&memory)?;
        let written = fs::File::create(path).and_then(|mut file| npy::write(&array, &mut file));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(report.findings.is_empty())
}
