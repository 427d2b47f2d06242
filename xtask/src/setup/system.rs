//! Requirements from the system's packages, and their installation on Debian and Ubuntu.

use std::{
    fs,
    io::{IsTerminal, stdin},
    process::Command,
};

use anyhow::{Result, bail};

use crate::{process, workspace};

/// A requirement of the build.
pub(super) struct Need {
    /// Its name, for messages.
    pub(super) what: &'static str,
    /// The packages that contain it on Debian and Ubuntu.
    pub(super) packages: &'static [&'static str],
    /// What to do if these packages do not exist.
    pub(super) by_hand: &'static str,
    /// Checks whether it is present.
    pub(super) is_met: fn() -> bool,
}

/// LLVM's bindings link `libstdc++`, whose development files are missing on a machine with only a C
/// compiler.
pub(super) const CXX_LIBRARY: Need = Need {
    what: "the C++ standard library to link with",
    packages: &["g++"],
    by_hand: "Install a C++ compiler (gcc-c++ on Fedora, gcc on Arch); set CXXSTDLIB=c++ if it brings libc++.",
    is_met: links_cxx_library,
};

fn links_cxx_library() -> bool {
    // If this is set, or the system is not Linux, llvm-sys chooses another library.
    if std::env::var_os("CXXSTDLIB").is_some() || !cfg!(target_os = "linux") {
        return true;
    }
    let folder = workspace::target().join("tools");
    let source = folder.join("link-check.c");
    let program = folder.join("link-check");
    if fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&source, "int main(void) { return 0; }\n"))
        .is_err()
    {
        return false;
    }
    let linked =
        process::probe(Command::new("cc").arg(&source).arg("-lstdc++").arg("-o").arg(&program)).is_some();
    // Leftovers are harmless: the next check overwrites them.
    for path in [source, program] {
        fs::remove_file(path).ok();
    }
    linked
}

/// Installs whichever of `needs` are missing. An error names what is missing and what to do by
/// hand.
pub(super) fn provide(needs: &[&Need]) -> Result<()> {
    let missing = unmet(needs);
    if missing.is_empty() {
        return Ok(());
    }
    if !has_apt() {
        bail!(
            "This is neither Debian nor Ubuntu, so setup cannot install what is missing.\n{}",
            advice(&missing)
        );
    }
    let packages: Vec<_> = missing.iter().flat_map(|need| need.packages).copied().collect();
    println!("Installing {}", packages.join(", "));
    // A broken third-party source fails an update that otherwise has everything needed here.
    if let Err(error) = process::run(&mut apt_get(&["update", "--quiet"])) {
        println!("Going on in spite of: {error}");
    }
    let mut install = apt_get(&["install", "--yes", "--quiet", "--no-install-recommends"]);
    let installed = process::run(install.args(packages));
    let missing = unmet(needs);
    match installed {
        Ok(()) if missing.is_empty() => Ok(()),
        Ok(()) => bail!("The packages were installed, and yet something is missing.\n{}", advice(&missing)),
        Err(error) => bail!("{error}\n{}", advice(&missing)),
    }
}

fn unmet<'a>(needs: &[&'a Need]) -> Vec<&'a Need> {
    needs.iter().copied().filter(|need| !(need.is_met)()).collect()
}

fn advice(missing: &[&Need]) -> String {
    let lines = missing.iter().map(|need| {
        format!("Missing: {} (Debian and Ubuntu: {}). {}", need.what, need.packages.join(" "), need.by_hand)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn has_apt() -> bool {
    process::probe(Command::new("apt-get").arg("--version")).is_some()
}

/// A non-interactive call to apt-get, through sudo if that is needed and present.
fn apt_get(arguments: &[&str]) -> Command {
    let is_root = process::probe(Command::new("id").arg("-u")).is_some_and(|id| id == "0");
    let mut command = if is_root || process::probe(Command::new("sudo").arg("--version")).is_none() {
        Command::new("env")
    } else {
        let mut sudo = Command::new("sudo");
        if !stdin().is_terminal() {
            // Fail instead of waiting for a password that nobody types.
            sudo.arg("--non-interactive");
        }
        sudo.arg("env");
        sudo
    };
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300"]);
    command.args(arguments);
    command
}
