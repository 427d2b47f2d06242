//! The extents of a model, and weights of noise.

use std::collections::HashMap;

use candle_core::{DType, Device, Result, Tensor};

/// The extents of a model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) vocabulary: usize,
    pub(crate) hidden: usize,
    pub(crate) intermediate: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) key_heads: usize,
    pub(crate) depth: usize,
    pub(crate) positions: usize,
}

/// Returns the weights of a model, in F32 on the CPU, by their names on the Hub.
pub(crate) fn random(config: Config) -> Result<HashMap<String, Tensor>> {
    let Config { vocabulary, hidden, intermediate, layers, heads, key_heads, depth, .. } = config;
    let mut weights = HashMap::new();
    let mut state = 1_u64;
    let mut matrix = |name: String, rows: usize, columns: usize| -> Result<()> {
        let mut number = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / f32::from(1_u16 << 15) / 256.0 - 1.0
        };
        let scale = 1.7 / (columns as f32).sqrt();
        let numbers: Vec<f32> = (0..rows * columns).map(|_| number() * scale).collect();
        weights.insert(format!("{name}.weight"), Tensor::from_vec(numbers, (rows, columns), &Device::Cpu)?);
        Ok(())
    };
    matrix("model.embed_tokens".into(), vocabulary, hidden)?;
    matrix("lm_head".into(), vocabulary, hidden)?;
    for i in 0..layers {
        let layer = format!("model.layers.{i}");
        matrix(format!("{layer}.self_attn.q_proj"), heads * depth, hidden)?;
        matrix(format!("{layer}.self_attn.k_proj"), key_heads * depth, hidden)?;
        matrix(format!("{layer}.self_attn.v_proj"), key_heads * depth, hidden)?;
        matrix(format!("{layer}.self_attn.o_proj"), hidden, heads * depth)?;
        matrix(format!("{layer}.mlp.gate_proj"), intermediate, hidden)?;
        matrix(format!("{layer}.mlp.up_proj"), intermediate, hidden)?;
        matrix(format!("{layer}.mlp.down_proj"), hidden, intermediate)?;
    }
    let norms = (0..layers).flat_map(|i| {
        ["input_layernorm", "post_attention_layernorm"].map(|norm| format!("model.layers.{i}.{norm}"))
    });
    for name in norms.chain(["model.norm".into()]) {
        weights.insert(format!("{name}.weight"), Tensor::ones(hidden, DType::F32, &Device::Cpu)?);
    }
    Ok(weights)
}
