//! `cargo xtask python`: packs the wheel of `tma-kernels`, and tests it in Python. It is apart from
//! `cargo xtask test`, because PyTorch takes more disk than everything else.

use std::{fs, process::Command};

use anyhow::{Context, Result, bail};

use tma_setup::process;

use crate::{setup, workspace};

/// The folder of the scripts, and each with the module that it needs.
const FOLDER: &str = "tma-kernels/python/tests";
const SCRIPTS: [(&str, &str); 2] = [("check_arrays.py", "numpy"), ("check.py", "torch")];

/// The script that mypy checks against the type stubs, if it is installed.
const TYPED: &str = "typed.py";

/// Packs the wheel, unpacks it into the target folder, and runs the scripts.
pub(crate) fn run() -> Result<()> {
    let tools = setup::run()?;
    let folder = workspace::target().join("python");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot empty the folder of the last run")?;
    }
    let mut pack = tools.cargo();
    pack.args(["run", "-p", "cargo-tma", "--", "tma", "wheel", "--package", "tma-kernels-python", "--out"]);
    process::run(pack.arg(&folder))?;
    let wheel =
        fs::read_dir(&folder)?.flatten().map(|entry| entry.path()).next().context("there is no wheel")?;

    let python = || Command::new("python3");
    let site = folder.join("site");
    let mut install = python();
    install.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]);
    process::run(install.arg(&site).arg(&wheel))?;
    let has = |module: &str| process::probe(python().args(["-c", &format!("import {module}")])).is_some();
    let mut is_tested = false;
    for (script, module) in SCRIPTS {
        if has(module) {
            let script = workspace::root().join(FOLDER).join(script);
            process::run(python().arg(script).env("PYTHONPATH", &site))?;
            is_tested = true;
        } else {
            println!("{script} was not run: python3 has no {module}");
        }
    }
    if has("mypy") {
        let script = workspace::root().join(FOLDER).join(TYPED);
        process::run(python().args(["-m", "mypy", "--strict"]).arg(script).env("MYPYPATH", &site))?;
    } else {
        println!("{TYPED} was not checked: python3 has no mypy");
    }
    if !is_tested {
        bail!("nothing was tested; install NumPy or PyTorch for python3");
    }
    Ok(())
}
