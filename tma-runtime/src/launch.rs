//! Launching kernels: what the typed launchers that `#[tma_kernel]` writes are made of.
//!
//! A kernel's own `launch` checks types at compile time and then calls [`launch`] here, which matches arguments to
//! parameters and hands them to the device's backend.

pub use crate::args::{GlobalArg, GlobalArgMut, GlobalSlice, MapArg, MapArgMut};
pub use crate::bind::{Arg, Bound, bind};
pub use crate::grid::{Grid, MAX_GRID};
pub use crate::im2col::{Im2col, Im2colArg, Im2colArgMut, Im2colExt, WithColumns};
pub use crate::options::{Corners, Fill, L2Promotion, MapArgExt, MapOptions, MapSource, WithOptions};
pub use crate::spec::{KernelSpec, ParamKind, ParamSpec};
pub use crate::with::{LaunchOptions, With};
pub use crate::workspace::MapWorkspace;

use crate::cuda;
use crate::device::{Backend, Device};
use crate::error::Error;
use crate::shape::{Shape, shape};
use crate::sim;
use crate::stream::{self, Stream};

/// Where to launch: `&Device`, on its default stream, or `&Stream`; either [`With`] options.
pub trait LaunchOn: sealed::Sealed {
    /// The device that runs the kernel.
    fn device(&self) -> &Device;

    /// The stream that the kernel is queued on; `None` is the device's default stream.
    fn stream(&self) -> Option<&Stream>;

    /// What the launch asks for beyond grid and arguments.
    fn options(&self) -> LaunchOptions {
        LaunchOptions::default()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::Device {}
    impl Sealed for crate::Stream {}
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

impl<L: LaunchOn> LaunchOn for &L {
    fn device(&self) -> &Device {
        (**self).device()
    }

    fn stream(&self) -> Option<&Stream> {
        (**self).stream()
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
/// `TMA05xx` for arguments that break a rule, [`Error::GridZero`], [`Error::GridTooLarge`], [`Error::Cluster`], [`Error::Launch`]; at a
/// first launch [`Error::NoPtx`], [`Error::Architecture`], [`Error::Jit`], [`Error::NoEntry`] and
/// [`Error::SharedMemory`]; on the simulator [`Error::Findings`] and [`Error::SimulatedLaunch`]; and [`Error::KernelFault`] if an earlier kernel stopped with a trap or a fault.
pub fn launch(
    on: &impl LaunchOn,
    spec: &'static KernelSpec,
    grid: Grid,
    args: &[Arg<'_>],
) -> Result<(), Error> {
    let shape = shape(spec, grid, on.options())?;
    match on.device().backend() {
        Backend::Cuda(context) => context.launch(on.stream().and_then(cuda_stream), spec, shape, args),
        Backend::Sim(context) => context.launch(spec, shape, args),
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
    Sim { context: &'a sim::Context, spec: &'static KernelSpec, shape: Shape, args: Vec<Arg<'a>> },
}

/// Does all of [`launch`] but the launch.
///
/// # Errors
///
/// As [`launch`].
pub fn prepare<'a>(
    on: &'a impl LaunchOn,
    spec: &'static KernelSpec,
    grid: Grid,
    args: &[Arg<'a>],
) -> Result<Prepared<'a>, Error> {
    let shape = shape(spec, grid, on.options())?;
    let backend = match on.device().backend() {
        Backend::Cuda(context) => PreparedBackend::Cuda(Box::new(context.prepare(
            on.stream().and_then(cuda_stream),
            spec,
            shape,
            args,
        )?)),
        Backend::Sim(context) => PreparedBackend::Sim { context, spec, shape, args: args.to_vec() },
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
            PreparedBackend::Sim { context, spec, shape, args } => context.launch(spec, *shape, args),
        }
    }
}

fn cuda_stream(stream: &Stream) -> Option<&cuda::Stream> {
    match stream.backend() {
        stream::Backend::Cuda(stream) => Some(stream),
        stream::Backend::Sim => None,
    }
}
