//! Weights of `e4m3` against the same weights as `bf16`.

mod passes;

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};
use tma_models::checkpoint::Checkpoint;
use tma_models::config::{Config, WeightFormat};
use tma_models::decoder::Decoder;
use tma_models::{ModelError, Source};
use tma_runtime::prelude::*;

use passes::log_probabilities;

const WIDTH: usize = 128;
const VOCABULARY: usize = 96;
const BLOCK: usize = 128;

fn config(mlp_width: usize, quantization: Value) -> Value {
    json!({
        "model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": mlp_width,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
        "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "quantization_config": quantization,
    })
}

fn fp8() -> Value {
    json!({ "quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic" })
}

/// Bytes of a tensor with their type and shape.
struct Stored {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Stored {
    /// Elements of `bf16` between -`most` and `most`.
    fn of_bf16(shape: &[usize], seed: usize, most: f32) -> Self {
        let number = |i: usize| bf16::from_f32(((i * 7919 + seed * 104_729) % 1009) as f32 / 504.0 - 1.0);
        let numbers = (0..shape.iter().product()).map(|i| bf16::from_f32(number(i).to_f32() * most));
        let bytes = numbers.flat_map(bf16::to_le_bytes).collect();
        Self { dtype: Dtype::BF16, shape: shape.into(), bytes }
    }

    /// A row of ones.
    fn ones(count: usize) -> Self {
        let bytes = [bf16::ONE].repeat(count).into_iter().flat_map(bf16::to_le_bytes).collect();
        Self { dtype: Dtype::BF16, shape: vec![count], bytes }
    }

    /// All finite numbers of `e4m3` up to 15.
    fn of_e4m3(shape: &[usize], seed: usize) -> Self {
        let bits = |i: usize| {
            let bits = ((i * 2_654_435_761 + seed * 40_503) >> 7) as u8;
            if bits & 0x7F > 0x57 { bits & 0xA7 } else { bits }
        };
        let bytes = (0..shape.iter().product()).map(bits).collect();
        Self { dtype: Dtype::F8_E4M3, shape: shape.into(), bytes }
    }

    /// A different scale for each block of a matrix.
    fn scales([rows, columns]: [usize; 2], seed: usize) -> Self {
        let shape = vec![rows.div_ceil(BLOCK), columns.div_ceil(BLOCK)];
        let scale = |i: usize| (0.01 + 0.003 * ((i * 5 + seed) % 7) as f32).to_le_bytes();
        let bytes = (0..shape.iter().product()).flat_map(scale).collect();
        Self { dtype: Dtype::F32, shape, bytes }
    }
}

/// Writes a checkpoint with matrices of `e4m3`.
fn write(folder: &Path, mlp_width: usize) -> Result<()> {
    let mut all = HashMap::new();
    all.insert("model.embed_tokens.weight".to_owned(), Stored::of_bf16(&[VOCABULARY, WIDTH], 1, 1.0));
    all.insert("lm_head.weight".to_owned(), Stored::of_bf16(&[VOCABULARY, WIDTH], 2, 0.2));
    for norm in ["norm", "layers.0.input_layernorm", "layers.0.post_attention_layernorm"] {
        all.insert(format!("model.{norm}.weight"), Stored::ones(WIDTH));
    }
    let matrices = [
        ("self_attn.q_proj", [WIDTH, WIDTH]),
        ("self_attn.k_proj", [WIDTH, WIDTH]),
        ("self_attn.v_proj", [WIDTH, WIDTH]),
        ("self_attn.o_proj", [WIDTH, WIDTH]),
        ("mlp.gate_proj", [mlp_width, WIDTH]),
        ("mlp.up_proj", [mlp_width, WIDTH]),
        ("mlp.down_proj", [WIDTH, mlp_width]),
    ];
    for (seed, (name, shape)) in matrices.into_iter().enumerate() {
        let name = format!("model.layers.0.{name}.weight");
        all.insert(format!("{name}_scale_inv"), Stored::scales(shape, seed));
        all.insert(name, Stored::of_e4m3(&shape, seed));
    }
    let views = all.iter().map(|(name, stored)| {
        let Stored { dtype, shape, bytes } = stored;
        Ok((name.as_str(), TensorView::new(*dtype, shape.clone(), bytes)?))
    });
    let views = views.collect::<Result<Vec<_>>>()?;
    safetensors::serialize_to_file(views, None, &folder.join("model.safetensors"))?;
    Ok(())
}

/// Checks that log-probabilities are those of the same weights as `bf16`. The bound is relative to
/// their deviation.
fn check(rows: usize, mlp_width: usize, bound: f64) -> Result<()> {
    let folder = tempfile::tempdir()?;
    write(folder.path(), mlp_width)?;
    let checkpoint = Checkpoint::open(folder.path())?;
    let device = Device::open()?;
    let tokens: Vec<u32> = (0..rows).map(|i| (i * 37 % VOCABULARY) as u32).collect();
    let with = |format| -> Result<Vec<f32>> {
        let config = Config { weights: format, ..Config::from_json(config(mlp_width, fp8()))? };
        let decoder = Decoder::load(&device, config, Source::Checkpoint(&checkpoint), &mut |_| {})?;
        log_probabilities(&decoder, &tokens)
    };
    let wanted = with(WeightFormat::Bf16)?;
    let count = wanted.len() as f64;
    let mean = wanted.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
    let deviation = wanted.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / count;
    for format in [WeightFormat::Stored, WeightFormat::E4m3] {
        let found = with(format)?;
        let errors = found.iter().zip(&wanted).map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2));
        let error = (errors.sum::<f64>() / count / deviation).sqrt();
        assert!(error > 0.0 && error < bound, "{format:?}: an error of {error}");
    }
    Ok(())
}

