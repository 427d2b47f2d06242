//! Attention, with the functions of `candle-flash-attn-v3`.

use candle_core::{DType, Tensor};
use tma_kernels::cached::{CachedAttentionOptions, KeyValueCache, cached_attention};
use tma_kernels::{AttentionOptions, Lengths, attention};
use tma_runtime::prelude::*;

use crate::backward::Backward;
use crate::by_element;
use crate::error::{Refused, Result};
use crate::memory::Element;
use crate::operation::{Argument, Call, Operation};

/// The number of queries up to which the keys of a head are divided among blocks, for the depths that
/// the kernel for few queries has.
const FEW_QUERIES: usize = 16;
const FEW_QUERIES_DEPTH: usize = 256;

/// The greatest depth of heads with gradients.
const GRADIENT_DEPTH: usize = 128;

/// Returns `softmax(q · kᵀ · softmax_scale) · v`, without writing the scores to memory.
///
/// `q` is batch × queries × heads × depth, and `k` and `v` are batch × keys × heads × depth, of
/// BF16 or F16. The depth is a multiple of 8, up to 256. There may be fewer heads of keys and
/// values, which divide those of queries. With `causal`, the last query sees all keys.
///
/// Heads that share keys are always computed together, if there are few queries; `use_gqa_packing`
/// has no effect. With a depth of up to 128, `q`, `k` and `v` have gradients.
///
/// # Errors
///
/// Tensors that do not match.
pub fn flash_attn(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    softmax_scale: f32,
    causal: bool,
    use_gqa_packing: bool,
) -> Result<Tensor> {
    flash_attn_windowed(q, k, v, softmax_scale, None, causal.then_some(0), use_gqa_packing)
}

/// Returns the same with a window: a query sees so many keys before its own position and after it.
///
/// `None` for the left and 0 for the right is a causal mask.
///
/// # Errors
///
/// Tensors that do not match.
pub fn flash_attn_windowed(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    softmax_scale: f32,
    window_size_left: Option<usize>,
    window_size_right: Option<usize>,
    _use_gqa_packing: bool,
) -> Result<Tensor> {
    let mask = Mask { scale: softmax_scale, left: window_size_left, right: window_size_right };
    Operation::new("flash-attn", &[("q", q)]).check_rank("q", &AXES)?;
    let (_, queries, _, depth) = q.dims4()?;
    // The kernel for few queries has no gradient.
    let is_tracked = [q, k, v].iter().any(|tensor| tensor.track_op());
    let tensors = Tensors { q, k, v };
    if queries > FEW_QUERIES || depth > FEW_QUERIES_DEPTH || is_tracked {
        many_queries(tensors, mask, None)
    } else {
        few_queries(tensors, mask, None)
    }
}

/// Returns the same as [`flash_attn`], after `slope · distance` between the positions of query and
/// key was subtracted from scores (ALiBi).
///
/// `alibi_slopes` has a slope for each head of queries, in F32. The depth is at most 256.
///
/// # Errors
///
/// Tensors that do not match.
pub fn flash_attn_alibi(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    alibi_slopes: &Tensor,
    softmax_scale: f32,
    causal: bool,
    _use_gqa_packing: bool,
) -> Result<Tensor> {
    let mask = Mask { scale: softmax_scale, left: None, right: causal.then_some(0) };
    few_queries(Tensors { q, k, v }, mask, Some(alibi_slopes))
}

/// Returns the same as [`flash_attn_alibi`] with the window of [`flash_attn_windowed`].
///
/// # Errors
///
/// Tensors that do not match.
#[expect(clippy::too_many_arguments, reason = "those of candle-flash-attn-v3")]
pub fn flash_attn_alibi_windowed(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    alibi_slopes: &Tensor,
    softmax_scale: f32,
    window_size_left: Option<usize>,
    window_size_right: Option<usize>,
    _use_gqa_packing: bool,
) -> Result<Tensor> {
    let mask = Mask { scale: softmax_scale, left: window_size_left, right: window_size_right };
    few_queries(Tensors { q, k, v }, mask, Some(alibi_slopes))
}

