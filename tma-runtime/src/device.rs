//! The device that kernels run on, whichever backend stands behind it.

use std::sync::Arc;

use crate::cuda;
use crate::error::Error;
use crate::layout::DeviceId;
use crate::ptx::{self, Params, Target};
use crate::sim;
use crate::spec::{KernelParts, KernelSpec};
use crate::stream::{Event, Stream};
use crate::tensor::DeviceTensor;

/// A device: cheap to clone, and to share between threads.
///
/// Opening the same GPU again gives the same device: its memory, and its kernels once loaded, belong to the process
/// until it ends. Everything that is not given a [`Stream`] runs on the device's default stream, in order with all of
/// its streams.
#[derive(Clone, Debug)]
pub struct Device {
    backend: Backend,
}

/// What runs the kernels.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    /// A GPU, through the NVIDIA driver.
    Cuda(&'static cuda::Context),
    /// The CPU, through `ptx-sim`.
    Sim(Arc<sim::Context>),
}

/// What a device can do.
#[derive(Clone, Debug)]
pub(crate) struct Properties {
    pub(crate) name: String,
    /// Major and minor.
    pub(crate) capability: (u32, u32),
    pub(crate) multiprocessors: u32,
    /// Bytes of dynamic shared memory that a block can opt in to.
    pub(crate) shared_bytes: u32,
}

impl Properties {
    /// Whether a device with these can run a kernel, and the kernel is what its specification says.
    pub(crate) fn accept(&self, spec: &KernelParts) -> Result<(), Error> {
        let kernel = spec.name;
        if !ptx::is_compiled(spec.ptx) {
            return Err(Error::NoPtx { kernel });
        }
        // A target that cannot be read is left to the backend.
        if let Some(target) = Target::of(spec.ptx).filter(|target| !target.runs_on(self.capability)) {
            return Err(Error::Architecture {
                kernel,
                target: target.to_string(),
                device: self.name.clone(),
                capability: self.capability,
            });
        }
        let wanted = spec.ptx_params();
        let found = Params::of(spec.ptx, spec.entry).ok_or(Error::NoEntry { kernel, entry: spec.entry })?;
        if found != wanted {
            return Err(Error::OtherParameters {
                kernel,
                found: found.to_string(),
                wanted: wanted.to_string(),
            });
        }
        let (bytes, limit) = (spec.shared_bytes, self.shared_bytes);
        if bytes > limit { Err(Error::SharedMemory { kernel, bytes, limit }) } else { Ok(()) }
    }
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
    use crate::launch::{Arg, Grid, launch};
    use crate::spec::{Cluster, ParamKind, ParamSpec};

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

    const NUMBER: ParamSpec = ParamSpec { name: "n", kind: ParamKind::Scalar { bytes: 4 } };
    const PARTS: KernelParts = KernelParts {
        name: "nothing",
        entry: "nothing",
        ptx: ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry nothing(.param .u32 n) { ret; }",
        threads: [32, 1, 1],
        cluster: Cluster::None,
        cooperative: false,
        dependency_wait: false,
        shared_bytes: 0,
        params: &[NUMBER],
    };

    const fn spec(parts: KernelParts) -> KernelSpec {
        // SAFETY: the entry does nothing.
        unsafe { KernelSpec::from_parts(parts) }
    }

    fn code(spec: &'static KernelSpec, args: &[Arg<'_>]) -> Option<&'static str> {
        launch(&Device::simulator(), spec, Grid::x(1), args).err().map(|error| error.code())
    }

    #[test]
    fn tma0620_the_ptx_takes_what_the_specification_says() {
        static SPEC: KernelSpec = spec(PARTS);
        static FEWER: KernelSpec = spec(KernelParts { params: &[], ..PARTS });
        static MORE: KernelSpec = spec(KernelParts { params: &[NUMBER, NUMBER], ..PARTS });
        static SMALLER: KernelSpec = spec(KernelParts {
            ptx: ".version 8.0\n.target sm_90a\n.address_size 64\n\
                .visible .entry nothing(.param .align 64 .b8 n[128]) { ret; }",
            ..PARTS
        });
        let number = || Arg::scalar(1u32);
        assert_eq!(code(&SPEC, &[number()]), None);
        assert_eq!(code(&FEWER, &[]), Some("TMA0620"));
        assert_eq!(code(&MORE, &[number(), number()]), Some("TMA0620"));
        assert_eq!(code(&SMALLER, &[number()]), Some("TMA0620"));
    }

    #[test]
    fn tma0614_the_ptx_has_the_entry() {
        static OTHER: KernelSpec = spec(KernelParts { entry: "not", ..PARTS });
        assert_eq!(code(&OTHER, &[Arg::scalar(1u32)]), Some("TMA0614"));
    }
}
