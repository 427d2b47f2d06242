//! The simulator backend: kernels' PTX on the CPU, through `ptx-sim`.
//!
//! A launch runs to its end before it returns, so that streams and events have nothing left to order. What the simulator
//! finds wrong with a kernel is the launch's error.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ptx_sim::{GlobalMemory, LaunchConfig, Module};

use crate::bind::{Arg, Bound, bind};
use crate::device::Properties;
use crate::error::Error;
use crate::layout::DeviceId;
use crate::map::map_params;
use crate::shape::Shape;
use crate::spec::{KernelSpec, ParamKind};

/// Multiprocessors that a simulated device says it has: enough for persistent blocks to share work, few enough for a CPU.
const MULTIPROCESSORS: u32 = 4;

/// Gives the PTX that is run in place of a kernel's own, if any.
type Rewrite = Box<dyn Fn(&'static KernelSpec) -> Option<String> + Send + Sync>;

/// Gets what each launch gave.
type Watch = Arc<dyn Fn(&'static KernelSpec, &ptx_sim::Report) + Send + Sync>;

/// A simulated device.
pub(crate) struct Context {
    id: u32,
    properties: Properties,
    memory: Mutex<GlobalMemory>,
    /// By the address of the PTX text, which is a part of the program.
    modules: Mutex<HashMap<usize, Arc<Module>>>,
    seed: AtomicU64,
    instruction_limit: AtomicU64,
    host_threads: AtomicUsize,
    /// With how many events of the timeline are wanted.
    watch: Mutex<Option<(usize, Watch)>>,
    rewrite: Mutex<Rewrite>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("id", &self.id).field("seed", &self.seed).finish_non_exhaustive()
    }
}

static COUNT: AtomicU32 = AtomicU32::new(0);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    pub(crate) fn new() -> Self {
        Self {
            id: COUNT.fetch_add(1, Ordering::Relaxed),
            properties: Properties {
                name: "ptx-sim".to_owned(),
                capability: (9, 0),
                multiprocessors: MULTIPROCESSORS,
                shared_bytes: ptx_sim::MOST_SHARED_BYTES,
            },
            memory: Mutex::default(),
            modules: Mutex::default(),
            seed: AtomicU64::new(0),
            instruction_limit: AtomicU64::new(LaunchConfig::default().instruction_limit),
            host_threads: AtomicUsize::new(LaunchConfig::default().host_threads),
            watch: Mutex::new(None),
            rewrite: Mutex::new(Box::new(|_| None)),
        }
    }

    pub(crate) fn id(&self) -> DeviceId {
        DeviceId::Simulator(self.id)
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    pub(crate) fn set_seed(&self, seed: u64) {
        self.seed.store(seed, Ordering::Relaxed);
    }

    pub(crate) fn set_instruction_limit(&self, instructions: u64) {
        self.instruction_limit.store(instructions, Ordering::Relaxed);
    }

    pub(crate) fn set_host_threads(&self, threads: usize) {
        self.host_threads.store(threads, Ordering::Relaxed);
    }

    pub(crate) fn set_watch(&self, trace_events: usize, watch: Watch) {
        *locked(&self.watch) = Some((trace_events, watch));
    }

    /// Kernels that were launched before are asked for anew.
    pub(crate) fn set_rewrite(&self, rewrite: Rewrite) {
        *locked(&self.rewrite) = rewrite;
        locked(&self.modules).clear();
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        locked(&self.memory).allocate(bytes, false).ok_or(Error::OutOfMemory { bytes, device: self.id() })
    }

    pub(crate) fn free(&self, address: u64) {
        locked(&self.memory).free(address);
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.memory().write(address, bytes).map_err(|_| Error::SimulatedMemory { address })
    }

    pub(crate) fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.memory().read(address, bytes).map_err(|_| Error::SimulatedMemory { address })
    }

    pub(crate) fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        let mut host = vec![0; bytes as usize];
        self.read(from, &mut host)?;
        self.write(to, &host)
    }

    /// The memory as it is now; clones share their bytes.
    fn memory(&self) -> GlobalMemory {
        locked(&self.memory).clone()
    }
}

