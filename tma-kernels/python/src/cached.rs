//! Caches of keys and values: attention over them, and new rows.

use tma_kernels::cached::{
    AppendOptions, AttentionElement, CacheElement, CacheScales, CacheWorkspace, CachedAttentionOptions,
    KeyValueCache, KeyValueCacheMut, LatentCache, MlaAttentionOptions, append, cached_attention,
    mla_attention,
};
use tma_python::{Call, Failure, Tensor, TensorMut, operator};
use tma_runtime::TensorView;
use tma_runtime::prelude::*;
use tma_runtime::spec::Scalar;

use crate::attention::{Scores, operator_of_scores, refused};
use crate::workspaces::Workspaces;

operator_of_scores! {
    /// Returns softmax(q · kᵀ · scale) · v over the keys and values of a cache, for one query of
    /// each sequence or a few.
    ///
    /// `q` is batch × heads × queries × depth, of bfloat16 or float16. `keys` and `values` are
    /// batch × heads × keys × depth or, with a `table`, pages × heads × rows × depth, with 16, 32,
    /// 64, 128 or 256 rows per page. They have the elements of `q`, or are of float8_e4m3fn, whose
    /// factors `key_scales` and `value_scales` are pages or sequences × heads, where either extent
    /// may be 1. There may be fewer heads of keys and values, and values may have fewer columns.
    /// `lengths` has the number of keys of each sequence, or is None if all have as many as fit. `table` is
    /// batch × pages, the numbers of each sequence's pages. Both are of int32, and are read on the
    /// device.
    ///
    /// With `causal`, the last query of a sequence is at the position of its last key. `slopes`
    /// (ALiBi) and `sinks` have a float32 for each head of queries. `bias` is added to the scores:
    /// batch × heads × queries × keys, where any extent may be 1. The other options are those of
    /// `attention`. It has no gradient.
    pub struct AttentionCached<'a>("attention_cached") {
        q: Tensor<'a>,
        keys: Tensor<'a>,
        values: Tensor<'a>,
        lengths: Option<TensorView<'a, u32, 1>>,
        table: Option<TensorView<'a, u32, 2>> = "None",
        key_scales: Option<TensorView<'a, f32, 2>> = "None",
        value_scales: Option<TensorView<'a, f32, 2>> = "None",
        slopes: Option<TensorView<'a, f32, 1>> = "None",
        bias: Option<Tensor<'a>> = "None",
        sinks: Option<TensorView<'a, f32, 1>> = "None",
    } -> {
        o: TensorMut<'a> = "empty(q.shape[:-1] + values.shape[3:], q.dtype)",
    }
}

impl<'a> AttentionCached<'a> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        match (self.q.element(), self.keys.element()) {
            (Scalar::Bf16, Scalar::E4m3) => self.of::<bf16, e4m3>(call, KeyValueCache::with_scales),
            (Scalar::F16, Scalar::E4m3) => self.of::<f16, e4m3>(call, KeyValueCache::with_scales),
            (Scalar::Bf16, _) => self.of::<bf16, bf16>(call, |cache, _| cache),
            (Scalar::F16, _) => self.of::<f16, f16>(call, |cache, _| cache),
            _ => Err(refused(&self.q)),
        }
    }

    fn of<T: AttentionElement, C: CacheElement<T>>(
        self,
        call: &Call<'_>,
        with_scales: fn(KeyValueCache<'a, C>, CacheScales<'a>) -> KeyValueCache<'a, C>,
    ) -> Result<(), Failure> {
        let scales = scales(self.keys.element(), self.key_scales, self.value_scales)?;
        let cache = match scales {
            Some(scales) => with_scales(self.cache()?, scales),
            None => self.cache()?,
        };
        let Scores { causal, scale, window, window_after, soft_cap } = self.scores();
        let Self { q, slopes, bias, sinks, o, .. } = self;
        let (q, o) = (q.view::<T, 4>()?, o.view::<T, 4>()?);
        let options = CachedAttentionOptions {
            causal,
            window,
            window_after,
            scale,
            soft_cap,
            slopes,
            bias: bias.map(|bias| bias.view()).transpose()?,
            sinks,
            ..CachedAttentionOptions::default()
        };
        let bytes = || Ok(CacheWorkspace::bytes(call.device(), q, cache, None)?);
        with_workspace(call, bytes, |workspace| {
            let options = CachedAttentionOptions { workspace: Some(workspace), ..options };
            Ok(cached_attention(call.stream(), q, cache, o, options)?)
        })
    }

    fn cache<C: tma_runtime::Scalar>(&self) -> Result<KeyValueCache<'a, C>, Failure> {
        let (keys, values) = (self.keys.view(), self.values.view());
        let cache = match self.table {
            Some(table) => KeyValueCache::paged(keys?, values?, table),
            None => KeyValueCache::contiguous(keys?, values?),
        };
        Ok(match self.lengths {
            Some(lengths) => cache.with_lengths(lengths),
            None => cache,
        })
    }
}

