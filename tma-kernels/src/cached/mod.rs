//! Attention of few queries over many keys: the step of a decoder over its cache.

pub mod append;
pub mod bias;
mod element;
mod error;
pub mod few_rows;
pub mod latent;
mod launch;
pub mod loads;
pub mod many_rows;
pub mod merge;
mod pages;
mod problem;
pub mod schedule;
pub mod softmax;
mod workspace;

use self::pages::Pages;
use self::problem::Layout;
use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

pub use self::append::{AppendOptions, KeyValueCacheMut, Rotary, RotaryLayout, RotaryQueries, append};
pub use self::element::CacheElement;
pub use self::error::CachedAttentionError;
pub use self::latent::{LatentCache, MlaAttentionOptions, mla_attention};
pub use self::pages::PageIndices;
pub use self::workspace::CacheWorkspace;
pub use super::attention::AttentionElement;

/// The keys and values of several sequences.
#[derive(Clone, Copy, Debug)]
pub struct KeyValueCache<'a, T> {
    /// Batch × heads × keys × depth or, in pages, pages × heads × rows × depth.
    keys: TensorView<'a, T, 4>,
    /// The same shape, or fewer columns.
    values: TensorView<'a, T, 4>,
    /// The pages of each sequence.
    pages: Pages<'a>,
    /// The number of keys of each sequence.
    lengths: Option<TensorView<'a, u32, 1>>,
    /// The factors of keys and values.
    scales: Option<CacheScales<'a>>,
}

/// The factors of the elements of a cache of [`e4m3`]: pages × heads or, if a cache is not in
/// pages, batch × heads. Either extent may be 1, for a factor that all of them share.
#[derive(Clone, Copy, Debug)]
pub struct CacheScales<'a> {
    /// The factors of keys.
    pub keys: TensorView<'a, f32, 2>,
    /// The factors of values, of the same shape.
    pub values: TensorView<'a, f32, 2>,
}

impl CacheScales<'_> {
    /// Checks the shapes of the factors for so many pages, or sequences, and heads.
    fn check(
        &self,
        batch: usize,
        heads: usize,
        fits: impl Fn(&'static str, &[usize], &[usize]) -> Result<(), CachedAttentionError>,
    ) -> Result<(), CachedAttentionError> {
        let shared = |found: usize, all: usize| if found == 1 { 1 } else { all };
        let [found_batch, found_heads] = self.keys.shape();
        fits("scales.keys", &self.keys.shape(), &[shared(found_batch, batch), shared(found_heads, heads)])?;
        fits("scales.values", &self.values.shape(), &self.keys.shape())
    }

    /// Returns how kernels find factors: the last page or sequence that has its own, and the
    /// distances between pages and between heads, 0 where all share one.
    fn steps(scales: Option<Self>) -> [u32; 3] {
        let [batch, heads] = scales.map_or([1; 2], |scales| scales.keys.shape());
        // Extents are below 2^31, as those of the cache.
        let of_batch = if batch == 1 { 0 } else { heads as u32 };
        [batch.saturating_sub(1) as u32, of_batch, u32::from(heads != 1)]
    }
}

impl<'a> KeyValueCache<'a, e4m3> {
    /// Sets the factors of keys and values, which are read on the device. Without them, they are 1.
    pub fn with_scales(self, scales: CacheScales<'a>) -> Self {
        Self { scales: Some(scales), ..self }
    }
}

impl<'a, T> KeyValueCache<'a, T> {
    /// Returns a cache in which the keys of a sequence follow each other: `keys` and `values` are
    /// batch × heads × keys × depth. The depth of values may be less than that of keys. Views need
    /// not be contiguous.
    pub fn contiguous(keys: TensorView<'a, T, 4>, values: TensorView<'a, T, 4>) -> Self {
        Self { keys, values, pages: Pages::None, lengths: None, scales: None }
    }

