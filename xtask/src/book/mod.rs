//! `cargo xtask book`: builds the book of `docs/` into `target/book`, and checks all of its links.
//!
//! The pages are plain Markdown with relative links, which also work where the repository is
//! hosted. Two kinds of links need special treatment in the book: links to files outside of `docs/`
//! ([`outside`]), and broken links, which are errors ([`links`]).

mod links;
mod outside;

use std::io;

use anyhow::Result;
use clap::Subcommand;
use tma_setup::process;

use crate::{setup::mdbook, workspace};

/// The steps that mdBook calls back.
#[derive(Subcommand)]
pub(crate) enum Step {
    /// Reads a book as mdBook's preprocessors do, and writes it with links to files outside of it
    Outside {
        /// mdBook passes `supports RENDERER` to ask whether to call this preprocessor at all
        question: Vec<String>,
    },
}

pub(crate) fn run(step: Option<&Step>) -> Result<()> {
    match step {
        None => build(),
        // The step only changes Markdown, so it supports every renderer.
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
