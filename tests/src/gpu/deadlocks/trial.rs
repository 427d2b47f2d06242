//! The launch of one mutant with limited waits, in a process that does nothing else.

use std::fs::File;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use std::{env, io, mem};

use anyhow::Context;
use clap::ValueEnum;
use ptx_probe::watch::{Report, WORDS, Watched, describe, watch};
use tma_runtime::launch::{KernelParts, KernelSpec};
use tma_runtime::prelude::*;
use tma_runtime::testing::replace_kernels;

use super::awaited::awaited;
use super::{DeadlockMutant, Ending, Launched};
use crate::gpu::runner::Test;
use crate::mutation::steps::{Mutant, mutants};
use crate::mutation::subjects::{of_runtime, test};
use crate::mutation::trial::INSTRUCTIONS;

/// The device that mutants run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// The first GPU.
    Cuda,
    /// The simulator.
    Sim,
}

impl On {
    /// Opens the device.
    fn device(self) -> Result<Device, Error> {
        match self {
            Self::Cuda => Device::cuda(0),
            Self::Sim => Ok(Device::simulator().instruction_limit(INSTRUCTIONS)),
        }
    }
}

/// The limit of waits on the simulator, whose clock counts the instructions of a warp. A few copies
/// are later than that while other warps poll.
const SIMULATED_LIMIT: u64 = 100_000;

/// Runs a check with the kernels as they are.
///
/// # Errors
///
/// That of the check.
pub fn run_unchanged(name: &str, on: On) -> anyhow::Result<()> {
    let device = on.device()?;
    (test_named(name)?.run)(&device)?;
    Ok(device.synchronize()?)
}

fn test_named(name: &str) -> anyhow::Result<Test> {
    test(name).with_context(|| format!("no check is called `{name}`"))
}

/// Launches a mutant, as the check does that it was found with. On a GPU the variable `TMA_WATCH`
/// limits its waits.
///
/// # Errors
///
/// A device that cannot be opened, or a mutant that does not exist in this build.
pub fn launch(mutant: &DeadlockMutant, on: On) -> anyhow::Result<Launched> {
    let (test, device) = (test_named(&mutant.test)?, on.device()?);
    match on {
        On::Cuda => {
            wait_for_other_launches()?;
            let replacement = replace(mutant, |_, kernel, ptx| Ok((with_ptx(kernel, ptx, None), ())));
            let (result, seconds) = run(&test, &device);
            made(&replacement, &result)?;
            Ok(Launched { ending: ending(result, &device), seconds })
        }
        On::Sim => {
            let replacement = replace(mutant, SimulatedWatch::of);
            let (result, seconds) = run(&test, &device);
            let reported = made(&replacement, &result)?.read()?;
            Ok(Launched { ending: reported.unwrap_or_else(|| ending(result, &device)), seconds })
        }
    }
}

/// Waits until no other process launches a mutant on a GPU, and lets others wait until this one
/// ends. The driver handles faults one after the other anyway, and some processes whose kernels
/// fault at the same time never hear of it. Source: observed on an H200 with driver 580.159: 12 of
/// 136 mutants hung in 4 or 12 processes at a time, and none of them alone.
fn wait_for_other_launches() -> io::Result<()> {
    let program = File::open(env::current_exe()?)?;
    program.lock()?;
    mem::forget(program);
    Ok(())
}

/// Runs a check, and returns its result and the time in seconds.
fn run(test: &Test, device: &Device) -> (anyhow::Result<()>, f64) {
    let start = Instant::now();
    let result = (test.run)(device).and_then(|()| Ok(device.synchronize()?));
    (result, start.elapsed().as_secs_f64())
}

