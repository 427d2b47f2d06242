//! Runs tests in sequence. If a test loses the device for this process, the rest runs in a new one.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context;
use tma_runtime::prelude::*;

use super::{errors, example_runs, gradients, model, teams, training, tuning};
use crate::case::Options;
use crate::conformance;
use crate::kernels::{self, faults};

/// A test and its name.
pub struct Test {
    /// The name, unique among all tests.
    pub name: String,
    /// Runs the test; the error describes the failure.
    pub run: Box<Run>,
}

/// The body of a test.
pub type Run = dyn Fn(&Device) -> anyhow::Result<()> + Send + Sync;

/// The selection of tests to run.
#[derive(Clone, Debug)]
pub struct Selection {
    /// How thorough the tests are.
    pub options: Options,
    /// Only tests whose name contains this text.
    pub filter: String,
    /// The number of these that are skipped.
    pub skip: usize,
}

/// The numbers of tests that passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number that passed.
    pub passed: usize,
    /// The number that failed.
    pub failed: usize,
}

impl Tally {
    /// Returns the line that ends a run.
    pub fn line(self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }

    /// Parses such a line.
    pub fn parse(line: &str) -> Option<Self> {
        let (passed, failed) = line.strip_suffix(" failed")?.split_once(" passed, ")?;
        Some(Self { passed: passed.parse().ok()?, failed: failed.parse().ok()? })
    }
}

/// Returns every test. Quick runs have no faults: they are for tools that would report the faults
/// as errors.
fn all(options: Options) -> Vec<Test> {
    let cases = kernels::cases().map(|case| Test {
        name: case.name.to_owned(),
        run: Box::new(move |device| (case.run)(device, &options)),
    });
    let mut tests: Vec<_> = cases.collect();
    tests.extend(conformance_tests());
    tests.extend(example_runs::tests(&options));
    tests.extend(model::tests());
    tests.extend(gradients::tests());
    tests.extend(training::tests());
    tests.extend(teams::tests());
    if !options.quick {
        tests.extend(errors::tests());
        tests.extend(tuning::tests());
        #[cfg(feature = "cust")]
        tests.extend(super::exchange::tests());
        tests.extend(
            faults::all()
                .map(|fault| Test { name: fault.name.to_owned(), run: Box::new(|_| in_own_process(fault)) }),
        );
    }
    tests
}

/// Returns the conformance cases, one test per kernel.
fn conformance_tests() -> Vec<Test> {
    let cases = conformance::cases();
    let mut by_kernel: BTreeMap<&str, Vec<conformance::Case>> = BTreeMap::new();
    for case in cases {
        by_kernel.entry(case.kernel()).or_default().push(case);
    }
    let test = |(kernel, cases): (&str, Vec<conformance::Case>)| Test {
        name: format!("conformance::{kernel}"),
        run: Box::new(move |device| {
            cases.iter().try_for_each(|case| case.run(device).with_context(|| case.to_string()))
        }),
    };
    by_kernel.into_iter().map(test).collect()
}

/// Runs the selected tests, and prints a line for each.
///
/// # Errors
///
/// A missing device, or a process that cannot be started.
pub fn run(selection: &Selection) -> anyhow::Result<Tally> {
    let device = Device::open()?;
    let tests = all(selection.options).into_iter().filter(|test| test.name.contains(&selection.filter));
    let mut tally = Tally::default();
    for (index, test) in tests.enumerate().skip(selection.skip) {
        let start = Instant::now();
        let result = (test.run)(&device);
        let milliseconds = start.elapsed().as_millis();
        match result {
            Ok(()) => {
                tally.passed += 1;
                println!("ok      {} ({milliseconds} ms)", test.name);
            }
            Err(error) => {
                tally.failed += 1;
                println!("FAILED  {} ({milliseconds} ms): {error:#}", test.name);
            }
        }
        if device.synchronize().is_err() {
            println!("        the device is lost: a new process goes on");
            let rest = go_on(selection, index + 1)?;
            return Ok(Tally { passed: tally.passed + rest.passed, failed: tally.failed + rest.failed });
        }
    }
    Ok(tally)
}

/// Runs the selected tests after the first `skip` in a new process, and prints its output.
fn go_on(selection: &Selection, skip: usize) -> anyhow::Result<Tally> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["--filter", &selection.filter, "--skip", &skip.to_string()]);
    if selection.options.quick {
        command.arg("--quick");
    }
    let mut process = command.stdout(Stdio::piped()).spawn()?;
    let output = process.stdout.take().context("the new process has no output")?;
    let mut tally = None;
    for line in BufReader::new(output).lines() {
        let line = line?;
        tally = Tally::parse(&line);
        if tally.is_none() {
            println!("{line}");
        }
    }
    process.wait()?;
    tally.context("the new process ended without its tally")
}

/// Runs a fault in its own process and judges its output.
fn in_own_process(fault: &faults::Fault) -> anyhow::Result<()> {
    let output = Command::new(env::current_exe()?).args(["--fault", fault.name]).output()?;
    let written = [output.stdout, output.stderr].concat();
    faults::judge(fault, &String::from_utf8_lossy(&written))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique() {
        let options = Options::default();
        let tests = all(options);
        let names: HashSet<_> = tests.iter().map(|test| &test.name).collect();
        assert_eq!(names.len(), tests.len());
    }

    #[test]
    fn every_example_runs_on_at_least_20_shapes() {
        let tests = all(Options::default());
        for example in ["cluster_reduce", "tma_copy", "tma_copy_pipelined", "tma_scale", "transpose"] {
            let prefix = format!("examples::{example}::");
            assert!(tests.iter().filter(|test| test.name.starts_with(&prefix)).count() >= 20, "{example}");
        }
    }

    #[test]
    fn a_tally_is_read_as_it_is_written() {
        let tally = Tally { passed: 12, failed: 3 };
        assert_eq!(Tally::parse(&tally.line()), Some(tally));
        assert_eq!(Tally::parse("ok      integers::i8 (3 ms)"), None);
    }
}
