//! `cargo xtask package`: a rehearsal of a release. It packs every published package, and builds
//! each from its own files and from the packed files of the others, as its users will.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use tma_setup::process;

use crate::{
    setup,
    test::{PUBLISHED, QUICKLY},
    workspace,
};

/// The largest package that the registry accepts. Source: The Cargo Book, "Publishing on
/// crates.io": "a 10MB size limit on the .crate file".
const MOST_BYTES: u64 = 10_000_000;

/// Packs and builds the packages, and prints their sizes.
pub(crate) fn run() -> Result<()> {
    let tools = setup::run()?;
    // Its own, in which all packages share their dependencies. In the folder of the other tasks,
    // cargo would build everything once for each package.
    let target = workspace::target().join("packages");
    let packed = target.join("package");
    process::fresh_folder(&packed)?;
    let mut publish = tools.cargo();
    publish.args(["publish", "--workspace", "--dry-run", "--allow-dirty"]).args(QUICKLY);
    process::run(publish.env("CARGO_TARGET_DIR", &target))?;

    let sizes = sizes(&packed)?;
    let missing: Vec<_> = PUBLISHED.iter().filter(|name| !sizes.contains_key(**name)).collect();
    ensure!(missing.is_empty(), "not packed: {missing:?}");
    for (name, bytes) in sizes {
        println!("{:>6} kB  {name}", bytes / 1000);
        if bytes > MOST_BYTES {
            bail!("{name} is too large to publish: {bytes} bytes, of at most {MOST_BYTES}");
        }
    }
    Ok(())
}

/// Returns the sizes of the packages in a folder, by name. In which folders within it cargo writes
/// them is not documented.
fn sizes(folder: &Path) -> Result<BTreeMap<String, u64>> {
    let mut sizes = BTreeMap::new();
    for path in files(folder)? {
        let packages = if path.is_dir() { files(&path)? } else { vec![path] };
        add(&mut sizes, packages)?;
    }
    Ok(sizes)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// Adds the sizes of those files that are packages.
fn add(sizes: &mut BTreeMap<String, u64>, files: Vec<PathBuf>) -> Result<()> {
    for path in files.into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "crate")) {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let (name, _version) = stem.rsplit_once('-').context("a package's file has no version")?;
        sizes.insert(name.to_owned(), path.metadata()?.len());
    }
    Ok(())
}
