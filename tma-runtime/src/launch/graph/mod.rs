//! Launches that are recorded once and repeated as one.

use crate::backend::Backend;
use crate::backend::cuda;
use crate::backend::sim;
use crate::binding::same_device;
use crate::binding::shape::Shape;
use crate::device::Device;
use crate::device::memory::Memory;
use crate::device::stream::{self, Stream};
use crate::error::Error;
use crate::launch::args::erased::Arg;
use crate::launch::prepared::{Prepared, PreparedBackend};
use crate::spec::KernelSpec;
use std::cell::RefCell;
use std::sync::Arc;

/// Launches in order, recorded by [`Stream::capture`]. Repeating them costs the host one driver
/// call, however many they are.
///
/// The arguments are those of the capture: the same tensors, with their contents at the time that
/// the graph runs, and the same scalars. The graph keeps the tensors' memory alive. It is `Send`
/// but not `Sync`.
#[derive(Debug)]
pub struct Graph {
    // Dropped before the memory that it uses.
    backend: GraphBackend,
    _memory: Vec<Arc<Memory>>,
    device: Device,
}

#[derive(Debug)]
enum GraphBackend {
    Cuda(cuda::Graph),
    Sim(Vec<Arc<sim::Launch>>),
}

/// A recorder of launches. [`Stream::capture`] and [`Device::prepare`] pass one to their closures,
/// which pass it to a kernel's `launch` in place of a device or a stream. Nothing runs.
#[derive(Debug)]
pub struct Capture {
    backend: CaptureBackend,
    memory: RefCell<Vec<Arc<Memory>>>,
    device: Device,
}

#[derive(Debug)]
enum CaptureBackend {
    /// A graph of a GPU.
    Cuda(cuda::Capture),
    /// Prepared launches of a GPU.
    Prepared(RefCell<Vec<Arc<cuda::Prepared>>>),
    /// Either of them on the simulator.
    Sim(RefCell<Vec<Arc<sim::Launch>>>),
}

impl Stream {
    /// Records, in order, the launches that the closure makes on its [`Capture`]. None of them
    /// runs; [`Graph::launch`] runs them all, any number of times.
    ///
    /// Everything else that the closure does, on this stream or another, happens immediately, as
    /// usual. If the closure fails, the recording is discarded.
    ///
    /// ```no_run
    /// # mod scale { pub fn launch<T, U>(on: impl tma_runtime::launch::LaunchOn, blocks: u32, a: T, b: U)
    /// # -> Result<(), tma_runtime::Error> { Ok(()) } }
    /// # use scale as shift;
    /// use tma_runtime::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// let device = Device::open()?;
    /// let stream = device.stream()?;
    /// let mut values = device.tensor(&[1.0f32; 1024], [1024])?;
    /// let mut results = device.zeros::<f32, 1>([1024])?;
    /// let graph = stream.capture(|capture| {
    ///     scale::launch(capture, 8, &values, &mut results)?;
    ///     shift::launch(capture, 8, &results, &mut values)
    /// })?;
    /// for _ in 0..100 {
    ///     graph.launch(&stream)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of the closure, whose launches may also fail with [`Error::Unowned`]; and
    /// [`Error::Driver`].
    pub fn capture(&self, launches: impl FnOnce(&Capture) -> Result<(), Error>) -> Result<Graph, Error> {
        let device = self.device().clone();
        let backend = match device.backend() {
            Backend::Cuda(context) => CaptureBackend::Cuda(context.capture()?),
            Backend::Sim(_) => CaptureBackend::Sim(RefCell::default()),
        };
        let capture = Capture { backend, memory: RefCell::default(), device };
        launches(&capture)?;
        let (memory, Capture { backend, device, .. }) = (capture.owners(), capture);
        let backend = match backend {
            CaptureBackend::Cuda(capture) => GraphBackend::Cuda(capture.finish()?),
            CaptureBackend::Sim(launches) => GraphBackend::Sim(launches.into_inner()),
            // A graph of a GPU is recorded by the driver.
            CaptureBackend::Prepared(_) => GraphBackend::Sim(Vec::new()),
        };
        Ok(Graph { backend, _memory: memory, device })
    }
}

