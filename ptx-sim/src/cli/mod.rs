//! The command line of a launch, shared by `ptx-sim run` and other commands that launch a kernel.

mod arguments;
mod buffers;
mod json;
mod npy;
mod numbers;
mod show;
mod timeline;

use std::path::PathBuf;
use std::{fmt, fs};

use clap::Args;

use crate::{Checks, Error, GlobalMemory, LaunchConfig, Module, launch};

use arguments::{Argument, Buffer};
pub use timeline::write_timeline;

/// The options of a launch, and what to show of its result.
///
/// Buffers have indices from 0, first those of --buffer, then those that --arg creates, each in the
/// order given.
#[derive(Debug, Args)]
pub struct Launch {
    /// Blocks, as X,Y,Z
    #[arg(long, value_parser = arguments::extents)]
    grid: [u32; 3],
    /// Threads of a block, as X,Y,Z [default: the size that the kernel requires]
    #[arg(long, value_parser = arguments::extents)]
    block: Option<[u32; 3]>,
    /// Blocks of a cluster, as X,Y,Z [default: the size that the kernel requires, or 1]
    #[arg(long, value_parser = arguments::extents)]
    cluster: Option<[u32; 3]>,
    /// Dynamic shared memory of a block in bytes [default: enough for the variables that the
    /// compiler's comments name]
    #[arg(long)]
    shared: Option<u32>,
    /// Seed of the choices that hardware is free to make, such as the order of warps and the time
    /// at which copies land
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of clusters that run at a time [default: one per core; if blocks communicate through
    /// global memory (atomics and the like), one, or several that the seed interleaves, to keep the
    /// result reproducible]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: Option<u32>,
    /// Maximum number of blocks of the grid; each takes some microseconds
    #[arg(long, value_name = "N", default_value_t = LaunchConfig::default().block_limit)]
    block_limit: u64,
    /// Checks only that accesses are in bounds and aligned
    #[arg(long)]
    no_checks: bool,
    /// A buffer that is not itself an argument: zeros:TYPE:SHAPE, random:TYPE:SHAPE[:SEED] or
    /// npy:FILE
    #[arg(long = "buffer", value_name = "BUFFER", value_parser = arguments::buffer)]
    buffers: Vec<Buffer>,
    /// An argument, in the kernel's order: TYPE:NUMBER, a buffer (passed as its address),
    /// address:INDEX, len:INDEX, or
    /// map:INDEX:TYPE:extents=1000x520:box=128x64[:swizzle=128][:strides=520][:steps=1x1][:fill=nan],
    /// outermost dimension first
    #[arg(long = "arg", value_name = "ARGUMENT", value_parser = arguments::argument)]
    args: Vec<Argument>,
    /// Prints the first N elements of a buffer, 16 by default
    #[arg(long, value_name = "INDEX[:N]", value_parser = arguments::show)]
    show: Vec<(usize, Option<usize>)>,
    /// Writes a buffer to a file
    #[arg(long, value_name = "INDEX=FILE.npy", value_parser = arguments::out)]
    out: Vec<(usize, PathBuf)>,
    /// Writes a timeline of warps, engines and mbarriers in the Chrome trace event format, for
    /// ui.perfetto.dev. Times are steps of the simulator, not those of a GPU
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
    /// Maximum number of events in the trace
    #[arg(long, value_name = "N", default_value_t = 500_000, requires = "trace")]
    trace_events: usize,
}

/// The result of a launch.
#[derive(Clone, Debug)]
pub struct LaunchOutcome {
    /// Whether nothing was found.
    pub is_clean: bool,
    /// The text that the command prints.
    pub text: String,
    /// The same as data: findings, notes, counts, bank conflicts, buffers.
    pub json: serde_json::Value,
}

/// The reason why a kernel was not launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The arguments do not fit the kernel's parameters, for this reason.
    Arguments(String),
    /// Any other reason.
    Other(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments(why) | Self::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

impl Launch {
    /// Launches a kernel of `ptx`, and writes the files that were asked for. `name` is what
    /// messages call the PTX.
    ///
    /// # Errors
    ///
    /// If the PTX cannot be loaded, the launch is refused, or a file cannot be read or written.
    pub fn run(&self, name: &str, ptx: &str, entry: &str) -> Result<LaunchOutcome, Refusal> {
        let module = Module::load(ptx).map_err(|error| format!("{name}: {error}"))?;
        let Some(kernel) = module.kernel(entry) else {
            let names: Vec<_> = module.kernels().map(|kernel| kernel.name().to_owned()).collect();
            return Err(Refusal::Other(format!(
                "{name} has no kernel `{entry}`; available: {}",
                names.join(", ")
            )));
        };
        let block = self.block.or(kernel.required_threads());
        let block = block
            .ok_or_else(|| format!("`{entry}` does not set its block size; pass it with --block X,Y,Z"))?;
        let config = LaunchConfig {
            grid: self.grid,
            block,
            cluster: self.cluster.or(kernel.required_cluster()).unwrap_or([1; 3]),
            dynamic_shared_bytes: self.shared.unwrap_or_else(|| module.named_shared_bytes()),
            seed: self.seed,
            checks: if self.no_checks { Checks::NONE } else { Checks::ALL },
            host_threads: self.jobs.map_or(0, |jobs| jobs as usize),
            block_limit: self.block_limit,
            profile: true,
            trace_events: if self.trace.is_some() { self.trace_events } else { 0 },
            ..LaunchConfig::default()
        };
        let mut memory = GlobalMemory::default();
        let (allocated, args) =
            buffers::allocate(&mut memory, &self.buffers, &self.args).map_err(Refusal::Arguments)?;
        // A wrong index is reported before the kernel runs, not after.
        for index in self.show.iter().map(|show| show.0).chain(self.out.iter().map(|out| out.0)) {
            buffers::find(&allocated, index)?;
        }
        let report = launch(&module, &mut memory, entry, &config, &args).map_err(|why| match why {
            Error::Arguments(why) => Refusal::Arguments(why),
            why => Refusal::Other(why.to_string()),
        })?;

        // A source file that cannot be read is left out. Findings then show its line numbers only.
        let sources = module.sources(|file| fs::read_to_string(file).ok());
        let mut text = show::report(&sources, &report);
        if let Some(path) = &self.trace {
            text.push_str(&write_timeline(path, entry, &report.trace, &sources)?);
        }
        let mut shown = vec![];
        for (index, count) in &self.show {
            let array = buffers::find(&allocated, *index)?.read(&memory)?;
            text.push_str(&show::buffer(*index, &array, *count));
            shown.push(json::buffer(*index, &array, *count));
        }
        for (index, path) in &self.out {
            let array = buffers::find(&allocated, *index)?.read(&memory)?;
            let written = fs::File::create(path).and_then(|mut file| npy::write(&array, &mut file));
            written.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let json = json::report(&sources, &report, shown);
        Ok(LaunchOutcome { is_clean: report.findings.is_empty(), text, json })
    }
}
