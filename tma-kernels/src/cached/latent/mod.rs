//! Attention over latents: the step of a decoder with multi-head latent attention (MLA).

pub mod kernel;

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

use super::problem::Layout;
use super::{
    AttentionElement, CacheWorkspace, CachedAttentionError, CachedAttentionOptions, Division, KeyValueCache,
    PageIndices, launch,
};

/// The scale of scores of heads with 128 columns and 64 that are rotated, before they are
/// multiplied by the matrices of latents: 1 / √192. Source: DeepSeek-AI, "DeepSeek-V2", section
/// 2.1.
const SCALE: f32 = 0.072_168_78;

/// The latents of several sequences, and the rotated columns of their keys. They are two views of
/// one tensor, or of two.
#[derive(Clone, Copy, Debug)]
pub struct LatentCache<'a, T>(pub(super) KeyValueCache<'a, T>);

impl<'a, T> LatentCache<'a, T> {
    /// Returns a cache in which the keys of a sequence follow each other: `latents` are batch × 1 ×
    /// keys × 512, and `rotated` are batch × 1 × keys × 64. Views need not be contiguous.
    pub fn contiguous(latents: TensorView<'a, T, 4>, rotated: TensorView<'a, T, 4>) -> Self {
        Self(KeyValueCache::contiguous(rotated, latents))
    }

    /// Returns a cache in pages: `latents` are pages × 1 × rows × 512, and `rotated` are pages × 1
    /// × rows × 64, with 32, 64, 128 or 256 rows per page. The `table` is that of
    /// [`KeyValueCache::paged`].
    pub fn paged(
        latents: TensorView<'a, T, 4>,
        rotated: TensorView<'a, T, 4>,
        table: TensorView<'a, u32, 2>,
    ) -> Self {
        Self(KeyValueCache::paged(rotated, latents, table))
    }

    /// Returns a cache in pages like [`paged`](Self::paged), whose pages and lengths are in
    /// FlashInfer's arguments, as for [`KeyValueCache::indexed`].
    pub fn indexed(
        latents: TensorView<'a, T, 4>,
        rotated: TensorView<'a, T, 4>,
        pages: PageIndices<'a>,
    ) -> Self {
        Self(KeyValueCache::indexed(rotated, latents, pages))
    }

    /// Sets the number of keys of each sequence, as for [`KeyValueCache::with_lengths`].
    pub fn with_lengths(self, lengths: TensorView<'a, u32, 1>) -> Self {
        Self(self.0.with_lengths(lengths))
    }
}

/// Options of [`mla_attention`].
#[derive(Debug, Default)]
pub struct MlaAttentionOptions<'a> {
    /// Whether a query sees only the keys up to its own position. The last query of a sequence is
    /// at the position of its last key.
    pub causal: bool,
    /// The factor of the scores, which must be positive. `None` stands for 1 / √192, for heads with
    /// 128 columns that are not rotated and 64 that are.
    pub scale: Option<f32>,
    /// The destination of the logarithm of each row's sum of exponentials: batch × heads × queries,
    /// -∞ for a query that sees no key.
    pub lse: Option<TensorViewMut<'a, f32, 3>>,
    /// Memory for heads whose keys are divided among blocks, as for
    /// [`cached_attention`](super::cached_attention).
    pub workspace: Option<&'a mut CacheWorkspace>,
    /// The division of the work. `None` stands for one that occupies all multiprocessors.
    pub division: Option<Division>,
}

/// Queues `o = softmax(q · kᵀ · scale) · v` over latents, for one query of each sequence or a few:
/// the multi-head latent attention of DeepSeek-V2 and V3 after their matrices have been absorbed
/// into the queries.
///
/// `q` is batch × heads × queries × 576: 512 columns for latents, and then 64 rotated ones. `o` is
/// batch × heads × queries × 512. There is one head of keys, of which each key is a latent and then
/// its rotated columns, and each value is the latent, which is read once for 64 rows of queries.
/// Views need not be contiguous, except for rows, which begin at multiples of 16 bytes. The batch
/// is at most 4096, or 2048 with page indices. A query that sees no key has the result zero.
///
/// Lengths, tables, the division of keys, the workspace and the precision are as for
/// [`cached_attention`](super::cached_attention).
///
/// # Errors
///
/// `TMA0551` and `TMA0552` for tensors and options that do not match, `TMA0568` for pages and
/// `TMA0569` for rows that cannot be read, `TMA0570` if the caller's memory is too small. Also
/// the errors of [`launch`](tma_runtime::launch::launch).
///
/// ```
/// use tma_kernels::cached::{LatentCache, MlaAttentionOptions, mla_attention};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// // A sequence of 40 keys in pages of 64 rows, of which the cache has two.
/// let cache = device.zeros::<bf16, 4>([2, 1, 64, 576])?;
/// let latents = cache.view().slice([0..2, 0..1, 0..64, 0..512])?;
/// let rotated = cache.view().slice([0..2, 0..1, 0..64, 512..576])?;
/// let (table, lengths) = (device.tensor(&[1], [1, 1])?, device.tensor(&[40], [1])?);
/// let q = device.zeros::<bf16, 4>([1, 16, 1, 576])?; // 16 heads of one query
/// let mut o = device.zeros([1, 16, 1, 512])?;
/// let cache = LatentCache::paged(latents, rotated, table.view()).with_lengths(lengths.view());
/// mla_attention(&device, &q, cache, &mut o, MlaAttentionOptions::default())?;
/// assert!(o.to_vec()?.iter().all(|x| x.to_f32() == 0.0));
/// # Ok(())
/// # }
/// ```
pub fn mla_attention<T: AttentionElement>(
    on: &impl LaunchOn,
    q: impl MapArg<T, 4>,
    cache: LatentCache<'_, T>,
    mut o: impl MapArgMut<T, 4>,
    options: MlaAttentionOptions<'_>,
) -> Result<(), CachedAttentionError> {
    let MlaAttentionOptions { causal, scale, lse, workspace, division } = options;
    let options = CachedAttentionOptions {
        causal,
        scale: Some(scale.unwrap_or(SCALE)),
        lse,
        workspace,
        division,
        ..CachedAttentionOptions::default()
    };
    launch::queue(on, Layout::Latent, q.view(), cache.0, o.view_mut(), options)
}
