//! Every error of the host, with its code.
//!
//! `TMA05xx` are rules for tensors and arguments, checked before the driver is called. `TMA06xx`
//! concern the launch, the device and the driver. `docs/errors` has a page for each code.

mod argument;
mod cluster;
mod code;
mod deadlock;
mod foreign;
mod map;
mod message;
mod picture;
mod refusal;
mod status;
mod team;
mod trace;
mod tune;
mod view;

use std::path::PathBuf;
use std::time::Duration;

use crate::layout::DeviceId;
use crate::spec::Scalar;
pub use argument::ArgumentKind;
pub use cluster::ClusterError;
pub use deadlock::DeadlockReport;
pub use foreign::ForeignError;
pub use map::MapError;
pub use picture::PictureError;
pub use status::DriverStatus;
pub use team::TeamError;
use tma_model::TensorMap;
pub use trace::TraceError;
pub use tune::TuneError;
pub use view::ViewError;

/// An error of the host. The message states what was found, what is required and how to fix it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A tensor and a kernel's tile cannot form a tensor map.
    Map(MapError),

    /// A view cannot be derived from another one.
    View(ViewError),

    /// An object of another library cannot be used.
    Foreign(ForeignError),

    /// A team, or something for each of its ranks, breaks a rule.
    Team(TeamError),

    /// A layout cannot be drawn.
    Picture(PictureError),

    /// Tuning cannot pick a candidate.
    Tune(TuneError),

    /// A tensor's rank differs from the rank of the kernel's box.
    RankMismatch {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The rank of the tensor.
        found: usize,
        /// The rank of the box.
        wanted: usize,
    },

    /// A tensor's element type differs from that of the kernel's parameter.
    ElementMismatch {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The tensor's element type.
        found: Scalar,
        /// The parameter's element type.
        wanted: Scalar,
    },

    /// A view for a `Global` parameter is not contiguous.
    NotContiguous {
        /// The name of the kernel's parameter.
        tensor: &'static str,
    },

    /// A tensor is misaligned for the kernel's bulk copies or vector accesses.
    MisalignedGlobal {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The address of the tensor's first element.
        address: u64,
        /// The required alignment in bytes.
        alignment: u32,
    },

    /// A hand-written launch passes an immutable tensor to a parameter that the kernel writes.
    NotMutable {
        /// The kernel's name.
        kernel: &'static str,
        /// The name of the kernel's parameter.
        tensor: &'static str,
    },

    /// A host slice's length differs from the tensor's.
    HostLength {
        /// The number of elements of the host slice.
        found: usize,
        /// The number of elements of the tensor.
        wanted: usize,
    },

    /// A copy between tensors of different shapes.
    ShapeMismatch {
        /// The source's shape.
        found: Vec<usize>,
        /// The destination's shape.
        wanted: Vec<usize>,
    },

    /// A tensor, stream or event of one device is used on another.
    OtherDevice {
        /// The kernel's parameter, or the kind of object.
        what: &'static str,
        /// The device that the object belongs to.
        found: DeviceId,
        /// The device of the launch or copy.
        wanted: DeviceId,
    },

    /// A shape has more bytes than can be addressed.
    TensorTooLarge {
        /// The requested shape.
        shape: Vec<usize>,
        /// The element type.
        element: Scalar,
    },

    /// A hand-written launch passed more or fewer arguments than the kernel takes.
    ArgumentCount {
        /// The kernel's name.
        kernel: &'static str,
        /// The number of arguments passed.
        found: usize,
        /// The number of arguments that the kernel takes.
        wanted: usize,
    },

    /// A hand-written launch passed an argument of another kind than the parameter takes.
    ArgumentMismatch {
        /// The kernel's name.
        kernel: &'static str,
        /// The name of the kernel's parameter.
        parameter: &'static str,
        /// The kind of argument that was passed.
        found: ArgumentKind,
        /// The kind of argument that the parameter takes.
        wanted: ArgumentKind,
    },

    /// The driver rejected a tensor map that follows every documented rule.
    MapRefused {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The driver's status.
        status: DriverStatus,
        /// The parameters that were passed to the driver.
        map: Box<TensorMap>,
    },

    /// There is no NVIDIA driver, or its initialisation failed.
    NoDriver {
        /// The driver's status.
        status: DriverStatus,
    },

    /// There is no GPU with this ordinal.
    NoDevice {
        /// The requested ordinal, from 0.
        ordinal: u32,
        /// The number of GPUs.
        count: u32,
    },

    /// This build has no backend to run kernels on.
    NoBackend,

    /// The simulator was requested, but this build does not have it.
    NoSimulator,

    /// A kernel was compiled for an architecture that the device does not support.
    Architecture {
        /// The kernel's name.
        kernel: &'static str,
        /// The PTX target.
        target: String,
        /// The device's name.
        device: String,
        /// The device's compute capability.
        capability: (u32, u32),
    },

    /// The package was built without LLVM, so the kernel has no PTX.
    NoPtx {
        /// The kernel's name.
        kernel: &'static str,
    },

    /// The driver could not compile a kernel's PTX.
    Jit {
        /// The kernel's name.
        kernel: &'static str,
        /// The driver's status.
        status: DriverStatus,
        /// The log of the driver's compiler.
        log: String,
    },

    /// The driver rejected a launch.
    Launch {
        /// The kernel's name.
        kernel: &'static str,
        /// The driver's status.
        status: DriverStatus,
    },

    /// A kernel stopped with a trap or a fault. The process can no longer use the device.
    KernelFault {
        /// The kernels launched since the last synchronisation of the whole device, in no order.
        kernels: Vec<&'static str>,
        /// The driver's status.
        status: DriverStatus,
    },

    /// An assertion failed in a kernel that uses the tensor cores. For other kernels the driver
    /// prints the message, and the error is [`Error::KernelFault`]. On a GPU the process can no
    /// longer use the device.
    Assertion {
        /// The kernel's name.
        kernel: &'static str,
        /// File, line and column in the kernel's source.
        place: String,
        /// The text of the assertion.
        message: String,
        /// The index of the thread's block in the grid.
        block: [u32; 3],
        /// The index of the thread in its block.
        thread: [u32; 3],
    },

    /// The simulator found something wrong with a kernel.
    Findings {
        /// The kernel's name.
        kernel: &'static str,
        /// The seed that reproduces the findings: [`Device::seed`](crate::Device::seed).
        seed: u64,
        /// The number of distinct findings.
        count: usize,
        /// All findings, with their lines of PTX and Rust.
        text: String,
    },

    /// The simulator cannot run a kernel.
    SimulatedLaunch {
        /// The kernel's name.
        kernel: &'static str,
        /// The reason.
        why: String,
    },

    /// An address outside of the simulated device's memory.
    SimulatedMemory {
        /// The address.
        address: u64,
    },

    /// `TMA_DEVICE` does not name a device.
    UnknownDevice {
        /// The variable's value.
        name: String,
    },

    /// The device is out of memory.
    OutOfMemory {
        /// The requested number of bytes.
        bytes: u64,
        /// The device.
        device: DeviceId,
    },

    /// The host is out of memory.
    HostMemory {
        /// The requested number of bytes.
        bytes: u64,
    },

    /// A grid has more blocks than the simulator runs in reasonable time.
    SimulatedGrid {
        /// The kernel's name.
        kernel: &'static str,
        /// The requested number of blocks.
        found: u64,
        /// The maximum number of blocks.
        limit: u64,
        /// The least time that these blocks would take, in words.
        least_time: String,
    },

    /// A package does not keep the current PTX of its kernels.
    PtxNotKept {
        /// The folder of the package.
        package: PathBuf,
        /// The kernels whose kept PTX is missing or out of date, or belongs to a kernel that no
        /// longer exists. Empty if the package has no kernels.
        kernels: Vec<String>,
    },

    /// A grid has no blocks.
    GridZero {
        /// The kernel's name.
        kernel: &'static str,
        /// `x`, `y` or `z`.
        axis: char,
    },

    /// A grid has more blocks along an axis than the hardware supports.
    GridTooLarge {
        /// The kernel's name.
        kernel: &'static str,
        /// `x`, `y` or `z`.
        axis: char,
        /// The requested number of blocks.
        found: u64,
        /// The maximum number of blocks.
        limit: u64,
    },

    /// A kernel cannot be launched in these clusters.
    Cluster {
        /// The kernel's name.
        kernel: &'static str,
        /// The rule.
        why: ClusterError,
    },

    /// Blocks that wait for each other cannot all run at the same time.
    GridNotResident {
        /// The kernel's name.
        kernel: &'static str,
        /// The requested number of blocks.
        found: u64,
        /// The maximum number of blocks that run at the same time.
        limit: u32,
    },

    /// A dependent launch of a kernel that never waits for the previous kernel.
    NeverWaits {
        /// The kernel's name.
        kernel: &'static str,
    },

    /// A captured launch uses memory that the graph cannot keep alive.
    Unowned {
        /// The kernel's name.
        kernel: &'static str,
        /// The name of the kernel's parameter.
        tensor: &'static str,
    },

    /// A wait of a watched kernel took longer than its limit, and the kernel has stopped.
    Deadlock {
        /// The kernel's name.
        kernel: &'static str,
        /// The limit.
        limit: Duration,
        /// The warps that waited, and for what.
        report: DeadlockReport,
    },

    /// Work on some ranks of a team has failed.
    Ranks {
        /// The number of ranks of the team.
        ranks: usize,
        /// The ranks that failed, in order, each with its error.
        failed: Vec<(usize, Error)>,
    },

    /// The waits of a kernel cannot be limited.
    Unwatched {
        /// The kernel's name.
        kernel: &'static str,
        /// The reason, and what to do.
        why: String,
    },

    /// A launch cannot be traced.
    Trace {
        /// The kernel's name.
        kernel: &'static str,
        /// The reason.
        why: TraceError,
    },

    /// Prepared launches are launched with options.
    PreparedOptions,

    /// A kernel needs more shared memory per block than the device has.
    SharedMemory {
        /// The kernel's name.
        kernel: &'static str,
        /// The bytes that the kernel needs per block.
        bytes: u32,
        /// The maximum of the device in bytes.
        limit: u32,
    },

    /// The driver lacks an entry point.
    MissingEntryPoint {
        /// The name of the entry point.
        name: &'static str,
    },

    /// The PTX has no entry with the kernel's name.
    NoEntry {
        /// The kernel's name.
        kernel: &'static str,
        /// The name of the entry.
        entry: &'static str,
    },

    /// The PTX entry's parameters differ from the kernel's specification.
    OtherParameters {
        /// The kernel's name.
        kernel: &'static str,
        /// The sizes in bytes of the parameters that the PTX declares. `None` is a declaration that
        /// cannot be parsed.
        found: Vec<Option<u64>>,
        /// The sizes in bytes of the parameters that the specification requires.
        wanted: Vec<Option<u64>>,
    },

    /// Any other driver call failed.
    Driver {
        /// The operation that failed.
        operation: &'static str,
        /// The driver's status.
        status: DriverStatus,
    },
}

impl std::error::Error for Error {}

impl From<MapError> for Error {
    fn from(error: MapError) -> Self {
        Self::Map(error)
    }
}

impl From<ForeignError> for Error {
    fn from(error: ForeignError) -> Self {
        Self::Foreign(error)
    }
}

impl From<TeamError> for Error {
    fn from(error: TeamError) -> Self {
        Self::Team(error)
    }
}

impl From<PictureError> for Error {
    fn from(error: PictureError) -> Self {
        Self::Picture(error)
    }
}

impl From<TuneError> for Error {
    fn from(error: TuneError) -> Self {
        Self::Tune(error)
    }
}

impl From<ViewError> for Error {
    fn from(error: ViewError) -> Self {
        Self::View(error)
    }
}

#[cfg(test)]
mod tests;
