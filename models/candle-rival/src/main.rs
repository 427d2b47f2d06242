//! Measures tokens a second of candle's own Llama with weights of noise, and prints a JSON line for
//! each result, in the form of `tma-model-bench`.
//!
//! candle computes attention from whole matrices of scores, and its cache is copied when it grows:
//! this is the model as `candle-transformers` has it, without `flash-attn`.

use std::time::Instant;

use anyhow::{Result, ensure};
use candle_core::{D, DType, Device, Shape, Tensor};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;
use candle_transformers::models::llama::{Cache, Config, Llama};
use clap::{Parser, ValueEnum};
use serde_json::json;

/// Measures candle's Llama on a GPU, or on the CPU without the feature `cuda`.
#[derive(Parser)]
struct Arguments {
    /// The model's shape.
    #[arg(long, value_enum, default_value_t = ModelShape::Llama3_8b)]
    shape: ModelShape,
    /// Numbers of texts that are generated at the same time.
    #[arg(long, value_delimiter = ',', default_value = "1,16")]
    batches: Vec<usize>,
    /// The tokens of each text before the measurement.
    #[arg(long, default_value_t = 1024)]
    context: usize,
    /// Steps that are measured.
    #[arg(long, default_value_t = 128)]
    steps: usize,
    /// The length of the measured prompt in tokens; 0 skips this measurement.
    #[arg(long, default_value_t = 8192)]
    prompt: usize,
    /// Measurements, of which the fastest and the slowest are printed as well.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum ModelShape {
    #[value(name = "llama-3-8b")]
    Llama3_8b,
    Tiny,
}

impl ModelShape {
    fn name(self) -> &'static str {
        match self {
            Self::Llama3_8b => "llama-3-8b",
            Self::Tiny => "tiny",
        }
    }

    /// Returns the configuration of this shape, as in `tma-model-bench`.
    fn config(self) -> Config {
        let llama = Config {
            hidden_size: 4096,
            intermediate_size: 14336,
            vocab_size: 128_256,
            num_hidden_layers: 32,
            num_attention_heads: 32,
            num_key_value_heads: 8,
            use_flash_attn: false,
            rms_norm_eps: 1e-5,
            rope_theta: 500_000.0,
            bos_token_id: None,
            eos_token_id: None,
            rope_scaling: None,
            max_position_embeddings: 16384,
            tie_word_embeddings: false,
        };
        match self {
            Self::Llama3_8b => llama,
            Self::Tiny => Config {
                hidden_size: 64,
                intermediate_size: 128,
                vocab_size: 512,
                num_hidden_layers: 1,
                num_attention_heads: 4,
                num_key_value_heads: 2,
                max_position_embeddings: 512,
                ..llama
            },
        }
    }
}

/// Weights of noise: parts of one pool of numbers, so that none are generated on the device.
struct Noise {
    pool: Tensor,
}

impl Noise {
    fn new(device: &Device, dtype: DType) -> candle_core::Result<Self> {
        // A prime, so that rows of a matrix begin at different places of the pool.
        const LENGTH: usize = 1_048_583;
        let mut state = 1_u32;
        let numbers = (0..LENGTH).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * 0.03
        });
        let pool = Tensor::from_iter(numbers, device)?.to_dtype(dtype)?;
        Ok(Self { pool })
    }
}

impl SimpleBackend for Noise {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: candle_nn::Init,
        dtype: DType,
        device: &Device,
    ) -> candle_core::Result<Tensor> {
        if name.contains("norm") {
            return Tensor::ones(shape, dtype, device);
        }
        let (count, length) = (shape.elem_count(), self.pool.elem_count());
        let copies = count.div_ceil(length);
        let numbers = self.pool.broadcast_as((copies, length))?.contiguous()?.flatten_all()?;
        // Not a view, which would keep the rest.
        numbers.narrow(0, 0, count)?.force_contiguous()?.reshape(shape)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> candle_core::Result<Tensor> {
        candle_core::bail!("the shape of {name} is unknown")
    }

    fn contains_tensor(&self, _: &str) -> bool {
        true
    }
}

