//! Gradients of attention.

pub mod general;
pub mod kernel;
mod launch;
mod problem;
pub mod rows;
pub mod steps;
mod workspace;

use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use super::{AttentionElement, AttentionError, Lengths};

pub use self::workspace::AttentionWorkspace;

/// Inputs and results of [`attention`](super::attention()), and the gradient of its result.
#[derive(Clone, Copy, Debug)]
pub struct AttentionForward<'a, T> {
    /// Queries: batch × heads × queries × depth.
    pub q: TensorView<'a, T, 4>,
    /// Keys: batch × heads × keys × depth, with as many heads or a divisor of them.
    pub k: TensorView<'a, T, 4>,
    /// Values, of the shape of `k`.
    pub v: TensorView<'a, T, 4>,
    /// The result, of the shape of `q`.
    pub o: TensorView<'a, T, 4>,
    /// The gradient of the result, of the shape of `q`.
    pub d_o: TensorView<'a, T, 4>,
    /// The logarithm of each row's sum of exponentials
    /// ([`AttentionOptions::lse`](super::AttentionOptions::lse)): batch × heads × queries.
    pub lse: TensorView<'a, f32, 3>,
}

/// The destinations of [`attention_backward`], each of the shape of the tensor whose gradient it
/// is.
#[derive(Debug)]
pub struct AttentionGradients<'a, T> {
    /// The gradient of the queries.
    pub dq: TensorViewMut<'a, T, 4>,
    /// The gradient of the keys.
    pub dk: TensorViewMut<'a, T, 4>,
    /// The gradient of the values.
    pub dv: TensorViewMut<'a, T, 4>,
}

/// The sinks of [`AttentionOptions::sinks`](super::AttentionOptions::sinks), and the destination of
/// their gradient: one number for each head of queries.
#[derive(Debug)]
pub struct Sinks<'a> {
    /// The sinks.
    pub sinks: TensorView<'a, f32, 1>,
    /// Their gradient.
    pub gradient: TensorViewMut<'a, f32, 1>,
}

/// Options of [`attention_backward`]. Those that [`AttentionOptions`](super::AttentionOptions) has as
/// well must be those of the forward pass.
#[derive(Debug, Default)]
pub struct AttentionBackwardOptions<'a> {
    /// Whether a query sees only the keys up to its own position
    /// ([`AttentionOptions::causal`](super::AttentionOptions::causal)).
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
    /// The sinks, whose gradient is computed as well. Gradients of queries, keys and values depend on
    /// sinks through `lse` alone.
    pub sinks: Option<Sinks<'a>>,
    /// The lengths of sequences that are packed one after the other.
    pub lengths: Option<Lengths<'a>>,
    /// Whether the gradients of queries have the same bits in every run: blocks of keys then add to
    /// them in a fixed order, and wait for each other. If the starts of `lengths` do not ascend, they
    /// may wait forever.
    pub deterministic: bool,
    /// Memory for sums. It grows if it is too small. Without it, the call allocates its own, and
    /// waits when that is freed.
    pub workspace: Option<&'a mut AttentionWorkspace>,
}

/// Queues the gradients of queries, keys and values of [`attention`](super::attention()).
///
/// Heads have at most 128 elements, a multiple of 8. Heads of queries that share a head of keys add
/// up in its gradient. Views need not be contiguous, but rows, the elements of a head and query or
/// key, must be. Rows of `o`, `d_o` and `dq` begin at multiples of 16 bytes.
///
/// Products accumulate in `f32`. Weights and gradients of scores are rounded to `T`, and each
/// gradient is rounded once more. Those of keys and values have the same bits in every run. The
/// blocks of keys add to a query's gradient in `f32` in the order in which they finish, so its last
/// bits may differ between runs, unless the order is
/// [fixed](AttentionBackwardOptions::deterministic). Weights have a relative error of about 2^-24
/// times the greatest score of their query, after the scale: the logarithm of the sum has that
/// rounding.
///
/// # Errors
///
/// `TMA0550` to `TMA0553` for tensors and options that do not match, `TMA0569` for rows that are not
/// contiguous or not aligned, and `TMA0570` for a workspace in the caller's memory that is too
/// small. Also the errors of [`launch`](tma_runtime::launch::launch), for example for views whose
/// strides no tensor map can have; some of the gradients may then have been written.
///
/// ```
/// use tma_kernels::attention::{AttentionForward, AttentionGradients, attention_backward};
/// use tma_kernels::{AttentionOptions, attention};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::simulator();
/// let q = device.tensor(&[bf16::from_f32(0.5); 4 * 70 * 64], [1, 4, 70, 64])?;
/// let (k, v) = (device.zeros([1, 2, 90, 64])?, device.zeros([1, 2, 90, 64])?);
/// let mut o = device.zeros(q.shape())?;
/// let mut lse = device.zeros([1, 4, 70])?;
/// let options = AttentionOptions { lse: Some(lse.view_mut()), ..Default::default() };
/// attention(&device, &q, &k, &v, &mut o, options)?;
///
/// let d_o = device.tensor(&[bf16::from_f32(1.0); 4 * 70 * 64], q.shape())?;
/// let (mut dq, mut dk, mut dv) =
///     (device.zeros(q.shape())?, device.zeros(k.shape())?, device.zeros(v.shape())?);
/// let forward = AttentionForward {
///     q: q.view(),
///     k: k.view(),
///     v: v.view(),
///     o: o.view(),
///     d_o: d_o.view(),
///     lse: lse.view(),
/// };
/// let gradients =
///     AttentionGradients { dq: dq.view_mut(), dk: dk.view_mut(), dv: dv.view_mut() };
/// attention_backward(&device, forward, gradients, Default::default())?;
/// // Each of 90 keys has a weight of 1/90 in the 70 queries of 2 heads.
/// assert!(dv.to_vec()?.iter().all(|x| (x.to_f32() - 140.0 / 90.0).abs() < 0.01));
/// # Ok(())
/// # }
/// ```
pub fn attention_backward<T: AttentionElement>(
    on: &impl LaunchOn,
    forward: AttentionForward<'_, T>,
    gradients: AttentionGradients<'_, T>,
    options: AttentionBackwardOptions<'_>,
) -> Result<(), AttentionError> {
    launch::queue(on, forward, gradients, options)
}
