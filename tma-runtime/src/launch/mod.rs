//! Launching kernels: what the typed launchers that `#[tma_kernel]` writes are made of.
//!
//! A kernel's own `launch` checks types at compile time and then calls [`launch`] here, which matches arguments to
//! parameters and hands them to the device's backend.
//!
//! # What is safe
//!
//! No safe code writes to a tensor that it has no `&mut` of, nor to memory that is no tensor's:
//!
//! * what a kernel does with its parameters is said by its [`KernelSpec`], which only `unsafe` code makes: yours
//!   ([`KernelSpec::from_parts`]), or the one that `#[tma_kernel]` writes for what the compiler has seen;
//! * an [`Arg`] for a parameter that is written is made of a [`TensorViewMut`](crate::TensorViewMut) or a
//!   [`GlobalSliceMut`], of which there is one at a time, and which come of `&mut`, or of an address in `unsafe` code. A launch
//!   refuses others ([`Error::NotMutable`]);
//! * numbers are no addresses: a kernel cannot make a pointer of one.
//!
//! A launch is queued, and its borrows end before it runs. What follows by the same tensors is in order all the same, as long
//! as it is in the same stream or on the host: copies wait for all streams, and memory is freed when what uses it has
//! run. Kernels on two streams that nothing orders ([`Stream::wait_for`]) may use a tensor at the same time, and then leave
//! some of what either wrote. A [`Graph`](crate::Graph) shares its tensors: what was lent to a capture to be written
//! changes whenever the graph runs, also while it is borrowed elsewhere. Neither can make a value that is invalid: nothing
//! in Rust refers to a device's memory, and copies from there give valid values, whatever the bytes.

pub(crate) mod args;
pub(crate) mod bind;
pub(crate) mod graph;
mod grid;
mod occupancy;
pub(crate) mod shape;
mod with;
mod workspace;

pub use crate::map::options::{Corners, Fill, L2Promotion, MapOptions, MapSource};
pub use crate::spec::{KernelParts, KernelSpec, ParamKind, ParamSpec};
pub use args::im2col::{Im2col, Im2colArg, Im2colArgMut, Im2colExt, WithColumns};
pub use args::options::{MapArgExt, WithOptions};
pub use args::{GlobalArg, GlobalArgMut, GlobalSlice, GlobalSliceMut, MapArg, MapArgMut};
pub use bind::{Arg, Bound, bind};
pub use grid::{Grid, MAX_GRID};
pub use occupancy::resident_blocks;
pub use with::{LaunchOptions, With};
pub use workspace::MapWorkspace;

use crate::backend::{Backend, cuda, sim};
use crate::device::Device;
use crate::device::stream::{self, Stream};
use crate::error::Error;
use graph::Capture;
use occupancy::fits;
use shape::shape;

/// Where to launch: `&Device`, on its default stream, `&Stream`, or `&Capture`, to be run later; each [`With`] options.
pub trait LaunchOn: sealed::Sealed {
    /// The device that runs the kernel.
    fn device(&self) -> &Device;

    /// The stream that the kernel is queued on; `None` is the device's default stream.
    fn stream(&self) -> Option<&Stream>;

    /// What takes the launch down in place of running it.
    fn capture(&self) -> Option<&Capture> {
        None
    }

    /// What the launch asks for beyond grid and arguments.
    fn options(&self) -> LaunchOptions {
        LaunchOptions::default()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::Device {}
    impl Sealed for crate::Stream {}
    impl Sealed for crate::Capture {}
    impl Sealed for super::With<'_> {}
    impl<L: Sealed> Sealed for &L {}
}

impl LaunchOn for Device {
    fn device(&self) -> &Device {
        self
    }

    fn stream(&self) -> Option<&Stream> {
        None
    }
}

impl LaunchOn for Stream {
    fn device(&self) -> &Device {
        self.device()
    }

    fn stream(&self) -> Option<&Stream> {
        Some(self)
    }
}

impl LaunchOn for Capture {
    fn device(&self) -> &Device {
        self.device()
    }

    fn stream(&self) -> Option<&Stream> {
        None
    }

