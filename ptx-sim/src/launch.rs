//! Launching a kernel: its arguments, the shape of the grid, and the report.

use std::fmt;
use std::sync::Arc;

use tma_model::limits;

use crate::exec::Context;
use crate::grid;
use crate::isa::{Constant, Program};
use crate::machine::{Checks, Counters, GlobalMemory, GlobalOrder, MachineConfig};
use crate::module::Module;
use crate::profile::Profile;
use crate::report::{Findings, counted};
use crate::tensor_map::{self, TensorMap};
use crate::trace::Trace;

/// The most shared memory that a block can have on a Hopper GPU, in bytes. Source: CUDA Programming
/// Guide, "Compute Capabilities", maximum amount of shared memory per thread block, 9.0.
pub const MOST_SHARED_BYTES: u32 = limits::SHARED_BYTES as u32;

/// The number of multiprocessors of the largest Hopper GPU. Source: NVIDIA H100 Tensor Core GPU
/// Architecture, "H100 GPU Architecture In-Depth": the full GH100.
const MULTIPROCESSORS: u64 = 144;

/// The most blocks that a launch may have in a cluster.
const CLUSTER_BLOCKS: u64 = limits::cluster_blocks(true) as u64;

/// The shape of a launch, and the options of its simulation.
#[derive(Clone, Debug)]
pub struct LaunchConfig {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z; 1024 at most in total.
    pub block: [u32; 3],
    /// Blocks of a cluster along x, y and z. The extents of the grid must be multiples of these.
    pub cluster: [u32; 3],
    /// Whether all blocks run at once and may wait for each other (CUDA driver API,
    /// `cuLaunchCooperativeKernel`). Such a grid may not have more blocks than the largest GPU
    /// holds at a time. Without this a cluster may end before the next one begins; under even seeds
    /// every cluster does.
    pub cooperative: bool,
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared_bytes: u32,
    /// Picks the order of warps, the time at which copies land, and everything else that hardware
    /// is free to choose.
    pub seed: u64,
    /// The checks beyond those of bounds and alignment.
    pub checks: Checks,
    /// The number of clusters that run at a time, 256 at most. A cooperative launch ignores it and
    /// interleaves all its clusters. So does a team of several ranks, with some of their clusters.
    ///
    /// 0, the default, means one for each core of the host, unless the number could matter to the
    /// kernel ([`Kernel::shares_memory`](crate::Kernel::shares_memory)). Such a kernel runs one
    /// cluster at a time or, under odd seeds, several that the seed interleaves, so that a launch
    /// is reproducible from its seed.
    ///
    /// With a number above 1 the host's scheduler decides the order in which different clusters
    /// access global memory. Everything within a cluster still depends on the seed alone.
    pub host_threads: usize,
    /// The most thread instructions that one cluster may run before it is reported as not ending.
    /// An instruction of a warp counts as 32, however many lanes take part.
    pub instruction_limit: u64,
    /// The most blocks that a grid may have. Even a block that exits at once costs some
    /// microseconds, so the largest grid of a GPU would take hours.
    pub block_limit: u64,
    /// Whether to count instructions and bank conflicts, for [`Report::profile`]. This slows the
    /// run down.
    pub profile: bool,
    /// The most events that the timeline keeps, for [`Report::trace`]. At 0, the default, none are
    /// recorded. An event takes about 120 bytes, and that of a copy twice as much.
    /// [`Trace::left_out`] counts the events beyond this limit.
    pub trace_events: usize,
}

impl Default for LaunchConfig {
    /// Returns a launch of one thread in one block. Ordering is checked, in global memory only for
    /// kernels whose blocks communicate.
    fn default() -> Self {
        LaunchConfig {
            grid: [1; 3],
            block: [1; 3],
            cluster: [1; 3],
            cooperative: false,
            dynamic_shared_bytes: 0,
            seed: 0,
            checks: Checks { order: true, global_initialised: false, global_order: GlobalOrder::WhereStrong },
            host_threads: 0,
            instruction_limit: 1 << 32,
            block_limit: 1 << 22,
            profile: false,
            trace_events: 0,
        }
    }
}

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub enum Arg {
    /// The bytes of a parameter, little-endian.
    Bytes(Vec<u8>),
    /// An address in [`GlobalMemory`].
    Address(u64),
    /// Addresses in [`GlobalMemory`], one after the other.
    Addresses(Vec<u64>),
    /// A tensor map: a parameter of 128 bytes.
    Map(TensorMap),
    /// Tensor maps of 128 bytes, one after the other.
    Maps(Vec<TensorMap>),
}

