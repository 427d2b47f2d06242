//! Requirements from the system's packages, and their installation on Debian and Ubuntu.

use std::{
    io::{IsTerminal, stdin},
    process::Command,
};

use anyhow::{Result, bail};

use crate::{llvm, process, system};

/// A requirement of a build.
pub struct Need {
    /// Name of the requirement, for messages.
    pub purpose: &'static str,
    /// Packages that contain it on Debian and Ubuntu.
    pub packages: &'static [&'static str],
    /// Instructions, if these packages do not exist.
    pub by_hand: &'static str,
    /// Checks whether the requirement is met.
    pub is_met: fn() -> bool,
}

/// LLVM's library.
pub const LLVM: Need = Need {
    purpose: "LLVM 22",
    packages: &["libllvm22"],
    by_hand: "Run `cargo tma doctor` for the command of other systems, or set TMA_LLVM to a folder with the library.",
    is_met: || llvm::find().is_ok(),
};

/// Installs those of `needs` that are missing. An error names the missing ones and how to install
/// them by hand.
///
/// # Errors
/// If something is still missing afterwards.
pub fn provide(needs: &[&Need]) -> Result<()> {
    let missing = unmet(needs);
    if missing.is_empty() {
        return Ok(());
    }
    if !has_apt() {
        bail!("setup installs packages on Debian and Ubuntu only\n{}", advice(&missing));
    }
    let packages: Vec<_> = missing.iter().flat_map(|need| need.packages).copied().collect();
    eprintln!("Installing {}", packages.join(", "));
    // A broken third-party source makes an update fail even if everything needed here is available.
    if let Err(error) = process::run_aside(&mut apt_get(&["update", "--quiet"])) {
        eprintln!("warning: {error}; continuing");
    }
    let mut install = apt_get(&["install", "--yes", "--quiet", "--no-install-recommends"]);
    let installed = process::run_aside(install.args(packages));
    let missing = unmet(needs);
    match installed {
        Ok(()) if missing.is_empty() => Ok(()),
        Ok(()) => bail!("something is still missing after the packages were installed\n{}", advice(&missing)),
        Err(error) => bail!("{error}\n{}", advice(&missing)),
    }
}

fn unmet<'a>(needs: &[&'a Need]) -> Vec<&'a Need> {
    needs.iter().copied().filter(|need| !(need.is_met)()).collect()
}

fn advice(missing: &[&Need]) -> String {
    let lines = missing.iter().map(|need| {
        format!(
            "Missing: {} (Debian and Ubuntu: {}). {}",
            need.purpose,
            need.packages.join(" "),
            need.by_hand
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn has_apt() -> bool {
    process::probe(Command::new("apt-get").arg("--version")).is_some()
}

/// Returns a non-interactive call of apt-get, through sudo if that is needed and present.
fn apt_get(arguments: &[&str]) -> Command {
    let mut command = if system::is_root() || process::probe(Command::new("sudo").arg("--version")).is_none()
    {
        Command::new("env")
    } else {
        let mut sudo = Command::new("sudo");
        if !stdin().is_terminal() {
            // Fails instead of waiting for a password that no one will type.
            sudo.arg("--non-interactive");
        }
        sudo.arg("env");
        sudo
    };
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300"]);
    command.args(arguments);
    command
}
