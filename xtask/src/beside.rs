//! `cargo xtask beside`: builds and tests the programs beside other crates, a workspace of its own.

use anyhow::Result;

use tma_setup::process;

use crate::{setup, workspace};

/// Checks format and lints, then runs what needs no GPU on the simulator. The others link, start,
/// and say that there is none.
pub(crate) fn run() -> Result<()> {
    let tools = setup::run()?;
    let steps: [&[&str]; 4] = [
        &["fmt", "--all", "--check"],
        &["clippy", "--workspace", "--all-targets"],
        &["clippy", "--workspace", "--all-targets", "--features", "cuda,cust"],
        &["test", "--workspace", "--features", "cust"],
    ];
    for arguments in steps {
        let mut command = tools.cargo();
        command.current_dir(workspace::root().join("beside")).args(arguments);
        // What both workspaces depend on is compiled once.
        command.env("CARGO_TARGET_DIR", workspace::target());
        if arguments[0] == "clippy" {
            command.args(["--", "-D", "warnings"]);
        }
        process::run(&mut command)?;
    }
    Ok(())
}
