//! `cargo xtask demo`: goes from a fresh clone to a kernel's PTX and, if there is a GPU, to its
//! execution.

use std::{fs, process::Command};

use anyhow::{Context, Result};

use tma_setup::process;

use crate::{
    ptx,
    setup::{self, Tools},
    workspace,
};

/// Sets up, compiles the examples, and shows `tma_copy`: its PTX, and a corner of the matrix that
/// it copied.
pub(crate) fn run() -> Result<()> {
    println!("== Setting up");
    let tools = setup::run()?;

    println!("\n== Building the examples");
    process::run(tools.cargo().args(["build", "-p", "tma-examples"]))?;

    println!("\n== The PTX of tma_copy");
    show_ptx(&tools)?;

    println!("\n== Running tma_copy");
    if has_gpu() {
        let mut example = tools.cargo();
        example.args(["run", "--release", "-p", "tma-examples", "--features", "cuda", "--bin", "tma_copy"]);
        return process::run(&mut example);
    }
    println!("No NVIDIA GPU found: running the same PTX on the simulator.");
    let mut example = tools.cargo();
    process::run(example.args(["run", "-p", "tma-examples", "--bin", "tma_copy"]))
}

/// Prints the PTX and assembles it with ptxas, which prints registers, spills and shared memory.
fn show_ptx(tools: &Tools) -> Result<()> {
    let folder = workspace::target().join("demo");
    process::fresh_folder(&folder)?;
    let source = workspace::root().join("examples/src/bin/tma_copy.rs");
    for path in ptx::write(tools, &folder, ptx::DEFAULT_TARGET, &[source])? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        println!("{text}");
        println!("== Output of ptxas");
        let mut assemble = Command::new(&tools.ptxas);
        assemble.arg("-v").arg(format!("-arch={}", ptx::DEFAULT_TARGET)).arg(&path);
        process::run(assemble.arg("-o").arg(path.with_extension("cubin")))?;
    }
    Ok(())
}

/// Returns whether a GPU's device file exists. A container may have any of the host's GPUs, so its
/// number need not be 0.
fn has_gpu() -> bool {
    let files = fs::read_dir("/dev").into_iter().flatten().flatten().map(|entry| entry.file_name());
    files.filter_map(|name| name.into_string().ok()).any(|name| {
        name.strip_prefix("nvidia")
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
    })
}
