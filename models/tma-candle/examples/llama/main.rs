//! A small Llama with candle's operations and with those of tma-candle: the same weights and
//! tokens, the distance of logits, and the time of a token.
//!
//! `cargo run --release -p tma-candle --example llama` runs on the simulator. `--features cuda` and
//! the argument `cuda` run a larger one on a GPU.

mod after;
mod before;
mod weights;

use std::collections::HashMap;
use std::time::Instant;

use candle_core::{D, DType, Device, Result, Tensor, bail};
use candle_nn::VarBuilder;

use weights::Config;

/// A model for the simulator.
const SMALL: Config = Config {
    vocabulary: 256,
    hidden: 128,
    intermediate: 256,
    layers: 2,
    heads: 4,
    key_heads: 2,
    depth: 64,
    positions: 64,
};

/// The extents of Llama 3.2 with a billion weights.
const BILLION: Config = Config {
    vocabulary: 128_256,
    hidden: 2048,
    intermediate: 8192,
    layers: 16,
    heads: 32,
    key_heads: 8,
    depth: 64,
    positions: 2048,
};

/// The logits of each step, and the seconds of the prompt and of a token.
struct Run {
    logits: Vec<Tensor>,
    prompt: f64,
    token: f64,
}

/// Computes the logits of a prompt, and of the tokens that follow.
fn run(
    device: &Device,
    prompt: &[u32],
    next: &[u32],
    mut forward: impl FnMut(&Tensor) -> Result<Tensor>,
) -> Result<Run> {
    let mut logits = vec![];
    let begin = Instant::now();
    logits.push(forward(&Tensor::new(prompt, device)?.unsqueeze(0)?)?);
    device.synchronize()?;
    let after_prompt = Instant::now();
    for token in next {
        logits.push(forward(&Tensor::new(&[[*token]], device)?)?);
    }
    device.synchronize()?;
    let token = after_prompt.elapsed().as_secs_f64() / next.len() as f64;
    Ok(Run { logits, prompt: (after_prompt - begin).as_secs_f64(), token })
}

fn main() -> Result<()> {
    let (device, config, tokens) = match std::env::args().nth(1).as_deref() {
        None => (Device::Cpu, SMALL, [20, 4]),
        Some("cuda") => (Device::new_cuda(0)?, BILLION, [1000, 100]),
        Some(other) => bail!("the argument `{other}` is not `cuda`"),
    };
    let weights = weights::random(config)?;
    let of_type = |dtype| {
        let on_device = |(name, weight): (&String, &Tensor)| {
            Ok((name.clone(), weight.to_device(&device)?.to_dtype(dtype)?))
        };
        weights.iter().map(on_device).collect::<Result<HashMap<_, _>>>()
    };
    let ours = of_type(DType::BF16)?;
    // candle has no product of BF16 on the CPU.
    let (theirs, dtype) =
        if device.is_cpu() { (of_type(DType::F32)?, DType::F32) } else { (ours.clone(), DType::BF16) };
    let numbers = |count: usize, step| (0..count).map(|i| (i * step % config.vocabulary) as u32).collect();
    let (prompt, next): (Vec<u32>, Vec<u32>) = (numbers(tokens[0], 37), numbers(tokens[1], 91));

    let mut runs = vec![];
    // The first run of each compiles kernels and fills pools.
    for _ in 0..2 {
        let mut before =
            before::Llama::new(config, VarBuilder::from_tensors(theirs.clone(), dtype, &device))?;
        let mut after =
            after::Llama::new(config, VarBuilder::from_tensors(ours.clone(), DType::BF16, &device))?;
        runs = vec![
            run(&device, &prompt, &next, |tokens| before.forward(tokens))?,
            run(&device, &prompt, &next, |tokens| after.forward(tokens))?,
        ];
    }
    let mut greatest = 0.0_f32;
    let mut same = 0;
    for (before, after) in runs[0].logits.iter().zip(&runs[1].logits) {
        let (before, after) = (before.to_dtype(DType::F32)?, after.to_dtype(DType::F32)?);
        let most = before.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
        let apart = (&before - &after)?.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
        greatest = greatest.max(apart / most);
        let chosen = |logits: &Tensor| logits.argmax(D::Minus1)?.to_vec1::<u32>();
        same += usize::from(chosen(&before)? == chosen(&after)?);
    }
    println!("{config:?}, {} tokens at once and {} one by one", tokens[0], tokens[1]);
    println!(
        "logits differ by up to {greatest:.4} of the greatest one; {same} of {} steps choose the same token",
        1 + next.len()
    );
    for (name, run) in ["candle", "tma-candle"].iter().zip(&runs) {
        println!("{name:>10}: prompt {:8.2} ms, token {:8.3} ms", run.prompt * 1e3, run.token * 1e3);
    }
    Ok(())
}