/// The kernel that is launched in place of the original, once a launch has asked for it, and what
/// was made with it.
type Replacement<T> = Arc<OnceLock<anyhow::Result<(&'static KernelSpec, T)>>>;

/// Lets all launches of the mutant's kernel launch the one that `make` makes of it and of the
/// mutant's PTX.
fn replace<T: Send + Sync + 'static>(
    mutant: &DeadlockMutant,
    make: fn(&Device, &'static KernelSpec, String) -> anyhow::Result<(&'static KernelSpec, T)>,
) -> Replacement<T> {
    let (mutant, replacement) = (mutant.clone(), Replacement::default());
    let made = Arc::clone(&replacement);
    let replace = move |device: &Device, kernel: &'static KernelSpec| {
        if kernel.entry != mutant.entry {
            return None;
        }
        let made = made.get_or_init(|| {
            let ptx = ptx_of(&mutant, kernel).context("this build has no such mutant")?;
            make(device, kernel, ptx)
        });
        made.as_ref().ok().map(|(spec, _)| *spec)
    };
    // SAFETY: a mutant has the parameters of its kernel, and computes addresses from the same
    // numbers. Where it accesses other memory, because it uses data before they are there, that is
    // memory of this process, which does nothing else.
    let is_first = unsafe { replace_kernels(replace) };
    assert!(is_first, "a process launches one mutant");
    replacement
}

/// Returns what was made with a replacement, or why there is none after a run with this result.
fn made<'r, T>(replacement: &'r Replacement<T>, result: &anyhow::Result<()>) -> anyhow::Result<&'r T> {
    match (replacement.get(), result) {
        (Some(Ok((_, made))), _) => Ok(made),
        (Some(Err(error)), _) => Err(anyhow::anyhow!("{error:#}")),
        (None, Err(error)) => Err(anyhow::anyhow!("the check fails before the kernel's launch: {error:#}")),
        (None, Ok(())) => Err(anyhow::anyhow!("the check does not launch the kernel")),
    }
}

/// Returns the PTX of a mutant.
fn ptx_of(mutant: &DeadlockMutant, kernel: &KernelSpec) -> Option<String> {
    let mut all = mutants(kernel.ptx).into_iter();
    let found = all.find(|it| it.line == mutant.line && it.change.to_string() == mutant.step)?;
    Some(with_visible_wait(&found))
}

/// Returns the PTX of a mutant with a changed wait in the form of other waits, so that it gets a limit
/// as they do: the register for the changed operand is one of the kernel's, and the wait is the last
/// statement of its line.
fn with_visible_wait(mutant: &Mutant) -> String {
    let line = mutant.ptx.lines().nth(mutant.line - 1).unwrap_or_default();
    let statements = line.strip_prefix("{ .reg .b32 %mutated; ").and_then(|line| line.strip_suffix(" }"));
    match statements.filter(|statements| statements.contains("_wait.")) {
        None => mutant.ptx.clone(),
        Some(statements) => {
            let ptx = mutant.ptx.replacen(line, statements, 1);
            ptx.replacen("\n{\n", "\n{\n\t.reg .b32 \t%mutated;\n", 1)
        }
    }
}

/// Returns a kernel with other PTX, and with other shared memory if it is given.
fn with_ptx(kernel: &KernelSpec, ptx: String, shared_bytes: Option<u32>) -> &'static KernelSpec {
    let shared_bytes = shared_bytes.unwrap_or(kernel.shared_bytes);
    let parts = KernelParts { ptx: ptx.leak(), shared_bytes, ..*kernel.parts() };
    // SAFETY: as for `replace_kernels`.
    Box::leak(Box::new(unsafe { KernelSpec::from_parts(parts) }))
}

/// Returns how the launch with this result ended.
fn ending(result: anyhow::Result<()>, device: &Device) -> Ending {
    let Err(error) = result else { return Ending::Right };
    if let Some(error) = of_runtime(&error) {
        return ending_of(error);
    }
    // A kernel that stopped may have left a wrong result to a check that copied nothing more.
    device.synchronize().err().map_or(Ending::Wrong, |error| ending_of(&error))
}

/// Returns how the launch with this error of the runtime ended.
fn ending_of(error: &Error) -> Ending {
    match error {
        Error::Deadlock { report, .. } => {
            let text = report.to_string();
            Ending::Deadlock { named: awaited(&text), text }
        }
        Error::Ranks { failed, .. } => {
            let endings = || failed.iter().map(|(_, error)| ending_of(error));
            let deadlock = endings().find(|ending| matches!(ending, Ending::Deadlock { .. }));
            deadlock.or_else(|| endings().next()).unwrap_or(Ending::Wrong)
        }
        error => Ending::Error { code: Some(error.code().to_owned()), text: error.to_string() },
    }
}

