//! The simulator backend: runs the PTX of kernels on the CPU, through `ptx-sim`.
//!
//! A launch runs to completion before it returns, so streams and events have nothing left to order.
//! The simulator's findings become the launch's error.

mod hooks;
mod loaded;
mod output;
mod report;
mod speed;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use ptx_sim::{GlobalMemory, LaunchConfig, Module};

use crate::backend::properties::Properties;
use crate::binding::shape::Shape;
use crate::binding::{Argument, Bound, bind};
use crate::error::Error;
use crate::layout::DeviceId;
use crate::map::{Descriptor, MapParams, map_params};
use crate::spec::{KernelSpec, ParamKind};
use hooks::{Hooks, Rewrite, Watch, locked};
use loaded::Loaded;

/// Multiprocessors that a simulated device reports. This is enough for persistent blocks to share
/// work, and few enough for a CPU.
const MULTIPROCESSORS: u32 = 4;

/// Number of bytes copied or filled at a time.
const CHUNK: usize = 1 << 16;

/// A simulated device.
pub(crate) struct Context {
    id: u32,
    properties: Properties,
    /// Shared by the devices of a team.
    memory: Arc<Mutex<GlobalMemory>>,
    modules: Mutex<HashMap<ModuleKey, Loaded>>,
    /// The options of launches, each of which adds its shape.
    options: Mutex<LaunchConfig>,
    instructions: AtomicU64,
    allocations: AtomicU64,
    encoded_maps: AtomicU64,
    hooks: Hooks,
}

/// The identity of a kernel's text, original or rewritten.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ModuleKey {
    /// The address of the kernel's own PTX, which is a constant of the program.
    ptx: usize,
    /// Whether a callback could replace the text.
    rewritten: bool,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("id", &self.id)
            .field("seed", &self.options().seed)
            .finish_non_exhaustive()
    }
}

static COUNT: AtomicU32 = AtomicU32::new(0);

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
            memory: Arc::default(),
            modules: Mutex::default(),
            options: Mutex::default(),
            instructions: AtomicU64::new(0),
            allocations: AtomicU64::new(0),
            encoded_maps: AtomicU64::new(0),
            hooks: Hooks::default(),
        }
    }

    /// Makes a device. It is fallible because the backend of builds without the feature always
    /// fails.
    pub(crate) fn open() -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self::new()))
    }

    /// Makes the devices of a team, which share one memory.
    pub(crate) fn team(ranks: usize) -> Result<Vec<Arc<Self>>, Error> {
        Ok(Self::new().team_alike(ranks))
    }

    /// Makes the devices of a team, which share one memory and have the settings of this device.
    pub(crate) fn team_alike(&self, ranks: usize) -> Vec<Arc<Self>> {
        let memory = Arc::default();
        let device = |_| {
            Arc::new(Self {
                memory: Arc::clone(&memory),
                options: Mutex::new(self.options().clone()),
                hooks: self.hooks.copied(),
                ..Self::new()
            })
        };
        (0..ranks).map(device).collect()
    }

    /// Returns the number of warp instructions that all launches so far have executed.
    pub(crate) fn instructions(&self) -> u64 {
        self.instructions.load(Ordering::Relaxed)
    }

    /// Returns how many times memory has been allocated.
    pub(crate) fn allocations(&self) -> u64 {
        self.allocations.load(Ordering::Relaxed)
    }

    /// Returns how many tensor maps have been encoded for launches.
    #[cfg(test)]
    pub(crate) fn encoded_maps(&self) -> u64 {
        self.encoded_maps.load(Ordering::Relaxed)
    }

    pub(crate) fn id(&self) -> DeviceId {
        DeviceId::Simulator(self.id)
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    fn options(&self) -> MutexGuard<'_, LaunchConfig> {
        locked(&self.options)
    }

    pub(crate) fn set_seed(&self, seed: u64) {
        self.options().seed = seed;
    }

    pub(crate) fn set_instruction_limit(&self, instructions: u64) {
        self.options().instruction_limit = instructions;
    }

    pub(crate) fn set_block_limit(&self, blocks: u64) {
        self.options().block_limit = blocks;
    }

    pub(crate) fn set_all_global_races(&self, all: bool) {
        self.options().checks.global_order = match all {
            true => ptx_sim::GlobalOrder::Always,
            false => LaunchConfig::default().checks.global_order,
        };
    }

    pub(crate) fn set_host_threads(&self, threads: usize) {
        self.options().host_threads = threads;
    }

    pub(crate) fn set_watch(&self, trace_events: usize, watch: Watch) {
        self.hooks.set_watch(trace_events, watch);
    }

    /// Sets the callback that rewrites kernels. It also applies to kernels that were launched
    /// before.
    pub(crate) fn set_rewrite(&self, rewrite: Rewrite) {
        self.hooks.set_rewrite(rewrite);
        locked(&self.modules).clear();
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        locked(&self.memory).allocate(bytes, false).ok_or(Error::OutOfMemory { bytes, device: self.id() })
    }

    pub(crate) fn free(&self, address: u64) {
        locked(&self.memory).free(address);
    }

    /// Encodes a tensor map in the simulator's own format.
    pub(crate) fn encode(&self, params: &MapParams) -> Descriptor {
        Descriptor::new(ptx_sim::tensor_map::encode(&params.map))
    }

    /// Returns how many of the `bytes` bytes from `address` on are in its allocation.
    pub(crate) fn reachable(&self, address: u64, bytes: u64) -> Result<u64, Error> {
        let rest = self.memory().rest(address).ok_or(Error::SimulatedMemory { address })?;
        Ok(rest.min(bytes))
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.memory().write(address, bytes).map_err(|_| Error::SimulatedMemory { address })
    }

    pub(crate) fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.memory().read(address, bytes).map_err(|_| Error::SimulatedMemory { address })
    }

    pub(crate) fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        let mut chunk = [0; CHUNK];
        chunks(bytes).try_for_each(|(offset, length)| {
            self.read(from + offset, &mut chunk[..length])?;
            self.write(to + offset, &chunk[..length])
        })
    }

    pub(crate) fn fill(&self, to: u64, byte: u8, bytes: u64) -> Result<(), Error> {
        let chunk = [byte; CHUNK];
        chunks(bytes).try_for_each(|(offset, length)| self.write(to + offset, &chunk[..length]))
    }

    /// Returns a snapshot of the memory. Clones share their bytes.
    fn memory(&self) -> GlobalMemory {
        locked(&self.memory).clone()
    }
}

