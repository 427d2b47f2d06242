//! The kernels as plain Rust: one program with all of them, compiled by the rustc that builds the
//! tests.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, ensure};

use super::{Kernel, OUTPUTS, THREADS};

/// The modules of every program: the words, the memory, and the roundings that they use.
const MODULES: [(&str, &str); 3] = [
    ("memory", include_str!("memory.rs")),
    ("rounding", include_str!("../rounding.rs")),
    ("words", include_str!("words.rs")),
];

/// Returns the words that each kernel writes according to rustc.
pub(super) fn run(kernels: &[Kernel], words: &[u64], folder: &Path) -> anyhow::Result<Vec<Vec<u64>>> {
    fs::create_dir_all(folder)?;
    for (name, text) in MODULES {
        fs::write(folder.join(name).with_extension("rs"), text)?;
    }
    let source = folder.join("main.rs");
    fs::write(&source, program(kernels))?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    fs::write(folder.join("words.bin"), bytes)?;

    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    // No operator overflows. Lints do not matter here.
    rustc.args([
        "--edition=2024",
        "--cap-lints=allow",
        "-Copt-level=0",
        "-Cdebuginfo=0",
        "-Coverflow-checks=on",
        // A thread that panics must not leave the others at a barrier.
        "-Cpanic=abort",
    ]);
    let output =
        rustc.arg("-o").arg(folder.join("twins")).arg(&source).output().context("rustc does not start")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "rustc refuses {}:\n{said}", source.display());

    let output = Command::new(folder.join("twins")).arg(folder.join("words.bin")).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed:\n{said}", source.display());
    let count = THREADS as usize * OUTPUTS;
    ensure!(output.stdout.len() == 8 * count * kernels.len(), "{} wrote too little", source.display());
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    let results = output.stdout.chunks_exact(8 * count);
    Ok(results.map(|result| result.chunks_exact(8).map(word).collect()).collect())
}

/// Returns the program, which runs each kernel for each thread and writes the results to standard
/// output.
fn program(kernels: &[Kernel]) -> String {
    let mut program = String::from("mod memory;\nmod rounding;\nmod words;\n");
    let mut table = String::new();
    for Kernel { name, text } in kernels {
        let plain = text.lines().filter(|line| !line.trim_start().starts_with("#[tma_"));
        for line in plain {
            program += &line.replace("tma_runtime::prelude", "crate::words");
            program.push('\n');
        }
        _ = writeln!(table, "    m_{name}::{name},");
    }
    let (threads, count) = (THREADS, THREADS as usize * OUTPUTS);
    _ = write!(
        program,
        "const KERNELS: &[words::Body] = &[\n{table}];\n\
         fn main() {{\n    words::run_all(KERNELS, {threads}, {count});\n}}\n"
    );
    program
}
