//! `tma-generate`: continues a prompt in a terminal, or serves clients.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use tma_generate::{load, server, terminal};
use tma_models::config::WeightFormat;
use tma_models::engine::{EngineOptions, Sampling};

/// Generates text with a language model.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The folder of the model: config.json, tokenizer.json and safetensors files.
    #[arg(long)]
    model: PathBuf,
    /// The text to continue.
    #[arg(long, required_unless_present = "serve", conflicts_with = "serve")]
    prompt: Option<String>,
    /// Serve clients at this address instead, by the completions interface of OpenAI.
    #[arg(long, value_name = "ADDRESS")]
    serve: Option<SocketAddr>,
    /// The greatest number of tokens to append to the prompt.
    #[arg(long, default_value_t = 128)]
    tokens: usize,
    /// Divides logits: above 0, tokens are chosen by chance.
    #[arg(long, default_value_t = 0.0)]
    temperature: f32,
    /// Choose only from so many of the most probable tokens; 0 stands for all.
    #[arg(long, default_value_t = 0)]
    top_k: u32,
    /// Choose only from the most probable tokens that have this probability together.
    #[arg(long, default_value_t = 1.0)]
    top_p: f32,
    /// The seed of choices: the same seed leads to the same text.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The elements of weights: bf16, or e4m3 with scales, which are read in half of the time. The
    /// default is that of config.json.
    #[arg(long)]
    weights: Option<Weights>,
    /// The device: sim, cuda, or cuda:1 and so on. The default is a GPU if there is one.
    #[arg(long)]
    device: Option<String>,
    /// The greatest number of texts that are generated at the same time for clients.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    sequences: u16,
    /// The greatest number of tokens of a sequence for clients.
    #[arg(long, default_value_t = 4096)]
    context: usize,
    /// The greatest number of requests of clients that wait.
    #[arg(long, default_value_t = 256)]
    queue: usize,
    /// Compute the same for each text, whatever others there are: the same request then has the
    /// same answer, also where two tokens are nearly as probable. Steps of a few texts take as long
    /// as those of `--sequences`.
    #[arg(long)]
    reproducible: bool,
}

/// Elements of weights.
#[derive(Clone, Copy, ValueEnum)]
enum Weights {
    Bf16,
    E4m3,
}

impl Weights {
    fn format(self) -> WeightFormat {
        match self {
            Self::Bf16 => WeightFormat::Bf16,
            Self::E4m3 => WeightFormat::E4m3,
        }
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let device = load::device(arguments.device.as_deref())?;
    let model = load::model(&arguments.model, &device, arguments.weights.map(Weights::format))?;
    if let Some(address) = arguments.serve {
        let Arguments { context, queue, reproducible, .. } = arguments;
        let sequences = usize::from(arguments.sequences);
        return server::run(
            model,
            EngineOptions { sequences, context, queue, reproducible, ..Default::default() },
            address,
        );
    }
    let Arguments { temperature, top_k, top_p, seed, tokens, .. } = arguments;
    let sampling = Sampling { temperature, top_k, top_p, seed };
    let prompt = arguments.prompt.unwrap_or_default();
    let summary = terminal::generate(model, &prompt, tokens, sampling, &mut io::stdout().lock())?;
    eprintln!(
        "{} tokens of the prompt, {} tokens: the first after {:.3} s{} on {}",
        summary.prompt,
        summary.tokens,
        summary.first.as_secs_f64(),
        summary.tokens_per_second().map_or_else(String::new, |rate| format!(", then {rate:.1} a second")),
        device.name()
    );
    Ok(())
}
