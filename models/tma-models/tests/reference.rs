//! Small models against Hugging Face transformers: logits within the rounding of `bf16`, and the
//! same tokens.

mod passes;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use tma_models::Source;
use tma_models::checkpoint::Checkpoint;
use tma_models::config::Config;
use tma_models::decoder::Decoder;
use tma_models::encoder::{Encoder, EncoderActivations, EncoderConfig, Texts};
use tma_models::engine::{End, Engine, EngineOptions, Request, Sampling};
use tma_models::text::Text;
use tma_models_reference::{POSITIONS, Reference, deviation, log_softmax};
use tma_runtime::prelude::*;

use passes::log_probabilities;

/// The greatest error of a logit, relative to that of transformers with the same weights in `bf16`.
const BOUND: f64 = 1.3;

fn loaded(device: &Device, reference: &Reference) -> Result<(Decoder, Text)> {
    let folder = tempfile::tempdir()?;
    reference.write(folder.path())?;
    Ok((opened(device, folder.path())?, Text::open(folder.path())?))
}

fn opened(device: &Device, folder: &Path) -> Result<Decoder> {
    let checkpoint = Checkpoint::open(folder)?;
    Ok(Decoder::load(device, Config::open(folder)?, Source::Checkpoint(&checkpoint), &mut |_| {})?)
}

fn check(model: &str) -> Result<()> {
    let device = Device::open()?;
    let reference = Reference::open(model)?;
    let (decoder, text) = loaded(&device, &reference)?;
    assert_eq!(text.encode(&reference.prompt)?, reference.tokens);

    let vocabulary = decoder.config().vocabulary;
    let found = log_probabilities(&decoder, &reference.tokens)?;
    let positions = POSITIONS.into_iter().chain([reference.tokens.len() - 1]);
    let mut worst = 0.0_f64;
    for (position, wanted) in positions.zip(&reference.logits) {
        let (row, wanted) = (&found[position * vocabulary..][..vocabulary], log_softmax(wanted));
        let error = row.iter().zip(&wanted).map(|(x, y)| (f64::from(*x) - y).abs()).fold(0.0, f64::max);
        worst = worst.max(error / deviation(&wanted));
    }
    println!("error of {model}: {worst:.4}");
    assert!(worst <= BOUND * reference.bf16_error, "{model}: {worst}, transformers {}", reference.bf16_error);

    // The prompt in chunks of 20 tokens, beside another request.
    let options = EngineOptions { sequences: 2, context: 100, chunk: 20, ..Default::default() };
    let mut engine = Engine::new(decoder, options)?;
    let request = |prompt: &[u32], limit| Request {
        prompt: prompt.to_vec(),
        limit,
        sampling: Sampling::default(),
        ends: vec![],
        log_probabilities: None,
    };
    let other = engine.submit(request(&reference.tokens[3..9], 30))?;
    let id = engine.submit(request(&reference.tokens, reference.greedy.len()))?;
    let (mut tokens, mut end) = (vec![], None);
    while !engine.is_idle() {
        for event in engine.step()? {
            if event.request == id {
                tokens.extend(event.token);
                end = event.end;
                if end.is_some() {
                    engine.cancel(other);
                }
            }
        }
    }
    assert_eq!((tokens, end), (reference.greedy, Some(End::Limit)), "{model}");
    Ok(())
}

#[test]
fn bert() -> Result<()> {
    let device = Device::open()?;
    let reference = Reference::open("bert")?;
    let folder = tempfile::tempdir()?;
    reference.write(folder.path())?;
    let checkpoint = Checkpoint::open(folder.path())?;
    let config = EncoderConfig::open(folder.path())?;
    let width = config.width;
    let encoder = Encoder::load(&device, config, Source::Checkpoint(&checkpoint), &mut |_| {})?;

    // Two texts: the prompt, and its beginning, after which the tokens do not count.
    let longest = reference.tokens.len();
    let tokens = [reference.tokens.clone(), reference.tokens.clone()].concat();
    let positions: Vec<u32> = (0..2).flat_map(|_| 0..longest as u32).collect();
    let tokens = device.tensor(&tokens, [2 * longest])?;
    let positions = device.tensor(&positions, [2 * longest])?;
    let lengths = device.tensor(&[longest as u32, 9], [2])?;
    let texts = Texts { tokens: tokens.view(), positions: positions.view(), lengths: lengths.view() };
    let mut activations = EncoderActivations::new(&device, encoder.config(), 2 * longest)?;
    encoder.forward(&device, &texts, &mut activations)?;
    let found: Vec<f64> = activations.hidden_to_vec(2 * longest)?.into_iter().map(bf16::to_f64).collect();
    let positions = POSITIONS.into_iter().chain([longest - 1]);
    for (position, wanted) in positions.zip(&reference.states) {
        let wanted: Vec<f64> = wanted.iter().map(|x| f64::from(*x)).collect();
        let row = &found[position * width..][..width];
        let errors = row.iter().zip(&wanted).map(|(x, y)| (x - y).abs());
        let error = errors.fold(0.0, f64::max) / deviation(&wanted);
        assert!(error <= BOUND * reference.bf16_error, "{position}: {error}, {}", reference.bf16_error);
    }
    // Attention sees other keys in the shorter text.
    let (whole, part) = found.split_at(longest * width);
    assert!(whole[..width].iter().zip(&part[..width]).any(|(x, y)| (x - y).abs() > 0.1));
    Ok(())
}

