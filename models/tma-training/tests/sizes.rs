//! Steps of models with the extents of real ones.

mod models;

use anyhow::Result;
use serde_json::{Value, json};
use tma_models::config::Config;
use tma_training::{Trainer, TrainingOptions};

const LENGTH: usize = 1024;

/// Four steps with the same 4096 tokens a micro-batch, whose logits are in two pieces: gradients
/// are finite, and the loss falls.
fn check(json: Value) -> Result<()> {
    let config = Config::from_json(json)?;
    let options = TrainingOptions { sequences: 4, length: LENGTH, micro_batches: 2, ..Default::default() };
    let options = TrainingOptions { logit_rows: 2048, ..options };
    let mut trainer = Trainer::new(&models::device()?, &config, options, 7)?;
    let mut noise = models::noise(3);
    let vocabulary = config.vocabulary as u32;
    let tokens = (0..8 * (LENGTH + 1)).map(|_| ((noise() + 1.0) * 1000.0) as u32 * 31 % vocabulary);
    let tokens: Vec<u32> = tokens.collect();
    let reports = [0.001; 4].map(|rate| trainer.step(&tokens, rate));
    let reports = reports.into_iter().collect::<Result<Vec<_>, _>>()?;
    println!("{reports:?}");
    // The loss of a model without knowledge is the logarithm of the vocabulary.
    assert!((reports[0].loss - (vocabulary as f32).ln()).abs() < 0.5, "{reports:?}");
    assert!(reports.iter().all(|report| !report.skipped), "{reports:?}");
    assert!(reports.windows(2).all(|pair| pair[1].loss < pair[0].loss), "{reports:?}");
    for gradient in trainer.gradients()? {
        assert!(gradient.values.iter().all(|number| number.is_finite()), "{}", gradient.name);
        assert!(gradient.values.iter().any(|number| *number != 0.0), "{}", gradient.name);
    }
    Ok(())
}

/// The extents of GPT-2, whose vocabulary is not a multiple of 8.
#[test]
#[ignore = "takes hours on the simulator: TMA_DEVICE=cuda cargo test --features cuda -- --ignored"]
fn gpt2() -> Result<()> {
    check(json!({
        "model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 2, "n_head": 12,
        "n_positions": LENGTH, "layer_norm_epsilon": 1e-5,
    }))
}

/// The extents of Llama 3.2 with 1.2 billion parameters, but for layers and vocabulary.
#[test]
#[ignore = "takes hours on the simulator: TMA_DEVICE=cuda cargo test --features cuda -- --ignored"]
fn llama() -> Result<()> {
    check(json!({
        "model_type": "llama", "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 8192,
        "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
        "max_position_embeddings": LENGTH, "rms_norm_eps": 1e-5,
    }))
}
