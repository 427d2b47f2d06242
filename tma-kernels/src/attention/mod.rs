//! Attention, forward: softmax(Q · Kᵀ · scale) · V, without writing the scores to memory.

mod error;
pub mod kernel;
mod launch;
mod shape;

use tma_runtime::launch::{LaunchOn, MapArg, MapArgMut};
use tma_runtime::prelude::*;

pub use self::error::AttentionError;
pub use self::launch::AttentionElement;

/// What [`attention`] computes beyond softmax(Q · Kᵀ / √depth) · V.
#[derive(Debug, Default)]
pub struct AttentionOptions<'a> {
    /// Whether a query sees the keys up to its own place only. The last query sees all keys: of
    /// `queries` and `keys`, query `i` sees those up to `i + keys - queries`. One that sees none
    /// has zeros for a result.
    pub causal: bool,
    /// What scores are multiplied by; 1 / √depth if it is `None`. A number above zero.
    pub scale: Option<f32>,
    /// Sequences of several lengths, one after the other.
    pub lengths: Option<Lengths<'a>>,
    /// At most so many blocks work at the same time; as many as there are multiprocessors if it is
    /// `None`. For a GPU that is shared with other work.
    pub blocks: Option<usize>,
    /// Where the logarithm of each row's sum of exponentials is written, for merging results and
    /// for gradients: batch × heads × queries. It is -∞ for a query that sees no key.
    pub lse: Option<&'a mut DeviceTensor<f32, 3>>,
}

/// Sequences of several lengths. They lie one after the other along the third dimension of the
/// tensors, whose batch is 1.
///
/// Sequence `i` has the queries from `queries[i]` to `queries[i + 1]`, and the keys from `keys[i]`
/// to `keys[i + 1]`: cumulative lengths, as of most libraries. They are read on the device when
/// the kernel runs. Lengths that are wrong give wrong results, but touch no other memory.
#[derive(Clone, Copy, Debug)]
pub struct Lengths<'a> {
    /// Where each sequence's queries begin, and at last where the last one's end.
    pub queries: &'a DeviceTensor<u32, 1>,
    /// Where each sequence's keys and values begin, and at last where the last one's end.
    pub keys: &'a DeviceTensor<u32, 1>,
    /// Queries of the longest sequence, or more.
    pub longest: usize,
}

/// Queues `o = softmax(q · kᵀ · scale) · v`.
///
/// `q` and `o` are batch × heads × queries × depth, `k` and `v` batch × heads × keys × depth, with
/// a depth of 64, 128 or 256. There may be fewer heads of keys and values: then a number of
/// adjacent heads of queries share one. Views are taken as they are: a tensor of batch × sequence ×
/// heads × depth is `tensor.view().permute([0, 2, 1, 3])`. Where there are no keys, `o` is zero.
///
/// Products are summed and the softmax is computed in `f32`; weights are rounded to `T`. Each
/// result differs from the exact one by some units in the last place of `T`, relative to the
/// greatest value.
///
/// # Errors
///
/// `TMA0550` to `TMA0553` for tensors and options that do not go together; and those of
/// [`launch`](tma_runtime::launch::launch), for views of strides that no tensor map has and the
/// like.
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
