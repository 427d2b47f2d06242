//! Launches of kernels with the numbers of a counterexample, on the simulator and without the
//! runtime.
//!
//! Values that a counterexample leaves open are small or zero: scalars are 0, elements of slices
//! that the kernel reads are 0, 1, 2 and 0 again, and the grid has only as many blocks as the
//! numbers require.

use ptx_sim::tensor_map::{Fill, Mode};
use ptx_sim::{Arg, Findings, GlobalMemory, GlobalOrder, LaunchConfig, Module, TensorMap, launch};
use tma_codegen::check::{CheckedKernel, for_target};
use tma_codegen::diag::{Counterexample, LaunchInput, Sink};
use tma_codegen::ir::{
    Axis, Cluster, Kernel, Param, ParamKind, Presence, Scalar, StmtKind, TeamNumber, visit,
};
use tma_codegen::{Checks, Target, compile_kernel};
use tma_model::TileType;

/// Elements of a slice whose length is not given: more than any of these kernels reads.
const ELEMENTS: u64 = 1 << 14;
/// Number of tiles of a tensor along its outermost dimension, and along each other one.
const TILES: [u64; 2] = [64, 4];
/// Thread instructions of a cluster after which it counts as non-terminating.
const INSTRUCTIONS: u64 = 1 << 22;

/// A kernel that can be launched.
#[derive(Debug)]
pub struct Replay {
    module: Module,
    entry: String,
    params: Vec<Param>,
    config: LaunchConfig,
    example: Counterexample,
}

/// Returns whether the runtime launches a kernel so that all of its blocks run at once.
fn is_cooperative(kernel: &Kernel) -> bool {
    let mut is_cooperative = false;
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        is_cooperative |= matches!(stmt.kind, StmtKind::SyncGrid { .. });
    });
    is_cooperative
}

impl Replay {
    /// Compiles a kernel for a launch with these numbers.
    ///
    /// # Errors
    ///
    /// A kernel that does not compile, or that has parameters that only the runtime can make.
    pub fn new(path: &str, kernel: CheckedKernel, example: &Counterexample) -> anyhow::Result<Self> {
        let (params, launch) = (kernel.kernel().params.clone(), kernel.kernel().launch.clone());
        let dynamic_shared_bytes = kernel.layout().bytes();
        let cooperative = is_cooperative(kernel.kernel());
        let target = for_target(kernel, Target::default(), &mut Sink::default());
        let target = target.ok_or_else(|| anyhow::anyhow!("the kernel is not for the target"))?;
        let ptx =
            compile_kernel(path, &target, Checks::Off).map_err(|failure| anyhow::anyhow!("{failure}"))?;
        let module = Module::load(&ptx.text).map_err(|error| anyhow::anyhow!("{error}"))?;
        let cluster = match launch.cluster {
            Cluster::None => [1; 3],
            Cluster::Fixed(extents) => extents,
            Cluster::AtLaunch => example.cluster,
        };
        let config = LaunchConfig {
            grid: grid(example, cluster),
            block: launch.threads,
            cluster,
            cooperative,
            dynamic_shared_bytes,
            instruction_limit: INSTRUCTIONS,
            host_threads: 1,
            ..LaunchConfig::default()
        };
        Ok(Self { module, entry: ptx.entry, params, config, example: example.clone() })
    }

    /// Checks the order of all accesses to global memory, even if blocks do not communicate.
    #[must_use]
    pub fn with_global_order(mut self) -> Self {
        self.config.checks.global_order = GlobalOrder::Always;
        self
    }

    /// Runs all blocks at once, even if the runtime would not require it: a device may have room
    /// for them.
    #[must_use]
    pub fn with_all_blocks_at_once(mut self) -> Self {
        self.config.cooperative = true;
        self
    }

    /// Returns the simulator's findings under a seed.
    ///
    /// # Errors
    ///
    /// A launch that the simulator rejects.
    pub fn run(&self, seed: u64) -> anyhow::Result<Findings> {
        let mut memory = GlobalMemory::default();
        let mut args = vec![];
        for param in &self.params {
            args.extend(argument(param, &self.example, &mut memory)?);
        }
        let config = LaunchConfig { seed, ..self.config.clone() };
        let report = launch(&self.module, &mut memory, &self.entry, &config, &args);
        Ok(report.map_err(|error| anyhow::anyhow!("{error}"))?.findings)
    }
}