/// The model, and the settings of its caches.
struct Rival {
    arguments: Arguments,
    config: Config,
    device: Device,
    dtype: DType,
    model: Llama,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(arguments.rounds > 0, "wanted at least one round");
    let device = Device::cuda_if_available(0)?;
    // candle's CPU multiplies no bf16 matrices.
    let dtype = if device.is_cuda() { DType::BF16 } else { DType::F32 };
    let config = arguments.shape.config();
    let start = Instant::now();
    let noise = Noise::new(&device, dtype)?;
    let weights = VarBuilder::from_backend(Box::new(noise), dtype, device.clone());
    let model = Llama::load(weights, &config)?;
    device.synchronize()?;
    println!(
        "{}",
        json!({ "model": arguments.shape.name(), "rival": "candle 0.11.1", "device": format!("{device:?}"),
                "dtype": dtype.as_str(), "load_s": start.elapsed().as_secs_f64() })
    );
    let rival = Rival { arguments, config, device, dtype, model };
    rival.arguments.batches.iter().try_for_each(|&batch| rival.decode(batch))?;
    rival.read()
}

impl Rival {
    /// Returns the tokens of `batch` prompts, as in `tma-model-bench`.
    fn prompts(&self, batch: usize, tokens: usize) -> Result<Tensor> {
        let vocabulary = self.config.vocab_size;
        let token = |at: usize| ((at / tokens * 7919 + at % tokens * 104_729 + 17) % vocabulary) as u32;
        Ok(Tensor::from_iter((0..batch * tokens).map(token), &self.device)?.reshape((batch, tokens))?)
    }

    /// Runs the model on tokens of each text, of which `before` are in the cache. Returns the next
    /// token of each text, once the host has it.
    fn next(&self, tokens: &Tensor, before: usize, cache: &mut Cache) -> Result<Tensor> {
        let next = self.model.forward(tokens, before, cache)?.argmax(D::Minus1)?;
        next.to_vec1::<u32>()?;
        Ok(next.unsqueeze(1)?)
    }

    fn cache(&self) -> Result<Cache> {
        Ok(Cache::new(true, self.dtype, &self.config, &self.device)?)
    }

    /// Measures steps of a batch.
    fn decode(&self, batch: usize) -> Result<()> {
        let Arguments { context, steps, rounds, .. } = self.arguments;
        let mut cache = self.cache()?;
        let mut tokens = self.next(&self.prompts(batch, context)?, 0, &mut cache)?;
        let mut before = context;
        let mut step = || -> Result<()> {
            tokens = self.next(&tokens, before, &mut cache)?;
            before += 1;
            Ok(())
        };
        for _ in 0..8 {
            step()?;
        }
        let mut seconds = vec![];
        for _ in 0..rounds {
            let start = Instant::now();
            for _ in 0..steps {
                step()?;
            }
            seconds.push(start.elapsed().as_secs_f64() / steps as f64);
        }
        let [least, median, most] = spread(seconds);
        println!(
            "{}",
            json!({ "model": self.arguments.shape.name(), "rival": "candle 0.11.1", "decode": batch,
                    "context": context, "ms": 1e3 * median, "least_ms": 1e3 * least, "most_ms": 1e3 * most,
                    "tokens_per_s": batch as f64 / median })
        );
        Ok(())
    }

    /// Measures the time to process a prompt.
    fn read(&self) -> Result<()> {
        let Arguments { prompt, rounds, .. } = self.arguments;
        if prompt == 0 {
            return Ok(());
        }
        let tokens = self.prompts(1, prompt)?;
        let mut seconds = vec![];
        for _ in 0..=rounds {
            let mut cache = self.cache()?;
            self.device.synchronize()?;
            let start = Instant::now();
            self.next(&tokens, 0, &mut cache)?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        seconds.remove(0); // loads kernels
        let [least, median, most] = spread(seconds);
        println!(
            "{}",
            json!({ "model": self.arguments.shape.name(), "rival": "candle 0.11.1", "prompt": prompt,
                    "ms": 1e3 * median, "least_ms": 1e3 * least, "most_ms": 1e3 * most,
                    "tokens_per_s": prompt as f64 / median })
        );
        Ok(())
    }
}

/// Returns the least, the median and the greatest of some times.
fn spread(mut seconds: Vec<f64>) -> [f64; 3] {
    seconds.sort_by(f64::total_cmp);
    [0, seconds.len() / 2, seconds.len() - 1].map(|at| seconds[at])
}