    /// Returns a cache in pages: `keys` and `values` are pages × heads × rows × depth, with 16, 32,
    /// 64, 128 or 256 rows per page. A cache of pages × rows × heads × depth is passed as views
    /// with `permute([0, 2, 1, 3])`.
    ///
    /// Row `i` of `table`, batch × pages, has the numbers of the pages of sequence `i`, of which
    /// only those that its length requires are read. It is read on the device. A number that is too
    /// large stands for a page of zeros.
    pub fn paged(
        keys: TensorView<'a, T, 4>,
        values: TensorView<'a, T, 4>,
        table: TensorView<'a, u32, 2>,
    ) -> Self {
        Self { keys, values, pages: Pages::Table(table), lengths: None, scales: None }
    }

    /// Returns a cache in pages like [`paged`](Self::paged), whose pages and lengths are in
    /// FlashInfer's arguments. Results have the same bits as with a table and lengths, if the
    /// [division](CachedAttentionOptions::division) is the same.
    ///
    /// A sequence can have as many keys as there are indices in all. There are at most 2048
    /// sequences.
    ///
    /// ```
    /// use tma_kernels::cached::{CachedAttentionOptions, KeyValueCache, PageIndices, cached_attention};
    /// use tma_runtime::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Device::simulator();
    /// // Two sequences of 20 and 3 keys, in pages of 16 rows: pages 3 and 1, and page 0.
    /// let (keys, values) = (device.zeros::<bf16, 4>([4, 2, 16, 64])?, device.zeros([4, 2, 16, 64])?);
    /// let (indptr, indices) = (device.tensor(&[0, 2, 3], [3])?, device.tensor(&[3, 1, 0], [3])?);
    /// let last_page_len = device.tensor(&[4, 3], [2])?;
    /// let pages = PageIndices {
    ///     indptr: indptr.view(),
    ///     indices: indices.view(),
    ///     last_page_len: last_page_len.view(),
    /// };
    /// let cache = KeyValueCache::indexed(keys.view(), values.view(), pages);
    /// let q = device.zeros([2, 8, 1, 64])?;
    /// let mut o = device.zeros(q.shape())?;
    /// cached_attention(&device, &q, cache, &mut o, CachedAttentionOptions::default())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn indexed(keys: TensorView<'a, T, 4>, values: TensorView<'a, T, 4>, pages: PageIndices<'a>) -> Self {
        Self { keys, values, pages: Pages::Indices(pages), lengths: None, scales: None }
    }

    /// Sets the number of keys of each sequence, which is read on the device. A length beyond the
    /// cache or the table stands for all keys that are there. Without lengths, all sequences have
    /// that many. [Page indices](Self::indexed) have the lengths already; then a call returns an
    /// error.
    pub fn with_lengths(self, lengths: TensorView<'a, u32, 1>) -> Self {
        Self { lengths: Some(lengths), ..self }
    }
}

/// Options of [`cached_attention`] beyond softmax(Q · Kᵀ / √depth) · V.
#[derive(Debug)]
pub struct CachedAttentionOptions<'a, T> {
    /// Whether a query sees only the keys up to its own position. The last query of a sequence is
    /// at the position of its last key.
    pub causal: bool,
    /// The number of keys before its own position that a query sees. `None` stands for all of them.
    pub window: Option<usize>,
    /// The number of keys after its own position that a query sees, unless `causal` hides them all.
    /// `None` stands for all of them.
    pub window_after: Option<usize>,
    /// The factor of the scores, which must be positive. `None` stands for 1 / √depth.
    pub scale: Option<f32>,
    /// The limit of scores: a score `x`, after the scale, becomes `cap * tanh(x / cap)`.
    pub soft_cap: Option<f32>,
    /// The slope of each head of queries (ALiBi): slope × distance between the positions of query
    /// and key is subtracted from a score after scale and limit.
    pub slopes: Option<TensorView<'a, f32, 1>>,
    /// Numbers that are added to scores after scale and limit: batch × heads × queries × keys,
    /// where any extent may be 1, for numbers that are shared. A cache in pages has as many keys as
    /// the pages of a row of the table, or of all indices, have rows.
    pub bias: Option<TensorView<'a, T, 4>>,
    /// The sink of each head of queries: a score that takes part in the softmax without a value.
    pub sinks: Option<TensorView<'a, f32, 1>>,
    /// The destination of the logarithm of each row's sum of exponentials: batch × heads × queries.
    /// For a query that sees no key, the value is that of its sink, or -∞ without sinks.
    pub lse: Option<TensorViewMut<'a, f32, 3>>,
    /// Memory for heads whose keys are divided among blocks. It grows if it is too small, unless it
    /// is [the caller's memory](CacheWorkspace::from_raw). Without it, the call allocates its
    /// own, and waits when that is freed.
    pub workspace: Option<&'a mut CacheWorkspace>,
    /// The division of the work. `None` stands for the result of [`Division::of`].
    pub division: Option<Division>,
    /// Whether lengths, the table or page indices, scales, and all keys and values but the last of
    /// each sequence (as many as it has queries) stay as they are until all work that is queued
    /// before has ended. A kernel for up to 8 rows of queries per head of keys, and up to 2048
    /// sequences, then reads them while the previous kernel still runs. If they are written all the
    /// same, results have unspecified elements, and so have all that later calls compute with the
    /// workspace; no other memory is accessed.
    pub constant_cache: bool,
}

