//! The operating system, and the command with which it installs LLVM 22.

use std::{env, fs};

/// The package manager of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum System {
    /// apt, with LLVM 22 in the release's own repositories.
    Apt,
    /// apt, on a release that gets LLVM 22 from the LLVM project's repository.
    OldApt {
        /// Codename of the release in repositories, such as `noble`.
        codename: String,
    },
    /// dnf.
    Fedora,
    /// pacman.
    Arch,
    /// zypper.
    Suse,
    /// apk.
    Alpine,
    /// Homebrew, on macOS.
    Homebrew,
    /// An active conda environment.
    Conda,
    /// Any other system.
    Other,
}

/// The first release of Debian with LLVM 22, in its security updates.
const DEBIAN: u32 = 12;

/// The first release of Ubuntu with LLVM 22, as year and month.
const UBUNTU: u32 = 2604;

impl System {
    /// Returns the system that this program runs on.
    pub fn here() -> Self {
        if env::var_os("CONDA_PREFIX").is_some_and(|prefix| !prefix.is_empty()) {
            return Self::Conda;
        }
        if cfg!(target_os = "macos") {
            return Self::Homebrew;
        }
        Self::of_release(&fs::read_to_string("/etc/os-release").unwrap_or_default())
    }

    /// Determines the system from the text of `/etc/os-release`. Source: os-release(5).
    pub fn of_release(text: &str) -> Self {
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            value.unwrap_or_default().trim_matches('"')
        };
        let digits: String = field("VERSION_ID").chars().filter(char::is_ascii_digit).collect();
        // Rolling releases have no number, and the newest packages.
        let version = digits.parse().unwrap_or(u32::MAX);
        let ids = [field("ID")].into_iter().chain(field("ID_LIKE").split(' '));
        for id in ids {
            return match id {
                "debian" if field("ID") != "debian" || version >= DEBIAN => Self::Apt,
                "ubuntu" if field("ID") == "ubuntu" && version >= UBUNTU => Self::Apt,
                "debian" | "ubuntu" => {
                    let codename = [field("UBUNTU_CODENAME"), field("VERSION_CODENAME")];
                    let codename = codename.into_iter().find(|name| !name.is_empty());
                    Self::OldApt { codename: codename.unwrap_or_default().to_owned() }
                }
                "fedora" | "rhel" => Self::Fedora,
                "arch" => Self::Arch,
                "suse" | "opensuse" => Self::Suse,
                "alpine" => Self::Alpine,
                _ => continue,
            };
        }
        Self::Other
    }

    /// Returns the command that installs LLVM's library, or `None` if none is known. `sudo` is
    /// omitted for root.
    pub fn llvm_command(&self, is_root: bool) -> Option<String> {
        let sudo = if is_root { "" } else { "sudo " };
        Some(match self {
            Self::Apt => format!("{sudo}apt-get update && {sudo}apt-get install --yes libllvm22"),
            Self::OldApt { codename } => format!(
                "curl -fsSL https://apt.llvm.org/llvm-snapshot.gpg.key | {sudo}tee /etc/apt/trusted.gpg.d/llvm.asc \
                 >/dev/null && echo 'deb https://apt.llvm.org/{codename}/ llvm-toolchain-{codename}-22 main' | \
                 {sudo}tee /etc/apt/sources.list.d/llvm-22.list && {sudo}apt-get update && {sudo}apt-get install \
                 --yes libllvm22"
            ),
            Self::Fedora => format!(
                "{sudo}dnf install --assumeyes llvm22-libs || {sudo}dnf install --assumeyes llvm-libs"
            ),
            Self::Arch => format!("{sudo}pacman -S --needed --noconfirm llvm-libs"),
            Self::Suse => format!("{sudo}zypper install --no-confirm libLLVM22"),
            Self::Alpine => format!("{sudo}apk add llvm22-libs"),
            Self::Homebrew => "brew install llvm@22".to_owned(),
            Self::Conda => "conda install --yes --channel conda-forge libllvm22".to_owned(),
            Self::Other => return None,
        })
    }
}

/// Returns whether this program runs as root, and so does not need `sudo`.
pub fn is_root() -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt;
        // The files of a process belong to its effective user. Source: proc(5).
        fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
    }
    #[cfg(not(target_os = "linux"))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(release: &str) -> System {
        System::of_release(&release.replace(' ', "\n"))
    }

    #[test]
    fn releases_are_distinguished() {
        let old = |codename: &str| System::OldApt { codename: codename.to_owned() };
        for (release, system) in [
            ("ID=debian VERSION_ID=\"12\" VERSION_CODENAME=bookworm", System::Apt),
            ("ID=debian VERSION_CODENAME=forky", System::Apt),
            ("ID=debian VERSION_ID=\"11\" VERSION_CODENAME=bullseye", old("bullseye")),
            ("ID=ubuntu VERSION_ID=\"24.04\" ID_LIKE=debian VERSION_CODENAME=noble", old("noble")),
            ("ID=ubuntu VERSION_ID=\"26.04\" ID_LIKE=debian VERSION_CODENAME=resolute", System::Apt),
            ("ID=pop VERSION_ID=\"22.04\" VERSION_CODENAME=jammy UBUNTU_CODENAME=jammy", System::Other),
            ("ID=fedora VERSION_ID=44", System::Fedora),
            ("ID=\"arch\"", System::Arch),
            ("ID=\"opensuse-leap\" ID_LIKE=suse", System::Suse),
            ("ID=alpine VERSION_ID=3.24.0", System::Alpine),
            ("ID=nixos", System::Other),
            ("", System::Other),
        ] {
            assert_eq!(of(release), system, "{release}");
        }
        // Two related distributions, the closest first.
        let mint = System::of_release(
            "ID=linuxmint\nVERSION_ID=22\nID_LIKE=\"ubuntu debian\"\nUBUNTU_CODENAME=noble\n",
        );
        assert_eq!(mint, old("noble"));
    }

    #[test]
    fn each_known_system_has_one_command() {
        let old = System::OldApt { codename: "noble".to_owned() };
        for (system, word) in [
            (System::Apt, "apt-get install --yes libllvm22"),
            (old, "llvm-toolchain-noble-22 main"),
            (System::Fedora, "dnf install --assumeyes llvm22-libs"),
            (System::Arch, "pacman -S"),
            (System::Suse, "libLLVM22"),
            (System::Alpine, "apk add llvm22-libs"),
            (System::Homebrew, "brew install llvm@22"),
            (System::Conda, "libllvm22"),
        ] {
            let command = system.llvm_command(false).unwrap();
            assert!(command.contains(word) && !command.contains('\n'), "{command}");
            assert!(!system.llvm_command(true).unwrap().contains("sudo"));
        }
        assert_eq!(System::Other.llvm_command(false), None);
    }
}
