//! `cargo tma ptx`.

use anyhow::Result;
use serde_json::{Value, json};
use tma_setup::program::PTXAS;

use super::assembled::{self, Assembled};
use crate::arguments::{Build, Kernels};
use crate::kernel::{Kernel, location};
use crate::output::Output;
use crate::package::{self, KEPT_DIRECTORY, Package};
use crate::progress;
use crate::style::{bad, bold, dim, good, source};

/// Lists the kernels, or shows the PTX of those that are named. If ptxas is installed, the output
/// includes its resource usage.
pub(crate) fn run(options: &Kernels) -> Result<Output> {
    let package = package::find(options.build.package.as_deref())?;
    if options.keep || options.check {
        let task = if options.keep { Keep::Write } else { Keep::Check };
        return keep(&package, task, &options.build);
    }
    let kernels = package.kernels(&options.build)?;
    let (shown, is_list) = match &options.kernel {
        Some(name) => (package::named(kernels, name)?, false),
        None => (kernels, true),
    };
    let has_ptxas = PTXAS.find(&assembled::home())?.is_some();
    let (mut text, mut json, mut is_clean) = (String::new(), vec![], true);
    let assembled = progress::over("assembling with ptxas", &shown, |kernel| {
        (has_ptxas && !options.plain).then(|| assembled::assemble(kernel)).transpose()
    })?;
    for (kernel, assembled) in shown.iter().zip(assembled) {
        is_clean &= assembled.as_ref().is_none_or(|assembled| assembled.ptxas_report.is_clean());
        text += &match (is_list, options.plain) {
            (true, _) => format!("{}  {}\n", bold(&kernel.name), dim(&kernel.target)),
            (false, true) => kernel.text.clone(),
            (false, false) => interleaved(kernel),
        };
        text += &assembled.as_ref().map(|assembled| indented(is_list, &assembled.text())).unwrap_or_default();
        json.push(of_kernel(kernel, is_list, assembled.as_ref()));
        if let Some(assembled) = assembled {
            assembled.remove();
        }
    }
    if !has_ptxas && !options.plain {
        text +=
            &format!("{}\n", dim("registers and spills are unknown: run `cargo tma setup` to install ptxas"));
    }
    Ok(Output { text, json: Value::Array(json), is_clean })
}

/// A task of the build script on the saved PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    Write,
    Check,
}

/// Makes the build script write or compare the saved PTX. Cargo shows the script's errors.
fn keep(package: &Package, task: Keep, build: &Build) -> Result<Output> {
    let value = match task {
        Keep::Write => "write",
        Keep::Check => "check",
    };
    let is_done = package.keep(value, build)?;
    let names = package.kept().unwrap_or_default();
    let folder = package.folder.join(KEPT_DIRECTORY);
    let text = match (is_done, task) {
        (false, _) => format!("{}\n", bad("The PTX in tma-ptx does not match the package's kernels.")),
        (true, Keep::Write) => format!("{} {}: {}\n", good("Kept"), folder.display(), names.join(", ")),
        (true, Keep::Check) => {
            format!("{} {}: {}\n", good("Up to date in"), folder.display(), names.join(", "))
        }
    };
    let json = json!({ "folder": folder, "kernels": names, "agrees": is_done });
    Ok(Output { text, json, is_clean: is_done })
}

fn indented(is_list: bool, text: &str) -> String {
    let indent = if is_list { "    " } else { "" };
    text.lines().map(|line| format!("{indent}{line}\n")).collect()
}

fn of_kernel(kernel: &Kernel, is_list: bool, assembled: Option<&Assembled>) -> Value {
    let mut json = json!({
        "kernel": kernel.name,
        "entry": kernel.entry,
        "target": kernel.target,
        "file": kernel.path,
        "ptxas": assembled.map(Assembled::json),
    });
    if !is_list {
        json["ptx"] = Value::from(kernel.text.as_str());
    }
    json
}

/// Formats the PTX with each source line above the code generated from it, instead of the
/// directives.
pub(crate) fn interleaved(kernel: &Kernel) -> String {
    let (mut text, mut shown) = (String::new(), None);
    for (line, at) in kernel.lines() {
        if location(line).is_some() {
            if at != shown
                && let Some((source_location, source_text)) =
                    at.and_then(|(file, line)| kernel.source(file, line))
            {
                text += &format!("{}\n", source(format!("// {source_location}: {source_text}")));
                shown = at;
            }
            continue;
        }
        if !line.trim_start().starts_with(".loc") {
            text += &format!("{line}\n");
        }
    }
    text
}
