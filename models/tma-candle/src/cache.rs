//! Caches of keys and values, contiguous or in pages.

use candle_core::Tensor;
use tma_kernels::cached::{
    AppendOptions, CachedAttentionOptions, KeyValueCache, KeyValueCacheMut, Rotary, RotaryLayout,
    RotaryQueries, append, cached_attention,
};
use tma_runtime::prelude::*;

use crate::attention::{AXES, HEADS_FIRST, Mask, heads};
use crate::backward::Backward;
use crate::by_element;
use crate::error::{Refused, Result};
use crate::operation::{Argument, Call, Operation};

/// The keys and values of several sequences, of BF16 or F16.
#[derive(Clone, Debug)]
pub struct KvCache {
    keys: Tensor,
    values: Tensor,
    table: Option<Tensor>,
}

/// The angles of a rotary embedding.
#[derive(Clone, Copy, Debug)]
pub struct Rotation<'a> {
    /// Cosines in F32: positions × half of the rotated columns.
    pub cos: &'a Tensor,
    /// Sines, of the same shape.
    pub sin: &'a Tensor,
    /// The columns that are rotated together.
    pub layout: RotaryLayout,
}

impl KvCache {
    /// Makes a cache of tensors of batch × positions × heads × depth.
    pub fn contiguous(keys: Tensor, values: Tensor) -> Self {
        Self { keys, values, table: None }
    }

    /// Makes a cache in pages: `keys` and `values` are pages × rows × heads × depth, with 16, 32,
    /// 64, 128 or 256 rows. `table` has the pages of each sequence, batch × pages of the longest
    /// one, in U32.
    pub fn paged(keys: Tensor, values: Tensor, table: Tensor) -> Self {
        Self { keys, values, table: Some(table) }
    }

    /// Returns the keys.
    pub fn keys(&self) -> &Tensor {
        &self.keys
    }

    /// Returns the values.
    pub fn values(&self) -> &Tensor {
        &self.values
    }

    /// Writes the keys and values of new tokens behind those that sequences have, and returns the
    /// new lengths.
    ///
    /// `k` and `v` are batch × tokens × heads × depth; `lengths` has the number of keys of each
    /// sequence before, in U32. The tensors of the cache are changed where they are. Tokens beyond
    /// the cache or the table are not written.
    ///
    /// # Errors
    ///
    /// Tensors that do not match.
    pub fn append(&self, k: &Tensor, v: &Tensor, lengths: &Tensor) -> Result<Tensor> {
        let inputs = self.with_table([("k", k), ("v", v), ("lengths", lengths)]);
        let operation = Operation { updated: &self.written(), ..Operation::new("append", &inputs) };
        ["k", "v"].iter().try_for_each(|tensor| operation.check_rank(tensor, &AXES))?;
        by_element!(operation.name, "k", k, [bf16, f16], T => operation.run::<u32>(lengths.shape(), |call| {
            let options = AppendOptions { new_lengths: Some(call.output()?), ..AppendOptions::default() };
            let (k, v) = (heads::<T>(call, "k")?, heads(call, "v")?);
            Ok(append(call.on(), k, v, self.in_call_mut::<T>(call)?, options)?)
        }))
    }

    /// Rotates queries and keys of new tokens by their positions, and appends keys and values.
    ///
    /// The result is the rotated `q`, batch × tokens × heads × depth, and the new lengths. A query
    /// whose position is beyond the angles becomes zero, and its token is not written.
    ///
    /// # Errors
    ///
    /// Tensors that do not match.
    pub fn append_rotated(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        lengths: &Tensor,
        rotation: Rotation<'_>,
    ) -> Result<(Tensor, Tensor)> {
        let rotated = q.zeros_like()?;
        let inputs = self.with_table([
            ("q", q),
            ("k", k),
            ("v", v),
            ("lengths", lengths),
            ("cos", rotation.cos),
            ("sin", rotation.sin),
        ]);
        let updated = [&self.written()[..], &[("rotated", &rotated)]].concat();
        let operation = Operation { updated: &updated, ..Operation::new("append-rotated", &inputs) };
        ["q", "k", "v"].iter().try_for_each(|tensor| operation.check_rank(tensor, &AXES))?;
        let lengths = by_element!(operation.name, "k", k, [bf16, f16], T => {
            operation.run::<u32>(lengths.shape(), |call| {
                let queries = RotaryQueries::To {
                    q: heads::<T>(call, "q")?,
                    rotated: call.updated::<T, 4>("rotated")?.permute(HEADS_FIRST)?,
                };
                let (cos, sin) = (call.input("cos")?, call.input("sin")?);
                let rotary = Rotary { cos, sin, layout: rotation.layout, queries: Some(queries) };
                let options = AppendOptions {
                    new_lengths: Some(call.output()?),
                    rotary: Some(rotary),
                    ..AppendOptions::default()
                };
                let (k, v) = (heads(call, "k")?, heads(call, "v")?);
                Ok(append(call.on(), k, v, self.in_call_mut::<T>(call)?, options)?)
            })
        })?;
        Ok((rotated, lengths))
    }

