//! Memory through which blocks exchange parts of results.

use tma_runtime::prelude::*;

use super::problem::{Layout, Problem};
use super::schedule::work::MOST_SEQUENCES;
use super::{
    AttentionElement, CacheElement, CachedAttentionError, CachedAttentionOptions, Division, KeyValueCache,
    LatentCache,
};
use crate::workspace::{GivenMemory, bytes_of};
use tma_runtime::launch::{LaunchOn, MapArg};

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
    /// The bytes of the caller's memory, which cannot grow.
    given: Option<usize>,
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
            given: None,
        })
    }

    /// Returns how many bytes a call with such queries and such a cache needs, whatever its other
    /// options are. `division` is that of the [options](super::CachedAttentionOptions::division).
    ///
    /// The number depends on shapes, not on lengths: it is that of the longest sequences that fit.
    /// It also suffices for fewer sequences, whose keys are divided more finely. Fewer queries or
    /// keys may need more.
    ///
    /// # Errors
    ///
    /// The errors of [`cached_attention`](super::cached_attention) for tensors that do not match.
    pub fn bytes<T: AttentionElement, C: CacheElement<T>>(
        device: &Device,
        q: impl MapArg<T, 4>,
        cache: KeyValueCache<'_, C>,
        division: Option<Division>,
    ) -> Result<usize, CachedAttentionError> {
        Self::bytes_in(device, Layout::Separate, q.view().shape(), cache, division)
    }

    /// Returns how many bytes a call of [`mla_attention`](super::mla_attention) needs, like
    /// [`bytes`](Self::bytes).
    ///
    /// # Errors
    ///
    /// The errors of [`mla_attention`](super::mla_attention) for tensors that do not match.
    pub fn bytes_of_latents<T: AttentionElement>(
        device: &Device,
        q: impl MapArg<T, 4>,
        cache: LatentCache<'_, T>,
        division: Option<Division>,
    ) -> Result<usize, CachedAttentionError> {
        Self::bytes_in(device, Layout::Latent, q.view().shape(), cache.0, division)
    }

    fn bytes_in<T: AttentionElement, C: CacheElement<T>>(
        device: &Device,
        layout: Layout,
        shape: [usize; 4],
        cache: KeyValueCache<'_, C>,
        division: Option<Division>,
    ) -> Result<usize, CachedAttentionError> {
        let mut of_result = shape;
        of_result[3] = cache.values.shape()[3];
        let options = CachedAttentionOptions::<T>::default();
        let problem = Problem::of::<T, C>(layout, [shape, of_result], &cache, &options)?;
        let chunks = (1..=problem.sequences).flat_map(|sequences| {
            [false, true].map(|has_additions| {
                let problem = Problem { sequences, has_additions, ..problem };
                let division = division.unwrap_or_else(|| problem.division(device));
                Size::of(&problem, division).chunks()
            })
        });
        Ok(bytes_of_chunks(chunks.max().unwrap_or(0)))
    }

    /// Makes a workspace of [`bytes`](Self::bytes) that another library has allocated: the greatest
    /// number that any of the calls needs. It never grows. Part of it is filled with zeros: on a
    /// stream, the fill is queued; otherwise it is complete when the function returns. The address
    /// is a multiple of 128.
    ///
    /// ```
    /// use tma_kernels::cached::{CacheWorkspace, CachedAttentionOptions, KeyValueCache, cached_attention};
    /// use tma_runtime::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Device::simulator();
    /// let keys = device.zeros::<bf16, 4>([1, 2, 40, 64])?;
    /// let cache = KeyValueCache::contiguous(keys.view(), keys.view());
    /// let q = device.zeros::<bf16, 4>([1, 8, 1, 64])?;
    /// let mut o = device.zeros(q.shape())?;
    ///
    /// let bytes = CacheWorkspace::bytes(&device, &q, cache, None)?;
    /// let memory = device.zeros::<u8, 1>([bytes])?; // or another library's
    /// // SAFETY: the memory outlives the workspace, and is used for nothing else.
    /// let mut workspace = unsafe { CacheWorkspace::from_raw(&device, memory.as_ptr(), bytes)? };
    /// let options = CachedAttentionOptions { workspace: Some(&mut workspace), ..Default::default() };
    /// cached_attention(&device, &q, cache, &mut o, options)?;
    /// # drop(workspace);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    ///
    /// The conditions of [`DeviceTensor::from_raw`] for `bytes` bytes from `address` on. They are
    /// used by nothing else as long as the workspace is. If `on` is a stream, the first call that
    /// uses the workspace is queued there, or after what waits for it.
    ///
    /// # Errors
    ///
    /// [`CachedAttentionError::Workspace`] if there are too few bytes for any call, and the errors
    /// of [`DeviceTensor::from_raw`].
    pub unsafe fn from_raw(
        on: &impl LaunchOn,
        address: u64,
        bytes: usize,
    ) -> Result<Self, CachedAttentionError> {
        let Some(of_chunks) = bytes.checked_sub(bytes_of_chunks(0)) else {
            return Err(CachedAttentionError::Workspace { found: bytes, wanted: bytes_of_chunks(1) });
        };
        let sums = of_chunks / BYTES_OF_CHUNK * CHUNK;
        let mut memory = GivenMemory::new(on, address);
        // SAFETY: as the caller promises, for no more bytes than are given.
        unsafe {
            Ok(Self {
                taken: memory.zeros(1)?,
                starts: memory.take(MOST_SEQUENCES as usize + 1)?,
                arrived: memory.zeros(sums / LEAST_DEPTH)?,
                stats: memory.take(sums / LEAST_DEPTH * 2)?,
                partials: memory.take(sums)?,
                given: Some(bytes),
            })
        }
    }

    /// Grows until the memory suffices for the problem. What it had before is freed once every
    /// launch that uses it has run.
    pub(super) fn grow(&mut self, problem: &Problem, division: Division) -> Result<(), CachedAttentionError> {
        let wanted = Size::of(problem, division);
        let holds = self.partials.len() >= wanted.units * wanted.rows * wanted.depth
            && self.stats.len() >= wanted.units * wanted.rows * 2
            && self.arrived.len() >= wanted.units
            && self.starts.len() > wanted.sequences;
        match self.given {
            _ if holds => {}
            Some(found) => {
                let wanted = bytes_of_chunks(wanted.chunks());
                return Err(CachedAttentionError::Workspace { found, wanted });
            }
            None => *self = Self::of(self.taken.device(), wanted)?,
        }
        Ok(())
    }
}

/// The least depth of a kernel, and with it the least sums of a unit that has statistics and a
/// counter.
const LEAST_DEPTH: usize = 64;

/// Sums of which the caller's memory has a multiple, so that those of a chunk, and the
/// statistics and counters for them, are multiples of 128 bytes.
const CHUNK: usize = 32 * LEAST_DEPTH;

/// Bytes of the sums of a chunk, with their statistics and counters.
const BYTES_OF_CHUNK: usize = 4 * (CHUNK + 3 * CHUNK / LEAST_DEPTH);

/// Returns the bytes of a workspace with so many chunks of sums.
const fn bytes_of_chunks(chunks: usize) -> usize {
    let fixed = bytes_of::<u32>(1) + bytes_of::<u32>(MOST_SEQUENCES as usize + 1);
    chunks.saturating_mul(BYTES_OF_CHUNK).saturating_add(fixed)
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

    /// Returns how many chunks of sums it is.
    fn chunks(&self) -> usize {
        self.units.saturating_mul(self.rows).saturating_mul(self.depth).div_ceil(CHUNK)
    }
}