/// Returns the factors of a cache with these elements.
fn scales<'a>(
    element: Scalar,
    keys: Option<TensorView<'a, f32, 2>>,
    values: Option<TensorView<'a, f32, 2>>,
) -> Result<Option<CacheScales<'a>>, Failure> {
    match (keys, values) {
        (None, None) => Ok(None),
        (Some(keys), Some(values)) if element == Scalar::E4m3 => Ok(Some(CacheScales { keys, values })),
        (Some(_), Some(_)) => {
            Err(Failure::argument("key_scales", "is for a cache of float8_e4m3fn; leave it out"))
        }
        (Some(_), None) => Err(Failure::argument("value_scales", "is None; pass it beside `key_scales`")),
        (None, Some(_)) => Err(Failure::argument("key_scales", "is None; pass it beside `value_scales`")),
    }
}

/// Passes the workspace of the call's stream, or, if the call is captured, one of `bytes` bytes
/// that belongs to it alone.
fn with_workspace<R>(
    call: &Call<'_>,
    bytes: impl FnOnce() -> Result<usize, Failure>,
    queue: impl FnOnce(&mut CacheWorkspace) -> Result<R, Failure>,
) -> Result<R, Failure> {
    static WORKSPACES: Workspaces<CacheWorkspace> = Workspaces::new();
    if !call.is_capturing()? {
        return WORKSPACES.with(call, || Ok(CacheWorkspace::new(call.device())?), queue);
    }
    let bytes = bytes()?;
    // SAFETY: the memory is there, for this call alone, until what it queues has run.
    let mut workspace = unsafe { CacheWorkspace::from_raw(call.stream(), call.memory(bytes)?, bytes)? };
    queue(&mut workspace)
}

operator! {
    /// Returns softmax(q · kᵀ · scale) · v over latents: the multi-head latent attention of
    /// DeepSeek-V2 and V3, after their matrices have been absorbed into the queries.
    ///
    /// `q` is batch × heads × queries × 576, of bfloat16 or float16. `latents` are batch × 1 × keys
    /// × 512 and `rotated` batch × 1 × keys × 64 or, with a `table`, pages × 1 × rows × 512 and 64,
    /// with 32, 64, 128 or 256 rows per page. Each key is a latent and then its rotated columns,
    /// and each value is the latent. `lengths` and `table` are those of `attention_cached`. The
    /// default of `scale` is 1 / √192. It has no gradient.
    pub struct MlaAttention<'a>("mla_attention") {
        q: Tensor<'a>,
        latents: Tensor<'a>,
        rotated: Tensor<'a>,
        lengths: Option<TensorView<'a, u32, 1>>,
        table: Option<TensorView<'a, u32, 2>> = "None",
        causal: bool = "False",
        scale: Option<f64> = "None",
    } -> {
        o: TensorMut<'a> = "empty(q.shape[:-1] + [512], q.dtype)",
    }
}

