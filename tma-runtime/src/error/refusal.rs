//! Errors that concern one way to launch a kernel, but not its other instances.

use super::Error;

impl Error {
    /// Returns whether there is no GPU, no driver, or no backend for them.
    pub(crate) const fn is_absence(&self) -> bool {
        matches!(self, Self::NoBackend | Self::NoDriver { .. } | Self::NoDevice { .. })
    }

    /// Returns whether a launch was refused because of the kernel's requirements or the launch's
    /// options, so that another instance or other options may succeed. Nothing has run in that
    /// case. Wrong arguments do not count, nor does anything that a kernel does.
    pub(crate) const fn is_refusal(&self) -> bool {
        match self {
            Self::Map(_)
            | Self::MisalignedGlobal { .. }
            | Self::Launch { .. }
            | Self::GridZero { .. }
            | Self::GridTooLarge { .. }
            | Self::SimulatedGrid { .. }
            | Self::SharedMemory { .. }
            | Self::Cluster { .. }
            | Self::GridNotResident { .. }
            | Self::NeverWaits { .. } => true,
            Self::View(_)
            | Self::Foreign(_)
            | Self::Team(_)
            | Self::Picture(_)
            | Self::Tune(_)
            | Self::RankMismatch { .. }
            | Self::ElementMismatch { .. }
            | Self::NotContiguous { .. }
            | Self::NotMutable { .. }
            | Self::HostLength { .. }
            | Self::ShapeMismatch { .. }
            | Self::OtherDevice { .. }
            | Self::TensorTooLarge { .. }
            | Self::ArgumentCount { .. }
            | Self::ArgumentMismatch { .. }
            | Self::MapRefused { .. }
            | Self::Assertion { .. }
            | Self::NoDriver { .. }
            | Self::NoDevice { .. }
            | Self::NoBackend
            | Self::NoSimulator
            | Self::Architecture { .. }
            | Self::NoPtx { .. }
            | Self::Jit { .. }
            | Self::KernelFault { .. }
            | Self::OutOfMemory { .. }
            | Self::MissingEntryPoint { .. }
            | Self::NoEntry { .. }
            | Self::Driver { .. }
            | Self::Findings { .. }
            | Self::SimulatedLaunch { .. }
            | Self::SimulatedMemory { .. }
            | Self::UnknownDevice { .. }
            | Self::OtherParameters { .. }
            | Self::Unowned { .. }
            | Self::PreparedOptions
            | Self::Trace { .. }
            | Self::Deadlock { .. }
            | Self::Ranks { .. }
            | Self::Unwatched { .. }
            | Self::HostMemory { .. }
            | Self::PtxNotKept { .. } => false,
        }
    }
}