/// The result of a launch.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The errors found in the kernel. A cluster with a fatal finding was not run to its end.
    pub findings: Findings,
    /// Whether a cluster was stopped before its end. One of the findings says why.
    pub stopped: bool,
    /// Observations that need not be mistakes and do not make a launch fail: copies whose box lies
    /// wholly outside the tensor.
    pub notes: Findings,
    /// The output of `printf`, cluster by cluster: its last [`PRINTED_BYTES`](crate::PRINTED_BYTES)
    /// bytes.
    pub printed: String,
    /// The number of bytes printed before those. The buffer of a GPU would have lost them too.
    pub printed_lost: u64,
    /// Executed instructions, counted once for each thread that took part.
    pub thread_instructions: u64,
    /// Executed instructions, counted once for each warp.
    pub warp_instructions: u64,
    /// Copies and bytes that the asynchronous engines have moved.
    pub counters: Counters,
    /// Instructions by line and class, and accesses to shared memory. Empty unless
    /// [`LaunchConfig::profile`] is set.
    pub profile: Profile,
    /// The timeline. Empty unless [`LaunchConfig::trace_events`] is set.
    pub trace: Trace,
}

/// The reason why a launch did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The module has no kernel of this name.
    NoKernel(String),
    /// The arguments do not fit the kernel's parameters, for this reason.
    Arguments(String),
    /// The grid, block, cluster or shared memory is not possible, for this reason.
    Shape(String),
    /// The grid has more blocks than [`LaunchConfig::block_limit`].
    Blocks {
        /// The number of blocks in the grid.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// Global memory has no room for the module's variables.
    Memory,
    /// The ranks cannot form a team, for this reason.
    Team(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoKernel(name) => write!(f, "the module has no kernel `{name}`"),
            Error::Arguments(why) | Error::Shape(why) | Error::Team(why) => f.write_str(why),
            Error::Blocks { found, limit } => write!(
                f,
                "{found} blocks are more than {limit}, the limit of a simulated grid: it would take {} or more; simulate a \
                 part of the grid, or raise the limit (`--block-limit`, `LaunchConfig::block_limit`)",
                least_time(*found)
            ),
            Error::Memory => f.write_str("global memory has no room for the module's variables"),
        }
    }
}

impl std::error::Error for Error {}

/// The cost of a block before its kernel does anything, in microseconds, on one core of a current
/// machine.
const MICROSECONDS_PER_BLOCK: u64 = 4;

/// Returns a lower bound on the time to simulate this many blocks, as text.
pub fn least_time(blocks: u64) -> String {
    let minutes = blocks.saturating_mul(MICROSECONDS_PER_BLOCK).div_ceil(60_000_000);
    if minutes < 120 { counted(minutes, "minute") } else { counted(minutes / 60, "hour") }
}

/// Runs a kernel on all blocks of a grid, and returns the report.
///
/// The first launch of a module places its `.global` and `.const` variables in `memory`. The
/// variables keep their values between launches.
///
/// # Errors
///
/// If the launch is not possible. Errors within the kernel are in the report.
pub fn launch(
    module: &Module,
    memory: &mut GlobalMemory,
    name: &str,
    config: &LaunchConfig,
    args: &[Arg],
) -> Result<Report, Error> {
    launch_team(memory, name, config, &[Rank { module, args }])
}

/// A device of a team that runs one kernel together.
#[derive(Clone, Copy, Debug)]
pub struct Rank<'a> {
    /// The module that the device has loaded, with variables of its own.
    pub module: &'a Module,
    /// The arguments.
    pub args: &'a [Arg],
}