/// A launch with its arguments encoded. It holds addresses, and nothing that keeps them valid.
#[derive(Debug)]
pub(crate) struct Launch {
    spec: &'static KernelSpec,
    shape: Shape,
    module: Arc<Module>,
    args: Vec<ptx_sim::Arg>,
}

impl Context {
    /// Loads the kernel and encodes the arguments.
    pub(crate) fn prepare(
        &self,
        spec: &'static KernelSpec,
        shape: Shape,
        args: &[Arg<'_>],
    ) -> Result<Launch, Error> {
        let module = self.module(spec)?;
        let args = self.arguments(spec, args)?;
        Ok(Launch { spec, shape, module, args })
    }

    /// Runs a kernel to its end. That it may start early changes nothing: those before it have ended.
    pub(crate) fn run(&self, Launch { spec, shape, module, args }: &Launch) -> Result<(), Error> {
        let watch = locked(&self.watch).clone();
        let config = LaunchConfig {
            grid: shape.grid,
            block: spec.threads,
            cluster: shape.cluster,
            cooperative: shape.cooperative,
            dynamic_shared_bytes: spec.shared_bytes,
            seed: self.seed.load(Ordering::Relaxed),
            instruction_limit: self.instruction_limit.load(Ordering::Relaxed),
            host_threads: self.host_threads.load(Ordering::Relaxed),
            profile: watch.is_some(),
            trace_events: watch.as_ref().map_or(0, |(events, _)| *events),
            ..LaunchConfig::default()
        };
        let refused =
            |error: ptx_sim::Error| Error::SimulatedLaunch { kernel: spec.name, why: error.to_string() };
        // The device's own memory, not a clone: a module's variables are allocated at its first launch, and stay.
        let mut memory = locked(&self.memory);
        let report = ptx_sim::launch(module, &mut memory, spec.entry, &config, args).map_err(refused)?;
        drop(memory);
        print!("{}", report.printed);
        if let Some((_, watch)) = watch {
            watch(spec, &report);
        }
        if report.findings.is_empty() {
            return Ok(());
        }
        let sources = module.sources(|path| std::fs::read_to_string(path).ok());
        Err(Error::Findings {
            kernel: spec.name,
            seed: config.seed,
            count: report.findings.len(),
            text: report.findings.render(&sources),
        })
    }

    /// The module of a kernel, loaded at its first launch.
    fn module(&self, spec: &'static KernelSpec) -> Result<Arc<Module>, Error> {
        let mut modules = locked(&self.modules);
        let key = spec.ptx.as_ptr() as usize;
        if let Some(module) = modules.get(&key) {
            return Ok(Arc::clone(module));
        }
        self.properties.accept(spec)?;
        let rewritten = locked(&self.rewrite)(spec);
        let module = Module::load(rewritten.as_deref().unwrap_or(spec.ptx))
            .map_err(|error| Error::SimulatedLaunch { kernel: spec.name, why: error.to_string() })?;
        let module = Arc::new(module);
        modules.insert(key, Arc::clone(&module));
        Ok(module)
    }

    fn arguments(&self, spec: &'static KernelSpec, args: &[Arg<'_>]) -> Result<Vec<ptx_sim::Arg>, Error> {
        let mut sizes = spec.params.iter().map(|param| match param.kind {
            ParamKind::Scalar { bytes } => bytes as usize,
            ParamKind::Map(_) | ParamKind::Global { .. } => 8,
        });
        let mut all = Vec::with_capacity(args.len());
        bind(self.id(), spec, args, |bound| {
            let size = sizes.next().unwrap_or(8);
            match bound {
                Bound::Map { tensor, spec, source, .. } => {
                    all.push(ptx_sim::Arg::Map(map_params(tensor, source, spec)?.map));
                }
                Bound::Global { address, len } => {
                    all.push(ptx_sim::Arg::Address(*address));
                    all.push(ptx_sim::Arg::Bytes(len.to_le_bytes().into()));
                }
                Bound::Scalar { bits } => {
                    all.push(ptx_sim::Arg::Bytes(bits.to_le_bytes()[..size].into()));
                }
            }
            Ok(())
        })?;
        Ok(all)
    }
}
