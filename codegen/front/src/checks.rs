//! The selection of checked kernels: by their attributes, otherwise by the build.

use crate::ir::Kernel;

/// The mode of kernels that have neither `checked` nor `unchecked`.
///
/// Checked kernels test indices, coordinates of copies, ids of named barriers, divisors, and
/// arithmetic for overflow. They stop with the position in the source if a test fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Checks {
    /// Kernels are checked, as in Rust builds with debug assertions.
    On,
    /// Kernels are not checked, as in release builds.
    #[default]
    Off,
}

impl Checks {
    /// Returns the name in messages and fingerprints.
    pub const fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }

    /// Whether `kernel` is checked. Its attribute takes precedence.
    pub fn apply_to(self, kernel: &Kernel) -> bool {
        kernel.checked.unwrap_or(match self {
            Self::On => true,
            Self::Off => false,
        })
    }
}
