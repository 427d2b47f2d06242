//! Memory through which blocks exchange parts of results.

use tma_runtime::prelude::*;

use super::problem::Problem;
use super::{CachedAttentionError, Division};

/// Memory through which the blocks of [`cached_attention`](super::cached_attention) exchange parts
/// of results. Only one call may use it at a time: give each stream its own.
#[derive(Debug)]
pub struct CacheWorkspace {
    /// Sums of weights times values: units × rows × depth.
    pub(super) partials: DeviceTensor<f32, 1>,
    /// Peaks and sums of weights: units × rows × 2.
    pub(super) stats: DeviceTensor<f32, 1>,
    /// The parts of each head that have ended. Zeros between launches.
    pub(super) arrived: DeviceTensor<u32, 1>,
    /// The first unit of each sequence, and after them about how many keys a unit has.
    pub(super) starts: DeviceTensor<u32, 1>,
    /// The number of work units that blocks have taken. Zero between launches.
    pub(super) taken: DeviceTensor<u32, 1>,
}

impl CacheWorkspace {
    /// Makes a workspace that allocates its memory when the first call needs it.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](tma_runtime::Error::OutOfMemory),
    /// [`Error::KernelFault`](tma_runtime::Error::KernelFault) and
    /// [`Error::Driver`](tma_runtime::Error::Driver).
    pub fn new(device: &Device) -> Result<Self, CachedAttentionError> {
        Self::of(device, Size::default())
    }

    fn of(device: &Device, size: Size) -> Result<Self, CachedAttentionError> {
        let Size { sequences, units, rows, depth } = size;
        Ok(Self {
            partials: device.zeros([units * rows * depth])?,
            stats: device.zeros([units * rows * 2])?,
            arrived: device.zeros([units])?,
            starts: device.zeros([sequences + 1])?,
            taken: device.zeros([1])?,
        })
    }

    /// Grows until the memory suffices for the problem. What it had before is freed once every
    /// launch that uses it has run.
    pub(super) fn grow(&mut self, problem: &Problem, division: Division) -> Result<(), CachedAttentionError> {
        let wanted = Size::of(problem, division);
        let holds = self.partials.len() >= wanted.units * wanted.rows * wanted.depth
            && self.stats.len() >= wanted.units * wanted.rows * 2
            && self.arrived.len() >= wanted.units
            && self.starts.len() > wanted.sequences;
        if !holds {
            *self = Self::of(self.taken.device(), wanted)?;
        }
        Ok(())
    }
}

/// The extents of the memory.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    sequences: usize,
    units: usize,
    rows: usize,
    depth: usize,
}

impl Size {
    /// Returns the memory that a launch needs. Each sequence and head begins a unit of its own.
    fn of(problem: &Problem, division: Division) -> Self {
        let rows = problem.rows().min(problem.tile_rows());
        let units = division.units + problem.sequences * problem.heads_and_tiles();
        Self { sequences: problem.sequences, units, rows, depth: problem.kernel_depth() }
    }
}
