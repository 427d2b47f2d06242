//! `cargo xtask ptx`: writes the PTX of the workspace's kernels, one file per instance.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use tma_setup::{files, process};

use crate::{
    setup::{self, Tools},
    workspace,
};

/// The default architecture.
pub(crate) const DEFAULT_TARGET: &str = "sm_90a";

/// Writes the PTX of all kernels to `out`, which is created if it is missing.
pub(crate) fn run(out: Option<&Path>, target: &str) -> Result<()> {
    let tools = setup::run()?;
    let out = match out {
        Some(folder) => std::path::absolute(folder)?,
        None => {
            // This folder belongs to the task. PTX that an earlier run wrote for a deleted kernel
            // must be removed too.
            let folder = workspace::target().join("ptx");
            process::fresh_folder(&folder)?;
            folder
        }
    };
    let written = write(&tools, &out, target, &sources_with_kernels()?)?;
    println!("PTX files in {}: {}", out.display(), written.len());
    Ok(())
}

/// Compiles the kernels in the Rust files `sources`, and returns the PTX files that `out` contains
/// afterwards.
pub(crate) fn write(tools: &Tools, out: &Path, target: &str, sources: &[PathBuf]) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let mut compile = tools.cargo();
    compile.args([
        "run",
        "--quiet",
        "-p",
        "tma-codegen",
        "--features",
        "llvm",
        "--example",
        "ptx",
        "--",
        "--out",
    ]);
    process::run(compile.arg(out).args(["--target", target]).args(sources))?;

    let entries = fs::read_dir(out).with_context(|| format!("cannot list {}", out.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let mut written: Vec<_> = paths
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .collect();
    written.sort();
    if written.is_empty() {
        bail!("no PTX was written to {}", out.display());
    }
    Ok(written)
}

/// Returns the Rust files of the examples and tests that mention the attribute.
fn sources_with_kernels() -> Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for folder in ["examples/src", "tests/src"] {
        for path in files::rust(&workspace::root().join(folder))? {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            if text.contains("tma_kernel") {
                sources.push(path);
            }
        }
    }
    Ok(sources)
}
