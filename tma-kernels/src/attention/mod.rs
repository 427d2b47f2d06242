//! Attention: softmax(Q · Kᵀ · scale) · V and its gradients, without writing the scores to memory.

pub mod backward;
mod error;
pub mod general;
pub mod kernel;
mod launch;
mod mask;
pub(crate) mod shape;
pub mod softmax;

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

pub use self::backward::{
    AttentionBackwardOptions, AttentionForward, AttentionGradients, AttentionWorkspace, Sinks,
    attention_backward,
};
pub use self::error::AttentionError;
pub use self::launch::AttentionElement;

/// Options of [`attention`] beyond softmax(Q · Kᵀ / √depth) · V.
#[derive(Debug, Default)]
pub struct AttentionOptions<'a> {
    /// Whether a query sees only the keys up to its own position. The last query is at the position
    /// of the last key: with `queries` queries and `keys` keys, query `i` is at position
    /// `i + keys - queries`. The result of a query that sees no key is zero.
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
    /// The sink of each head of queries: a score that takes part in the softmax without a value. It
    /// is not scaled or limited.
    pub sinks: Option<TensorView<'a, f32, 1>>,
    /// The lengths of sequences that are packed one after the other.
    pub lengths: Option<Lengths<'a>>,
    /// The maximum number of blocks that run at the same time, for a GPU that is shared with other
    /// work. `None` stands for the number of multiprocessors.
    pub blocks: Option<usize>,
    /// The destination of the logarithm of each row's sum of exponentials, for merging results and
    /// for gradients: batch × heads × queries. It includes the exponential of the sink. For a query
    /// that sees no key, the value is that of its sink, or -∞ without sinks.
    pub lse: Option<TensorViewMut<'a, f32, 3>>,
}

/// Sequences of several lengths, packed one after the other along the third dimension of the
/// tensors, whose batch is 1.
///
/// Sequence `i` has the queries from `queries[i]` to `queries[i + 1]`, and the keys from `keys[i]`
/// to `keys[i + 1]`: cumulative lengths, as in most libraries. They are read on the device when the
/// kernel runs. Wrong lengths produce wrong results, but access no other memory.
#[derive(Clone, Copy, Debug)]
pub struct Lengths<'a> {
    /// The start of each sequence's queries, followed by the end of the last sequence.
    pub queries: TensorView<'a, u32, 1>,
    /// The start of each sequence's keys and values, followed by the end of the last sequence.
    pub keys: TensorView<'a, u32, 1>,
    /// The number of queries of the longest sequence, or more.
    pub longest: usize,
    /// The number of keys of the longest sequence, or more. Only gradients use it.
    pub longest_keys: usize,
}

impl Lengths<'_> {
    /// Returns the number of sequences, for tensors of this batch.
    fn sequences(&self, batch: usize) -> Result<usize, AttentionError> {
        let [of_queries, of_keys] = [self.queries, self.keys].map(|starts| starts.shape()[0]);
        match batch == 1 && of_queries > 0 && of_queries == of_keys {
            true => Ok(of_queries - 1),
            false => Err(AttentionError::Lengths { batch, starts: [of_queries, of_keys] }),
        }
    }
}

/// Queues `o = softmax(q · kᵀ · scale) · v`.
///
/// `q` and `o` are batch × heads × queries × depth, `k` and `v` batch × heads × keys × depth, with
/// a depth of at most 256, a multiple of 8. Values may be narrower than keys: `o` then has their
/// depth. There may be fewer heads of keys and values: each of them is then shared by the same
/// number of adjacent heads of queries. Views need not be contiguous: a tensor of batch × sequence
/// × heads × depth is passed as `tensor.view().permute([0, 2, 1, 3])`. If there are no keys, `o` is
/// zero.
///
/// Matmuls accumulate and the softmax is computed in `f32`; weights are rounded to `T`. Each result
/// differs from the exact one by some units in the last place of `T`, relative to the greatest
/// value. With a soft cap, scores have a relative error of 2^-11 as well.
///
/// # Errors
///
/// `TMA0550` to `TMA0553` for tensors and options that do not match. Also the errors of
/// [`launch`](tma_runtime::launch::launch), for example for views whose strides no tensor map can
/// have.
///
/// ```
/// use tma_kernels::{AttentionOptions, attention};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let q: DeviceTensor<bf16, 4> = device.zeros([1, 4, 100, 64])?; // 4 heads of 100 queries
/// let k = device.zeros([1, 2, 150, 64])?; // which share 2 of keys
/// let v = device.zeros([1, 2, 150, 64])?;
/// let mut o = device.zeros(q.shape())?;
/// attention(&device, &q, &k, &v, &mut o, AttentionOptions { causal: true, ..Default::default() })?;
/// assert!(o.to_vec()?.iter().all(|x| x.to_f32() == 0.0));
///
/// // A sliding window of 64 keys, capped scores, and a sink per head.
/// let sinks = device.tensor(&[0.5, 1.0, -1.0, 0.0], [4])?;
/// let options = AttentionOptions {
///     causal: true,
///     window: Some(63),
///     soft_cap: Some(50.0),
///     sinks: Some(sinks.view()),
///     ..Default::default()
/// };
/// attention(&device, &q, &k, &v, &mut o, options)?;
/// # Ok(())
/// # }
/// ```
pub fn attention<T: AttentionElement>(
    on: &impl LaunchOn,
    q: impl MapArg<T, 4>,
    k: impl MapArg<T, 4>,
    v: impl MapArg<T, 4>,
    mut o: impl MapArgMut<T, 4>,
    options: AttentionOptions<'_>,
) -> Result<(), AttentionError> {
    launch::queue(on, [q.view(), k.view(), v.view()], o.view_mut(), options)
}