/// Splits `bytes` bytes into chunks, and returns their offsets and lengths.
fn chunks(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    (0..bytes).step_by(CHUNK).map(move |offset| (offset, (bytes - offset).min(CHUNK as u64) as usize))
}

/// A launch with encoded arguments. It holds addresses, but does not keep their memory alive.
#[derive(Debug)]
pub(crate) struct Launch {
    spec: &'static KernelSpec,
    shape: Shape,
    module: Loaded,
    args: Vec<ptx_sim::Arg>,
}

impl Context {
    /// Loads the kernel and encodes its arguments.
    pub(crate) fn prepare(
        &self,
        spec: &'static KernelSpec,
        shape: Shape,
        args: &[impl AsRef<Argument>],
    ) -> Result<Launch, Error> {
        let module = self.module(spec)?;
        let args = self.arguments(spec, args)?;
        Ok(Launch { spec, shape, module, args })
    }

    /// Runs a kernel to completion. A dependent launch is no different, since previous kernels have
    /// already ended.
    pub(crate) fn run(&self, launch: &Launch) -> Result<(), Error> {
        self.run_team(std::slice::from_ref(launch))
    }

    /// Runs a kernel to completion on all ranks of the team whose first device this is. `launches`
    /// has the launch of each rank, all of the same kernel in the same shape.
    pub(crate) fn run_team(&self, launches: &[Launch]) -> Result<(), Error> {
        let Some(Launch { spec, shape, module, .. }) = launches.first() else { return Ok(()) };
        speed::warn_if_slow();
        let watch = self.hooks.watch();
        let mut config = self.config(spec, *shape, watch.as_ref().map(|(events, _)| *events));
        if launches.len() > 1 {
            // The ranks access each other's memory, even if no strong access shows it.
            config.checks.global_order = ptx_sim::GlobalOrder::Always;
        }
        let kernel = spec.name;
        let refused = |error| match error {
            ptx_sim::Error::Blocks { found, limit } => {
                Error::SimulatedGrid { kernel, found, limit, least_time: ptx_sim::least_time(found) }
            }
            error => Error::SimulatedLaunch { kernel, why: error.to_string() },
        };
        let ranks = launches.iter().map(|Launch { module, args, .. }| ptx_sim::Rank { module, args });
        let ranks: Vec<_> = ranks.collect();
        // The launch uses the device's own memory, not a clone: a module's variables are allocated
        // at its first launch, and persist.
        let mut memory = locked(&self.memory);
        let report = ptx_sim::launch_team(&mut memory, spec.entry, &config, &ranks).map_err(refused)?;
        drop(memory);
        self.instructions.fetch_add(report.warp_instructions, Ordering::Relaxed);
        output::show(&mut io::stdout(), kernel, &report);
        if let Some((_, watch)) = watch {
            self.hooks.run(|| watch(spec, &report));
        }
        if let Some(error) = report::assertion(spec, module, &report) {
            return Err(error);
        }
        report::judge(spec.name, module, config.seed, &report)
    }

