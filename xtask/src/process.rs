//! Runs other programs, with errors that name the command line.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// Runs `command` with its output on the terminal; an exit status other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", shown(command));
    }
    Ok(())
}

/// Runs `command` and returns what it writes to standard output. Its standard error stays visible.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        bail!("{} failed: {}", shown(command), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} wrote something other than text", shown(command)))
}

/// The standard output of `command`, or `None` if the program is missing or fails.
pub(crate) fn probe(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Makes the file at `path` executable for all users.
pub(crate) fn make_executable(path: &Path) -> Result<()> {
    run(Command::new("chmod").arg("a+x").arg(path))
}

/// The command line as it would be typed.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    format!("`{}`", words.join(" "))
}