#[test]
fn llama_2() -> Result<()> {
    check("llama2")
}

#[test]
fn llama_3_with_its_rotary_scaling_and_tied_embeddings() -> Result<()> {
    check("llama3")
}

#[test]
fn qwen_2_with_biases_and_yarn() -> Result<()> {
    check("qwen2")
}

#[test]
fn qwen_3_with_norms_of_heads() -> Result<()> {
    check("qwen3")
}

#[test]
fn qwen_3_with_experts_in_every_second_layer() -> Result<()> {
    check("qwen3_moe")
}

#[test]
fn mixtral_with_weights_of_experts_that_add_up_to_1() -> Result<()> {
    check("mixtral")
}

/// Files in which a tensor has the matrices of all experts, as transformers has them in memory.
#[test]
fn matrices_of_all_experts_in_a_tensor() -> Result<()> {
    let device = Device::open()?;
    for (model, block, names) in [
        ("qwen3_moe", "mlp", ["gate_proj", "up_proj", "down_proj"]),
        ("mixtral", "block_sparse_moe", ["w1", "w3", "w2"]),
    ] {
        let reference = Reference::open(model)?;
        let folder = tempfile::tempdir()?;
        reference.write(folder.path())?;
        let wanted = log_probabilities(&opened(&device, folder.path())?, &reference.tokens)?;
        pack_experts(&folder.path().join("model.safetensors"), block, names)?;
        let found = log_probabilities(&opened(&device, folder.path())?, &reference.tokens)?;
        assert_eq!(found, wanted, "{model}");
    }
    Ok(())
}

/// Replaces the matrices of experts in a file by `mlp.experts.gate_up_proj` and
/// `mlp.experts.down_proj`, and the name of the block by `mlp`.
fn pack_experts(path: &Path, block: &str, [gate, up, down]: [&str; 3]) -> Result<()> {
    let file = std::fs::read(path)?;
    let tensors = SafeTensors::deserialize(&file)?;
    let mut packed = BTreeMap::new();
    for name in tensors.names() {
        let Some((layer, expert)) = name.split_once(&format!("{block}.experts.")) else {
            let tensor = tensors.tensor(name)?;
            let name = name.replace(block, "mlp");
            packed.insert(name, (tensor.shape().to_vec(), tensor.data().to_vec()));
            continue;
        };
        if expert != format!("0.{gate}.weight") {
            continue;
        }
        let of = |expert: usize, rest: &str| {
            tensors.tensor(&format!("{layer}{block}.experts.{expert}.{rest}.weight"))
        };
        for (target, parts) in [("gate_up_proj", vec![gate, up]), ("down_proj", vec![down])] {
            let [rows, columns] = of(0, parts[0])?.shape().try_into()?;
            let (mut data, mut experts) = (vec![], 0);
            while of(experts, gate).is_ok() {
                for part in &parts {
                    data.extend_from_slice(of(experts, part)?.data());
                }
                experts += 1;
            }
            let shape = vec![experts, parts.len() * rows, columns];
            packed.insert(format!("{layer}mlp.experts.{target}"), (shape, data));
        }
    }
    assert!(packed.len() < tensors.names().len());
    let views = packed
        .iter()
        .map(|(name, (shape, data))| Ok((name, TensorView::new(Dtype::F32, shape.clone(), data)?)))
        .collect::<Result<Vec<_>>>()?;
    Ok(safetensors::serialize_to_file(views, None, path)?)
}

#[test]
fn mistral_with_a_sliding_window() -> Result<()> {
    check("mistral")
}

#[test]
fn gemma_2_with_limits_and_norms_of_results() -> Result<()> {
    check("gemma2")
}

#[test]
fn gpt_2_with_learned_positions() -> Result<()> {
    check("gpt2")
}
