//! Gradients of attention.

use candle_core::Tensor;
use tma_kernels::attention::{
    AttentionBackwardOptions, AttentionForward, AttentionGradients, attention_backward,
};
use tma_runtime::prelude::*;

use super::{Differentiated, Gradients};
use crate::attention::{HEADS_FIRST, Mask, Packed, heads};
use crate::by_element;
use crate::error::Result;
use crate::operation::Operation;

/// Returns the gradients of `q`, `k` and `v`, which one kernel computes together.
pub(super) fn gradients(
    of: &Differentiated<'_>,
    lse: &Tensor,
    mask: Mask,
    packed: Option<&Packed>,
) -> Result<Gradients> {
    let [q, k, v] = [0, 1, 2].map(|i| &of.tensors[i]);
    let zeros = |tensor: &Tensor| Tensor::zeros(tensor.shape(), tensor.dtype(), tensor.device());
    let (dk, dv) = (zeros(k)?, zeros(v)?);
    let mut inputs = vec![("q", q), ("k", k), ("v", v), ("o", &of.result), ("do", &of.dy), ("lse", lse)];
    inputs.extend(packed.into_iter().flat_map(Packed::arguments));
    let operation = Operation {
        updated: &[("dk", &dk), ("dv", &dv)],
        // Nothing is stored to the rows of packed queries that belong to no sequence.
        is_partial: packed.is_some(),
        ..Operation::new(of.name, &inputs)
    };
    let dq = by_element!(of.name, "q", q, [bf16, f16], T => operation.run::<T>(q.shape(), |call| {
        let forward = AttentionForward {
            q: heads::<T>(call, "q")?,
            k: heads(call, "k")?,
            v: heads(call, "v")?,
            o: heads(call, "o")?,
            d_o: heads(call, "do")?,
            lse: call.input("lse")?,
        };
        let gradients = AttentionGradients {
            dq: call.output::<T, 4>()?.permute(HEADS_FIRST)?,
            dk: call.updated::<T, 4>("dk")?.permute(HEADS_FIRST)?,
            dv: call.updated::<T, 4>("dv")?.permute(HEADS_FIRST)?,
        };
        let mut workspace = call.queue().attention_workspace();
        let options = AttentionBackwardOptions {
            causal: mask.is_causal(),
            window: mask.left,
            window_after: mask.window_after(),
            scale: Some(mask.scale),
            lengths: packed.map(|packed| packed.lengths(call)).transpose()?,
            workspace: Some(&mut workspace),
            ..AttentionBackwardOptions::default()
        };
        Ok(attention_backward(call.on(), forward, gradients, options)?)
    }))?;
    Ok([Some(dq), Some(dk), Some(dv)])
}