/// Returns PTX with limited waits in the form that the simulator runs with these limits.
fn for_simulator(ptx: &str) -> String {
    // The counters are in none of the variables that these comments allow a line to access.
    let ptx = ptx.replace("// shared line ", "// line ");
    ptx.lines().map(|line| polling(line) + "\n").collect()
}

/// Returns a line with a `test_wait` in place of a `try_wait`. The simulator resumes a `try_wait` when
/// its phase is complete, and stops when none can be. A GPU gives up after some time, as a
/// `test_wait` does at once, which takes no hint of time.
fn polling(line: &str) -> String {
    let Some((before, wait)) = line.split_once("mbarrier.try_wait") else { return line.to_owned() };
    let (wait, after) = wait.split_once(';').unwrap_or((wait, ""));
    let operands = if wait.starts_with(".parity") { 3 } else { wait.split(',').count() };
    let wait: Vec<_> = wait.split(',').take(operands).collect();
    format!("{before}mbarrier.test_wait{};{after}", wait.join(","))
}

/// The limited waits of a kernel on the simulator.
struct SimulatedWatch {
    watched: Watched,
    /// The memory for reports, of the device that launches the kernel.
    reports: DeviceTensor<u32, 1>,
}

impl SimulatedWatch {
    /// Limits the waits of a kernel with other PTX.
    fn of(
        device: &Device,
        kernel: &'static KernelSpec,
        ptx: String,
    ) -> anyhow::Result<(&'static KernelSpec, Self)> {
        let reports = device.zeros::<u32, 1>([WORDS])?;
        let watched = watch(&ptx, kernel.entry, kernel.shared_bytes, reports.as_ptr(), SIMULATED_LIMIT)?;
        Ok((
            with_ptx(kernel, for_simulator(&watched.ptx), Some(watched.shared_bytes)),
            Self { watched, reports },
        ))
    }

    /// Returns the deadlock that warps have reported.
    fn read(&self) -> anyhow::Result<Option<Ending>> {
        let reports = Report::read(&self.reports.to_vec()?);
        if reports.is_empty() {
            return Ok(None);
        }
        let text = describe(&self.watched, &reports, |_, _| None).join("\n");
        Ok(Some(Ending::Deadlock { named: awaited(&text), text }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::steps::Change;

    const WAIT: &str = ".visible .entry k()
{
\t.reg .b32 \t%r<3>;
\t{
\t.reg .pred %done;
wait_0:
\tmbarrier.try_wait.parity.shared::cta.b64 %done, [%r1], %r2;
\t@!%done bra wait_0;
\t}
\tret;
}
";

    #[test]
    fn waits_become_polls() {
        let with_hint = "\t@%p1 mbarrier.try_wait.parity.shared::cta.b64 %done, [%r1], %r2, %r3; setp.eq.u32 %done, 0, 0;";
        let poll =
            "\t@%p1 mbarrier.test_wait.parity.shared::cta.b64 %done, [%r1], %r2; setp.eq.u32 %done, 0, 0;";
        assert_eq!(polling(with_hint), poll);
        assert_eq!(polling(poll), poll);
        let token = "\tmbarrier.try_wait.shared::cta.b64 %done, [%r1], %rd2;";
        assert_eq!(polling(token), token.replace("try", "test"));
    }

    #[test]
    fn a_flipped_wait_has_a_limit() {
        let flipped = mutants(WAIT).into_iter().find(|mutant| mutant.change == Change::PhaseFlipped);
        let flipped = flipped.expect("there is a wait");
        let sites = |ptx: &str| watch(ptx, "k", 0, 0, 1).expect("a body").sites.len();
        assert_eq!(sites(&flipped.ptx), 0);
        let visible = with_visible_wait(&flipped);
        assert_eq!(sites(&visible), 1);
        let xor =
            "\txor.b32 %mutated, %r2, 1; mbarrier.try_wait.parity.shared::cta.b64 %done, [%r1], %mutated;\n";
        assert!(visible.contains(xor.trim_start()), "{visible}");
    }
}