impl Device {
    /// Records, in order, the launches that the closure makes on its [`Capture`], each with its
    /// kernel, grid, options and encoded arguments. None of them runs; [`Prepared::launch`] queues
    /// them all, any number of times.
    ///
    /// The closure's error may be of any type that an [`Error`] can be converted to, such as those
    /// of functions that launch kernels. If the closure fails, the recording is discarded.
    ///
    /// ```no_run
    /// # mod scale { pub fn launch<T, U>(on: impl tma_runtime::launch::LaunchOn, blocks: u32, a: T, b: U)
    /// # -> Result<(), tma_runtime::Error> { Ok(()) } }
    /// use tma_runtime::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// let device = Device::open()?;
    /// let src = device.tensor(&[1.0f32; 1024], [1024])?;
    /// let mut dst = device.zeros::<f32, 1>([1024])?;
    /// let step = device.prepare(|on| scale::launch(on, 8, &src, &mut dst))?;
    /// let stream = device.stream()?;
    /// for _ in 0..100 {
    ///     step.launch(&stream)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of the closure, whose launches may also fail with [`Error::Unowned`].
    pub fn prepare<E: From<Error>>(
        &self,
        launches: impl FnOnce(&Capture) -> Result<(), E>,
    ) -> Result<Prepared, E> {
        let backend = match self.backend() {
            Backend::Cuda(_) => CaptureBackend::Prepared(RefCell::default()),
            Backend::Sim(_) => CaptureBackend::Sim(RefCell::default()),
        };
        let capture = Capture { backend, memory: RefCell::default(), device: self.clone() };
        launches(&capture)?;
        let (memory, Capture { backend, device, .. }) = (capture.owners(), capture);
        let backend = match backend {
            CaptureBackend::Prepared(launches) => PreparedBackend::Cuda(launches.into_inner()),
            CaptureBackend::Sim(launches) => PreparedBackend::Sim(launches.into_inner()),
            // The driver records only graphs.
            CaptureBackend::Cuda(_) => PreparedBackend::Sim(Vec::new()),
        };
        Ok(Prepared { backend, memory, device })
    }
}

impl Capture {
    /// Returns the device that the graph will run on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Records a launch.
    pub(crate) fn launch(
        &self,
        spec: &'static KernelSpec,
        shape: Shape,
        args: &[Arg<'_>],
    ) -> Result<(), Error> {
        let mut owners = Vec::with_capacity(args.len());
        for (arg, param) in args.iter().zip(spec.params) {
            let owner =
                arg.memory().map_err(|()| Error::Unowned { kernel: spec.name, tensor: param.name })?;
            owners.extend(owner.cloned());
        }
        match (&self.backend, self.device.backend()) {
            (CaptureBackend::Cuda(capture), _) => capture.launch(spec, shape, args)?,
            (CaptureBackend::Prepared(launches), Backend::Cuda(context)) => {
                launches.borrow_mut().push(Arc::new(context.prepare(spec, shape, args)?));
            }
            (CaptureBackend::Sim(launches), Backend::Sim(context)) => {
                launches.borrow_mut().push(Arc::new(context.prepare(spec, shape, args)?));
            }
            // The backend always matches the device.
            (CaptureBackend::Sim(_), Backend::Cuda(_)) | (CaptureBackend::Prepared(_), Backend::Sim(_)) => {}
        }
        self.memory.borrow_mut().append(&mut owners);
        Ok(())
    }

    /// Records launches that are prepared on the same device.
    pub(super) fn launch_prepared(&self, prepared: &Prepared) -> Result<(), Error> {
        // Also if only some of the launches are recorded.
        self.memory.borrow_mut().extend_from_slice(&prepared.memory);
        match (&self.backend, &prepared.backend) {
            (CaptureBackend::Cuda(capture), PreparedBackend::Cuda(launches)) => {
                capture.launch_prepared(launches)?;
            }
            (CaptureBackend::Prepared(recorded), PreparedBackend::Cuda(launches)) => {
                recorded.borrow_mut().extend_from_slice(launches);
            }
            (CaptureBackend::Sim(recorded), PreparedBackend::Sim(launches)) => {
                recorded.borrow_mut().extend_from_slice(launches);
            }
            // The device is the same.
            (CaptureBackend::Cuda(_) | CaptureBackend::Prepared(_), PreparedBackend::Sim(_))
            | (CaptureBackend::Sim(_), PreparedBackend::Cuda(_)) => {}
        }
        Ok(())
    }

    /// Returns each allocation that the recorded launches use, once.
    fn owners(&self) -> Vec<Arc<Memory>> {
        let mut memory = self.memory.take();
        memory.sort_unstable_by_key(Arc::as_ptr);
        memory.dedup_by(|memory, other| Arc::ptr_eq(memory, other));
        memory
    }
}

impl Graph {
    /// Queues all launches of the graph, in order.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDevice`], [`Error::Driver`] and [`Error::KernelFault`]. On the simulator also
    /// the errors of [`launch`](crate::launch::launch).
    pub fn launch(&self, stream: &Stream) -> Result<(), Error> {
        same_device("the graph", self.device.id(), stream.device().id())?;
        match (&self.backend, stream.backend(), self.device.backend()) {
            (GraphBackend::Cuda(graph), stream::Backend::Cuda(stream), _) => graph.launch(stream),
            (GraphBackend::Sim(launches), stream::Backend::Sim, Backend::Sim(context)) => {
                launches.iter().try_for_each(|launch| context.run(launch))
            }
            // Stream and graph belong to the same device, as checked above.
            (GraphBackend::Cuda(_), stream::Backend::Sim, _)
            | (GraphBackend::Sim(_), stream::Backend::Cuda(_), _)
            | (GraphBackend::Sim(_), stream::Backend::Sim, Backend::Cuda(_)) => Ok(()),
        }
    }

    /// Returns the device that the graph runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// Asserts that a graph may be launched and dropped on another thread than it was captured on.
const _: () = {
    const fn other_thread<T: Send>() {}
    other_thread::<Graph>();
};

#[cfg(test)]
mod tests;
