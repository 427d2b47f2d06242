//! Which kernels are checked: those that say so, and the others as the build says.

use crate::ir::Kernel;

/// What holds for kernels that say neither `checked` nor `unchecked`.
///
/// Checked kernels test indices, the coordinates of copies, the numbers of named barriers and
/// divisors, and stop with the place in the source where one is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Checks {
    /// They are checked, as Rust checks in builds with debug assertions.
    On,
    /// They are not, as in release builds.
    #[default]
    Off,
}

impl Checks {
    /// Its name in messages and fingerprints.
    pub const fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }

    /// Whether `kernel` is checked: its own word comes first.
    pub fn apply_to(self, kernel: &Kernel) -> bool {
        kernel.checked.unwrap_or(match self {
            Self::On => true,
            Self::Off => false,
        })
    }
}
