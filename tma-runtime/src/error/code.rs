//! The codes of the host's errors. No other module defines any.

use super::{ClusterError, Error, ForeignError, MapError, PictureError, TeamError, TuneError, ViewError};

impl Error {
    /// Returns the error's code, such as `TMA0501`, which is also the name of its page in
    /// `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Map(error) => error.code(),
            Self::View(error) => error.code(),
            Self::Foreign(error) => error.code(),
            Self::Team(error) => error.code(),
            Self::Picture(error) => error.code(),
            Self::Tune(error) => error.code(),
            Self::RankMismatch { .. } => "TMA0506",
            Self::ElementMismatch { .. } => "TMA0510",
            Self::NotContiguous { .. } => "TMA0511",
            Self::HostLength { .. } => "TMA0512",
            Self::ShapeMismatch { .. } => "TMA0513",
            Self::OtherDevice { .. } => "TMA0514",
            Self::TensorTooLarge { .. } => "TMA0515",
            Self::ArgumentCount { .. } | Self::ArgumentMismatch { .. } => "TMA0516",
            Self::MapRefused { .. } => "TMA0517",
            Self::NotMutable { .. } => "TMA0526",
            Self::MisalignedGlobal { .. } => "TMA0531",
            Self::Assertion { .. } => "TMA0545",
            Self::NoDriver { .. } => "TMA0601",
            Self::NoDevice { .. } => "TMA0602",
            Self::NoBackend => "TMA0603",
            Self::NoSimulator => "TMA0906",
            Self::Architecture { .. } => "TMA0604",
            Self::NoPtx { .. } => "TMA0605",
            Self::Jit { .. } => "TMA0606",
            Self::Launch { .. } => "TMA0607",
            Self::KernelFault { .. } => "TMA0608",
            Self::OutOfMemory { .. } => "TMA0609",
            Self::GridZero { .. } => "TMA0610",
            Self::GridTooLarge { .. } => "TMA0611",
            Self::SharedMemory { .. } => "TMA0612",
            Self::MissingEntryPoint { .. } => "TMA0613",
            Self::NoEntry { .. } => "TMA0614",
            Self::Driver { .. } => "TMA0615",
            Self::Findings { .. } => "TMA0616",
            Self::SimulatedLaunch { .. } => "TMA0617",
            Self::SimulatedMemory { .. } => "TMA0618",
            Self::UnknownDevice { .. } => "TMA0619",
            Self::OtherParameters { .. } => "TMA0620",
            Self::Cluster { why, .. } => why.code(),
            Self::GridNotResident { .. } => "TMA0625",
            Self::NeverWaits { .. } => "TMA0626",
            Self::Unowned { .. } => "TMA0627",
            Self::PreparedOptions => "TMA0628",
            Self::HostMemory { .. } => "TMA0629",
            Self::SimulatedGrid { .. } => "TMA0630",
            Self::Trace { .. } => "TMA0631",
            Self::Deadlock { .. } => "TMA0632",
            Self::Ranks { .. } => "TMA0637",
            Self::Unwatched { .. } => "TMA0633",
            Self::PtxNotKept { .. } => "TMA0560",
        }
    }
}

impl MapError {
    /// Returns the error's code, such as `TMA0501`, which is also the name of its page in
    /// `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::MisalignedAddress { .. } => "TMA0501",
            Self::ExtentOutOfRange { .. } => "TMA0502",
            Self::MisalignedStride { .. } => "TMA0503",
            Self::StrideTooLarge { .. } => "TMA0504",
            Self::InnerStride { .. } => "TMA0505",
            Self::BoxExtent { .. } => "TMA0507",
            Self::BoxRowBytes { .. } => "TMA0508",
            Self::BoxRowExceedsSwizzle { .. } => "TMA0509",
            Self::StoreRowBytes { .. } => "TMA0518",
            Self::ElementStride { .. } => "TMA0519",
            Self::StridedBox { .. } => "TMA0520",
            Self::NanFill { .. } => "TMA0521",
            Self::InterleavedBox { .. } => "TMA0522",
            Self::PartialPixel { .. } => "TMA0523",
            Self::BoxBytes { .. } => "TMA0524",
            Self::Overlap { .. } => "TMA0525",
            Self::Internal { .. } => "TMA0529",
            Self::Corner { .. } => "TMA0532",
            Self::BoundingBox { .. } => "TMA0533",
            Self::StoreCorner { .. } => "TMA0534",
        }
    }
}

impl ViewError {
    /// Returns the error's code, such as `TMA0540`, which is also the name of its page in
    /// `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Slice { .. } => "TMA0540",
            Self::Permutation { .. } => "TMA0541",
            Self::Reach { .. } => "TMA0542",
            Self::Overlap { .. } => "TMA0543",
            Self::UnknownMemory => "TMA0544",
        }
    }
}

impl ForeignError {
    /// Returns the error's code, `TMA0564`, which is also the name of its page in `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Context { .. }
            | Self::Memory { .. }
            | Self::Misaligned { .. }
            | Self::Simulated { .. }
            | Self::NotPrimary { .. }
            | Self::Shared { .. }
            | Self::Borrowed { .. } => "TMA0564",
        }
    }
}

impl TeamError {
    /// Returns the error's code, such as `TMA0634`, which is also the name of its page in
    /// `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unlike { .. } => "TMA0535",
            Self::Size { .. } => "TMA0634",
            Self::NoPeerAccess { .. } => "TMA0635",
            Self::NoRank { .. } | Self::Count { .. } | Self::Tensors { .. } => "TMA0636",
        }
    }
}

impl PictureError {
    /// Returns the error's code, such as `TMA0548`, which is also the name of its page in
    /// `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Accumulator { .. } | Self::Fragment { .. } | Self::Metadata { .. } => "TMA0548",
            Self::Operand { .. } => "TMA0549",
        }
    }
}

impl TuneError {
    /// Returns the error's code, such as `TMA0554`, which is also the name of its page in
    /// `docs/errors`.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoCandidates { .. } => "TMA0554",
            Self::SameName { .. } => "TMA0555",
            Self::NoneRuns { .. } => "TMA0556",
        }
    }
}

impl ClusterError {
    /// Returns the error's code.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::Grid { .. } => "TMA0621",
            Self::Size { .. } => "TMA0622",
            Self::Missing => "TMA0623",
            Self::Given { .. } => "TMA0624",
        }
    }
}
