//! The device that kernels run on, whichever backend stands behind it.

mod properties;
pub(crate) mod stream;

use std::sync::Arc;

use crate::backend::{Backend, cuda, sim};
use crate::device::stream::{Event, Stream};
use crate::error::Error;
use crate::spec::KernelSpec;
use crate::tensor::DeviceTensor;
use crate::tensor::layout::DeviceId;
pub(crate) use properties::Properties;

/// A device: cheap to clone, and to share between threads.
///
/// Opening the same GPU again gives the same device: its memory, and its kernels once loaded, belong to the process
/// until it ends. Everything that is not given a [`Stream`] runs on the device's default stream, in order with all of
/// its streams.
#[derive(Clone, Debug)]
pub struct Device {
    backend: Backend,
}

/// Devices, tensors, streams and events may be used from any thread.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<Device>();
    any_thread::<DeviceTensor<u8, 1>>();
    any_thread::<Stream>();
    any_thread::<Event>();
    any_thread::<Error>();
};

impl Device {
    /// Opens the first GPU, if the program was built with the feature `cuda` and there is one, else the simulator.
    /// [`name`](Self::name) says which.
    ///
    /// The environment variable `TMA_DEVICE` decides otherwise: `sim`, `cuda`, or `cuda:1` for the second GPU.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownDevice`] for another value of the variable, and as [`Device::cuda`].
    pub fn open() -> Result<Self, Error> {
        match std::env::var("TMA_DEVICE").as_deref().map(str::trim) {
            Err(_) | Ok("") => match Self::cuda(0) {
                Err(Error::NoBackend | Error::NoDriver { .. } | Error::NoDevice { .. }) => {
                    Ok(Self::simulator())
                }
                gpu => gpu,
            },
            Ok("sim") => Ok(Self::simulator()),
            Ok("cuda") => Self::cuda(0),
            Ok(name) => match name.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok()) {
                Some(ordinal) => Self::cuda(ordinal),
                None => Err(Error::UnknownDevice { name: name.to_owned() }),
            },
        }
    }

    /// A simulated device, with memory of its own. It runs the same PTX on the CPU, lets copies land late
    /// and in pieces, and answers a launch with an error of all that is wrong with the kernel.
    ///
    /// Launches run to their end at once. A pointer from elsewhere is no address of it.
    pub fn simulator() -> Self {
        Self { backend: Backend::Sim(Arc::new(sim::Context::new())) }
    }

    /// Lets a simulated device choose otherwise from now on, wherever hardware is free to: the order of warps, and
    /// when copies land. A GPU chooses for itself.
    pub fn seed(self, seed: u64) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_seed(seed);
        }
        self
    }

    /// Lets a simulated device end a launch with a finding when a cluster has run so many instructions, counted for each
    /// thread of a warp, whether it takes part or not: a test of a kernel that may not end then ends. A GPU has no such
    /// limit.
    pub fn instruction_limit(self, instructions: u64) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_instruction_limit(instructions);
        }
        self
    }

    /// Lets a simulated device take grids of so many blocks, in place of 2^22. Each takes some microseconds, even if it ends at
    /// once, so that a GPU's largest grids would run for hours. A GPU takes up to [`MAX_GRID`](crate::launch::MAX_GRID).
    pub fn block_limit(self, blocks: u64) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_block_limit(blocks);
        }
        self
    }

    /// Lets a simulated device run so many clusters at a time, on as many threads of the host. 0, which it does from the start,
    /// is one a core, and one at a time of a kernel in which that could matter: one that shares global memory between blocks, by
    /// atomic operations and the like. With another number such a kernel may give something else each time, for the same seed.
    pub fn host_threads(self, threads: usize) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_host_threads(threads);
        }
        self
    }

    /// Lets a simulated device give `watch` a report of each launch from now on: findings, counts of instructions, copies and
    /// bank conflicts, and the first `trace_events` events of the timeline ([`ptx_sim::Report`]). A GPU makes no such report.
    /// `watch` may use the device; of launches that it makes there itself it gets no report.
    ///
    /// ```
    /// use tma_runtime::prelude::*;
    ///
    /// let device = Device::simulator().reporting(0, |kernel, report| {
    ///     println!("{}: {} instructions", kernel.name, report.warp_instructions);
    /// });
    /// # assert_eq!(device.name(), "ptx-sim");
    /// ```
    pub fn reporting(
        self,
        trace_events: usize,
        watch: impl Fn(&'static KernelSpec, &ptx_sim::Report) + Send + Sync + 'static,
    ) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_watch(trace_events, Arc::new(watch));
        }
        self
    }

    /// Lets a simulated device run other PTX than the kernels' own: `rewrite` is asked at the first launch of each
    /// kernel, and gives the text to run in its place, or `None`. So code changed by hand is tried, and so this project
    /// removes a kernel's synchronisation step by step and sees each missing one found. A GPU runs what was compiled.
    ///
    /// `rewrite` may use the device; launches that it makes there itself run the kernels' own PTX. Whatever the text does, it
    /// reaches the device's simulated memory and nothing else: what leaves that is a finding.
    pub fn rewriting(
        self,
        rewrite: impl Fn(&'static KernelSpec) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        if let Backend::Sim(context) = &self.backend {
            context.set_rewrite(Arc::new(rewrite));
        }
        self
    }

    /// Opens the GPU with this ordinal, counted as the driver does, which heeds `CUDA_VISIBLE_DEVICES`.
    ///
    /// # Errors
    ///
    /// [`Error::NoDriver`], [`Error::NoDevice`], [`Error::MissingEntryPoint`] and [`Error::Driver`].
    pub fn cuda(ordinal: u32) -> Result<Self, Error> {
        Ok(Self { backend: Backend::Cuda(cuda::Context::open(ordinal)?) })
    }

    /// The memory that the device's addresses belong to.
    pub fn id(&self) -> DeviceId {
        match &self.backend {
            Backend::Cuda(context) => context.id(),
            Backend::Sim(context) => context.id(),
        }
    }

    /// The product's name.
    pub fn name(&self) -> &str {
        &self.properties().name
    }

    /// The compute capability, major and minor: `(9, 0)` for Hopper.
    pub fn compute_capability(&self) -> (u32, u32) {
        self.properties().capability
    }

    /// The number of multiprocessors: how many persistent blocks a launch wants.
    pub fn multiprocessors(&self) -> u32 {
        self.properties().multiprocessors
    }

    /// The greatest number of bytes of shared memory that a block can have.
    pub fn shared_bytes(&self) -> u32 {
        self.properties().shared_bytes
    }

    /// Makes a stream: what is queued on it runs in order, and beside other streams.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`].
    pub fn stream(&self) -> Result<Stream, Error> {
        match &self.backend {
            Backend::Cuda(context) => Ok(Stream::cuda(self.clone(), context.stream()?)),
            Backend::Sim(_) => Ok(Stream::simulated(self.clone())),
        }
    }

    /// Waits until everything queued on the device has run.
    ///
    /// # Errors
    ///
    /// [`Error::KernelFault`] if a kernel stopped with a trap or a fault, and [`Error::Driver`].
    pub fn synchronize(&self) -> Result<(), Error> {
        match &self.backend {
            Backend::Cuda(context) => context.synchronize(),
            Backend::Sim(_) => Ok(()),
        }
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    fn properties(&self) -> &Properties {
        match &self.backend {
            Backend::Cuda(context) => context.properties(),
            Backend::Sim(context) => context.properties(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn tma0603_without_the_feature_a_gpu_is_refused_and_says_what_to_enable() {
        let error = Device::cuda(0).expect_err("there is no backend");
        assert_eq!(error.code(), "TMA0603");
        assert!(error.to_string().contains("--features cuda"), "{error}");
    }

    #[test]
    fn simulators_have_memory_of_their_own() {
        let (first, second) = (Device::simulator(), Device::simulator().seed(7));
        assert_ne!(first.id(), second.id());
        let tensor = first.tensor(&[1u32, 2, 3], [3]);
        assert_eq!(tensor.and_then(|tensor| tensor.to_vec()).ok(), Some(vec![1, 2, 3]));
    }
}
