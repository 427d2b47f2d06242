//! Kernels assembled by ptxas, and its messages about them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use ptx_probe::print;
use serde_json::{Value, json};
use tma_setup::program::{Found, PTXAS, Program};
use tma_setup::ptxas::PtxasReport;

use crate::kernel::Kernel;
use crate::style::{bad, bold, good};

/// An assembled kernel.
#[derive(Debug)]
pub(crate) struct Assembled {
    /// Path of the machine code.
    pub(crate) cubin: PathBuf,
    /// Messages of ptxas.
    pub(crate) ptxas_report: PtxasReport,
}

/// Returns the folder of downloaded programs, which all packages of a user share.
pub(crate) fn home() -> PathBuf {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    cache.or_else(|| variable("LOCALAPPDATA")).unwrap_or_else(env::temp_dir).join("tma")
}

/// Returns a program that is installed, or an error that explains how to install it.
pub(crate) fn require(program: &Program) -> Result<Found> {
    program.require(&home(), "cargo tma setup")
}

/// Assembles a kernel, with line numbers.
///
/// # Errors
///
/// If there is no ptxas, or it rejects the PTX.
pub(crate) fn assemble(kernel: &Kernel) -> Result<Assembled> {
    let ptxas = require(&PTXAS)?;
    let folder = env::temp_dir().join(format!("cargo-tma-{}", std::process::id()));
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let cubin = folder.join(format!("{}.cubin", kernel.entry));
    let mut command = Command::new(&ptxas.path);
    command.args(["-v", "-lineinfo", "-arch", &kernel.target, "-o"]).arg(&cubin);
    match loaded(kernel)? {
        Some(text) => {
            let path = folder.join(format!("{}.ptx", kernel.entry));
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            command.arg(path);
        }
        None => _ = command.arg(&kernel.path),
    }
    let output = command.output().context("cannot start ptxas")?;
    let ptxas_report = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if !output.status.success() {
        bail!(
            "ptxas rejects `{}`; please report this bug of the compiler:\n{}",
            kernel.name,
            ptxas_report.trim()
        );
    }
    Ok(Assembled { cubin, ptxas_report: PtxasReport::read(&ptxas_report) })
}

/// Returns the text that the runtime loads on a GPU, if it is another than that in the file: one
/// that prints without a call. Addresses do not matter here.
fn loaded(kernel: &Kernel) -> Result<Option<String>> {
    let text =
        fs::read_to_string(&kernel.path).with_context(|| format!("cannot read {}", kernel.path.display()))?;
    let is_needed = print::is_needed(&text);
    Ok(is_needed.then(|| print::without_calls(&text, 1 << 32, 1 << 19).ok()).flatten().map(|new| new.ptx))
}

impl Assembled {
    /// Formats the messages as text.
    pub(crate) fn text(&self) -> String {
        let PtxasReport { registers, stack, spills: [stores, loads], warnings, .. } = &self.ptxas_report;
        let spills = format!("{stores} bytes spilled, {loads} bytes reloaded");
        let spills = if self.ptxas_report.spills == [0, 0] { good("no spills") } else { bad(spills) };
        let stack = if *stack == 0 { String::new() } else { format!(", {stack} bytes of stack") };
        let mut text = format!("{} registers, {spills}{stack}\n", bold(registers));
        for note in warnings {
            text += &format!("{}: {note}\n", bad("error"));
        }
        text
    }

    /// Formats the messages as JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "registers": self.ptxas_report.registers,
            "stack_bytes": self.ptxas_report.stack,
            "spill_store_bytes": self.ptxas_report.spills[0],
            "spill_load_bytes": self.ptxas_report.spills[1],
            "complaints": self.ptxas_report.warnings,
        })
    }

    /// Removes the machine code.
    pub(crate) fn remove(&self) {
        // A failure does not matter: the folder is temporary.
        let _stays = self.cubin.parent().map(Path::to_owned).map(fs::remove_dir_all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spills_and_notes_are_reported() {
        let ptxas_report = PtxasReport {
            kernels: 1,
            registers: 168,
            stack: 16,
            spills: [8, 12],
            warnings: vec!["(C7510) Potential Performance Loss".to_owned()],
        };
        let assembled = Assembled { cubin: PathBuf::new(), ptxas_report };
        let text = assembled.text();
        for part in ["168", "8 bytes spilled, 12 bytes reloaded", "16 bytes of stack", "(C7510)"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(assembled.json()["registers"], 168);
    }
}
