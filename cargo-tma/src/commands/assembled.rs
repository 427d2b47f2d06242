//! What ptxas says of a kernel.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tma_setup::program::{Found, PTXAS, Program};

use crate::kernel::Kernel;
use crate::style::{bad, bold, good};

/// An assembled kernel.
#[derive(Debug)]
pub(crate) struct Assembled {
    /// The machine code.
    pub(crate) cubin: PathBuf,
    /// Registers of a thread.
    pub(crate) registers: u32,
    /// Bytes of a thread's stack.
    pub(crate) stack: u32,
    /// Bytes that a thread writes to memory for want of registers, and reads back.
    pub(crate) spills: [u32; 2],
    /// ptxas's warnings, and its notes C7xxx: that it has serialised multiplications of tensor
    /// cores, or ignored `setmaxnreg`.
    pub(crate) complaints: Vec<String>,
}

/// Where downloaded programs are kept for all packages of a user.
pub(crate) fn home() -> PathBuf {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    cache.or_else(|| variable("LOCALAPPDATA")).unwrap_or_else(env::temp_dir).join("tma")
}

/// A program that was installed, or an error that says how to.
pub(crate) fn require(program: &Program) -> Result<Found> {
    let found = program.find(&home())?;
    found.with_context(|| format!("there is no {}: `cargo tma setup` fetches it", program.wanted()))
}

/// Assembles a kernel, with line numbers.
///
/// # Errors
///
/// If there is no ptxas, or it refuses the PTX.
pub(crate) fn assemble(kernel: &Kernel) -> Result<Assembled> {
    let ptxas = require(&PTXAS)?;
    let folder = env::temp_dir().join(format!("cargo-tma-{}", std::process::id()));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let cubin = folder.join(format!("{}.cubin", kernel.entry));
    let mut command = Command::new(&ptxas.path);
    command.args(["-v", "-lineinfo", "-arch", &kernel.target, "-o"]).arg(&cubin).arg(&kernel.path);
    let output = command.output().context("cannot start ptxas")?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if !output.status.success() {
        bail!("ptxas refuses `{}`, which is a mistake of the compiler:\n{}", kernel.name, said.trim());
    }
    Ok(read(&said, cubin))
}

/// Reads the output of `ptxas -v`.
fn read(said: &str, cubin: PathBuf) -> Assembled {
    let before = |word: &str| {
        let number = said.split_once(word).and_then(|(before, _)| before.split_whitespace().last());
        number.and_then(|number| number.trim_start_matches(',').parse().ok()).unwrap_or(0)
    };
    let is_complaint = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        lower.contains("warning") || lower.contains("(c7") || lower.contains("performance loss")
    };
    Assembled {
        cubin,
        registers: before(" registers"),
        stack: before(" bytes stack frame"),
        spills: [before(" bytes spill stores"), before(" bytes spill loads")],
        complaints: said.lines().filter(is_complaint).map(|line| line.trim().to_owned()).collect(),
    }
}

impl Assembled {
    /// Whether nobody would want it otherwise.
    pub(crate) fn is_clean(&self) -> bool {
        self.spills == [0, 0] && self.complaints.is_empty()
    }

    /// Lines for people.
    pub(crate) fn text(&self) -> String {
        let [stores, loads] = self.spills;
        let spills = format!("{stores} bytes spilled, {loads} read back");
        let spills = if self.spills == [0, 0] { good("no spills") } else { bad(spills) };
        let stack = if self.stack == 0 { String::new() } else { format!(", stack of {} bytes", self.stack) };
        let mut text = format!("{} registers, {spills}{stack}\n", bold(self.registers));
        for complaint in &self.complaints {
            text += &format!("{}: {complaint}\n", bad("error"));
        }
        text
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        json!({
            "registers": self.registers,
            "stack_bytes": self.stack,
            "spill_store_bytes": self.spills[0],
            "spill_load_bytes": self.spills[1],
            "complaints": self.complaints,
        })
    }

    /// Removes the machine code.
    pub(crate) fn remove(&self) {
        // Nothing is lost if it stays: the folder is a temporary one.
        let _stays = self.cubin.parent().map(Path::to_owned).map(fs::remove_dir_all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_spills_and_notes_are_read() {
        let said = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized\n\
            ptxas info    : Compiling entry function 'k' for 'sm_90a'\nptxas info    : Function properties for k\n    \
            16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n\
            ptxas info    : Used 168 registers, used 1 barriers, 16 bytes cumulative stack size\n";
        let read = read(said, PathBuf::new());
        assert_eq!((read.registers, read.stack, read.spills), (168, 16, [8, 12]));
        assert_eq!(read.complaints.len(), 1);
        assert!(!read.is_clean() && read.text().contains("(C7510)"));
    }

    #[test]
    fn a_kernel_without_complaints_is_clean() {
        let said = "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n    0 bytes stack frame, 0 bytes \
            spill stores, 0 bytes spill loads\nptxas info    : Used 10 registers, used 1 barriers\n";
        let read = read(said, PathBuf::new());
        assert!(read.is_clean(), "{read:?}");
        assert_eq!(read.json()["registers"], 10);
    }
}
