//! `tma-train`: trains a language model from a text file.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use tma_train::arguments::Arguments;
use tma_train::command;
use tma_train::interrupt::Interrupt;
use tma_train::train::{Outcome, Position};

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let interrupt = Interrupt::listen().context("cannot listen for ctrl-c")?;
    let (outcome, position) = command::run(&arguments, &|| interrupt.code().is_some())?;
    let checkpoint = checkpoint_text(&position);
    match outcome {
        Outcome::Finished => {
            eprintln!("finished after {} steps; {checkpoint}", position.step);
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Interrupted => {
            eprintln!("interrupted after {} steps; {checkpoint}; the same command continues", position.step);
            let code = interrupt.code().and_then(|code| u8::try_from(code).ok());
            Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
        }
    }
}

fn checkpoint_text(position: &Position) -> String {
    match &position.checkpoint {
        Some(folder) => format!("the last checkpoint is {}", folder.display()),
        None => "no checkpoint was written".into(),
    }
}