impl<T> Default for CachedAttentionOptions<'_, T> {
    fn default() -> Self {
        Self {
            causal: false,
            window: None,
            window_after: None,
            scale: None,
            soft_cap: None,
            slopes: None,
            bias: None,
            sinks: None,
            lse: None,
            workspace: None,
            division: None,
            constant_cache: false,
        }
    }
}

/// The division of keys among blocks. Results depend on it in their rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Blocks that run at the same time.
    pub blocks: usize,
    /// About the number of work units into which all keys are divided. Each head is at least one.
    pub units: usize,
    /// The least number of keys of a unit, unless its sequence has fewer.
    pub least_keys: usize,
}

/// The least number of keys per unit with which a further division is faster. Source:
/// `docs/cached-attention.md`, "The division".
const DIVIDED_KEYS: usize = 128;

/// The relative cost of each further part of a head, which has to be added to the others.
const COST_OF_PART: f64 = 0.015;

impl Division {
    /// Returns the division for `heads` heads of `keys` keys each, those of all sequences, and as
    /// many `rows` of queries for each of them: as many parts as occupy most multiprocessors most
    /// of the time. It is for heads of up to 128 elements.
    pub fn of(device: &Device, heads: usize, keys: usize, rows: usize) -> Self {
        let tile = tile_rows(rows);
        Self::of_tiles(blocks(device, tile, 128), heads, keys, rows, tile)
    }

    /// Returns the division for `blocks` blocks that run at the same time, and tiles of `tile`
    /// rows.
    fn of_tiles(blocks: usize, heads: usize, keys: usize, rows: usize, tile: usize) -> Self {
        let tiles = heads.max(1) * rows.div_ceil(tile).max(1);
        let value = |parts: usize| {
            let units = tiles * parts;
            let occupied = units as f64 / (blocks * units.div_ceil(blocks)) as f64;
            occupied / (1.0 + COST_OF_PART * parts as f64)
        };
        let most = (keys / DIVIDED_KEYS).clamp(1, blocks);
        let better = |best: usize, parts: usize| if value(parts) > value(best) { parts } else { best };
        let parts = (2..=most).fold(1, better);
        Self { blocks, units: tiles * parts, least_keys: DIVIDED_KEYS / 2 }
    }
}

/// Returns the number of blocks that run at the same time, for tiles of `tile` rows and keys of
/// this depth.
fn blocks(device: &Device, tile: usize, depth: usize) -> usize {
    let multiprocessors = (device.multiprocessors() as usize).max(1);
    // Blocks of one warpgroup that multiplies share a multiprocessor, if it has registers for both.
    if tile == 64 && depth <= 128 { 2 * multiprocessors } else { multiprocessors }
}

/// Returns how many rows of queries per head of keys a block multiplies at a time.
fn tile_rows(rows: usize) -> usize {
    match rows {
        0..=16 => 16,
        17..=64 => 64,
        _ => 128,
    }
}

