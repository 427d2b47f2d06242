//! Finds LLVM 22 and its headers, in the way that llvm-sys does.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::system::Need;
use crate::process;

/// The variable that tells llvm-sys 221 where LLVM is. If set, it looks nowhere else.
pub(super) const VARIABLE: &str = "LLVM_SYS_221_PREFIX";

/// The folder in which Debian's packages install LLVM.
const DEBIAN_PREFIX: &str = "/usr/lib/llvm-22";

pub(super) const NEED: Need = Need {
    what: "LLVM 22 with headers and libraries",
    packages: &["llvm-22-dev", "libpolly-22-dev"],
    by_hand: "Where your release lacks these packages, add the LLVM project's own apt repository; elsewhere install \
              LLVM 22 with the NVPTX target (llvm22-devel on Fedora, llvm on Arch, llvm@22 with Homebrew). If \
              `llvm-config-22` is then not on PATH, set LLVM_SYS_221_PREFIX to the folder that holds \
              bin/llvm-config and include/llvm-c.",
    is_met: || search().is_some(),
};

/// An LLVM that kernels can be compiled with.
pub(super) struct Llvm {
    pub(super) version: String,
    pub(super) prefix: PathBuf,
    /// Whether llvm-sys finds it without another variable.
    pub(super) on_path: bool,
}

/// Looks where llvm-sys looks, then in Debian's folder.
pub(super) fn find() -> Result<Llvm> {
    search().context("LLVM 22 is gone again")
}

fn search() -> Option<Llvm> {
    let names = ["llvm-config-22", "llvm-config"].map(Path::new);
    if let Some(prefix) = std::env::var_os(VARIABLE).filter(|prefix| !prefix.is_empty()) {
        let folder = Path::new(&prefix).join("bin");
        return names.iter().find_map(|name| usable(&folder.join(name), true));
    }
    let on_path = names.iter().find_map(|name| usable(name, true));
    on_path.or_else(|| usable(&Path::new(DEBIAN_PREFIX).join("bin/llvm-config"), false))
}

/// Asks one `llvm-config`. The runtime package has that program as well, but neither headers nor
/// the library to link with.
fn usable(config: &Path, on_path: bool) -> Option<Llvm> {
    let ask = |what: &str| process::probe(Command::new(config).arg(what));
    let version = ask("--version").filter(|version| version.starts_with("22."))?;
    let headers = PathBuf::from(ask("--includedir")?);
    ask("--libnames")?;
    let prefix = PathBuf::from(ask("--prefix")?);
    headers.join("llvm-c/Core.h").is_file().then_some(Llvm { version, prefix, on_path })
}

#[cfg(test)]
mod tests {
    use super::usable;
    use std::path::Path;

    #[test]
    fn another_program_is_no_llvm_config() {
        assert!(usable(Path::new("cc"), true).is_none());
        assert!(usable(Path::new("no-such-program"), true).is_none());
    }
}
