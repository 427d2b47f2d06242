//! The model with candle's operations.

use candle_core::{DType, Device, Module, Result, Tensor};
use candle_nn::kv_cache::KvCache;
use candle_nn::rotary_emb::rope_thd;
use candle_nn::{Embedding, Linear, RmsNorm, VarBuilder, embedding, linear_no_bias, rms_norm};

use super::weights::Config;

include!("model.rs");

/// Returns the gate of SwiGLU.
fn gated(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    gate.silu()? * up
}

/// Returns causal attention of batch × tokens × heads × depth.
fn attention(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
    let ((batch, tokens, heads, depth), (_, keys, key_heads, _)) = (q.dims4()?, k.dims4()?);
    let repeated = |x: &Tensor| {
        let all = (batch, keys, key_heads, heads / key_heads, depth);
        x.unsqueeze(3)?.expand(all)?.reshape((batch, keys, heads, depth))?.transpose(1, 2)?.contiguous()
    };
    let scores = q.transpose(1, 2)?.contiguous()?.matmul(&repeated(k)?.t()?)?;
    let scores = (scores * (depth as f64).sqrt().recip())?;
    let hidden = |i, j| if j + tokens > i + keys { f32::NEG_INFINITY } else { 0.0 };
    let mask: Vec<f32> = (0..tokens).flat_map(|i| (0..keys).map(move |j| hidden(i, j))).collect();
    let mask =
        Tensor::from_vec(mask, (tokens, keys), &Device::Cpu)?.to_device(q.device())?.to_dtype(q.dtype())?;
    let weights = candle_nn::ops::softmax_last_dim(&scores.broadcast_add(&mask)?)?;
    weights.matmul(&repeated(v)?)?.transpose(1, 2)?.contiguous()
}
