//! `tma-train`: trains a language model from a text file.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use tma_train::TrainError;
use tma_train::arguments::Arguments;
use tma_train::command::{self, Summary};
use tma_train::interrupt::Interrupt;
use tma_train::losses::LastLosses;
use tma_train::progress::note;
use tma_train::train::{Outcome, Position};

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let interrupt = Interrupt::listen().context("cannot listen for ctrl-c")?;
    let again = match arguments.restart {
        true => "the same command without --restart continues",
        false => "the same command continues",
    };
    match command::run(&arguments, &interrupt) {
        Ok(Summary { outcome: Outcome::Finished, position, losses }) => {
            let Position { step, .. } = position;
            note(&format!(
                "finished after {step} steps{}; {}",
                losses_text(losses),
                checkpoint_text(&position)
            ));
            Ok(ExitCode::SUCCESS)
        }
        Ok(Summary { outcome: Outcome::Interrupted, position, losses }) => {
            let (step, checkpoint) = (position.step, checkpoint_text(&position));
            note(&format!("interrupted after {step} steps{}; {checkpoint}; {again}", losses_text(losses)));
            Ok(exit_code(&interrupt))
        }
        Err(error @ TrainError::Interrupted) => {
            note(&format!("{error}; the same command begins again"));
            Ok(exit_code(&interrupt))
        }
        Err(error) => Err(error.into()),
    }
}

fn exit_code(interrupt: &Interrupt) -> ExitCode {
    let code = interrupt.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

fn losses_text(losses: LastLosses) -> String {
    let named = [("loss", losses.step), ("validation", losses.validation)];
    let texts: Vec<_> =
        named.iter().filter_map(|(name, loss)| loss.map(|loss| format!("{name} {loss:.4}"))).collect();
    match texts.is_empty() {
        true => String::new(),
        false => format!(": {}", texts.join(", ")),
    }
}

fn checkpoint_text(position: &Position) -> String {
    match &position.checkpoint {
        Some(folder) => format!("the last checkpoint is {}", folder.display()),
        None => "no checkpoint was written".into(),
    }
}
