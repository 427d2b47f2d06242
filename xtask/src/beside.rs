//! `cargo xtask beside`: builds and tests the programs in `beside`, which use other crates. They
//! are a workspace of their own.

use anyhow::Result;

use tma_setup::process;

use crate::{setup, workspace};

/// Checks format and lints, then runs the programs that need no GPU on the simulator. The others
/// are linked and started, and report that there is no GPU.
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
        // Dependencies of both workspaces are compiled once.
        command.env("CARGO_TARGET_DIR", workspace::target());
        if arguments[0] == "clippy" {
            command.args(["--", "-D", "warnings"]);
        }
        process::run(&mut command)?;
    }
    Ok(())
}
