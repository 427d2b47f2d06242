//! The model with the operations of tma-candle.

use candle_core::{DType, Module, Result, Tensor};
use candle_nn::VarBuilder;
use candle_nn::kv_cache::KvCache;
use tma_candle::rotary_emb::rope_thd;
use tma_candle::{Embedding, Linear, RmsNorm, embedding, linear_no_bias, rms_norm};
use tma_candle::{Gate, flash_attn, ops};

use super::weights::Config;

include!("model.rs");

/// Returns the gate of SwiGLU.
fn gated(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    ops::gated(Gate::Silu, gate, up)
}

/// Returns causal attention of batch × tokens × heads × depth.
fn attention(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
    let scale = (q.dim(3)? as f32).sqrt().recip();
    flash_attn(q, k, v, scale, true, false)
}
