//! Runs ptxas, and parses its messages.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The messages of ptxas about a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PtxasReport {
    /// Number of kernels that it has assembled.
    pub kernels: usize,
    /// Registers per thread, of the kernel with the most.
    pub registers: u32,
    /// Bytes of a thread's stack, of the function with the largest.
    pub stack: u32,
    /// Bytes that a thread spills to memory for lack of registers, and bytes that it reads back.
    pub spills: [u32; 2],
    /// Warnings, and the notes C7xxx: ptxas has serialised multiplications of tensor cores, or has
    /// ignored `setmaxnreg`.
    pub warnings: Vec<String>,
}

impl PtxasReport {
    /// Parses the output of `ptxas -v`.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut ptxas_report = Self::default();
        for line in text.lines() {
            let number = |word: &str| -> u32 {
                let before = line.split_once(word).and_then(|(before, _)| before.split_whitespace().last());
                before.and_then(|number| number.parse().ok()).unwrap_or(0)
            };
            let lower = line.to_ascii_lowercase();
            if ["warning", "(c7", "performance loss"].iter().any(|word| lower.contains(word)) {
                ptxas_report.warnings.push(line.trim().to_owned());
            }
            ptxas_report.kernels += usize::from(line.contains("Compiling entry function"));
            ptxas_report.registers = ptxas_report.registers.max(number(" registers"));
            ptxas_report.stack = ptxas_report.stack.max(number(" bytes stack frame"));
            ptxas_report.spills[0] += number(" bytes spill stores");
            ptxas_report.spills[1] += number(" bytes spill loads");
        }
        ptxas_report
    }

    /// Returns whether there are neither spills nor complaints. A stack is fine: some kernels ask
    /// for one.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.spills == [0, 0] && self.warnings.is_empty()
    }
}

/// Assembles PTX for a target, such as `sm_90a`, to get the messages of ptxas.
///
/// # Errors
/// If ptxas cannot be started, or rejects the PTX.
pub fn assemble(ptxas: &Path, target: &str, ptx: &str) -> Result<PtxasReport> {
    let mut command = Command::new(ptxas);
    command.args(["-arch", target, "-v", "-o", "/dev/null", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut started = command.spawn().with_context(|| format!("cannot start {}", ptxas.display()))?;
    // ptxas reads all input before it writes anything, unless it fails. Its status reports a
    // failure.
    let written = started.stdin.take().map(|mut input| input.write_all(ptx.as_bytes()));
    let output = started.wait_with_output().context("cannot read the output of ptxas")?;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if !output.status.success() {
        bail!("{}\n{}", output.status, text.trim());
    }
    written.transpose().context("cannot pass PTX to ptxas")?;
    Ok(PtxasReport::read(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_spills_and_notes_are_read() {
        let ptxas_report = PtxasReport::read(
            "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized\n\
             ptxas info    : Compiling entry function 'k' for 'sm_90a'\n\
             ptxas info    : Function properties for k\n    \
             16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n\
             ptxas info    : Used 168 registers, used 1 barriers, 16 bytes cumulative stack size\n",
        );
        assert_eq!(
            (ptxas_report.kernels, ptxas_report.registers, ptxas_report.stack, ptxas_report.spills),
            (1, 168, 16, [8, 12])
        );
        assert_eq!(ptxas_report.warnings.len(), 1);
        assert!(!ptxas_report.is_clean());
    }

    #[test]
    fn a_module_without_complaints_is_clean() {
        let of = |kernel: &str, registers: u32| {
            format!(
                "ptxas info    : Compiling entry function '{kernel}' for 'sm_90a'\n    \
                 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                 ptxas info    : Used {registers} registers, used 1 barriers\n"
            )
        };
        let ptxas_report = PtxasReport::read(&[of("k", 40), of("l", 10)].concat());
        assert!(ptxas_report.is_clean());
        assert_eq!((ptxas_report.kernels, ptxas_report.registers, ptxas_report.stack), (2, 40, 0));
    }
}
