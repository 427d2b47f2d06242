//! New keys and values of a decoder, written to its cache.

pub mod kernel;
mod launch;
mod problem;

use tma_runtime::launch::{LaunchOn, MapArg};
use tma_runtime::prelude::*;

use super::pages::Pages;
use super::{AttentionElement, CacheElement, CacheScales, CachedAttentionError, PageIndices};

/// A cache to which [`append`] writes.
#[derive(Debug)]
pub struct KeyValueCacheMut<'a, T> {
    /// Batch × heads × keys × depth or, in pages, pages × heads × rows × depth.
    keys: TensorViewMut<'a, T, 4>,
    /// The same shape.
    values: TensorViewMut<'a, T, 4>,
    /// The pages of each sequence.
    pages: Pages<'a>,
    /// The number of keys that each sequence has before the call.
    lengths: Option<TensorView<'a, u32, 1>>,
    /// The factors of keys and values.
    scales: Option<CacheScales<'a>>,
}

impl<'a> KeyValueCacheMut<'a, e4m3> {
    /// Sets the factors of keys and values, which are read on the device, and must not be 0. New
    /// rows are divided by those of their page or sequence and head. Without factors, they are 1.
    ///
    /// ```
    /// use tma_kernels::cached::{AppendOptions, CacheScales, KeyValueCacheMut, append};
    /// use tma_runtime::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Device::simulator();
    /// let (mut keys, mut values) = (device.zeros::<e4m3, 4>([1, 1, 4, 16])?, device.zeros([1, 1, 4, 16])?);
    /// let scale = device.tensor(&[0.5], [1, 1])?; // of the whole tensor
    /// let scales = CacheScales { keys: scale.view(), values: scale.view() };
    /// let cache = KeyValueCacheMut::contiguous(keys.view_mut(), values.view_mut()).with_scales(scales);
    /// let new = device.tensor(&[bf16::from_f32(3.0); 16], [1, 1, 1, 16])?; // one token
    /// append(&device, &new, &new, cache, AppendOptions::default())?;
    /// assert_eq!(keys.to_vec()?[0].to_f32(), 6.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_scales(self, scales: CacheScales<'a>) -> Self {
        Self { scales: Some(scales), ..self }
    }
}

impl<'a, T> KeyValueCacheMut<'a, T> {
    /// Returns a cache in which the keys of a sequence follow each other: `keys` and `values` are
    /// batch × heads × keys × depth. Views need not be contiguous, except for rows.
    pub fn contiguous(keys: TensorViewMut<'a, T, 4>, values: TensorViewMut<'a, T, 4>) -> Self {
        Self { keys, values, pages: Pages::None, lengths: None, scales: None }
    }

    /// Returns a cache in pages, as for [`KeyValueCache::paged`](super::KeyValueCache::paged). No
    /// two sequences may have the same page at positions that a call writes.
    pub fn paged(
        keys: TensorViewMut<'a, T, 4>,
        values: TensorViewMut<'a, T, 4>,
        table: TensorView<'a, u32, 2>,
    ) -> Self {
        Self { keys, values, pages: Pages::Table(table), lengths: None, scales: None }
    }

    /// Returns a cache in pages, as for [`KeyValueCache::indexed`](super::KeyValueCache::indexed).
    /// Pages and lengths are those after the call, as FlashInfer's `append_paged_kv_cache` takes
    /// them: the valid tokens of a sequence are its last keys.
    pub fn indexed(
        keys: TensorViewMut<'a, T, 4>,
        values: TensorViewMut<'a, T, 4>,
        pages: PageIndices<'a>,
    ) -> Self {
        Self { keys, values, pages: Pages::Indices(pages), lengths: None, scales: None }
    }

    /// Sets the number of keys that each sequence has before the call, which is read on the device.
    /// Without lengths, all sequences are empty. [Page indices](Self::indexed) have the lengths
    /// already; then a call returns an error.
    pub fn with_lengths(self, lengths: TensorView<'a, u32, 1>) -> Self {
        Self { lengths: Some(lengths), ..self }
    }
}

/// Options of [`append`] beyond a copy.
#[derive(Debug)]
pub struct AppendOptions<'a, T> {
    /// The number of valid tokens of each sequence, which is read on the device. Tokens from there
    /// on are not written. `None` stands for all of them.
    pub counts: Option<TensorView<'a, u32, 1>>,
    /// The destination of the number of keys that each sequence has after the call, for
    /// [`cached_attention`](super::cached_attention). It is the length before the call plus the
    /// number of valid tokens, also where the cache ends earlier. With [page
    /// indices](KeyValueCacheMut::indexed) it is the length that they have.
    pub new_lengths: Option<TensorViewMut<'a, u32, 1>>,
    /// The rotation of keys and queries by their positions.
    pub rotary: Option<Rotary<'a, T>>,
    /// Whether no work that is queued before and has not ended writes lengths, counts, the table or
    /// page indices, or the angles. The kernel then reads them while the previous kernel still
    /// runs. If they are written all the same, tokens may be written at other positions of the
    /// cache, or not at all; no other memory is accessed.
    pub constant_positions: bool,
}