/// Returns the smallest grid of whole clusters that contains all indices that the numbers name.
fn grid(example: &Counterexample, cluster: [u32; 3]) -> [u32; 3] {
    let number = |given: LaunchInput| {
        let found = example.numbers.iter().find(|(known, _)| *known == given);
        found.and_then(|(_, number)| u32::try_from(*number).ok())
    };
    let along = |axis: Axis, extent: u32| {
        let block = number(LaunchInput::BlockIdx(axis)).map_or(1, |block| block + 1);
        let clusters = number(LaunchInput::ClusterIdx(axis)).map_or(1, |cluster| (cluster + 1) * extent);
        number(LaunchInput::GridDim(axis))
            .unwrap_or(1)
            .max(block)
            .max(clusters)
            .next_multiple_of(extent.max(1))
    };
    let [x, y, z] = cluster;
    [along(Axis::X, x), along(Axis::Y, y), along(Axis::Z, z)]
}

fn argument(param: &Param, example: &Counterexample, memory: &mut GlobalMemory) -> anyhow::Result<Vec<Arg>> {
    let number = |given: &LaunchInput| {
        let found = example.numbers.iter().find(|(known, _)| known == given);
        found.map(|(_, number)| *number)
    };
    Ok(match param.kind() {
        _ if matches!(param.presence, Presence::OwnOf(_)) => vec![],
        Some(ParamKind::Scalar(scalar)) => {
            let otherwise = i128::from(param.presence == Presence::Team(TeamNumber::Ranks));
            let value = number(&LaunchInput::Param(param.name.clone())).unwrap_or(otherwise);
            vec![Arg::Bytes(bytes(value, scalar))]
        }
        Some(ParamKind::Global(element)) => {
            let len = number(&LaunchInput::Len(param.name.clone())).and_then(|len| u64::try_from(len).ok());
            let len = len.filter(|len| *len <= ELEMENTS).unwrap_or(ELEMENTS);
            let address = memory.allocate(len * u64::from(element.bytes()), false);
            let address = address.ok_or_else(|| anyhow::anyhow!("no room for `{}`", param.name))?;
            if !param.written {
                fill(memory, (address, len), element, |index| {
                    number(&LaunchInput::Element(param.name.clone(), index)).unwrap_or(index % 3)
                })?;
            }
            vec![Arg::Address(address), Arg::Bytes(len.to_le_bytes().into())]
        }
        Some(ParamKind::Tiles(tile)) => vec![Arg::Map(tensor(tile, memory)?)],
        Some(
            ParamKind::Columns(..) | ParamKind::Maps(_) | ParamKind::PeerGlobals(_) | ParamKind::PeerMaps(_),
        )
        | None => {
            anyhow::bail!("`{}` is made by the runtime alone", param.name)
        }
    })
}

/// Writes the first elements of a slice of integers. Floats stay 0.
fn fill(
    memory: &mut GlobalMemory,
    (address, len): (u64, u64),
    element: Scalar,
    of: impl Fn(i128) -> i128,
) -> anyhow::Result<()> {
    if element.integer_range().is_none() {
        return Ok(());
    }
    let all: Vec<u8> =
        (0..len.min(1 << 10)).flat_map(|index| bytes(of(i128::from(index)), element)).collect();
    memory.write(address, &all).map_err(|_| anyhow::anyhow!("memory that was allocated is not there"))
}

fn bytes(value: i128, scalar: Scalar) -> Vec<u8> {
    let value = match scalar {
        Scalar::F32 => i128::from((value as f32).to_bits()),
        Scalar::F64 => i128::from((value as f64).to_bits()),
        _ => value,
    };
    value.to_le_bytes().into_iter().take(scalar.bytes() as usize).collect()
}

/// Makes a tensor of many tiles, filled with zeros.
fn tensor(tile: &TileType, memory: &mut GlobalMemory) -> anyhow::Result<TensorMap> {
    let element = tile.element.data_type();
    let box_extents: Vec<u32> = tile.extents.iter().rev().copied().collect();
    let last = box_extents.len() - 1;
    let many = |index: usize| TILES[usize::from(index != last)];
    let extents: Vec<u64> = box_extents.iter().enumerate().map(|(i, n)| u64::from(*n) * many(i)).collect();
    let mut strides = vec![];
    let mut bytes = u64::from(tile.element.bytes());
    for extent in &extents {
        bytes *= extent;
        strides.push(bytes);
    }
    strides.pop();
    let address = memory.allocate(bytes, false).ok_or_else(|| anyhow::anyhow!("no room for a tensor"))?;
    let rank = extents.len();
    Ok(TensorMap {
        element,
        address,
        extents,
        byte_strides: strides,
        mode: Mode::Tiled { box_extents },
        element_strides: vec![1; rank],
        interleave: tile.swizzle.interleave(),
        swizzle: tile.swizzle.pattern(),
        fill: Fill::Zeros,
    })
}
