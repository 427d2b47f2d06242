//! Continues a prompt: `cargo run --example generate FOLDER PROMPT`.

use std::env;
use std::path::Path;

use anyhow::{Context, Result};
use tma_models::Source;
use tma_models::checkpoint::Checkpoint;
use tma_models::config::Config;
use tma_models::decoder::Decoder;
use tma_models::engine::{Engine, EngineOptions, Request, Sampling};
use tma_models::text::{Text, TextStream};
use tma_runtime::Device;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [folder, prompt] = &arguments[..] else { anyhow::bail!("usage: generate FOLDER PROMPT") };
    let device = Device::open().context("no device")?;
    generate(&device, Path::new(folder), prompt)
}

fn generate(device: &Device, folder: &Path, prompt: &str) -> Result<()> {
    let config = Config::open(folder)?;
    let text = Text::open(folder)?;
    let checkpoint = Checkpoint::open(folder)?;
    let decoder = Decoder::load(device, config, Source::Checkpoint(&checkpoint), &mut |_| {})?;
    let ends = decoder.config().ends.clone();

    let mut engine = Engine::new(decoder, EngineOptions { context: 128, ..Default::default() })?;
    let prompt = text.encode(prompt)?;
    let mut stream = TextStream::after(&prompt);
    engine.submit(Request {
        prompt,
        limit: 12,
        sampling: Sampling::default(),
        ends,
        log_probabilities: None,
    })?;
    while !engine.is_idle() {
        for token in engine.step()?.into_iter().filter_map(|event| event.token) {
            print!("{}", stream.push(&text, token)?);
        }
    }
    println!("{}", stream.finish(&text)?);
    Ok(())
}
