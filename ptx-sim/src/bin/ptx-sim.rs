//! The command `ptx-sim`: runs a kernel of a PTX file on the CPU and reports its errors.
//!
//! The exit code is 0 if nothing was found, 1 if there are findings, and 2 if the kernel could not
//! be started.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use ptx_sim::cli::Launch;

/// Runs PTX on the CPU, and finds errors that a GPU shows only as garbage or a hang.
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
/// Buffers have indices from 0, first those of --buffer, then those that --arg creates, each in the
/// order given.
#[derive(Debug, Args)]
struct Run {
    /// The PTX
    file: PathBuf,
    /// The kernel's symbol
    #[arg(long)]
    entry: String,
    #[command(flatten)]
    launch: Launch,
}

/// The exit code if something was found.
const FOUND: u8 = 1;
/// The exit code if the kernel could not be started or its results could not be written. clap uses
/// the same.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let Task::Run(options) = Command::parse().task;
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FOUND),
        Err(error) => {
            // If even this message cannot be written, only the exit code reports the failure.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(FAILED)
        }
    }
}

/// Runs the kernel, and returns whether nothing was found.
fn run(options: &Run) -> Result<bool, String> {
    let file = options.file.display().to_string();
    let ptx = fs::read_to_string(&options.file).map_err(|error| format!("{file}: {error}"))?;
    let outcome = options.launch.run(&file, &ptx, &options.entry).map_err(|why| why.to_string())?;
    let written = io::stdout().write_all(outcome.text.as_bytes());
    written.map_err(|error| format!("standard output: {error}"))?;
    Ok(outcome.is_clean)
}