/// Queues `o = softmax(q · kᵀ · scale) · v` over the keys and values of a cache, for one query of
/// each sequence or a few.
///
/// `q` and `o` are batch × heads × queries × depth, with a depth of at most 256 that is a multiple
/// of 8, and a batch of at most 4096. Values may be narrower than keys: `o` then has their depth.
/// There may be fewer heads of keys and values: each is then shared by the same number of adjacent
/// heads of queries, and read once for up to 128 rows of queries. Views need not be contiguous,
/// except for rows, which begin at multiples of 16 bytes. A query that sees no key has the result
/// zero.
///
/// The keys of a head are divided among blocks, and the parts are added in a fixed order: the same
/// arguments produce the same bits each time on one kind of GPU. Lengths and tables are read when
/// the kernel runs, so that a captured launch takes those of its time. With a
/// [workspace](CachedAttentionOptions::workspace) that is large enough, nothing is allocated and
/// the call does not wait, unless the cache has no rows.
///
/// Matmuls accumulate and the softmax is computed in `f32`; weights are rounded to `T`.
///
/// A cache of [`e4m3`] takes half of the memory, and of the time that its keys and values are read
/// in. Its depth is a multiple of 16. Keys and values are converted to `f16`, exactly, and so are
/// queries, after a power of two per row that keeps elements of `bf16` down to 2^-29 of the row's
/// greatest exact; weights are rounded to `f16`. The cache is read once per 16 rows of queries.
///
/// # Errors
///
/// `TMA0550` to `TMA0552` for tensors and options that do not match, `TMA0568` for pages and
/// `TMA0569` for rows that cannot be read, `TMA0570` if the caller's memory is too small. Also
/// the errors of [`launch`](tma_runtime::launch::launch).
///
/// ```
/// use tma_kernels::cached::{CachedAttentionOptions, KeyValueCache, cached_attention};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// // Two sequences of 20 and 3 keys, in pages of 16 rows, of which the cache has four.
/// let (keys, values) = (device.zeros::<bf16, 4>([4, 2, 16, 64])?, device.zeros([4, 2, 16, 64])?);
/// let table = device.tensor(&[3, 1, 0, 0], [2, 2])?;
/// let lengths = device.tensor(&[20, 3], [2])?;
/// let cache = KeyValueCache::paged(keys.view(), values.view(), table.view()).with_lengths(lengths.view());
/// let q = device.zeros([2, 8, 1, 64])?; // 8 heads of one query each
/// let mut o = device.zeros(q.shape())?;
/// cached_attention(&device, &q, cache, &mut o, CachedAttentionOptions::default())?;
/// assert!(o.to_vec()?.iter().all(|x| x.to_f32() == 0.0));
/// # Ok(())
/// # }
/// ```
pub fn cached_attention<T: AttentionElement, C: CacheElement<T>>(
    on: &impl LaunchOn,
    q: impl MapArg<T, 4>,
    cache: KeyValueCache<'_, C>,
    mut o: impl MapArgMut<T, 4>,
    options: CachedAttentionOptions<'_, T>,
) -> Result<(), CachedAttentionError> {
    launch::queue(on, Layout::Separate, q.view(), cache, o.view_mut(), options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_heads_are_divided_among_all_multiprocessors() {
        let device = Device::simulator();
        let blocks = device.multiprocessors() as usize;
        let parts = |heads, keys| Division::of(&device, heads, keys, 1).units / heads;
        assert_eq!(parts(1, 128), 1);
        assert_eq!(parts(1, 1024), blocks.min(8));
        assert_eq!(parts(1, 1 << 20), blocks);
        assert_eq!(parts(blocks, 1 << 17), 1);
        assert_eq!(parts(4 * blocks, 1 << 17), 1);
        assert_eq!(Division::of(&device, 0, 0, 0).units, 1);
        assert_eq!(Division::of(&device, blocks, 64, 300).units, 3 * blocks);
        assert_eq!(Division::of(&device, 2, 64, 64).blocks, 2 * blocks);
    }
}
