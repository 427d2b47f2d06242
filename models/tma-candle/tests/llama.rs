//! A small Llama with candle's operations in F32 and with those of this package in BF16 and F16.

#[path = "../examples/llama/after.rs"]
mod after;
#[path = "../examples/llama/before.rs"]
mod before;
#[path = "../examples/llama/weights.rs"]
mod weights;

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;

use weights::Config;

const CONFIG: Config = Config {
    vocabulary: 96,
    hidden: 256,
    intermediate: 128,
    layers: 2,
    heads: 4,
    key_heads: 2,
    depth: 64,
    positions: 48,
};

/// Returns the greatest distance of logits, relative to the greatest logit.
fn distance(found: &Tensor, wanted: &Tensor) -> Result<f32> {
    let greatest = |tensor: &Tensor| tensor.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>();
    assert_eq!(found.dims(), wanted.dims());
    Ok(greatest(&(found.to_dtype(DType::F32)? - wanted)?)? / greatest(wanted)?)
}

/// Compares the logits of a prompt of 19 tokens in each of two sequences, and of two further
/// tokens, with those of the same rounded weights in F32.
fn check(dtype: DType, bound: f32) -> Result<()> {
    let mut weights = weights::random(CONFIG)?;
    for weight in weights.values_mut() {
        *weight = weight.to_dtype(dtype)?;
    }
    let rounded = weights.iter().map(|(name, weight)| Ok((name.clone(), weight.to_dtype(DType::F32)?)));
    let rounded = rounded.collect::<Result<_>>()?;
    let device = Device::Cpu;
    let mut before = before::Llama::new(CONFIG, VarBuilder::from_tensors(rounded, DType::F32, &device))?;
    let mut after = after::Llama::new(CONFIG, VarBuilder::from_tensors(weights, dtype, &device))?;
    for count in [19, 1, 1] {
        let tokens: Vec<u32> = (0..2 * count).map(|i| (i * 37 + count) % 96).collect();
        let tokens = Tensor::from_vec(tokens, (2, count as usize), &device)?;
        let wanted = before.forward(&tokens)?;
        assert_eq!(wanted.dims(), [2, CONFIG.vocabulary]);
        let distance = distance(&after.forward(&tokens)?, &wanted)?;
        println!("{dtype:?}, {count} tokens: {distance}");
        assert!(distance < bound, "{dtype:?}, {count} tokens: {distance}");
    }
    Ok(())
}

#[test]
fn the_logits_of_bf16_are_those_of_candle() -> Result<()> {
    check(DType::BF16, 0.03)
}

#[test]
fn the_logits_of_f16_are_those_of_candle() -> Result<()> {
    check(DType::F16, 0.004)
}
