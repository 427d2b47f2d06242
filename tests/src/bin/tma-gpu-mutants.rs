//! Runs kernels that deadlock because a step of synchronisation is missing, with limited waits:
//! each must end, with a report that names its barrier.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use serde::de::DeserializeOwned;
use tma_tests::gpu::deadlocks::list::deadlock_mutants;
use tma_tests::gpu::deadlocks::run::{RunOptions, check, first_of_each_step, run};
use tma_tests::gpu::deadlocks::table::{passes, summary, tables};
use tma_tests::gpu::deadlocks::trial::{On, launch, run_unchanged};
use tma_tests::gpu::deadlocks::{DeadlockMutant, DeadlockTrial};
use tma_tests::mutation::subjects::{first_instances, subjects_of};

/// Runs mutants that deadlock on a GPU, with limited waits.
#[derive(Parser)]
enum Args {
    /// Find the mutants that deadlock on the simulator, and write a line of JSON for each.
    List {
        /// The file to write.
        file: PathBuf,
        /// Try only every Nth mutant.
        #[arg(long, default_value_t = 1)]
        every: usize,
        /// Take at most this many instances of each kernel.
        #[arg(long, default_value_t = 8)]
        instances: usize,
        /// Take only kernels of checks whose names contain this.
        #[arg(long, default_value = "")]
        filter: String,
    },
    /// Run the mutants of a list, and print how they ended.
    Run(RunArgs),
    /// Print how the mutants of earlier runs ended.
    Table {
        /// The results.
        trials: PathBuf,
    },
    /// Launch one mutant in this process.
    #[command(hide = true)]
    One {
        /// The device.
        #[arg(long)]
        device: On,
        /// The mutant: a line of a list.
        mutant: String,
    },
    /// Run a check with unchanged kernels in this process.
    #[command(hide = true)]
    Check {
        /// The device.
        #[arg(long)]
        device: On,
        /// The name of the check.
        test: String,
    },
}

#[derive(Parser)]
struct RunArgs {
    /// The list.
    file: PathBuf,
    /// The file for the results: a line of JSON for each mutant. Mutants that it already has are
    /// not run again.
    #[arg(long)]
    out: PathBuf,
    /// The device.
    #[arg(long, default_value = "cuda")]
    device: On,
    /// Run only every Nth mutant.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Run at most this many mutants of each step.
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true)]
    limit_per_step: usize,
    /// The number of processes at a time.
    #[arg(long, default_value_t = 3)]
    processes: usize,
    /// The limit of a wait on a GPU in seconds.
    #[arg(long, default_value_t = 0.3)]
    wait: f64,
    /// The limit of a process in seconds. A process that takes longer counts as hanging.
    #[arg(long, default_value_t = 20.0)]
    kill: f64,
}

fn main() -> anyhow::Result<ExitCode> {
    match Args::parse() {
        Args::List { file, every, instances, filter } => {
            let subjects = first_instances(&subjects_of(&filter)?, instances);
            let mutants = deadlock_mutants(&subjects, every)?;
            let lines = mutants.iter().map(|mutant| Ok(serde_json::to_string(mutant)? + "\n"));
            fs::write(&file, lines.collect::<serde_json::Result<String>>()?)
                .with_context(|| format!("cannot write {}", file.display()))?;
            println!("{} mutants of {} kernels deadlock", mutants.len(), subjects.len());
            Ok(ExitCode::SUCCESS)
        }
        Args::Run(args) => run_all(&args),
        Args::Table { trials } => {
            let trials = read(&trials)?;
            println!("{}\n{}", tables(&trials), summary(&trials));
            Ok(if passes(&trials) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Args::One { device, mutant } => {
            let launched = launch(&serde_json::from_str(&mutant)?, device)?;
            println!("{}", serde_json::to_string(&launched)?);
            Ok(ExitCode::SUCCESS)
        }
        Args::Check { device, test } => {
            run_unchanged(&test, device)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn run_all(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let options = RunOptions {
        on: args.device,
        processes: args.processes,
        wait_limit: Duration::try_from_secs_f64(args.wait)?,
        process_limit: Duration::try_from_secs_f64(args.kill)?,
    };
    let mutants = read(&args.file)?.into_iter().step_by(args.every.max(1)).collect();
    let mutants: Vec<DeadlockMutant> = first_of_each_step(mutants, args.limit_per_step);
    let first = mutants.first().with_context(|| format!("{} has no mutants", args.file.display()))?;
    let test = first.test.clone();
    check(&test, options).with_context(|| format!("`{test}` fails before any mutant has run"))?;
    let mut trials: Vec<DeadlockTrial> = if args.out.exists() { read(&args.out)? } else { vec![] };
    trials.retain(|trial| mutants.contains(&trial.mutant));
    let is_left = |mutant: &DeadlockMutant| trials.iter().all(|trial| trial.mutant != *mutant);
    let left: Vec<_> = mutants.into_iter().filter(is_left).collect();
    println!(
        "{} mutants, {} of which {} has already",
        trials.len() + left.len(),
        trials.len(),
        args.out.display()
    );
    let cannot_write = || format!("cannot write {}", args.out.display());
    let mut out = File::options().create(true).append(true).open(&args.out).with_context(cannot_write)?;
    trials.extend(run(left, options, &mut out)?);
    println!("{}\n{}", tables(&trials), summary(&trials));
    check(&test, options).with_context(|| format!("the device is not usable: `{test}` fails"))?;
    println!("the device is usable by a new process");
    Ok(if passes(&trials) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads a list of mutants, or of their trials. A last line that is not complete, because its
/// program was killed, is cut off.
fn read<T: DeserializeOwned>(file: &Path) -> anyhow::Result<Vec<T>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let complete = text.rfind('\n').map_or(0, |end| end + 1);
    if complete < text.len() {
        let cut = File::options().write(true).open(file).and_then(|file| file.set_len(complete as u64));
        cut.with_context(|| format!("cannot write {}", file.display()))?;
    }
    let line = |(index, line)| {
        serde_json::from_str(line)
            .with_context(|| format!("cannot parse line {} of {}", index + 1, file.display()))
    };
    text[..complete].lines().enumerate().map(line).collect()
}