/// Runs a kernel on all ranks of a team at the same time: on each a grid of the same shape, with the
/// rank's own arguments. All ranks access `memory`.
///
/// Clusters of different ranks are interleaved as the seed picks. Until a rank has ended, at least
/// one of its clusters is running; how many run at a time follows the same rules as in a
/// [`launch`]. Device scope does not reach another rank, system scope does.
///
/// # Errors
///
/// The errors of [`launch`], [`Error::Team`] if there are no ranks, more than 8, or modules of
/// different texts, and [`Error::Blocks`] for all ranks together.
pub fn launch_team(
    memory: &mut GlobalMemory,
    name: &str,
    config: &LaunchConfig,
    ranks: &[Rank<'_>],
) -> Result<Report, Error> {
    let Some(Rank { module, .. }) = ranks.first().filter(|_| ranks.len() <= limits::TEAM_RANKS as usize)
    else {
        let (most, found) = (limits::TEAM_RANKS, ranks.len());
        return Err(Error::Team(format!("a team has 1 to {most} ranks, not {found}")));
    };
    if ranks.iter().any(|rank| !rank.module.has_text_of(module)) {
        return Err(Error::Team("the modules of a team must have the same text".to_owned()));
    }
    let program = kernel(module, name)?;
    check_shape(program, config, ranks.len() as u64)?;
    let mut contexts = Vec::with_capacity(ranks.len());
    for rank in ranks {
        contexts.push(context(rank, memory, name, config)?);
    }
    let machine = MachineConfig {
        thread_registers: program.thread_registers,
        blocks: Vec::new(),
        threads: config.block.iter().product(),
        shared: limits::RESERVED_SHARED_BYTES..program.dynamic_shared + config.dynamic_shared_bytes,
        seed: config.seed,
        checks: config.checks,
        global: Arc::new(memory.clone()),
        copies: program.copies_global(),
        used_immediately: program.loads.as_ref().map(|loads| Arc::clone(&loads.used_immediately)),
        cluster: 0,
        clusters: 1,
        ranks: 1,
        grid: None,
        names: module.names(program.dynamic_shared),
        lines: module.lines(),
    };
    let mut report = grid::run(&contexts, &machine, config);
    if !report.trace.events.is_empty() {
        report.trace.names = machine.names.to_vec();
    }
    Ok(report)
}

fn kernel<'m>(module: &'m Module, name: &str) -> Result<&'m Program, Error> {
    module.kernel(name).map(|kernel| kernel.program).ok_or_else(|| Error::NoKernel(name.to_owned()))
}

/// Returns the state that all warps of a rank share.
fn context<'m>(
    rank: &Rank<'m>,
    memory: &mut GlobalMemory,
    name: &str,
    config: &LaunchConfig,
) -> Result<Context<'m>, Error> {
    let Rank { module, args } = *rank;
    let program = kernel(module, name)?;
    let params = parameters(program, args)?;
    let variables = module.variables(memory)?;
    let constants = program.constants.iter().map(|constant| {
        let value = match *constant {
            Constant::Bits(bits) => bits,
            Constant::Variable(index, offset) => {
                variables.get(index.index()).copied().unwrap_or(0).wrapping_add_signed(offset)
            }
        };
        [value; 32]
    });
    Ok(Context {
        program,
        constants: constants.collect(),
        const_ranges: module.const_ranges(&variables),
        params,
        grid: config.grid,
        block: config.block,
        cluster: config.cluster,
        dynamic_shared_bytes: config.dynamic_shared_bytes,
        profile: config.profile,
    })
}