    fn capture(&self) -> Option<&Capture> {
        Some(self)
    }
}

impl<L: LaunchOn> LaunchOn for &L {
    fn device(&self) -> &Device {
        (**self).device()
    }

    fn stream(&self) -> Option<&Stream> {
        (**self).stream()
    }

    fn capture(&self) -> Option<&Capture> {
        (**self).capture()
    }

    fn options(&self) -> LaunchOptions {
        (**self).options()
    }
}

/// Queues a kernel: checks the arguments against `spec`, loads the kernel if this is its first launch on the device,
/// encodes the tensor maps that are not known yet, and launches. It does not wait for the kernel to run.
///
/// # Errors
///
/// `TMA05xx` for arguments that break a rule, [`Error::GridZero`], [`Error::GridTooLarge`], [`Error::Cluster`],
/// [`Error::GridNotResident`], [`Error::NeverWaits`], [`Error::Launch`]; in a capture [`Error::Unowned`]; at a
/// first launch [`Error::NoPtx`], [`Error::Architecture`], [`Error::Jit`], [`Error::NoEntry`],
/// [`Error::OtherParameters`] and [`Error::SharedMemory`]; on the simulator [`Error::Findings`] and [`Error::SimulatedLaunch`]; and [`Error::KernelFault`] if an earlier kernel stopped with a trap or a fault.
pub fn launch(
    on: &impl LaunchOn,
    spec: &'static KernelSpec,
    grid: Grid,
    args: &[Arg<'_>],
) -> Result<(), Error> {
    let shape = shape(spec, grid, on.options())?;
    fits(on.device(), spec, shape)?;
    if let Some(capture) = on.capture() {
        return capture.launch(spec, shape, args);
    }
    match on.device().backend() {
        Backend::Cuda(context) => context.launch(on.stream().and_then(cuda_stream), spec, shape, args),
        Backend::Sim(context) => context.run(&context.prepare(spec, shape, args)?),
    }
}

/// A launch with everything decided, to be repeated with no more work than the driver's own.
///
/// It serves to measure what [`launch`] adds, and loops that launch the same thing very often. It stays on the thread
/// that prepared it.
#[derive(Debug)]
pub struct Prepared<'a> {
    backend: PreparedBackend<'a>,
}

#[derive(Debug)]
enum PreparedBackend<'a> {
    Cuda(Box<cuda::Prepared<'a>>),
    Sim { context: &'a sim::Context, launch: sim::Launch },
}

/// Does all of [`launch`] but the launch.
///
/// # Errors
///
/// As [`launch`], and [`Error::PreparedCapture`].
pub fn prepare<'a>(
    on: &'a impl LaunchOn,
    spec: &'static KernelSpec,
    grid: Grid,
    args: &[Arg<'a>],
) -> Result<Prepared<'a>, Error> {
    if on.capture().is_some() {
        return Err(Error::PreparedCapture { kernel: spec.name });
    }
    let shape = shape(spec, grid, on.options())?;
    fits(on.device(), spec, shape)?;
    let backend = match on.device().backend() {
        Backend::Cuda(context) => PreparedBackend::Cuda(Box::new(context.prepare(
            on.stream().and_then(cuda_stream),
            spec,
            shape,
            args,
        )?)),
        Backend::Sim(context) => {
            PreparedBackend::Sim { context, launch: context.prepare(spec, shape, args)? }
        }
    };
    Ok(Prepared { backend })
}

impl Prepared<'_> {
    /// Queues the kernel once more.
    ///
    /// # Errors
    ///
    /// [`Error::Launch`] and [`Error::KernelFault`].
    pub fn run(&self) -> Result<(), Error> {
        match &self.backend {
            PreparedBackend::Cuda(prepared) => prepared.run(),
            PreparedBackend::Sim { context, launch } => context.run(launch),
        }
    }
}

fn cuda_stream(stream: &Stream) -> Option<&cuda::Stream> {
    match stream.backend() {
        stream::Backend::Cuda(stream) => Some(stream),
        stream::Backend::Sim => None,
    }
}
