//! Runs other programs, with errors that name the command line.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// Runs `command` with its output on the terminal.
///
/// # Errors
/// If it cannot be started, or its exit status is not 0.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", shown(command));
    }
    Ok(())
}

/// Runs `command` with all of its output on standard error, because a program may read the standard
/// output.
///
/// # Errors
/// The same as for [`run`].
pub fn run_aside(command: &mut Command) -> Result<()> {
    run(command.stdout(std::io::stderr()))
}

/// Runs `command` and returns what it writes to standard output. Its standard error stays visible.
///
/// # Errors
/// If it cannot be started, its exit status is not 0, or its output is not text.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        bail!("{} failed: {}", shown(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("the output of {} is not UTF-8", shown(command)))
}

/// Returns the standard output of `command`, or `None` if the program is missing or fails.
pub fn probe(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Makes the file at `path` executable for all users.
///
/// # Errors
/// If `chmod` fails.
pub fn make_executable(path: &Path) -> Result<()> {
    run(Command::new("chmod").arg("a+x").arg(path))
}

/// Removes the folder `path` and its contents, if it exists, and creates it again.
///
/// # Errors
/// If either fails.
pub fn fresh_folder(path: &Path) -> Result<()> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))
}

/// Formats the command line as it would be typed.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    format!("`{}`", words.join(" "))
}