/// Checks the shape of a grid that runs on each of `ranks` devices.
fn check_shape(program: &Program, config: &LaunchConfig, ranks: u64) -> Result<(), Error> {
    let shape = |why: String| Err(Error::Shape(why));
    let volume =
        |extents: [u32; 3]| extents.iter().fold(1_u64, |all, &extent| all.saturating_mul(u64::from(extent)));
    let LaunchConfig { grid, block, cluster, .. } = *config;
    if grid.contains(&0) || block.contains(&0) || cluster.contains(&0) {
        return shape(format!("grid {grid:?}, block {block:?} and cluster {cluster:?} must not have a 0"));
    }
    let most_blocks = limits::GRID_BLOCKS.map(|most| most as u32);
    let most_threads = limits::BLOCK_THREADS as u32;
    let most = [
        (grid[0], most_blocks[0]),
        (grid[1], most_blocks[1]),
        (grid[2], most_blocks[2]),
        (block[0], most_threads),
        (block[1], most_threads),
        (block[2], limits::BLOCK_THREADS_Z),
    ];
    if most.iter().any(|(extent, most)| extent > most) || volume(block) > limits::BLOCK_THREADS {
        return shape(format!("a grid of {grid:?} blocks of {block:?} threads exceeds the limits of a GPU"));
    }
    if volume(cluster) > CLUSTER_BLOCKS {
        return shape(format!("a cluster has at most {CLUSTER_BLOCKS} blocks, not {cluster:?}"));
    }
    if (0..3).any(|axis| !grid[axis].is_multiple_of(cluster[axis])) {
        return shape(format!("the grid {grid:?} is not a multiple of the cluster {cluster:?}"));
    }
    if let Some(wanted) = program.required_threads.filter(|wanted| *wanted != block) {
        return shape(format!("`{}` requires blocks of {wanted:?} threads, not {block:?}", program.name));
    }
    if let Some(most) = program.most_threads.filter(|most| volume(*most) < volume(block)) {
        return shape(format!(
            "`{}` supports blocks of at most {most:?} threads, not {block:?}",
            program.name
        ));
    }
    if let Some(wanted) = program.required_cluster.filter(|wanted| *wanted != cluster) {
        return shape(format!("`{}` requires clusters of {wanted:?} blocks, not {cluster:?}", program.name));
    }
    let shared = u64::from(program.static_shared_bytes()) + u64::from(config.dynamic_shared_bytes);
    if shared > u64::from(MOST_SHARED_BYTES) {
        return shape(format!(
            "a block has at most {MOST_SHARED_BYTES} bytes of shared memory, not {shared}"
        ));
    }
    let resident = MULTIPROCESSORS * limits::resident_blocks(volume(block), shared);
    if config.cooperative && volume(grid) > resident {
        let blocks = volume(grid);
        return shape(format!("at most {resident} blocks of this kernel run at once, not {blocks}"));
    }
    let (found, limit) = (volume(grid).saturating_mul(ranks), config.block_limit);
    if ranks > 1 && found > u64::from(u32::MAX) {
        return shape(format!("the ranks of a team have at most {} blocks together, not {found}", u32::MAX));
    }
    if found > limit { Err(Error::Blocks { found, limit }) } else { Ok(()) }
}

/// Returns the bytes of all parameters.
fn parameters(program: &Program, args: &[Arg]) -> Result<Vec<u8>, Error> {
    if args.len() != program.params.len() {
        let (wanted, given) = (program.params.len(), args.len());
        return Err(Error::Arguments(format!(
            "`{}` takes {}, not {given}",
            program.name,
            counted(wanted as u64, "argument")
        )));
    }
    let mut bytes = vec![0; program.param_bytes as usize];
    for (index, (arg, slot)) in args.iter().zip(&program.params).enumerate() {
        let encoded = |map: &TensorMap| {
            map.check().map_err(|why| Error::Arguments(format!("argument {index}: {why}")))?;
            Ok(tensor_map::encode(map).to_vec())
        };
        let value = match arg {
            Arg::Bytes(value) => value.clone(),
            Arg::Address(address) => address.to_le_bytes().to_vec(),
            Arg::Addresses(all) => all.iter().flat_map(|address| address.to_le_bytes()).collect(),
            Arg::Map(map) => encoded(map)?,
            Arg::Maps(all) => all.iter().map(encoded).collect::<Result<Vec<_>, Error>>()?.concat(),
        };
        let target = bytes.get_mut(slot.offset as usize..(slot.offset + slot.bytes) as usize);
        match target.filter(|target| target.len() == value.len()) {
            Some(target) => target.copy_from_slice(&value),
            None => {
                let (wanted, given) = (slot.bytes, value.len());
                return Err(Error::Arguments(format!(
                    "argument {index} has {}, not {given}",
                    counted(wanted, "byte")
                )));
            }
        }
    }
    Ok(bytes)
}
