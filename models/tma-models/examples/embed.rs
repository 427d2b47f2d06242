//! Compares embeddings of sentences with those of Hugging Face transformers.
//!
//! ```sh
//! python reference/sentence_embeddings.py FOLDER > embeddings.json
//! cargo run --release -p tma-models --example embed -- FOLDER embeddings.json
//! ```

use std::path::Path;

use anyhow::{Context, Result};
use tma_models::sentences::SentenceEncoder;
use tma_runtime::Device;

fn main() -> Result<()> {
    let [folder, file] =
        std::env::args().skip(1).collect::<Vec<_>>().try_into().ok().context("a folder and a file")?;
    let wanted: Vec<(String, Vec<f32>)> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let device = Device::open()?;

    let mut encoder = SentenceEncoder::open(Path::new(&folder), &device)?;
    let texts: Vec<&str> = wanted.iter().map(|(text, _)| text.as_str()).collect();
    let found = encoder.embed(&texts)?;

    println!("on {}", device.name());
    for (found, (text, wanted)) in found.iter().zip(&wanted) {
        let cosine: f32 = found.iter().zip(wanted).map(|(x, y)| x * y).sum();
        let error = found.iter().zip(wanted).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
        println!("cosine {cosine:.6}, greatest error {error:.5}: {text}");
    }
    Ok(())
}