    /// Returns attention of queries over the cache: the last query of a sequence is at the position
    /// of its last key.
    ///
    /// `q` is batch × queries × heads × depth, with a depth of at most 256. `lengths` has the
    /// number of keys of each sequence, in U32. The window is that of
    /// [`flash_attn_windowed`](crate::flash_attn_windowed): `None` and `Some(0)` are a causal mask.
    ///
    /// # Errors
    ///
    /// Tensors that do not match.
    pub fn attend(
        &self,
        q: &Tensor,
        lengths: &Tensor,
        softmax_scale: f32,
        window_size_left: Option<usize>,
        window_size_right: Option<usize>,
    ) -> Result<Tensor> {
        let mask = Mask { scale: softmax_scale, left: window_size_left, right: window_size_right };
        let inputs =
            self.with_table([("q", q), ("lengths", lengths), ("keys", &self.keys), ("values", &self.values)]);
        let operation = Operation::new("cached-attention", &inputs)
            .with_backward(Backward::Unsupported("it is for caches; use `flash_attn`"));
        ["q", "keys", "values"].iter().try_for_each(|tensor| operation.check_rank(tensor, &AXES))?;
        by_element!(operation.name, "q", q, [bf16, f16], T => operation.run::<T>(q.shape(), |call| {
            let (keys, values) = (heads::<T>(call, "keys")?, heads(call, "values")?);
            let cache = match call.optional("table")? {
                None => KeyValueCache::contiguous(keys, values),
                Some(table) => KeyValueCache::paged(keys, values, table),
            };
            let options = CachedAttentionOptions {
                workspace: Some(&mut call.queue().cache_workspace()),
                ..mask.options()
            };
            let o = call.output::<T, 4>()?.permute(HEADS_FIRST)?;
            let cache = cache.with_lengths(call.input("lengths")?);
            Ok(cached_attention(call.on(), heads(call, "q")?, cache, o, options)?)
        }))
    }

    /// Returns the arguments, and the table if there is one.
    fn with_table<'a, const N: usize>(&'a self, inputs: [Argument<'a>; N]) -> Vec<Argument<'a>> {
        inputs.into_iter().chain(self.table.as_ref().map(|table| ("table", table))).collect()
    }

    /// Returns the tensors that appending changes.
    fn written(&self) -> [Argument<'_>; 2] {
        [("keys", &self.keys), ("values", &self.values)]
    }

    /// Returns the cache as the kernel takes it that writes it.
    fn in_call_mut<'c, T: Cached>(&self, call: &'c Call<'_>) -> Result<KeyValueCacheMut<'c, T>, Refused> {
        let keys = call.updated::<T, 4>("keys")?.permute(HEADS_FIRST)?;
        let values = call.updated::<T, 4>("values")?.permute(HEADS_FIRST)?;
        let cache = match call.optional("table")? {
            None => KeyValueCacheMut::contiguous(keys, values),
            Some(table) => KeyValueCacheMut::paged(keys, values, table),
        };
        Ok(cache.with_lengths(call.input("lengths")?))
    }
}

/// The elements of caches.
trait Cached: crate::memory::Element + tma_kernels::AttentionElement {}

impl Cached for bf16 {}
impl Cached for f16 {}
