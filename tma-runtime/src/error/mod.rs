//! Everything that can go wrong on the host, each with its code.
//!
//! `TMA05xx` are rules for tensors and arguments, checked before the driver is called; `TMA06xx`
//! concern the launch, the device and the driver. `docs/errors` has a page for each code.

mod argument;
mod cluster;
mod code;
mod foreign;
mod map;
mod message;
mod picture;
mod refusal;
mod status;
mod tune;
mod view;

use std::path::PathBuf;

use crate::spec::Scalar;
use crate::tensor::layout::DeviceId;
pub use argument::ArgumentKind;
pub use cluster::ClusterError;
pub use foreign::ForeignError;
pub use map::MapError;
pub use picture::PictureError;
pub use status::DriverStatus;
use tma_model::TensorMap;
pub use tune::TuneError;
pub use view::ViewError;

/// An error of the host: what was found, what is wanted and, where possible, how to fix it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No tensor map can be made of a tensor and a kernel's tile.
    Map(MapError),

    /// A view cannot be made from another one.
    View(ViewError),

    /// Something that another library made cannot be used.
    Foreign(ForeignError),

    /// A layout cannot be drawn.
    Picture(PictureError),

    /// Tuning cannot choose.
    Tune(TuneError),

    /// A tensor's rank differs from that of the kernel's box.
    RankMismatch {
        /// The kernel's parameter.
        tensor: &'static str,
        /// Dimensions of the tensor.
        found: usize,
        /// Dimensions of the box.
        wanted: usize,
    },

    /// A tensor's element type differs from the kernel parameter's.
    ElementMismatch {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The tensor's element type.
        found: Scalar,
        /// The parameter's element type.
        wanted: Scalar,
    },

    /// A view for a `Global` parameter is not contiguous.
    NotContiguous {
        /// The kernel's parameter.
        tensor: &'static str,
    },

    /// A tensor that a kernel copies in bulk, or by vectors, is not aligned for them.
    MisalignedGlobal {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The address of the tensor's first element.
        address: u64,
        /// The required alignment in bytes.
        alignment: u32,
    },

    /// A hand-written launch passes an immutable tensor that the kernel writes.
    NotMutable {
        /// The kernel.
        kernel: &'static str,
        /// The kernel's parameter.
        tensor: &'static str,
    },

    /// A host slice's length differs from the tensor's.
    HostLength {
        /// Elements of the host slice.
        found: usize,
        /// Elements of the tensor.
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
        /// The device it belongs to.
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
        /// The kernel.
        kernel: &'static str,
        /// How many were passed.
        found: usize,
        /// How many the kernel takes.
        wanted: usize,
    },

    /// A hand-written launch passed another kind of argument than the parameter takes.
    ArgumentMismatch {
        /// The kernel.
        kernel: &'static str,
        /// The kernel's parameter.
        parameter: &'static str,
        /// What was passed.
        found: ArgumentKind,
        /// What the parameter takes.
        wanted: ArgumentKind,
    },

    /// The driver rejected a tensor map that follows every documented rule.
    MapRefused {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The driver's status.
        status: DriverStatus,
        /// The parameters that the driver was given.
        map: Box<TensorMap>,
    },

    /// There is no NVIDIA driver, or it does not start.
    NoDriver {
        /// The driver's status.
        status: DriverStatus,
    },

    /// There is no GPU with this ordinal.
    NoDevice {
        /// The requested ordinal, from 0.
        ordinal: u32,
        /// How many there are.
        count: u32,
    },

    /// This build has no backend to run kernels on.
    NoBackend,

    /// The simulator was asked for, and this build has none.
    NoSimulator,

    /// A kernel was compiled for an architecture that the device does not run.
    Architecture {
        /// The kernel.
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
        /// The kernel.
        kernel: &'static str,
    },

    /// The driver could not compile a kernel's PTX.
    Jit {
        /// The kernel.
        kernel: &'static str,
        /// The driver's status.
        status: DriverStatus,
        /// The log of the driver's compiler.
        log: String,
    },

    /// The driver rejected a launch.
    Launch {
        /// The kernel.
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

    /// An assertion of a kernel that multiplies with the tensor cores failed. Of other kernels the
    /// driver prints the message, and the error is [`Error::KernelFault`]. On a GPU the process can
    /// no longer use the device.
    Assertion {
        /// The kernel.
        kernel: &'static str,
        /// File, line and column in the kernel's source.
        place: String,
        /// What did not hold.
        message: String,
        /// The place of the thread's block in the grid.
        block: [u32; 3],
        /// The thread's place in its block.
        thread: [u32; 3],
    },

    /// The simulator found something wrong with a kernel.
    Findings {
        /// The kernel.
        kernel: &'static str,
        /// The seed that reproduces them: [`Device::seed`](crate::Device::seed).
        seed: u64,
        /// How many distinct findings there are.
        count: usize,
        /// All findings, with their lines of PTX and Rust.
        text: String,
    },

    /// The simulator cannot run a kernel.
    SimulatedLaunch {
        /// The kernel.
        kernel: &'static str,
        /// Why.
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
        /// The requested bytes.
        bytes: u64,
        /// The device.
        device: DeviceId,
    },

    /// The host is out of memory.
    HostMemory {
        /// The requested bytes.
        bytes: u64,
    },

    /// A grid has more blocks than the simulator runs in reasonable time.
    SimulatedGrid {
        /// The kernel.
        kernel: &'static str,
        /// The requested blocks.
        found: u64,
        /// The maximum.
        limit: u64,
        /// How long these blocks would take at least, in words.
        least_time: String,
    },

    /// A package does not keep the PTX of its kernels as they are now.
    PtxNotKept {
        /// The folder of the package.
        package: PathBuf,
        /// The kernels whose PTX is missing, another one, or of no kernel that is there; none if
        /// the package has no kernels.
        kernels: Vec<String>,
    },

    /// A grid has no blocks.
    GridZero {
        /// The kernel.
        kernel: &'static str,
        /// `x`, `y` or `z`.
        axis: char,
    },

    /// A grid has more blocks along an axis than the hardware supports.
    GridTooLarge {
        /// The kernel.
        kernel: &'static str,
        /// `x`, `y` or `z`.
        axis: char,
        /// The requested blocks.
        found: u64,
        /// The maximum.
        limit: u64,
    },

    /// A kernel cannot be launched in these clusters.
    Cluster {
        /// The kernel.
        kernel: &'static str,
        /// The rule.
        why: ClusterError,
    },

    /// Blocks that wait for each other cannot all run at the same time.
    GridNotResident {
        /// The kernel.
        kernel: &'static str,
        /// The requested blocks.
        found: u64,
        /// The maximum number of blocks that run at the same time.
        limit: u32,
    },

    /// A kernel that never waits for the previous one was launched to start before that has ended.
    NeverWaits {
        /// The kernel.
        kernel: &'static str,
    },

    /// A captured launch uses memory that the graph cannot keep alive.
    Unowned {
        /// The kernel.
        kernel: &'static str,
        /// The kernel's parameter.
        tensor: &'static str,
    },

    /// A launch cannot be prepared on a capture.
    PreparedCapture {
        /// The kernel.
        kernel: &'static str,
    },

    /// A kernel needs more shared memory per block than the device has.
    SharedMemory {
        /// The kernel.
        kernel: &'static str,
        /// The bytes it needs.
        bytes: u32,
        /// The maximum that the device has.
        limit: u32,
    },

    /// The driver lacks an entry point.
    MissingEntryPoint {
        /// The entry point.
        name: &'static str,
    },

    /// The PTX has no entry of the kernel's name.
    NoEntry {
        /// The kernel.
        kernel: &'static str,
        /// The name of the entry.
        entry: &'static str,
    },

    /// The PTX entry's parameters differ from the kernel's specification.
    OtherParameters {
        /// The kernel.
        kernel: &'static str,
        /// Bytes of each parameter that the PTX declares; `None` for a declaration that is not
        /// understood.
        found: Vec<Option<u64>>,
        /// Bytes of each parameter that the specification wants.
        wanted: Vec<Option<u64>>,
    },

    /// Any other call of the driver failed.
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