impl MlaAttention<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        match self.q.element() {
            Scalar::Bf16 => self.of::<bf16>(call),
            Scalar::F16 => self.of::<f16>(call),
            _ => Err(refused(&self.q)),
        }
    }

    fn of<T: AttentionElement>(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { q, latents, rotated, lengths, table, causal, scale, o } = self;
        let (latents, rotated) = (latents.view(), rotated.view());
        let cache = match table {
            Some(table) => LatentCache::paged(latents?, rotated?, table),
            None => LatentCache::contiguous(latents?, rotated?),
        };
        let cache = match lengths {
            Some(lengths) => cache.with_lengths(lengths),
            None => cache,
        };
        let (q, o) = (q.view::<T, 4>()?, o.view::<T, 4>()?);
        let scale = scale.map(|scale| scale as f32);
        let bytes = || Ok(CacheWorkspace::bytes_of_latents(call.device(), q, cache, None)?);
        with_workspace(call, bytes, |workspace| {
            let options = MlaAttentionOptions {
                causal,
                scale,
                workspace: Some(workspace),
                ..MlaAttentionOptions::default()
            };
            Ok(mla_attention(call.stream(), q, cache, o, options)?)
        })
    }
}

operator! {
    /// Writes new keys and values to a cache.
    ///
    /// `k` and `v` are batch × heads × tokens × depth, of bfloat16 or float16. `keys` and `values`
    /// are batch × heads × keys × depth or, with a `table`, pages × heads × rows × depth, with 16,
    /// 32, 64, 128 or 256 rows per page. They have the same elements, or are of float8_e4m3fn: new
    /// keys and values are then divided by `key_scales` and `value_scales`, pages or sequences ×
    /// heads, where either extent may be 1. `lengths` has the number of keys of each sequence
    /// before the call, or is None for empty sequences. `table` is batch × pages, the numbers of
    /// each sequence's pages. `counts` has the number of valid tokens of each sequence. All three
    /// are of int32, and are read on the device. A token beyond the cache is not written.
    pub struct Append<'a>("append_") {
        keys: TensorMut<'a>,
        values: TensorMut<'a>,
        k: Tensor<'a>,
        v: Tensor<'a>,
        lengths: Option<TensorView<'a, u32, 1>>,
        table: Option<TensorView<'a, u32, 2>> = "None",
        counts: Option<TensorView<'a, u32, 1>> = "None",
        key_scales: Option<TensorView<'a, f32, 2>> = "None",
        value_scales: Option<TensorView<'a, f32, 2>> = "None",
    }
}

impl<'a> Append<'a> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        match (self.k.element(), self.keys.element()) {
            (Scalar::Bf16, Scalar::E4m3) => self.of::<bf16, e4m3>(call, KeyValueCacheMut::with_scales),
            (Scalar::F16, Scalar::E4m3) => self.of::<f16, e4m3>(call, KeyValueCacheMut::with_scales),
            (Scalar::Bf16, _) => self.of::<bf16, bf16>(call, |cache, _| cache),
            (Scalar::F16, _) => self.of::<f16, f16>(call, |cache, _| cache),
            _ => Err(self.k.refuse("has neither bfloat16 nor float16; convert `k` and `v`")),
        }
    }

    fn of<T: AttentionElement, C: CacheElement<T>>(
        self,
        call: &Call<'_>,
        with_scales: fn(KeyValueCacheMut<'a, C>, CacheScales<'a>) -> KeyValueCacheMut<'a, C>,
    ) -> Result<(), Failure> {
        let Self { keys, values, k, v, lengths, table, counts, key_scales, value_scales } = self;
        let scales = scales(keys.element(), key_scales, value_scales)?;
        let (keys, values) = (keys.view::<C, 4>()?, values.view::<C, 4>()?);
        let cache = match table {
            Some(table) => KeyValueCacheMut::paged(keys, values, table),
            None => KeyValueCacheMut::contiguous(keys, values),
        };
        let cache = match lengths {
            Some(lengths) => cache.with_lengths(lengths),
            None => cache,
        };
        let cache = match scales {
            Some(scales) => with_scales(cache, scales),
            None => cache,
        };
        let options = AppendOptions { counts, ..AppendOptions::default() };
        Ok(append(call.stream(), k.view::<T, 4>()?, v.view::<T, 4>()?, cache, options)?)
    }
}