    /// Returns the configuration of a launch, which records this many events if it is watched.
    fn config(&self, spec: &KernelSpec, shape: Shape, trace_events: Option<usize>) -> LaunchConfig {
        LaunchConfig {
            grid: shape.grid,
            block: spec.threads,
            cluster: shape.cluster,
            cooperative: shape.cooperative,
            dynamic_shared_bytes: spec.shared_bytes,
            profile: trace_events.is_some(),
            trace_events: trace_events.unwrap_or(0),
            ..self.options().clone()
        }
    }

    /// Returns the module of a kernel, loaded at its first launch. If several threads launch it at
    /// the same time, each of them loads it, and all use the same one.
    fn module(&self, spec: &'static KernelSpec) -> Result<Loaded, Error> {
        let rewrite = self.hooks.rewrite();
        let key = ModuleKey { ptx: spec.ptx.as_ptr() as usize, rewritten: rewrite.is_some() };
        if let Some(module) = locked(&self.modules).get(&key) {
            return Ok(module.clone());
        }
        self.properties.accept(spec)?;
        let rewritten = rewrite.and_then(|rewrite| self.hooks.run(|| rewrite(spec)));
        let module = Module::load(rewritten.as_deref().unwrap_or(spec.ptx))
            .map_err(|error| Error::SimulatedLaunch { kernel: spec.name, why: error.to_string() })?;
        Ok(locked(&self.modules).entry(key).or_insert_with(|| Loaded::new(module)).clone())
    }

    fn arguments(
        &self,
        spec: &'static KernelSpec,
        args: &[impl AsRef<Argument>],
    ) -> Result<Vec<ptx_sim::Arg>, Error> {
        let mut sizes = spec.params.iter().map(|param| match param.kind {
            ParamKind::Scalar { bytes } => bytes as usize,
            ParamKind::Map(_)
            | ParamKind::Global { .. }
            | ParamKind::PeerMaps(_)
            | ParamKind::PeerGlobals { .. } => 8,
        });
        let mut all = Vec::with_capacity(args.len());
        bind(self.id(), spec, args, |bound| {
            let size = sizes.next().unwrap_or(8);
            match bound {
                Bound::Map { tensor, spec, source } => {
                    self.encoded_maps.fetch_add(1, Ordering::Relaxed);
                    all.push(ptx_sim::Arg::Map(map_params(tensor, source, spec)?.map));
                }
                Bound::Global { address, len } => {
                    all.push(ptx_sim::Arg::Address(*address));
                    all.push(ptx_sim::Arg::Bytes(len.to_le_bytes().into()));
                }
                Bound::PeerMaps { tensor, spec, sources } => {
                    let maps = sources.each().map(|source| map_params(tensor, &source, spec));
                    let maps = maps.into_iter().map(|params| Ok(params?.map));
                    all.push(ptx_sim::Arg::Maps(maps.collect::<Result<_, Error>>()?));
                }
                Bound::PeerGlobals { addresses, len } => {
                    all.push(ptx_sim::Arg::Addresses(addresses.to_vec()));
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

#[cfg(test)]
mod tests;
