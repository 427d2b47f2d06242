//! `cargo xtask book`: builds the book of `docs/` into `target/book`, and follows all of its links.
//!
//! The pages are plain Markdown with relative links, which also work where the repository is
//! hosted. Two kinds of links need help in the book: those to files outside of `docs/`
//! ([`outside`]), and those that lead nowhere, which are errors ([`links`]).

mod links;
mod outside;

use std::io;

use anyhow::Result;
use clap::Subcommand;
use tma_setup::process;

use crate::{setup::mdbook, workspace};

/// What mdBook calls back for.
#[derive(Subcommand)]
pub(crate) enum Step {
    /// Reads a book as mdBook's preprocessors do, and writes it with links to files outside of it
    Outside {
        /// mdBook passes `supports RENDERER` to ask whether it is to be called at all
        question: Vec<String>,
    },
}

pub(crate) fn run(step: Option<&Step>) -> Result<()> {
    match step {
        None => build(),
        // It changes Markdown alone, so every renderer can have it.
        Some(Step::Outside { question }) if !question.is_empty() => Ok(()),
        Some(Step::Outside { .. }) => outside::run(io::stdin().lock(), io::stdout().lock()),
    }
}

fn build() -> Result<()> {
    let mut build = std::process::Command::new(mdbook::provide()?);
    process::run(build.arg("build").arg(workspace::root()))?;
    let folder = workspace::target().join("book");
    let followed = links::check(&folder)?;
    println!("{followed} links checked; the book is at {}", folder.join("index.html").display());
    Ok(())
}
