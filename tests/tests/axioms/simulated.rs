//! Programs on the simulator.

use std::collections::BTreeMap;

use anyhow::{anyhow, bail};
use ptx_sim::{Arg, Checks as Rules, Finding, FindingKind, GlobalMemory, LaunchConfig, Module, launch};
use tma_codegen::check::{CheckedKernel, for_target};
use tma_codegen::diag::Sink;
use tma_codegen::{Checks, Target, compile_kernel};
use tma_model::sync::Memory;

use crate::program::Program;

/// The number of bytes between two variables, so that each has its own cache line.
const APART: u64 = 256;
/// The number of thread-instructions of a cluster after which it counts as not terminating.
const INSTRUCTIONS: u64 = 1 << 20;

/// The results of all seeds.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// The outcomes of runs without a finding, each with the first seed: the values of the reads,
    /// and the last values of the variables in global memory.
    pub(crate) outcomes: BTreeMap<Vec<u32>, u64>,
    /// The kinds of findings of runs that end, each with the first seed and its text.
    pub(crate) findings: BTreeMap<FindingKind, (u64, String)>,
    /// Whether any run has a finding other than threads that wait forever.
    pub(crate) finds_anything: bool,
    /// The first run in which threads wait forever.
    pub(crate) hung: Option<(u64, String)>,
}

/// Runs a program under `seeds` seeds.
pub(crate) fn run(program: &Program, kernel: CheckedKernel, seeds: u64) -> anyhow::Result<Runs> {
    let dynamic_shared_bytes = kernel.layout().bytes();
    let target = for_target(kernel, Target::default(), &mut Sink::default());
    let target = target.ok_or_else(|| anyhow!("the kernel is not for the target"))?;
    let ptx = compile_kernel("kernel.rs", &target, Checks::Off).map_err(|failure| anyhow!("{failure}"))?;
    let module = Module::load(&ptx.text).map_err(|error| anyhow!("{error}\n{}", ptx.text))?;
    let mut runs = Runs::default();
    for seed in 0..seeds {
        let config = LaunchConfig {
            grid: [program.blocks(), 1, 1],
            block: [program.warps() * 32, 1, 1],
            cluster: [program.cluster.unwrap_or(1), 1, 1],
            dynamic_shared_bytes,
            cooperative: true,
            instruction_limit: INSTRUCTIONS,
            host_threads: 1,
            checks: Rules::ALL,
            seed,
            ..LaunchConfig::default()
        };
        one(program, (&module, &ptx.entry), &config, &mut runs)?;
    }
    Ok(runs)
}

fn one(
    program: &Program,
    (module, entry): (&Module, &str),
    config: &LaunchConfig,
    runs: &mut Runs,
) -> anyhow::Result<()> {
    let mut memory = GlobalMemory::default();
    let (mut args, mut variables) = (vec![], vec![]);
    for variable in &program.variables {
        if variable.memory == Memory::Global {
            let address = memory.allocate(APART, false).ok_or_else(|| anyhow!("no room"))?;
            args.extend([Arg::Address(address), Arg::Bytes(64_u64.to_le_bytes().into())]);
            variables.push(address);
        }
    }
    let reads = program.reads().len() as u64;
    let out = memory.allocate(4 * reads.max(1), false).ok_or_else(|| anyhow!("no room"))?;
    args.extend([Arg::Address(out), Arg::Bytes(reads.to_le_bytes().into())]);
    let report = launch(module, &mut memory, entry, config, &args).map_err(|error| anyhow!("{error}"))?;
    let hangs = |finding: &&Finding| finding.kind == FindingKind::Deadlock;
    runs.finds_anything |= report.findings.iter().any(|finding| !hangs(&finding));
    if let Some(finding) = report.findings.iter().find(hangs) {
        let text = || (config.seed, finding.render(&module.sources(|_| None)));
        runs.hung.get_or_insert_with(text);
        return Ok(());
    }
    for finding in &report.findings {
        let text = || (config.seed, finding.render(&module.sources(|_| None)));
        runs.findings.entry(finding.kind).or_insert_with(text);
    }
    if report.findings.is_empty() {
        let addresses = (0..reads).map(|index| out + 4 * index).chain(variables);
        let outcome: anyhow::Result<Vec<u32>> = addresses.map(|address| word(&memory, address)).collect();
        runs.outcomes.entry(outcome?).or_insert(config.seed);
    }
    Ok(())
}

fn word(memory: &GlobalMemory, address: u64) -> anyhow::Result<u32> {
    let mut bytes = [0; 4];
    if memory.read(address, &mut bytes).is_err() {
        bail!("{address:#x} is not there");
    }
    Ok(u32::from_le_bytes(bytes))
}
