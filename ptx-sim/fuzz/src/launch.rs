//! The target `launch`: kernels as they are, launched with shapes, arguments and tensor maps that
//! nobody would ask for.

use std::fmt;
use std::sync::LazyLock;

use arbitrary::{Arbitrary, Result, Unstructured};
use ptx_sim::{Arg, Checks, Finding, FindingKind, GlobalMemory, Kernel, LaunchConfig, Module, Report};

use crate::draw::{below, mostly, number, once_in};
use crate::{copies, corpus, engines, maps};

/// Bytes of each of the buffers that arguments point to.
pub(crate) const BUFFER: u64 = 1 << 14;
/// The longest argument, in bytes: longer parameters get too short ones, which is an error.
const ARGUMENT: u32 = 1 << 10;
/// Thread-instructions that a cluster may run.
const INSTRUCTIONS: u64 = 5_000;
/// Blocks of a grid that runs, and more than any that does: what is between takes time, and shows
/// nothing else.
const BLOCKS: u64 = 64;
const HOPELESS: u64 = 1 << 20;
/// Events that a trace may keep: more would only take memory, as is said there.
const EVENTS: usize = 1 << 10;

/// A launch of one of the fixed kernels.
pub struct Launch {
    pub(crate) module: &'static Module,
    pub(crate) name: String,
    pub(crate) config: LaunchConfig,
    pub(crate) memory: GlobalMemory,
    pub(crate) args: Vec<Arg>,
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { module: _, name, config, memory: _, args } = self;
        f.debug_struct("Launch").field("name", name).field("config", config).field("args", args).finish()
    }
}

impl<'a> Arbitrary<'a> for Launch {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut launch = match below(u, 4)? {
            0 => foreign(u)?,
            1 => copies::launch(u)?,
            _ => engines::launch(u)?,
        };
        launch.config = LaunchConfig {
            cooperative: once_in(u, 8)?,
            seed: u.arbitrary()?,
            checks: if once_in(u, 8)? { Checks::NONE } else { Checks::ALL },
            instruction_limit: INSTRUCTIONS,
            profile: once_in(u, 4)?,
            trace_events: if once_in(u, 4)? { below(u, EVENTS)? } else { 0 },
            ..launch.config
        };
        for _ in 0..below(u, 3)? {
            spoil(&mut launch, u)?;
        }
        Ok(launch)
    }
}

impl Launch {
    /// Runs it; false if it was refused.
    pub fn run(self) -> bool {
        let Self { module, name, config, mut memory, args } = self;
        match ptx_sim::launch(module, &mut memory, &name, &config, &args) {
            Ok(report) => {
                judge(module, &report);
                true
            }
            Err(error) => {
                error.to_string();
                false
            }
        }
    }
}

/// Whatever a launch finds, it says why it was stopped, and has no mistake of its own. A finding is
/// shown to users: that must not fail either.
pub(crate) fn judge(module: &Module, report: &Report) {
    let text = report.findings.render(&module.sources(|_| None));
    assert!(!report.stopped || !report.findings.is_empty(), "stopped in silence");
    let is_internal = |finding: &Finding| finding.kind == FindingKind::Internal;
    assert!(!report.findings.iter().any(is_internal), "{text}");
    report.notes.render(&module.sources(|_| None));
}

/// A kernel that this project did not generate.
fn foreign(u: &mut Unstructured<'_>) -> Result<Launch> {
    static MODULES: LazyLock<Vec<Module>> = LazyLock::new(|| {
        let load = |text: &&str| Module::load(text).expect("the corpus loads");
        corpus::WITHOUT_VARIABLES.iter().map(load).collect()
    });
    let module = u.choose(&MODULES)?;
    let kernels: Vec<_> = module.kernels().collect();
    let kernel = u.choose(&kernels)?;
    let (config, memory, args) = usual(kernel, u)?;
    Ok(Launch { module, name: kernel.name().to_owned(), config, memory, args })
}

/// Returns plausible launch arguments for a kernel, as far as its parameters tell.
pub(crate) fn usual(
    kernel: &Kernel<'_>,
    u: &mut Unstructured<'_>,
) -> Result<(LaunchConfig, GlobalMemory, Vec<Arg>)> {
    let mut memory = GlobalMemory::default();
    let buffers = [address(&mut memory, u)?, address(&mut memory, u)?, address(&mut memory, u)?];
    let args = kernel.param_bytes().into_iter().map(|bytes| {
        Ok(match bytes {
            128 => {
                let rank = 1 + (1 + below(u, 5)?) % 5;
                Arg::Map(maps::sound(*u.choose(&buffers)?, BUFFER, rank, u)?)
            }
            8 if once_in(u, 4)? => Arg::Bytes(number(u)?.to_le_bytes().into()),
            8 => Arg::Address(*u.choose(&buffers)?),
            4 => Arg::Bytes((mostly(u, 64)? as u32).to_le_bytes().into()),
            _ => Arg::Bytes((0..bytes.min(ARGUMENT)).map(|_| u.arbitrary()).collect::<Result<_>>()?),
        })
    });
    let args = args.collect::<Result<_>>()?;
    let cluster = kernel.required_cluster().unwrap_or([1 + below(u, 2)? as u32, 1, 1]);
    let likely = [32 * (1 + below(u, 4)? as u32), 1 + below(u, 2)? as u32, 1];
    let config = LaunchConfig {
        grid: [cluster[0] * (1 + below(u, 3)? as u32), cluster[1], cluster[2]],
        block: kernel.required_threads().unwrap_or(likely),
        cluster,
        dynamic_shared_bytes: *u.choose(&[0, 16, 1 << 12, 20_000, 70_000, 200_000])?,
        seed: u.arbitrary()?,
        instruction_limit: INSTRUCTIONS,
        ..LaunchConfig::default()
    };
    Ok((config, memory, args))
}

/// A new buffer, initialised or not.
pub(crate) fn address(memory: &mut GlobalMemory, u: &mut Unstructured<'_>) -> Result<u64> {
    memory.allocate(BUFFER, !once_in(u, 4)?).ok_or(arbitrary::Error::IncorrectFormat)
}

/// Replaces a part by whatever there is.
fn spoil(launch: &mut Launch, u: &mut Unstructured<'_>) -> Result<()> {
    let Launch { config, args, .. } = launch;
    let (axis, number) = (below(u, 3)?, number(u)?);
    let at = below(u, args.len())?;
    match below(u, 10)? {
        0 => config.grid[axis] = number as u32,
        1 => config.block[axis] = number as u32,
        2 => config.cluster[axis] = number as u32,
        3 => config.dynamic_shared_bytes = number as u32,
        4 => config.instruction_limit = number.min(INSTRUCTIONS),
        5 => config.host_threads = number as usize,
        6 => args.truncate(at),
        7 => args.push(Arg::Address(number)),
        8 => {
            args.iter_mut()
                .skip(at)
                .take(1)
                .for_each(|arg| *arg = Arg::Bytes(vec![1; number as usize % 300]));
        }
        _ if once_in(u, 4)? => launch.name.push('x'),
        _ => args.reverse(),
    }
    let blocks = config.grid.iter().try_fold(1_u64, |blocks, &extent| blocks.checked_mul(extent.into()));
    let is_refused = config.grid[1].max(config.grid[2]) > 65_535
        || (config.cooperative && blocks.is_none_or(|blocks| blocks > HOPELESS));
    if blocks.is_none_or(|blocks| blocks > BLOCKS) && !is_refused {
        config.grid = [2, 2, 1];
    }
    Ok(())
}
