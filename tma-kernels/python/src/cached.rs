//! Caches of keys and values: attention over them, and new rows.

use tma_kernels::cached::{
    AppendOptions, AttentionElement, CacheElement, CacheScales, CacheWorkspace, CachedAttentionOptions,
    KeyValueCache, KeyValueCacheMut, append, cached_attention,
};
use tma_python::{Call, Failure, Tensor, TensorMut, operator};
use tma_runtime::TensorView;
use tma_runtime::prelude::*;
use tma_runtime::spec::Scalar;

use crate::attention::{Scores, operator_of_scores, refused};
use crate::workspaces::Workspaces;

operator_of_scores! {
    /// Returns softmax(q · kᵀ · scale) · v over the keys and values of a cache, for one query of each
    /// sequence or a few.
    ///
    /// `q` is batch × heads × queries × depth, of bfloat16 or float16. `keys` and `values` are batch ×
    /// heads × keys × depth or, with a `table`, pages × heads × rows × depth, with 16, 32, 64, 128 or
    /// 256 rows per page. They have the elements of `q`, or are of float8_e4m3fn, whose factors
    /// `key_scales` and `value_scales` are pages or sequences × heads, where either extent may be 1.
    /// There may be fewer heads of keys and values. `lengths` has the number of keys of each sequence,
    /// or is None if all have as many as fit. `table` is batch × pages, the numbers of each sequence's
    /// pages. Both are of int32, and are read on the device.
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
        o: TensorMut<'a> = "empty_like(q)",
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
        static WORKSPACES: Workspaces<CacheWorkspace> = Workspaces::new();
        let cache = match self.scales()? {
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
        let queue = |workspace: &mut CacheWorkspace| {
            let options = CachedAttentionOptions { workspace: Some(workspace), ..options };
            Ok(cached_attention(call.stream(), q, cache, o, options)?)
        };
        if !call.is_capturing()? {
            return WORKSPACES.with(call, || Ok(CacheWorkspace::new(call.device())?), queue);
        }
        let bytes = CacheWorkspace::bytes(call.device(), q, cache, None)?;
        // SAFETY: the memory is there, for this call alone, until what it queues has run.
        let mut workspace = unsafe { CacheWorkspace::from_raw(call.stream(), call.memory(bytes)?, bytes)? };
        queue(&mut workspace)
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

    fn scales(&self) -> Result<Option<CacheScales<'a>>, Failure> {
        let is_scaled = self.keys.element() == Scalar::E4m3;
        match (self.key_scales, self.value_scales) {
            (None, None) => Ok(None),
            (Some(keys), Some(values)) if is_scaled => Ok(Some(CacheScales { keys, values })),
            (Some(_), Some(_)) => {
                Err(Failure::argument("key_scales", "is for a cache of float8_e4m3fn; leave it out"))
            }
            (Some(_), None) => Err(Failure::argument("value_scales", "is None; pass it beside `key_scales`")),
            (None, Some(_)) => Err(Failure::argument("key_scales", "is None; pass it beside `value_scales`")),
        }
    }
}

operator! {
    /// Writes new keys and values to a cache.
    ///
    /// `k` and `v` are batch × heads × tokens × depth, of bfloat16 or float16. `keys` and `values`
    /// are batch × heads × keys × depth or, with a `table`, pages × heads × rows × depth, with 16,
    /// 32, 64, 128 or 256 rows per page. `lengths` has the number of keys of each sequence before the
    /// call, or is None for empty sequences. `table` is batch × pages, the numbers of each
    /// sequence's pages. `counts` has the number of valid tokens of each sequence. All three are of
    /// int32, and are read on the device. A token beyond the cache is not written.
    pub struct Append<'a>("append_") {
        keys: TensorMut<'a>,
        values: TensorMut<'a>,
        k: Tensor<'a>,
        v: Tensor<'a>,
        lengths: Option<TensorView<'a, u32, 1>>,
        table: Option<TensorView<'a, u32, 2>> = "None",
        counts: Option<TensorView<'a, u32, 1>> = "None",
    }
}

impl Append<'_> {
    fn run(self, call: &Call<'_>) -> Result<(), Failure> {
        match self.k.element() {
            Scalar::Bf16 => self.of::<bf16>(call),
            Scalar::F16 => self.of::<f16>(call),
            _ => Err(self.k.refuse("has neither bfloat16 nor float16; convert `k` and `v`")),
        }
    }

    fn of<T: AttentionElement>(self, call: &Call<'_>) -> Result<(), Failure> {
        let Self { keys, values, k, v, lengths, table, counts } = self;
        let (keys, values) = (keys.view::<T, 4>()?, values.view::<T, 4>()?);
        let cache = match table {
            Some(table) => KeyValueCacheMut::paged(keys, values, table),
            None => KeyValueCacheMut::contiguous(keys, values),
        };
        let cache = match lengths {
            Some(lengths) => cache.with_lengths(lengths),
            None => cache,
        };
        let options = AppendOptions { counts, ..AppendOptions::default() };
        Ok(append(call.stream(), k.view::<T, 4>()?, v.view::<T, 4>()?, cache, options)?)
    }
}
