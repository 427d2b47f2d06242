//! Processes that launch one mutant each, several at a time.

use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::{collections::BTreeMap, env};

use anyhow::{Context, ensure};
use clap::ValueEnum;

use super::trial::On;
use super::{DeadlockMutant, DeadlockTrial, Ending, Launched, Verdict};
use crate::parallel::on_threads;

/// How mutants are run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// The device.
    pub on: On,
    /// The number of processes at a time.
    pub processes: usize,
    /// The limit of a wait on a GPU.
    pub wait_limit: Duration,
    /// The limit of a process, which is killed after it.
    pub process_limit: Duration,
}

/// The time between two looks at a process.
const POLL: Duration = Duration::from_millis(5);

/// The time that a killed process has to end. One that waits in the driver may not.
const AFTER_KILL: Duration = Duration::from_secs(5);

/// Keeps the first mutants of each step, at most `most` of them.
pub fn first_of_each_step(mutants: Vec<DeadlockMutant>, most: usize) -> Vec<DeadlockMutant> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut is_first = |mutant: &DeadlockMutant| {
        let count = counts.entry(mutant.step.clone()).or_default();
        *count += 1;
        *count <= most
    };
    mutants.into_iter().filter(|mutant| is_first(mutant)).collect()
}

/// Runs the mutants, each in a process of its own, and writes a line of JSON to `out` as each ends.
///
/// # Errors
///
/// A process that cannot be started, or a line that cannot be written.
pub fn run(
    mutants: Vec<DeadlockMutant>,
    options: RunOptions,
    out: &mut (impl Write + Send),
) -> anyhow::Result<Vec<DeadlockTrial>> {
    let out = Mutex::new(out);
    let trials = on_threads(options.processes, mutants, |mutant| {
        let trial = in_own_process(mutant, options)?;
        let line = serde_json::to_string(&trial)? + "\n";
        out.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())?;
        Ok(trial)
    });
    trials.into_iter().collect()
}

/// Runs a check with unchanged kernels in a process of its own.
///
/// # Errors
///
/// A process that cannot be started, fails, or does not end in time: the device is not usable.
pub fn check(test: &str, options: RunOptions) -> anyhow::Result<()> {
    let mut child = start("check", test, options)?;
    let (_output, errors) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let ended = wait(&mut child, options.process_limit)?.context("it did not end in time")?;
    ensure!(ended.success(), "{}", read(errors).trim());
    Ok(())
}

/// Starts this program with a command for one process.
fn start(command: &str, argument: &str, options: RunOptions) -> io::Result<Child> {
    let device = options.on.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    let mut process = Command::new(env::current_exe()?);
    process.args([command, "--device", &device, argument]);
    process.env("TMA_WATCH", options.wait_limit.as_secs_f64().to_string());
    process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

fn in_own_process(mutant: DeadlockMutant, options: RunOptions) -> anyhow::Result<DeadlockTrial> {
    let start_time = Instant::now();
    let mut child = start("one", &serde_json::to_string(&mutant)?, options)?;
    let (output, errors) = (reader(child.stdout.take()), reader(child.stderr.take()));
    // It may wait for the launches of all others.
    let limit = options.process_limit.saturating_mul(u32::try_from(options.processes)?);
    let ended = wait(&mut child, limit)?;
    let process_seconds = start_time.elapsed().as_secs_f64();
    let launched = match ended {
        None => Launched { ending: Ending::Hang, seconds: process_seconds },
        Some(status) => launched(&read(output)).unwrap_or_else(|| {
            let text = format!("the process ended with {status}: {}", read(errors).trim());
            Launched { ending: Ending::Error { code: None, text }, seconds: process_seconds }
        }),
    };
    let verdict = Verdict::of(&mutant, &launched.ending);
    Ok(DeadlockTrial { mutant, verdict, launched, process_seconds })
}

/// Returns what a process says in its last line. The kernel may have printed lines before.
fn launched(output: &str) -> Option<Launched> {
    serde_json::from_str(output.lines().last()?).ok()
}

/// Reads a stream on a thread, so that the process never waits for it to be read.
fn reader(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = vec![];
        // A stream that breaks off is shorter.
        let _until_then = stream.map(|mut stream| stream.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn read(reader: thread::JoinHandle<String>) -> String {
    reader.join().unwrap_or_default()
}

/// Waits until a process ends, and kills it when the time is over: it then has no status.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let ended = wait_until(child, Instant::now() + limit)?;
    if ended.is_none() {
        child.kill()?;
        wait_until(child, Instant::now() + AFTER_KILL)?;
    }
    Ok(ended)
}

fn wait_until(child: &mut Child, end: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= end {
            return Ok(status);
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn sleeping(seconds: &str) -> Child {
        Command::new("sleep").arg(seconds).spawn().expect("sleep exists")
    }

    #[test]
    fn processes_that_take_too_long_are_killed() {
        let limit = Duration::from_millis(50);
        assert_eq!(wait(&mut sleeping("100"), limit).expect("it is ours"), None);
        let ended = wait(&mut sleeping("0"), Duration::from_secs(60)).expect("it is ours");
        assert!(ended.is_some_and(|status| status.success()));
    }

    #[test]
    fn the_first_mutants_of_each_step_are_kept() {
        let mutant = |step: &str, line| DeadlockMutant {
            test: "barriers::ring".to_owned(),
            kernel: "ring".to_owned(),
            entry: "ring_0".to_owned(),
            step: step.to_owned(),
            line,
            awaited: BTreeSet::new(),
            also: BTreeSet::new(),
        };
        let all = vec![mutant("a", 1), mutant("b", 2), mutant("a", 3), mutant("a", 4)];
        let lines: Vec<_> = first_of_each_step(all, 2).iter().map(|mutant| mutant.line).collect();
        assert_eq!(lines, [1, 2, 3]);
    }
}
