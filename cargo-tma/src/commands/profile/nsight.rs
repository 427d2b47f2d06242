//! `ncu`, the command of Nsight Compute: where it is, how it is run, and why it fails.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::arguments::Profile;
use crate::progress;

/// The environment variable with the path of the program.
const VARIABLE: &str = "TMA_NCU";

/// Folders in which installers of CUDA and of Nsight Compute put versions of the program, the
/// prefix of a version's folder, and the program in it.
const INSTALLED: [(&str, &str, &str); 2] =
    [("/usr/local", "cuda", "bin/ncu"), ("/opt/nvidia/nsight-compute", "20", "ncu")];

/// Returns the program: the one that the variable names, else the one on `PATH`, else the newest in
/// the folders of the installers.
///
/// # Errors
///
/// TMA0907: there is none.
pub(super) fn find() -> Result<PathBuf> {
    if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from) {
        ensure!(path.is_file(), "TMA0907: {VARIABLE} is `{}`, which is not a file", path.display());
        return Ok(path);
    }
    let search = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&search).map(|folder| folder.join("ncu")).find(|path| path.is_file());
    on_path.or_else(newest).with_context(|| {
        format!(
            "TMA0907: cannot find `ncu` of Nsight Compute: it is part of the CUDA toolkit; install that, or \
             set `{VARIABLE}` to the program"
        )
    })
}

/// Returns the newest installed version. Folders of versions sort like their versions.
fn newest() -> Option<PathBuf> {
    INSTALLED.into_iter().find_map(|(folder, prefix, program)| {
        let folders = fs::read_dir(folder).ok()?.flatten();
        let versions = folders.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        let mut programs: Vec<_> = versions.map(|entry| entry.path().join(program)).collect();
        programs.retain(|path| path.is_file());
        programs.sort();
        programs.pop()
    })
}

/// Returns whether `entry` is the entry point of the kernel or instance `name`, as the compiler
/// names it (`abi::entry`).
pub(super) fn is_entry(entry: &str, name: &str) -> bool {
    let wanted = symbol(name);
    let entry = entry.strip_suffix('_').unwrap_or(entry);
    entry == wanted || entry.strip_prefix(&wanted).is_some_and(|rest| rest.starts_with("__"))
}

/// Returns the name of a kernel or an instance in PTX.
fn symbol(name: &str) -> String {
    name.replace("::", "__")
}

/// Returns the name of a kernel, given its entry point.
pub(super) fn kernel_of(entry: &str) -> String {
    entry.replacen("__", "::", 1)
}

/// Runs the package's program under `ncu`, which writes a report of one launch. Returns whether the
/// program succeeded.
///
/// cargo starts the program by `ncu`, so that only the program is profiled, and not the compiler.
///
/// # Errors
///
/// If the launch was not profiled.
pub(super) fn record(ncu: &Path, options: &Profile, report: &Path) -> Result<bool> {
    if report.exists() {
        // A report of an earlier run must not pass for this one's.
        fs::remove_file(report).with_context(|| format!("cannot replace {}", report.display()))?;
    }
    let log = env::temp_dir().join(format!("cargo-tma-profile-{}.log", std::process::id()));
    let kernel = format!("regex:^{}(__.*)?_?$", symbol(&options.kernel));
    let skip = (options.launch - 1).to_string();
    let words: [&std::ffi::OsStr; 18] = [
        ncu.as_ref(),
        "--set".as_ref(),
        "full".as_ref(),
        "--import-source".as_ref(),
        "yes".as_ref(),
        // Locked clocks are those of no real run.
        "--clock-control".as_ref(),
        "none".as_ref(),
        "--kernel-name".as_ref(),
        kernel.as_ref(),
        "--launch-skip".as_ref(),
        skip.as_ref(),
        "--launch-count".as_ref(),
        "1".as_ref(),
        "--log-file".as_ref(),
        log.as_ref(),
        "--force-overwrite".as_ref(),
        "--export".as_ref(),
        report.as_ref(),
    ];
    let words: Vec<_> = words.iter().map(|word| format!("{:?}", word.to_string_lossy())).collect();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let runner = format!("target.{}.runner = [{}]", host(&cargo)?, words.join(", "));
    let status = Command::new(cargo)
        .args(["--config", &runner, "run"])
        .args(&options.arguments)
        // Standard output is this command's own.
        .stdout(io::stderr())
        .status()
        .context("cannot run cargo")?;
    let said = fs::read_to_string(&log).unwrap_or_default();
    // The log is a temporary file: it may remain.
    let _remains = fs::remove_file(&log);
    if !report.exists() {
        return Err(failure(&said, options, status.success()));
    }
    Ok(status.success())
}