/// Returns attention of sequences that are packed one after the other.
///
/// `q` is queries × heads × depth, and `k` and `v` are keys × heads × depth. The depth is a multiple
/// of 8, up to 256, and up to 128 for gradients. `seqlens_q` and `seqlens_k` are cumulative lengths
/// in U32: 0, the length of the first sequence, the sum of the first two, and so on. They are read on
/// the device; wrong ones produce wrong results. `max_seqlen_q` and `max_seqlen_k` are the greatest
/// numbers of queries and keys of a sequence, or more. `use_gqa_packing` has no effect.
///
/// # Errors
///
/// Tensors that do not match.
#[expect(clippy::too_many_arguments, reason = "those of candle-flash-attn-v3")]
pub fn flash_attn_varlen(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    seqlens_q: &Tensor,
    seqlens_k: &Tensor,
    max_seqlen_q: usize,
    max_seqlen_k: usize,
    softmax_scale: f32,
    causal: bool,
    use_gqa_packing: bool,
) -> Result<Tensor> {
    flash_attn_varlen_windowed(
        q,
        k,
        v,
        seqlens_q,
        seqlens_k,
        max_seqlen_q,
        max_seqlen_k,
        softmax_scale,
        None,
        causal.then_some(0),
        use_gqa_packing,
    )
}

/// Returns the same as [`flash_attn_varlen`] with the window of [`flash_attn_windowed`].
///
/// # Errors
///
/// Tensors that do not match.
#[expect(clippy::too_many_arguments, reason = "those of candle-flash-attn-v3")]
pub fn flash_attn_varlen_windowed(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    seqlens_q: &Tensor,
    seqlens_k: &Tensor,
    max_seqlen_q: usize,
    max_seqlen_k: usize,
    softmax_scale: f32,
    window_size_left: Option<usize>,
    window_size_right: Option<usize>,
    _use_gqa_packing: bool,
) -> Result<Tensor> {
    let mask = Mask { scale: softmax_scale, left: window_size_left, right: window_size_right };
    let starts = [seqlens_q, seqlens_k].map(Tensor::clone);
    let packed = Packed { starts, longest: max_seqlen_q, longest_keys: max_seqlen_k };
    many_queries(Tensors { q, k, v }, mask, Some(packed))
}

/// The scale of scores, and the keys that a query sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mask {
    pub(crate) scale: f32,
    pub(crate) left: Option<usize>,
    pub(crate) right: Option<usize>,
}

impl Mask {
    /// Returns whether a query sees no key after its own position.
    pub(crate) fn is_causal(self) -> bool {
        self.right == Some(0)
    }

    /// Returns the number of keys that a query sees after its own position, unless the mask is causal
    /// or shows all.
    pub(crate) fn window_after(self) -> Option<usize> {
        self.right.filter(|&right| right > 0)
    }

    /// Returns the options of the kernel over a cache.
    pub(crate) fn options<T>(self) -> CachedAttentionOptions<'static, T> {
        CachedAttentionOptions {
            scale: Some(self.scale),
            causal: self.is_causal(),
            window: self.left,
            window_after: self.window_after(),
            ..CachedAttentionOptions::default()
        }
    }
}

/// Queries, keys and values.
#[derive(Clone, Copy)]
struct Tensors<'a> {
    q: &'a Tensor,
    k: &'a Tensor,
    v: &'a Tensor,
}

/// Sequences that are packed.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// The starts of sequences in queries, and in keys, each followed by the end of the last one.
    pub(crate) starts: [Tensor; 2],
    longest: usize,
    longest_keys: usize,
}

impl Packed {
    /// Returns the arguments of an operation.
    pub(crate) fn arguments(&self) -> [Argument<'_>; 2] {
        [("seqlens_q", &self.starts[0]), ("seqlens_k", &self.starts[1])]
    }

    /// Returns the lengths for a kernel, from these arguments.
    pub(crate) fn lengths<'a>(&self, call: &'a Call<'_>) -> Result<Lengths<'a>, Refused> {
        Ok(Lengths {
            queries: call.input("seqlens_q")?,
            keys: call.input("seqlens_k")?,
            longest: self.longest,
            longest_keys: self.longest_keys,
        })
    }
}

/// The dimensions of tensors.
pub(crate) const AXES: [&str; 4] = ["batch", "sequence", "heads", "depth"];

/// The order of batch, heads, sequence and depth, as kernels take tensors.
pub(crate) const HEADS_FIRST: [usize; 4] = [0, 2, 1, 3];

