//! Everything that can go wrong on the host, each with its code.
//!
//! `TMA05xx` are rules for tensors and arguments, checked before the driver is asked; `TMA06xx` concern the launch, the
//! device and the driver. `docs/errors` has a page for each code.

mod argument;
mod cluster;
mod code;
mod map;
mod message;
mod status;
mod view;

use crate::spec::Scalar;
use crate::tensor::layout::DeviceId;
pub use argument::ArgumentKind;
pub use cluster::ClusterError;
pub use map::MapError;
pub use status::DriverStatus;
use tma_model::TensorMap;
pub use view::ViewError;

/// An error of the host: what was wrong, what is wanted and, where it can be said, what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A tensor and a kernel's tile make no tensor map.
    Map(MapError),

    /// A view cannot be made of another one.
    View(ViewError),

    /// A tensor has another number of dimensions than the kernel's box.
    RankMismatch {
        /// The kernel's parameter.
        tensor: &'static str,
        /// Dimensions of the tensor.
        found: usize,
        /// Dimensions of the box.
        wanted: usize,
    },

    /// A tensor has other elements than the kernel's parameter.
    ElementMismatch {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The tensor's element type.
        found: Scalar,
        /// The parameter's element type.
        wanted: Scalar,
    },

    /// A view for a `Global` parameter whose elements do not lie one after the other.
    NotContiguous {
        /// The kernel's parameter.
        tensor: &'static str,
    },

    /// A tensor that a kernel copies in bulk does not start where the copy engine can.
    MisalignedGlobal {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The address of the tensor's first element.
        address: u64,
        /// What it must be a multiple of.
        alignment: u32,
    },

    /// A hand-written launch lends a tensor to be read that the kernel writes.
    NotMutable {
        /// The kernel.
        kernel: &'static str,
        /// The kernel's parameter.
        tensor: &'static str,
    },

    /// A host slice has another length than the tensor.
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
        /// The kernel's parameter, or what it is that was passed.
        what: &'static str,
        /// The device it belongs to.
        found: DeviceId,
        /// The device of the launch or copy.
        wanted: DeviceId,
    },

    /// A shape has more bytes than can be addressed.
    TensorTooLarge {
        /// The shape asked for.
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

    /// The driver refused a descriptor that keeps every documented rule.
    MapRefused {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The driver's answer.
        status: DriverStatus,
        /// The parameters that the driver was given.
        map: Box<TensorMap>,
    },

    /// There is no NVIDIA driver, or it does not start.
    NoDriver {
        /// The driver's answer.
        status: DriverStatus,
    },

    /// There is no GPU of this number.
    NoDevice {
        /// The number asked for, from 0.
        ordinal: u32,
        /// How many there are.
        count: u32,
    },

    /// This build can run kernels nowhere.
    NoBackend,

    /// A kernel was compiled for another architecture than the device's.
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
        /// The driver's answer.
        status: DriverStatus,
        /// What the driver's compiler wrote.
        log: String,
    },

    /// A launch was refused.
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// The driver's answer.
        status: DriverStatus,
    },

    /// A kernel stopped with a trap or a fault. The process cannot use the device any more.
    KernelFault {
        /// The kernels launched since the last synchronisation of the whole device, in no order.
        kernels: Vec<&'static str>,
        /// The driver's answer.
        status: DriverStatus,
    },

    /// The simulator found something wrong with a kernel.
    Findings {
        /// The kernel.
        kernel: &'static str,
        /// The seed that shows them: [`Device::seed`](crate::Device::seed).
        seed: u64,
        /// How many there are that differ.
        count: usize,
        /// All of them, with the lines of PTX and Rust.
        text: String,
    },

    /// The simulator cannot run a kernel.
    SimulatedLaunch {
        /// The kernel.
        kernel: &'static str,
        /// Why.
        why: String,
    },

    /// An address that is no memory of the simulated device.
    SimulatedMemory {
        /// The address.
        address: u64,
    },

    /// `TMA_DEVICE` names no device.
    UnknownDevice {
        /// The variable's value.
        name: String,
    },

    /// The device has too little memory left.
    OutOfMemory {
        /// The bytes asked for.
        bytes: u64,
        /// The device.
        device: DeviceId,
    },

    /// The host has too little memory left.
    HostMemory {
        /// The bytes asked for.
        bytes: u64,
    },

    /// A grid with more blocks than the simulator runs in a time that can be waited for.
    SimulatedGrid {
        /// The kernel.
        kernel: &'static str,
        /// The blocks asked for.
        found: u64,
        /// The most that there can be.
        limit: u64,
    },

    /// A grid without blocks.
    GridZero {
        /// The kernel.
        kernel: &'static str,
        /// `x`, `y` or `z`.
        axis: char,
    },

    /// A grid with more blocks along an axis than the hardware counts.
    GridTooLarge {
        /// The kernel.
        kernel: &'static str,
        /// `x`, `y` or `z`.
        axis: char,
        /// The blocks asked for.
        found: u64,
        /// The most that there can be.
        limit: u64,
    },

    /// Clusters that a kernel cannot be launched in.
    Cluster {
        /// The kernel.
        kernel: &'static str,
        /// The rule.
        why: ClusterError,
    },

    /// Blocks that wait for each other would not all run at the same time.
    GridNotResident {
        /// The kernel.
        kernel: &'static str,
        /// The blocks asked for.
        found: u64,
        /// The blocks that run at the same time.
        limit: u32,
    },

    /// A kernel that never waits for the one before it is to start before that has ended.
    NeverWaits {
        /// The kernel.
        kernel: &'static str,
    },

    /// A captured launch is given memory that the graph cannot keep.
    Unowned {
        /// The kernel.
        kernel: &'static str,
        /// The kernel's parameter.
        tensor: &'static str,
    },

    /// A launch was to be prepared on a capture.
    PreparedCapture {
        /// The kernel.
        kernel: &'static str,
    },

    /// A kernel needs more shared memory than the device gives a block.
    SharedMemory {
        /// The kernel.
        kernel: &'static str,
        /// The bytes it needs.
        bytes: u32,
        /// The bytes there are.
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
        /// The entry looked for.
        entry: &'static str,
    },

    /// The PTX's entry takes other parameters than the kernel's specification says.
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
        /// What was to be done.
        operation: &'static str,
        /// The driver's answer.
        status: DriverStatus,
    },
}

impl std::error::Error for Error {}

impl From<MapError> for Error {
    fn from(error: MapError) -> Self {
        Self::Map(error)
    }
}

impl From<ViewError> for Error {
    fn from(error: ViewError) -> Self {
        Self::View(error)
    }
}

#[cfg(test)]
mod tests;