/// Returns the system that cargo builds programs for.
fn host(cargo: &std::ffi::OsStr) -> Result<String> {
    let output = Command::new(cargo).arg("-vV").output().context("cannot run cargo")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`cargo -vV` does not name the host")
}

/// Explains why there is no report, given what `ncu` wrote to its log.
fn failure(said: &str, options: &Profile, succeeded: bool) -> anyhow::Error {
    if said.contains("ERR_NVGPUCTRPERM") {
        return anyhow::anyhow!(
            "TMA0908: this user may not read the counters of the GPU (ERR_NVGPUCTRPERM): run the command as \
             root, or allow it to all users with the option `NVreg_RestrictProfilingToAdminUsers=0` of the \
             driver's module `nvidia`"
        );
    }
    let errors: Vec<_> =
        said.lines().filter_map(|line| line.strip_prefix("==ERROR== ")).map(str::trim).collect();
    if errors.is_empty() {
        let failed = if succeeded { "" } else { ", and the program failed" };
        anyhow::anyhow!("`{}` was not launched {} times on a GPU{failed}", options.kernel, options.launch)
    } else {
        anyhow::anyhow!("ncu failed: {}", errors.join("; "))
    }
}

/// Returns a page of a report as comma-separated values.
///
/// # Errors
///
/// If `ncu` cannot read the report.
pub(super) fn page(ncu: &Path, report: &Path, page: &[&str]) -> Result<String> {
    let mut command = Command::new(ncu);
    command.arg("--import").arg(report).arg("--csv").args(page).stdin(Stdio::null());
    let output = progress::during("reading the report", || command.output());
    let output = output.with_context(|| format!("cannot start {}", ncu.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned() + &text;
        let error = errors.lines().find_map(|line| line.strip_prefix("==ERROR== ")).unwrap_or("ncu failed");
        bail!("cannot read the report {}: {}", report.display(), error.trim());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Profile {
        let (kernel, arguments) = ("scale".to_owned(), vec![]);
        Profile { kernel, launch: 3, out: None, report: None, arguments }
    }

    #[test]
    fn entries_are_those_of_the_kernel_or_the_instance() {
        for (entry, name) in [("scale", "scale"), ("scale__wide", "scale"), ("scale__wide", "scale::wide")] {
            assert!(is_entry(entry, name), "{entry} {name}");
        }
        for (entry, name) in [("scales", "scale"), ("scale__wider", "scale::wide"), ("scale", "scale::wide")]
        {
            assert!(!is_entry(entry, name), "{entry} {name}");
        }
        assert_eq!(kernel_of("plain__bf16_t128x256_nt"), "plain::bf16_t128x256_nt");
    }

    #[test]
    fn a_missing_report_is_explained() {
        let text = |said: &str, succeeded| failure(said, &options(), succeeded).to_string();
        let denied = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU \
            Performance Counters on the target device 0.\n";
        assert!(text(denied, true).starts_with("TMA0908: this user may not read the counters"));
        assert_eq!(text("==ERROR== Failed to connect.\n", true), "ncu failed: Failed to connect.");
        assert_eq!(text("", true), "`scale` was not launched 3 times on a GPU");
        let warned = "==WARNING== No kernels were profiled.\n";
        assert_eq!(text(warned, false), "`scale` was not launched 3 times on a GPU, and the program failed");
    }
}