impl<T> Default for AppendOptions<'_, T> {
    fn default() -> Self {
        Self { counts: None, new_lengths: None, rotary: None, constant_positions: false }
    }
}

/// A rotary embedding: pairs of columns are rotated by an angle that depends on the position.
#[derive(Debug)]
pub struct Rotary<'a, T> {
    /// Cosines: positions × half of the rotated columns.
    pub cos: TensorView<'a, f32, 2>,
    /// Sines, of the same shape.
    pub sin: TensorView<'a, f32, 2>,
    /// The pairs of columns.
    pub layout: RotaryLayout,
    /// The queries of the same tokens, batch × heads × tokens × depth, to rotate as well.
    pub queries: Option<RotaryQueries<'a, T>>,
}

/// The columns that a [`Rotary`] rotates together. If fewer columns than the depth are rotated,
/// they are the first ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotaryLayout {
    /// Column `i` and column `i + rotated / 2`, as in GPT-NeoX and Llama. The rotated columns must
    /// be a multiple of 16.
    Halves,
    /// Columns `2 * i` and `2 * i + 1`, as in GPT-J. The rotated columns must be a multiple of 8.
    Pairs,
}

/// Queries to rotate.
#[derive(Debug)]
pub enum RotaryQueries<'a, T> {
    /// The rotated queries replace the others.
    InPlace(TensorViewMut<'a, T, 4>),
    /// The rotated queries are written to a tensor of their own.
    To {
        /// The queries.
        q: TensorView<'a, T, 4>,
        /// Their destination, of the same shape.
        rotated: TensorViewMut<'a, T, 4>,
    },
}

/// Queues the writes of new keys and values to a cache, and the rotary embedding of keys and
/// queries, by one launch.
///
/// `k` and `v` are batch × heads × tokens × depth, with a depth of at most 256 that is a multiple
/// of 8. Token `i` of a sequence is written at the position `length + i`, where the length is that
/// before the call. Views need not be
/// contiguous, except for rows, which begin at multiples of 16 bytes. Other rows of the cache keep
/// what they have. [`AppendOptions::new_lengths`] receives the lengths for
/// [`cached_attention`](super::cached_attention); the lengths before the call are not changed.
///
/// A token is not written if its position is beyond the cache, the table of pages or the cosines,
/// or if its page number is too large. Then neither its keys nor its values are written, and no
/// other memory is accessed. A query is rotated unless its position is beyond the cosines; then it
/// is not written.
///
/// Lengths, counts and tables are read when the kernel runs, so that a captured launch takes those
/// of its time. A call allocates nothing and does not wait. Rotations are computed in `f32`, and
/// rounded once to `T`.
///
/// A cache may have elements of [`e4m3`] with [scales](KeyValueCacheMut::with_scales), which are
/// normal numbers. After the rotation, keys and values are multiplied by the inverse of their scale
/// in `f32`, and rounded to the nearest `e4m3`: the greatest one, 448, if they are beyond it. A
/// call does not compute scales. [`cached_attention`](super::cached_attention) reads such a cache
/// if the depth is a multiple of 16. Caches whose values are narrower than keys, and latents, are
/// not written.
///
/// # Errors
///
/// `TMA0550` and `TMA0551` for tensors and options that do not match, `TMA0568` for pages and
/// `TMA0569` for rows that cannot be accessed. Also the errors of
/// [`launch`](tma_runtime::launch::launch).
///
/// ```
/// use tma_kernels::cached::{AppendOptions, KeyValueCacheMut, append};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// // Sequences of 2 and 0 keys, in a cache for 4 keys of one head.
/// let (mut keys, mut values) = (device.zeros::<bf16, 4>([2, 1, 4, 8])?, device.zeros([2, 1, 4, 8])?);
/// let lengths = device.tensor(&[2, 0], [2])?;
/// let mut new_lengths = device.zeros([2])?;
/// let new = device.tensor(&[bf16::ONE; 2 * 8], [2, 1, 1, 8])?; // a token of each sequence
/// let cache = KeyValueCacheMut::contiguous(keys.view_mut(), values.view_mut()).with_lengths(lengths.view());
/// let options = AppendOptions { new_lengths: Some(new_lengths.view_mut()), ..Default::default() };
/// append(&device, &new, &new, cache, options)?;
/// assert_eq!(new_lengths.to_vec()?, [3, 1]);
/// let ones: Vec<bool> = keys.to_vec()?.chunks(8).map(|row| row == [bf16::ONE; 8]).collect();
/// assert_eq!(ones, [false, false, true, false, true, false, false, false]);
/// # Ok(())
/// # }
/// ```
pub fn append<T: AttentionElement, C: CacheElement<T>>(
    on: &impl LaunchOn,
    k: impl MapArg<T, 4>,
    v: impl MapArg<T, 4>,
    cache: KeyValueCacheMut<'_, C>,
    options: AppendOptions<'_, T>,
) -> Result<(), CachedAttentionError> {
    launch::queue(on, [k.view(), v.view()], cache, options)
}