/// Returns a tensor of batch × sequence × heads × depth in this order.
pub(crate) fn heads<'a, T: Element>(
    call: &'a Call<'_>,
    name: &'static str,
) -> Result<TensorView<'a, T, 4>, Refused> {
    Ok(call.input::<T, 4>(name)?.permute(HEADS_FIRST)?)
}

fn many_queries(tensors: Tensors<'_>, mask: Mask, packed: Option<Packed>) -> Result<Tensor> {
    let Tensors { q, k, v } = tensors;
    let mut inputs: Vec<Argument<'_>> = vec![("q", q), ("k", k), ("v", v)];
    inputs.extend(packed.iter().flat_map(Packed::arguments));
    let (name, axes) = match packed {
        Some(_) => ("flash-attn-varlen", &AXES[1..]),
        None => ("flash-attn", &AXES[..]),
    };
    let operation = Operation::new(name, &inputs);
    ["q", "k", "v"].iter().try_for_each(|tensor| operation.check_rank(tensor, axes))?;
    let (backward, lse) = differentiated(tensors, mask, packed.as_ref())?;
    let updated: Vec<Argument<'_>> = lse.as_ref().map(|lse| ("lse", lse)).into_iter().collect();
    // Nothing is stored to the rows of packed queries that belong to no sequence.
    let operation = Operation { is_partial: packed.is_some(), updated: &updated, backward, ..operation };
    by_element!(operation.name, "q", q, [bf16, f16], T => operation.run::<T>(q.shape(), |call| {
        let options = AttentionOptions {
            causal: mask.is_causal(),
            window: mask.left,
            window_after: mask.window_after(),
            scale: Some(mask.scale),
            lengths: packed.as_ref().map(|packed| packed.lengths(call)).transpose()?,
            lse: lse.as_ref().map(|_| call.updated("lse")).transpose()?,
            ..AttentionOptions::default()
        };
        let o = call.output::<T, 4>()?.permute(HEADS_FIRST)?;
        Ok(attention(call.on(), heads::<T>(call, "q")?, heads(call, "k")?, heads(call, "v")?, o, options)?)
    }))
}

/// Returns how gradients are computed, and memory for the logarithms that they need, if the result
/// has some.
fn differentiated(
    tensors: Tensors<'_>,
    mask: Mask,
    packed: Option<&Packed>,
) -> Result<(Backward, Option<Tensor>)> {
    let Tensors { q, k, v } = tensors;
    let (batch, queries, heads, depth) = match *q.dims() {
        [queries, heads, depth] => (1, queries, heads, depth),
        _ => q.dims4()?,
    };
    if depth > GRADIENT_DEPTH {
        return Ok((Backward::Unsupported("heads have more than 128 elements"), None));
    }
    let is_tracked = [q, k, v].iter().any(|tensor| tensor.track_op());
    let zeros = || Tensor::zeros((batch, heads, queries), DType::F32, q.device());
    let lse = is_tracked.then(zeros).transpose()?;
    Ok((Backward::Attention { mask, packed: packed.cloned(), lse: lse.clone() }, lse))
}

fn few_queries(tensors: Tensors<'_>, mask: Mask, slopes: Option<&Tensor>) -> Result<Tensor> {
    let Tensors { q, k, v } = tensors;
    let mut inputs: Vec<Argument<'_>> = vec![("q", q), ("k", k), ("v", v)];
    inputs.extend(slopes.map(|slopes| ("alibi_slopes", slopes)));
    let reason = "it has slopes";
    let operation = Operation::new("flash-attn", &inputs).with_backward(Backward::Unsupported(reason));
    ["q", "k", "v"].iter().try_for_each(|tensor| operation.check_rank(tensor, &AXES))?;
    by_element!(operation.name, "q", q, [bf16, f16], T => operation.run::<T>(q.shape(), |call| {
        let options = CachedAttentionOptions {
            slopes: call.optional("alibi_slopes")?,
            workspace: Some(&mut call.queue().cache_workspace()),
            ..mask.options()
        };
        let cache = KeyValueCache::contiguous(heads::<T>(call, "k")?, heads(call, "v")?);
        let o = call.output::<T, 4>()?.permute(HEADS_FIRST)?;
        Ok(cached_attention(call.on(), heads::<T>(call, "q")?, cache, o, options)?)
    }))
}
