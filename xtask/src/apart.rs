//! The workspaces of their own: packages with many dependencies, without which the others are
//! built.

use std::process::Command;

use anyhow::Result;

use tma_setup::process;

use crate::setup::{self, Tools};
use crate::test::QUICKLY;
use crate::workspace;

/// A workspace of its own.
#[derive(Clone, Copy)]
pub(crate) struct Apart {
    folder: &'static str,
    /// Features with which all targets are linted.
    linted: &'static str,
    /// Features of the tests.
    tested: &'static str,
}

/// Programs that use kernels beside other crates. The tests run those that need no GPU on the
/// simulator; the others are linked and started, and report that there is no GPU.
pub(crate) const BESIDE: Apart = Apart { folder: "beside", linted: "cuda,cust", tested: "cust" };

/// Language models, and programs that train them and generate text.
pub(crate) const MODELS: Apart =
    Apart { folder: "models", linted: "tma-generate/cuda,tma-model-bench/cuda,tma-train/cuda", tested: "" };

/// Checks format and lints, and runs the tests.
pub(crate) fn run(apart: Apart) -> Result<()> {
    let tools = setup::run()?;
    let (_, mut format) = format(&tools, apart);
    process::run(&mut format)?;
    steps(&tools, apart).into_iter().try_for_each(|(_, mut command)| process::run(&mut command))
}

/// Returns the command that checks the format, with a name.
pub(crate) fn format(tools: &Tools, Apart { folder, .. }: Apart) -> (String, Command) {
    (format!("format of {folder}"), command(tools, folder, &["fmt", "--all", "--check"]))
}

/// Returns the commands that lint and test, with names.
pub(crate) fn steps(tools: &Tools, Apart { folder, linted, tested }: Apart) -> [(String, Command); 2] {
    let mut lints = command(tools, folder, &["clippy", "--workspace", "--all-targets", "--features", linted]);
    lints.args(QUICKLY).args(["--", "-D", "warnings"]).env("TMA_PTX", "off");
    let tests = command(tools, folder, &["test", "--workspace", "--features", tested]);
    [("lints", lints), ("tests", tests)].map(|(name, command)| (format!("{name} of {folder}"), command))
}

/// Returns a command of cargo in the workspace in `folder`.
fn command(tools: &Tools, folder: &str, arguments: &[&str]) -> Command {
    let mut command = tools.cargo();
    command.current_dir(workspace::root().join(folder)).args(arguments);
    // Dependencies of all workspaces are compiled once.
    command.env("CARGO_TARGET_DIR", workspace::target());
    command
}