/// Weights are multiplied as they are, by activations of `bf16`.
#[test]
fn few_rows_are_multiplied_as_bf16() -> Result<()> {
    check(1, 256, 0.015)?;
    check(5, 256, 0.015)
}

/// The second matrix of the MLP does not begin at a multiple of 128 rows, so it shares scales with
/// the first.
#[test]
fn blocks_of_two_matrices_are_quantised_again() -> Result<()> {
    check(5, 160, 0.06)
}

/// Activations are quantised, too: an error of 2^-4 at most, and a third of that in the mean.
#[test]
fn many_rows_are_quantised() -> Result<()> {
    check(70, 160, 0.08)
}

/// The bytes read from files do not depend on the elements on the device.
#[test]
fn all_bytes_of_the_files_are_read() -> Result<()> {
    let folder = tempfile::tempdir()?;
    // With 160, two matrices are quantised again.
    for mlp_width in [256, 160] {
        write(folder.path(), mlp_width)?;
        let checkpoint = Checkpoint::open(folder.path())?;
        let mut on_device = vec![];
        for format in [WeightFormat::Bf16, WeightFormat::Stored, WeightFormat::E4m3] {
            let config = Config { weights: format, ..Config::from_json(config(mlp_width, fp8()))? };
            let mut all = vec![];
            let source = Source::Checkpoint(&checkpoint);
            Decoder::load(&Device::simulator(), config, source, &mut |loaded| all.push(loaded))?;
            assert!(all.is_sorted_by_key(|loaded| loaded.read), "{all:?}");
            let last = all.pop().unwrap_or_default();
            assert_eq!(last.read, checkpoint.bytes(), "{format:?}");
            on_device.push(last.on_device);
        }
        let [bf16, stored, e4m3] = on_device[..] else { panic!("three formats") };
        assert!(stored < bf16 && stored == e4m3, "{on_device:?}");
    }
    Ok(())
}

#[test]
fn other_formats_are_named() -> Result<()> {
    assert_eq!(Config::from_json(config(160, fp8()))?.weights, WeightFormat::Stored);
    assert_eq!(Config::from_json(config(160, Value::Null))?.weights, WeightFormat::Bf16);
    let refused = |quantization| match Config::from_json(config(160, quantization)) {
        Err(error @ ModelError::Setting { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(json!({ "quant_method": "gptq", "bits": 4 })),
        "unsupported quantization_config.quant_method in config.json: found gptq, wanted fp8"
    );
    assert_eq!(
        refused(json!({ "quant_method": "fp8" })),
        "unsupported quantization_config.weight_block_size in config.json: found null, wanted [128,128]"
    );
    assert_eq!(
        refused(
            json!({ "quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "static" })
        ),
        "unsupported quantization_config.activation_scheme in config.json: found static, wanted dynamic"
    );
    Ok(())
}
