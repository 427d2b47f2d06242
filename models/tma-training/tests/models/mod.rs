//! Small models, and tokens for them.

#![allow(dead_code, reason = "each test uses some of them")]

use anyhow::Result;
use serde_json::{Value, json};
use tma_kernels::optimizer::AdamWOptions;
use tma_models::config::Config;
use tma_runtime::prelude::*;
use tma_training::{State, StateTensor, TrainingOptions};

pub(crate) const SEQUENCES: usize = 2;
pub(crate) const LENGTH: usize = 24;

pub(crate) const OPTIONS: TrainingOptions = TrainingOptions {
    sequences: SEQUENCES,
    length: LENGTH,
    micro_batches: 2,
    recompute: false,
    logit_rows: 0,
    weight_decay: 0.1,
    max_norm: f32::INFINITY,
    adamw: AdamWOptions { beta1: 0.9, beta2: 0.95, epsilon: 1e-8 },
    label_smoothing: 0.0,
    z_loss: 0.0,
};

/// Returns the simulator, or the GPU that the environment variable `TMA_DEVICE` names.
pub(crate) fn device() -> Result<Device> {
    Ok(Device::open()?)
}

/// Returns a Llama. With biases, its head is the table of embeddings.
pub(crate) fn llama(has_bias: bool) -> Result<Config> {
    Ok(Config::from_json(llama_json(has_bias))?)
}

pub(crate) fn llama_json(has_bias: bool) -> Value {
    json!({
        "model_type": "llama", "vocab_size": 260, "hidden_size": 128, "intermediate_size": 192,
        "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
        "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "attention_bias": has_bias, "mlp_bias": has_bias, "tie_word_embeddings": has_bias,
    })
}

pub(crate) fn gpt2() -> Result<Config> {
    Ok(Config::from_json(gpt2_json())?)
}

pub(crate) fn gpt2_json() -> Value {
    json!({
        "model_type": "gpt2", "vocab_size": 260, "n_embd": 128, "n_layer": 2, "n_head": 2,
        "n_positions": 32, "n_inner": 192, "layer_norm_epsilon": 1e-5,
    })
}

/// Returns numbers from -1 to 1.
pub(crate) fn noise(seed: u64) -> impl FnMut() -> f32 {
    let mut word = seed;
    move || {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (word >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Returns tokens of so many sequences, each with a label more.
pub(crate) fn tokens(config: &Config, sequences: usize) -> Vec<u32> {
    let mut noise = noise(3);
    let token = |x: f32| ((x + 1.0) / 2.0 * config.vocabulary as f32) as u32 % config.vocabulary as u32;
    (0..sequences * (LENGTH + 1)).map(|_| token(noise())).collect()
}

/// Returns the model with fewer numbers, for tests that run it often.
pub(crate) fn small(config: Config) -> Config {
    Config { vocabulary: 20, mlp_width: 64, windows: vec![None], ..config }
}

/// Returns larger weights than initial ones, and biases that are not 0.
pub(crate) fn spread(state: State) -> State {
    let mut noise = noise(11);
    let spread = |mut tensor: StateTensor| {
        let is_matrix = tensor.shape.len() == 2;
        let new = |x: &f32| if is_matrix { 3.0 * x } else { x + 0.2 * noise() };
        tensor.master = tensor.master.iter().map(new).collect();
        tensor
    };
    State { steps: state.steps, tensors: state.tensors.into_iter().map(spread).collect() }
}
