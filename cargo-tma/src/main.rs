//! `cargo tma`: tools for TMA kernels.
//!
//! Each command is a function that returns an [`output::Output`]: styled text for people, and the
//! same as data. Only `main` prints. The exit code is 0 on success, 1 if a command found something
//! wrong (a finding, a spill, a missing program), and 2 if it could not do its work.

mod arguments;
mod commands;
mod kernel;
mod output;
mod package;
mod progress;
mod sources;
mod style;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;

use arguments::{Cargo, Command};
use output::{Format, Output};

/// The exit code of a command that found something wrong.
const FOUND: u8 = 1;
/// The exit code of a command that could not do its work. clap uses the same.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let Cargo::Tma(arguments) = Cargo::parse();
    arguments.color.write_global();
    let format = arguments.format;
    let printed = run(arguments.command).and_then(|output| {
        print(&output, format)?;
        Ok(output.is_clean)
    });
    match printed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FOUND),
        Err(error) => {
            if format == Format::Json {
                let _nobody_reads = writeln!(io::stdout(), "{:#}", json!({ "error": format!("{error:#}") }));
            }
            // If even this cannot be printed, the exit code remains.
            let _nobody_reads = writeln!(anstream::stderr(), "{}: {error:#}", style::bad("error"));
            ExitCode::from(FAILED)
        }
    }
}

fn run(command: Command) -> anyhow::Result<Output> {
    match command {
        Command::New(options) => commands::new::run(&options),
        Command::Doctor => commands::doctor::run(),
        Command::Setup(options) => commands::setup::run(&options),
        Command::Ptx(options) => commands::ptx::run(&options),
        Command::Sass(options) => commands::sass::run(&options),
        Command::Check(options) => commands::check::run(&options),
        Command::Run(options) => commands::run::run(&options),
        Command::Trace(options) => commands::trace::run(&options),
        Command::Timeline(options) => commands::timeline::run(&options),
        Command::Profile(options) => commands::profile::run(&options),
        Command::Layout(options) => commands::layout::run(&options),
        Command::Wheel(options) => commands::wheel::run(&options),
        Command::Explain(options) => commands::explain::run(&options),
    }
}

fn print(output: &Output, format: Format) -> anyhow::Result<()> {
    let written = match format {
        Format::Text => anstream::stdout().write_all(output.text.as_bytes()),
        Format::Json => writeln!(io::stdout(), "{:#}", output.json),
    };
    match written {
        // The reader has closed the pipe: `cargo tma explain | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
