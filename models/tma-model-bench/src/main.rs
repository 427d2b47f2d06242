//! Measures tokens a second of models with weights of noise, and prints a JSON line for each
//! result.
//!
//! `torch_rivals.py` in this folder measures Hugging Face transformers at the same shapes.

use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::{Value, json};
use tma_models::Source;
use tma_models::cache::{Cache, PAGE_ROWS};
use tma_models::config::{Config, WeightFormat};
use tma_models::decoder::Decoder;
use tma_models::engine::{Engine, EngineOptions, Request, Sampling};
use tma_runtime::Device;

/// Measures a model on a device.
#[derive(Parser)]
struct Arguments {
    /// The model's shape: llama-3-8b, qwen3-8b, qwen3-30b-a3b, or tiny.
    #[arg(long, default_value = "llama-3-8b")]
    shape: String,
    /// Whether matrices of layers have elements of e4m3.
    #[arg(long)]
    e4m3: bool,
    /// Numbers of texts that are generated at the same time.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    batches: Vec<usize>,
    /// The tokens of each text before the measurement.
    #[arg(long, default_value_t = 1024)]
    context: usize,
    /// Steps that are measured.
    #[arg(long, default_value_t = 128)]
    steps: usize,
    /// The tokens of the prompt whose reading is measured.
    #[arg(long, default_value_t = 8192)]
    prompt: usize,
    /// Measurements, of which the fastest and the slowest are printed as well.
    #[arg(long, default_value_t = 3, value_parser = parsed_rounds)]
    rounds: usize,
}

/// Returns a number of at least 1.
fn parsed_rounds(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("wanted a number of at least 1".into()),
        Ok(rounds) => Ok(rounds),
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let device = Device::open()?;
    let mut config = Config::from_json(shape(&arguments.shape).context("unknown shape")?)?;
    if arguments.e4m3 {
        config.weights = WeightFormat::E4m3;
    }
    let start = Instant::now();
    let mut weight_bytes = 0;
    let mut decoder =
        Decoder::load(&device, config, Source::Noise, &mut |loaded| weight_bytes = loaded.on_device)?;
    println!(
        "{}",
        json!({ "model": arguments.shape, "e4m3": arguments.e4m3, "device": device.name(), "weight_bytes": weight_bytes,
                "load_s": start.elapsed().as_secs_f64() })
    );
    for &batch in &arguments.batches {
        decoder = decode(&arguments, decoder, batch)?;
    }
    read(&arguments, decoder)
}

/// Measures steps of a batch.
fn decode(arguments: &Arguments, decoder: Decoder, batch: usize) -> Result<Decoder> {
    let Arguments { context, steps, rounds, .. } = *arguments;
    let warm_up = 8;
    // Steps that read prompts and steps that append tokens alternate.
    let limit = warm_up + 2 * batch + rounds * steps + 1;
    let of_sequence = context + limit;
    let options = EngineOptions {
        sequences: batch,
        context: of_sequence.next_multiple_of(PAGE_ROWS),
        chunk: context.max(1),
        ..Default::default()
    };
    let mut engine = Engine::new(decoder, options)?;
    for text in 0..batch {
        engine.submit(request(engine.decoder(), text, context, limit))?;
    }
    for _ in 0..2 * batch + warm_up {
        engine.step()?;
    }
    let mut seconds = vec![];
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..steps {
            engine.step()?;
        }
        seconds.push(start.elapsed().as_secs_f64() / steps as f64);
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    let of_token = Cache::bytes_of_page(engine.decoder().config()) / PAGE_ROWS as u64;
    let keys = context + batch / 2 + warm_up + rounds * steps / 2;
    let cache_bytes = of_token * (batch * keys) as u64;
    println!(
        "{}",
        json!({ "model": arguments.shape, "decode": batch, "context": context, "ms": 1e3 * median,
                "least_ms": 1e3 * seconds[0], "most_ms": 1e3 * seconds[seconds.len() - 1],
                "tokens_per_s": batch as f64 / median, "cache_bytes": cache_bytes })
    );
    Ok(engine.into_decoder())
}

/// Measures how long a prompt is read.
fn read(arguments: &Arguments, decoder: Decoder) -> Result<()> {
    let Arguments { prompt, rounds, .. } = *arguments;
    if prompt == 0 {
        return Ok(());
    }
    let context = (prompt + 1).next_multiple_of(PAGE_ROWS);
    let options = EngineOptions { sequences: 1, context, chunk: prompt, ..Default::default() };
    let mut engine = Engine::new(decoder, options)?;
    let mut seconds = vec![];
    for text in 0..=rounds {
        engine.submit(request(engine.decoder(), text, prompt, 1))?;
        let start = Instant::now();
        engine.step()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.remove(0); // loads kernels
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    println!(
        "{}",
        json!({ "model": arguments.shape, "prompt": prompt, "ms": 1e3 * median, "least_ms": 1e3 * seconds[0],
                "most_ms": 1e3 * seconds[seconds.len() - 1], "tokens_per_s": prompt as f64 / median })
    );
    Ok(())
}

fn request(decoder: &Decoder, text: usize, tokens: usize, limit: usize) -> Request {
    let vocabulary = decoder.config().vocabulary;
    let token = |i: usize| ((text * 7919 + i * 104_729 + 17) % vocabulary) as u32;
    Request {
        prompt: (0..tokens).map(token).collect(),
        limit,
        sampling: Sampling::default(),
        ends: vec![],
        log_probabilities: None,
    }
}

/// Returns the contents of a `config.json`.
fn shape(name: &str) -> Option<Value> {
    match name {
        "llama-3-8b" => Some(json!({
            "model_type": "llama", "vocab_size": 128_256, "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
            "max_position_embeddings": 16384, "rms_norm_eps": 1e-5, "rope_theta": 500_000.0,
        })),
        "qwen3-8b" => Some(json!({
            "model_type": "qwen3", "vocab_size": 151_936, "hidden_size": 4096, "intermediate_size": 12288,
            "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
            "max_position_embeddings": 16384, "rms_norm_eps": 1e-6, "rope_theta": 1_000_000.0,
        })),
        "qwen3-30b-a3b" => Some(json!({
            "model_type": "qwen3_moe", "vocab_size": 151_936, "hidden_size": 2048, "intermediate_size": 6144,
            "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
            "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": true,
            "max_position_embeddings": 16384, "rms_norm_eps": 1e-6, "rope_theta": 1_000_000.0,
        })),
        "tiny" => Some(json!({
            "model_type": "llama", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 128,
            "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
            "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
        })),
        _ => None,
    }
}
