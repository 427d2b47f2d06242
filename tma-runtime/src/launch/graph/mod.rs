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
    Sim(Vec<sim::Launch>),
}

/// A recorder of launches. [`Stream::capture`] passes one to its closure, which passes it to a
/// kernel's `launch` in place of a device or a stream. Nothing runs.
#[derive(Debug)]
pub struct Capture {
    backend: CaptureBackend,
    memory: RefCell<Vec<Arc<Memory>>>,
    device: Device,
}

#[derive(Debug)]
enum CaptureBackend {
    Cuda(cuda::Capture),
    Sim(RefCell<Vec<sim::Launch>>),
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
        let Capture { backend, memory, device } = capture;
        let backend = match backend {
            CaptureBackend::Cuda(capture) => GraphBackend::Cuda(capture.finish()?),
            CaptureBackend::Sim(launches) => GraphBackend::Sim(launches.into_inner()),
        };
        Ok(Graph { backend, _memory: memory.into_inner(), device })
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
            (CaptureBackend::Sim(launches), Backend::Sim(context)) => {
                launches.borrow_mut().push(context.prepare(spec, shape, args)?);
            }
            // The backend always matches the device.
            (CaptureBackend::Sim(_), Backend::Cuda(_)) => {}
        }
        self.memory.borrow_mut().append(&mut owners);
        Ok(())
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
