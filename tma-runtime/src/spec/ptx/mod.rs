//! The parts of a kernel's PTX that the host reads: the target and the parameters.

mod params;

pub(crate) use params::entry_params;

use std::fmt;

/// Returns whether the text is compiled PTX rather than the placeholder of a build without LLVM.
pub(crate) fn is_compiled(ptx: &str) -> bool {
    ptx.contains(".entry")
}

/// The architecture of a `.target` directive. Source: PTX ISA, "PTX Module Directives: .target".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Major × 10 + minor.
    capability: u32,
    reach: Reach,
}

/// The devices that run a target's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// `sm_90`: this architecture and all later ones.
    Onwards,
    /// `sm_100f`: this architecture and later ones of the same major number.
    Family,
    /// `sm_90a`: only this architecture.
    Exact,
}

impl Target {
    /// Returns the target that `ptx` names, or `None` if it is missing or cannot be parsed.
    pub(crate) fn of(ptx: &str) -> Option<Self> {
        let line = ptx.lines().find_map(|line| line.trim_start().strip_prefix(".target"))?;
        let name = line.split([',', ' ', '\t']).find(|word| !word.is_empty())?.strip_prefix("sm_")?;
        let (digits, reach) = match name.strip_suffix(['a', 'f']) {
            None => (name, Reach::Onwards),
            Some(digits) if name.ends_with('a') => (digits, Reach::Exact),
            Some(digits) => (digits, Reach::Family),
        };
        Some(Self { capability: digits.parse().ok()?, reach })
    }

    /// Returns whether a device of this compute capability, major and minor, runs code for this
    /// target.
    pub(crate) fn runs_on(self, capability: (u32, u32)) -> bool {
        let (major, minor) = capability;
        let device = major * 10 + minor;
        match self.reach {
            Reach::Onwards => device >= self.capability,
            Reach::Family => device >= self.capability && major == self.capability / 10,
            Reach::Exact => device == self.capability,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.reach {
            Reach::Onwards => "",
            Reach::Family => "f",
            Reach::Exact => "a",
        };
        write!(f, "sm_{}{suffix}", self.capability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(target: &str, device: (u32, u32)) -> Option<bool> {
        let ptx = format!("//\n.version 8.0\n.target {target}\n.address_size 64\n");
        let target = Target::of(&ptx)?;
        assert!(ptx.contains(&format!(".target {target}")));
        Some(target.runs_on(device))
    }

    #[test]
    fn tma0604_code_for_one_architecture_runs_on_no_other() {
        assert_eq!(runs("sm_90a", (9, 0)), Some(true));
        assert_eq!(runs("sm_90a", (10, 0)), Some(false));
        assert_eq!(runs("sm_120a", (12, 0)), Some(true));
        assert_eq!(runs("sm_120a", (12, 1)), Some(false));
    }

    #[test]
    fn plain_targets_run_on_later_devices_and_families_within() {
        assert_eq!(runs("sm_90", (9, 0)), Some(true));
        assert_eq!(runs("sm_90", (12, 0)), Some(true));
        assert_eq!(runs("sm_90", (8, 9)), Some(false));
        assert_eq!(runs("sm_100f", (10, 3)), Some(true));
        assert_eq!(runs("sm_100f", (12, 0)), Some(false));
    }

    #[test]
    fn options_after_the_target_are_no_part_of_it() {
        assert_eq!(
            Target::of(".target sm_90a, debug").map(|target| target.to_string()),
            Some("sm_90a".to_owned())
        );
        assert_eq!(Target::of("// .target sm_90a"), None);
        assert_eq!(Target::of(".target texmode_unified"), None);
    }

    #[test]
    fn tma0605_a_placeholder_is_not_compiled() {
        assert!(is_compiled(".visible .entry copy()"));
        assert!(!is_compiled("built without LLVM"));
    }
}
