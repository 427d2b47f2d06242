//! The GPUs that PTX can be generated for.

use std::fmt;
use std::str::FromStr;

use crate::Checks;

/// A PTX target. The `a` variants use architecture-specific instructions; their code runs on no
/// other architecture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Target {
    /// Hopper, forward compatible; without `wgmma` and `setmaxnreg`.
    Sm90,
    /// Hopper with all its instructions.
    #[default]
    Sm90a,
    /// Blackwell, data centre.
    Sm100a,
    /// Blackwell, desktop.
    Sm120a,
}

impl Target {
    /// Every target.
    pub const ALL: [Target; 4] = [Self::Sm90, Self::Sm90a, Self::Sm100a, Self::Sm120a];

    /// Returns the name in PTX's `.target`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sm90 => "sm_90",
            Self::Sm90a => "sm_90a",
            Self::Sm100a => "sm_100a",
            Self::Sm120a => "sm_120a",
        }
    }

    /// Returns the first PTX version that supports the target, as major × 10 + minor. Source: PTX
    /// ISA, "Release Notes", "PTX ISA release history".
    pub const fn ptx_version(self) -> u32 {
        match self {
            Self::Sm90 => 78,
            Self::Sm90a => 80,
            Self::Sm100a => 86,
            Self::Sm120a => 87,
        }
    }
}

/// A feature that not every target has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feature {
    /// `tensormap.replace`: modifies a field of a tensor map.
    ReplaceTensorMap,
    /// `wgmma`: warpgroup multiplications on the tensor cores.
    Wgmma,
    /// `setmaxnreg`: moves registers between warpgroups.
    SetMaxRegisters,
}

impl Feature {
    /// Returns the name in PTX.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReplaceTensorMap => "tensormap.replace",
            Self::Wgmma => "wgmma.mma_async",
            Self::SetMaxRegisters => "setmaxnreg",
        }
    }
}

impl Target {
    /// Whether the target has `feature`.
    pub const fn has(self, feature: Feature) -> bool {
        match feature {
            // Source: PTX ISA, "tensormap.replace" and "setmaxnreg", "Target ISA Notes".
            Feature::ReplaceTensorMap | Feature::SetMaxRegisters => match self {
                Self::Sm90 => false,
                Self::Sm90a | Self::Sm100a | Self::Sm120a => true,
            },
            // Source: PTX ISA, "wgmma.mma_async", "Target ISA Notes".
            Feature::Wgmma => match self {
                Self::Sm90a => true,
                Self::Sm90 | Self::Sm100a | Self::Sm120a => false,
            },
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The target and mode of a compilation.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// The chip.
    pub target: Target,
    /// The mode of kernels that have neither `checked` nor `unchecked`.
    pub checks: Checks,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of a target that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no target `{0}`; there are sm_90, sm_90a, sm_100a and sm_120a")]
pub struct UnknownTarget(String);

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|target| target.name() == name)
            .ok_or_else(|| UnknownTarget(name.to_owned()))
    }
}
