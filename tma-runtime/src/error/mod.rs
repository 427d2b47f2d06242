//! Everything that can go wrong on the host, each with its code.
//!
//! `TMA05xx` are rules for tensors and arguments, checked before the driver is asked; `TMA06xx` concern the launch, the
//! device and the driver. `docs/errors` has a page for each code.

mod cluster;
mod code;
mod map;
mod status;
mod view;

use crate::spec::Scalar;
use crate::tensor::layout::DeviceId;
pub use cluster::ClusterError;
pub use map::MapError;
pub use status::DriverStatus;
use status::KernelNames;
pub use view::ViewError;

/// An error of the host: what was wrong, what is wanted and, where it can be said, what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tensor and a kernel's tile make no tensor map.
    #[error(transparent)]
    Map(#[from] MapError),

    /// A view cannot be made of another one.
    #[error(transparent)]
    View(#[from] ViewError),

    /// A tensor has another number of dimensions than the kernel's box.
    #[error(
        "{}: a tensor has as many dimensions as the box that moves over it, but `{tensor}` has {found} and the box \
         {wanted}: pass a view of {wanted} dimensions",
        self.code()
    )]
    RankMismatch {
        /// The kernel's parameter.
        tensor: &'static str,
        /// Dimensions of the tensor.
        found: usize,
        /// Dimensions of the box.
        wanted: usize,
    },

    /// A tensor has other elements than the kernel's parameter.
    #[error("{}: `{tensor}` takes a tensor of `{wanted}`, but this one is of `{found}`", self.code())]
    ElementMismatch {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The tensor's element type.
        found: Scalar,
        /// The parameter's element type.
        wanted: Scalar,
    },

    /// A view for a `Global` parameter whose elements do not lie one after the other.
    #[error(
        "{}: a `Global` parameter takes elements that lie one after the other, but the view passed as `{tensor}` has \
         gaps or another order: copy it into a `DeviceTensor`, or pass a view of its whole memory",
        self.code()
    )]
    NotContiguous {
        /// The kernel's parameter.
        tensor: &'static str,
    },

    /// A tensor that a kernel copies in bulk does not start where the copy engine can.
    #[error(
        "{}: the kernel copies `{tensor}` in bulk, so its address must be a multiple of {alignment} bytes, but it is \
         {address:#x} ({} bytes past one): start the view at an element whose address is a multiple of {alignment}",
        self.code(), .address % u64::from(*.alignment)
    )]
    MisalignedGlobal {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The address of the tensor's first element.
        address: u64,
        /// What it must be a multiple of.
        alignment: u32,
    },

    /// A hand-written launch lends a tensor to be read that the kernel writes.
    #[error(
        "{}: kernel `{kernel}` writes `{tensor}`, but the tensor passed there is lent to be read: pass \
         `Arg::map_mut(tensor.view_mut())` or `Arg::global_mut(tensor.slice_mut())`, or use the kernel's typed `launch`",
        self.code()
    )]
    NotMutable {
        /// The kernel.
        kernel: &'static str,
        /// The kernel's parameter.
        tensor: &'static str,
    },

    /// A host slice has another length than the tensor.
    #[error("{}: the host slice has {found} elements, but the tensor {wanted}: pass as many", self.code())]
    HostLength {
        /// Elements of the host slice.
        found: usize,
        /// Elements of the tensor.
        wanted: usize,
    },

    /// A copy between tensors of different shapes.
    #[error("{}: a copy needs equal shapes, but goes from {found:?} to {wanted:?}", self.code())]
    ShapeMismatch {
        /// The source's shape.
        found: Vec<usize>,
        /// The destination's shape.
        wanted: Vec<usize>,
    },

    /// A tensor, stream or event of one device is used on another.
    #[error(
        "{}: everything in a launch or copy must belong to one device, but `{what}` belongs to {found} and this runs \
         on {wanted}: create it there, or copy it through the host",
        self.code()
    )]
    OtherDevice {
        /// The kernel's parameter, or what it is that was passed.
        what: &'static str,
        /// The device it belongs to.
        found: DeviceId,
        /// The device of the launch or copy.
        wanted: DeviceId,
    },

    /// A shape has more bytes than can be addressed.
    #[error("{}: a tensor's bytes must fit 63 bits, but {shape:?} elements of `{element}` do not", self.code())]
    TensorTooLarge {
        /// The shape asked for.
        shape: Vec<usize>,
        /// The element type.
        element: Scalar,
    },

    /// A hand-written launch passed other arguments than the kernel takes.
    #[error("{}: kernel `{kernel}` takes {wanted}, but was given {found}: use its typed `launch`", self.code())]
    ArgumentMismatch {
        /// The kernel.
        kernel: &'static str,
        /// What was passed.
        found: String,
        /// What is taken.
        wanted: String,
    },

    /// The driver refused a descriptor that keeps every documented rule.
    #[error("{}: the driver refused the tensor map of `{tensor}`: {status}; the map was {map}", self.code())]
    MapRefused {
        /// The kernel's parameter.
        tensor: &'static str,
        /// The driver's answer.
        status: DriverStatus,
        /// All that the driver was given.
        map: String,
    },

    /// There is no NVIDIA driver, or it does not start.
    #[error(
        "{}: no NVIDIA driver is running: {status}. Install one for CUDA 12.0 or later (525 or later), which brings \
         `libcuda.so.1`, or give the container its GPUs; `nvidia-smi` works where the driver does",
        self.code()
    )]
    NoDriver {
        /// The driver's answer.
        status: DriverStatus,
    },

    /// There is no GPU of this number.
    #[error(
        "{}: GPU {ordinal} was asked for, but the driver sees {count}: check `nvidia-smi` and `CUDA_VISIBLE_DEVICES`",
        self.code()
    )]
    NoDevice {
        /// The number asked for, from 0.
        ordinal: u32,
        /// How many there are.
        count: u32,
    },

    /// This build can run kernels nowhere.
    #[error(
        "{}: this build has no way to run kernels: enable the feature `cuda` of `tma-runtime` (`--features cuda`) on a \
         machine with an NVIDIA driver",
        self.code()
    )]
    NoBackend,

    /// A kernel was compiled for another architecture than the device's.
    #[error(
        "{}: kernel `{kernel}` was compiled for {target}, which {device} (sm_{}{}) does not run: compile it for that \
         device, by the target in the build script{}",
        self.code(), .capability.0, .capability.1, elsewhere(.target)
    )]
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
    #[error(
        "{}: kernel `{kernel}` has no PTX, because the package was built without LLVM: build it with the feature \
         `llvm` of `tma-codegen` and LLVM 22 installed (`cargo xtask setup` installs it)",
        self.code()
    )]
    NoPtx {
        /// The kernel.
        kernel: &'static str,
    },

    /// The driver could not compile a kernel's PTX.
    #[error("{}: the driver could not compile kernel `{kernel}`: {status}\n{log}", self.code())]
    Jit {
        /// The kernel.
        kernel: &'static str,
        /// The driver's answer.
        status: DriverStatus,
        /// What the driver's compiler wrote.
        log: String,
    },

    /// A launch was refused.
    #[error("{}: kernel `{kernel}` could not be launched: {status}{}", self.code(), .status.hint())]
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// The driver's answer.
        status: DriverStatus,
    },

    /// A kernel stopped with a trap or a fault. The process cannot use the device any more.
    #[error(
        "{}: a kernel stopped: {status}{}; it was one of those launched since the device was last synchronised: {}. \
         The device is lost to this process, which has to be started anew",
        self.code(), .status.hint(), KernelNames(.kernels)
    )]
    KernelFault {
        /// The kernels launched since the last synchronisation of the whole device, in no order.
        kernels: Vec<&'static str>,
        /// The driver's answer.
        status: DriverStatus,
    },

    /// The simulator found something wrong with a kernel.
    #[error("{}: the simulator found {} in `{kernel}`, with seed {seed}:\n\n{text}", self.code(), mistakes(*.count))]
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
    #[error("{}: the simulator cannot run `{kernel}`: {why}", self.code())]
    SimulatedLaunch {
        /// The kernel.
        kernel: &'static str,
        /// Why.
        why: String,
    },

    /// An address that is no memory of the simulated device.
    #[error(
        "{}: {address:#x} is no memory of this simulator: views of pointers from elsewhere work on GPUs only",
        self.code()
    )]
    SimulatedMemory {
        /// The address.
        address: u64,
    },

    /// `TMA_DEVICE` names no device.
    #[error("{}: `TMA_DEVICE` is `{name}`, but devices are `sim`, `cuda` and `cuda:N`", self.code())]
    UnknownDevice {
        /// The variable's value.
        name: String,
    },

    /// The device has too little memory left.
    #[error("{}: {device} has no {bytes} bytes of memory left in one piece", self.code())]
    OutOfMemory {
        /// The bytes asked for.
        bytes: u64,
        /// The device.
        device: DeviceId,
    },

    /// The host has too little memory left.
    #[error("{}: the host has no memory left for a copy of {bytes} bytes: copy smaller tensors, one at a time", self.code())]
    HostMemory {
        /// The bytes asked for.
        bytes: u64,
    },

    /// A grid with more blocks than the simulator runs in a time that can be waited for.
    #[error(
        "{}: the simulator takes grids of at most {limit} blocks, but that for `{kernel}` has {found}, which would take {} or \
         more: launch a smaller grid, let each block work on several tiles, or raise the limit with `Device::block_limit`",
        self.code(), ptx_sim::least_time(*.found)
    )]
    SimulatedGrid {
        /// The kernel.
        kernel: &'static str,
        /// The blocks asked for.
        found: u64,
        /// The most that there can be.
        limit: u64,
    },

    /// A grid without blocks.
    #[error("{}: a grid has at least one block along each axis, but that for `{kernel}` has none along {axis}", self.code())]
    GridZero {
        /// The kernel.
        kernel: &'static str,
        /// `x`, `y` or `z`.
        axis: char,
    },

    /// A grid with more blocks along an axis than the hardware counts.
    #[error(
        "{}: a grid has at most {limit} blocks along {axis}, but that for `{kernel}` has {found}: put the longest \
         dimension along x, or give each block several tiles",
        self.code()
    )]
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
    #[error("{}: kernel `{kernel}` cannot be launched so: {why}", self.code())]
    Cluster {
        /// The kernel.
        kernel: &'static str,
        /// The rule.
        why: ClusterError,
    },

    /// Blocks that wait for each other would not all run at the same time.
    #[error(
        "{}: all blocks of `{kernel}` run at the same time, since it says `sync_grid`, but of {found} this device runs \
         {limit}: launch at most so many, as `device.resident_blocks(&SPEC)` tells, and give each several tiles",
        self.code()
    )]
    GridNotResident {
        /// The kernel.
        kernel: &'static str,
        /// The blocks asked for.
        found: u64,
        /// The blocks that run at the same time.
        limit: u32,
    },

    /// A kernel that never waits for the one before it is to start before that has ended.
    #[error(
        "{}: a kernel launched with `dependent()` says `grid_dependency_wait()` before it touches what the one before \
         writes, but `{kernel}` never does: say it there, or launch without `dependent()`",
        self.code()
    )]
    NeverWaits {
        /// The kernel.
        kernel: &'static str,
    },

    /// A captured launch is given memory that the graph cannot keep.
    #[error(
        "{}: a graph keeps the memory of its tensors, but `{tensor}` of `{kernel}` is a view from an address, whose \
         owner is not known: capture with the `DeviceTensor` itself or its view",
        self.code()
    )]
    Unowned {
        /// The kernel.
        kernel: &'static str,
        /// The kernel's parameter.
        tensor: &'static str,
    },

    /// A launch was to be prepared on a capture.
    #[error(
        "{}: a prepared launch of `{kernel}` is repeated by itself and cannot be captured: `launch` it on the capture",
        self.code()
    )]
    PreparedCapture {
        /// The kernel.
        kernel: &'static str,
    },

    /// A kernel needs more shared memory than the device gives a block.
    #[error(
        "{}: kernel `{kernel}` needs {bytes} bytes of shared memory, but a block on this device has at most {limit}: \
         use smaller tiles or fewer stages",
        self.code()
    )]
    SharedMemory {
        /// The kernel.
        kernel: &'static str,
        /// The bytes it needs.
        bytes: u32,
        /// The bytes there are.
        limit: u32,
    },

    /// The driver lacks an entry point.
    #[error("{}: the NVIDIA driver has no `{name}`: install a driver for CUDA 12.0 or later (525 or later)", self.code())]
    MissingEntryPoint {
        /// The entry point.
        name: &'static str,
    },

    /// The PTX has no entry of the kernel's name.
    #[error("{}: the PTX of kernel `{kernel}` has no entry `{entry}`: build the package anew", self.code())]
    NoEntry {
        /// The kernel.
        kernel: &'static str,
        /// The entry looked for.
        entry: &'static str,
    },

    /// The PTX's entry takes other parameters than the kernel's specification says.
    #[error(
        "{}: the PTX of kernel `{kernel}` takes what its `KernelSpec` says, {wanted}, but declares {found}: build the \
         package anew, or let `params` say what a hand-written entry takes",
        self.code()
    )]
    OtherParameters {
        /// The kernel.
        kernel: &'static str,
        /// The parameters that the PTX declares.
        found: String,
        /// Those that the specification says.
        wanted: String,
    },

    /// Any other call of the driver failed.
    #[error("{}: the driver failed to {operation}: {status}", self.code())]
    Driver {
        /// What was to be done.
        operation: &'static str,
        /// The driver's answer.
        status: DriverStatus,
    },
}

/// Where else than on the device at hand a kernel for `target` runs: the simulated device is an `sm_90`.
fn elsewhere(target: &str) -> &'static str {
    if target.starts_with("sm_90") { ", or run it on the simulator: `TMA_DEVICE=sim`" } else { "" }
}

fn mistakes(count: usize) -> String {
    format!("{count} mistake{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
