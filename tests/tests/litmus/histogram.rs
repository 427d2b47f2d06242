//! Runs a program, and counts its outcomes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;
use std::time::Instant;

use anyhow::{Context, ensure};
use tma_runtime::launch::{Arg, KernelSpec, launch};
use tma_runtime::prelude::*;
use tma_runtime::spec::Cluster;

/// Whether the observations of a test's roles are of a kind.
pub(crate) type Outcome = fn(&[u32]) -> bool;

/// A kernel that runs tests, and the outcomes that matter.
pub(crate) struct Program {
    pub(crate) spec: &'static KernelSpec,
    /// The number of blocks for 128 tests.
    pub(crate) blocks: u32,
    /// The number of observations of each test.
    pub(crate) observations: usize,
    /// The outcome that the program is about.
    pub(crate) asked: Outcome,
    /// Outcomes without which nothing was tested: sometimes no reader sees a flag.
    pub(crate) decisive: Outcome,
    /// Whether the memory model allows the outcome `asked`.
    pub(crate) is_allowed: bool,
}

/// The number and size of the runs of a program.
struct Size {
    launches: u64,
    rounds: u32,
    /// The number of tests of a round: a power of two, and a multiple of 128.
    tests: u32,
    /// The number of additional blocks, for kernels in which they make noise.
    noise: u32,
}

impl Size {
    const SIMULATED: Self = Self { launches: 4, rounds: 2, tests: 128, noise: 4 };
    const GPU: Self = Self { launches: 8, rounds: 16, tests: 8192, noise: 64 };
}

/// The number of elements that the noise uses.
const NOISE: usize = 1 << 18;

/// The largest number of variables of a test.
const VARIABLES: usize = 5;

/// The value of an element of `seen` without an observation.
const NOTHING: u32 = u32::MAX;

/// The device that `TMA_DEVICE` names. A GPU is opened once for all programs, since that takes
/// longer than a program.
static DEVICE: LazyLock<Device> = LazyLock::new(|| Device::open().unwrap_or_else(|error| panic!("{error}")));

/// Whether programs run on the simulator.
pub(crate) fn is_simulated() -> bool {
    DEVICE.name() == Device::simulator().name()
}

/// The number of times that each outcome occurred.
type Histogram = BTreeMap<Vec<u32>, u64>;

/// Runs a program on the [`DEVICE`], prints its outcomes, and fails if one of them is forbidden.
pub(crate) fn judge(program: &Program) -> anyhow::Result<()> {
    let begun = Instant::now();
    let (device, is_simulated) = (&*DEVICE, is_simulated());
    let mut histogram = Histogram::new();
    let size = if is_simulated { Size::SIMULATED } else { Size::GPU };
    for seed in 0..size.launches {
        let device = if is_simulated { Device::simulator().seed(seed) } else { device.clone() };
        run(program, &device, &size, seed as u32, &mut histogram)
            .with_context(|| format!("{}, launch {seed}", program.spec.name))?;
    }

    let count = |outcome: Outcome| histogram.iter().filter(|(seen, _)| outcome(seen)).map(|(_, n)| n).sum();
    let (asked, decisive, all): (u64, u64, u64) =
        (count(program.asked), count(program.decisive), count(|_| true));
    let word = if program.is_allowed { "allowed" } else { "forbidden" };
    let mut line = format!(
        "{:<34} {word:<9} {asked:>8}, decisive {decisive:>8} of {all:>8}, {:5.2} s:",
        program.spec.name,
        begun.elapsed().as_secs_f64()
    );
    for (seen, count) in histogram.iter().take(16) {
        write!(line, " {seen:?}: {count}")?;
    }
    println!("{line}");
    ensure!(program.is_allowed || asked == 0, "the memory model forbids this:\n{line}");
    // On a GPU some orders take so long that a reader may always be too early.
    ensure!(decisive > 0 || !is_simulated, "nothing was tried:\n{line}");
    Ok(())
}

/// Launches a program once, and adds its outcomes.
fn run(
    program: &Program,
    device: &Device,
    size: &Size,
    seed: u32,
    histogram: &mut Histogram,
) -> anyhow::Result<()> {
    let Program { spec, observations, .. } = *program;
    let tests = (size.tests * size.rounds) as usize;
    let mut memory = device.zeros::<u32, 1>([VARIABLES * tests])?;
    let mut seen = device.tensor(&vec![NOTHING; observations * tests], [observations * tests])?;
    let mut noise = device.zeros::<u32, 1>([NOISE])?;
    let mut counter = device.zeros::<u32, 1>([1])?;
    let args = [
        ("memory", Arg::global_mut(memory.slice_mut())),
        ("seen", Arg::global_mut(seen.slice_mut())),
        ("noise", Arg::global_mut(noise.slice_mut())),
        ("counter", Arg::global_mut(counter.slice_mut())),
        ("tests", Arg::scalar(size.tests)),
        ("rounds", Arg::scalar(size.rounds)),
        ("seed", Arg::scalar(seed.wrapping_mul(0x9e37_79b9))),
    ];
    let is_param = |name: &str| spec.params.iter().any(|param| param.name == name);
    let args: Vec<_> = args.into_iter().filter(|(name, _)| is_param(name)).map(|(_, arg)| arg).collect();

    let mut blocks = size.tests / 128 * program.blocks;
    if is_param("memory") && is_param("noise") {
        blocks += size.noise;
    }
    if matches!(spec.cluster, Cluster::AtLaunch { .. }) {
        let extent = if spec.name.ends_with("cluster") { program.blocks } else { 1 };
        launch(&device.with().cluster([extent, 1, 1]), spec, Grid::x(blocks), &args)?;
    } else {
        launch(device, spec, Grid::x(blocks), &args)?;
    }

    let seen = seen.to_vec()?;
    for test in 0..tests {
        let outcome: Vec<_> = seen.iter().skip(test).step_by(tests).copied().collect();
        ensure!(!outcome.contains(&NOTHING), "test {test} was not observed: {outcome:?}");
        *histogram.entry(outcome).or_default() += 1;
    }
    Ok(())
}
