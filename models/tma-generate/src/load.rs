//! A model from its folder, with a bar while weights are loaded.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use tma_models::checkpoint::Checkpoint;
use tma_models::config::{Config, WeightFormat};
use tma_models::decoder::Decoder;
use tma_models::text::Text;
use tma_models::{Loaded, Source};
use tma_runtime::Device;

/// A model that is ready to generate text.
#[derive(Debug)]
pub struct Model {
    /// The name of the folder.
    pub name: String,
    /// The weights on a device.
    pub decoder: Decoder,
    /// The tokenizer.
    pub text: Text,
}

/// Returns the device of a name: `sim`, `cuda` or `cuda:1`. `None` stands for the first GPU, or the
/// simulator if there is none.
///
/// # Errors
///
/// There is no such device.
pub fn device(name: Option<&str>) -> Result<Device> {
    match name {
        None => Ok(Device::open()?),
        Some("sim") => Ok(Device::simulator()),
        Some(name) => {
            let index = name.strip_prefix("cuda").map(|rest| rest.strip_prefix(':').unwrap_or(rest));
            let index = match index {
                Some("") => 0,
                Some(index) => index.parse().context("a GPU is named cuda:0, cuda:1 and so on")?,
                None => anyhow::bail!("unknown device {name}: use sim, cuda, or cuda:1 and so on"),
            };
            open_gpu(index)
        }
    }
}

#[cfg(feature = "cuda")]
fn open_gpu(index: u32) -> Result<Device> {
    Ok(Device::cuda(index)?)
}

#[cfg(not(feature = "cuda"))]
fn open_gpu(_index: u32) -> Result<Device> {
    anyhow::bail!("this program was built without GPUs: build it with --features cuda")
}

/// Loads the model of a folder, with the format of weights that `config.json` has, or another. The
/// bar is drawn on the standard error, if that is a terminal.
///
/// # Errors
///
/// Files that are missing, damaged or not supported, and errors of the device.
pub fn model(folder: &Path, device: &Device, weights: Option<WeightFormat>) -> Result<Model> {
    ensure!(folder.is_dir(), "{} is no folder: give --model the folder with config.json", folder.display());
    let mut config = Config::open(folder)?;
    config.weights = weights.unwrap_or(config.weights);
    let text = Text::open(folder)?;
    let checkpoint = Checkpoint::open(folder)?;
    let bar = ProgressBar::new(checkpoint.bytes());
    bar.set_style(ProgressStyle::with_template("{msg} {wide_bar} {bytes} of {total_bytes}, {eta} left")?);
    bar.set_message("Loading weights");
    bar.enable_steady_tick(Duration::from_millis(200));
    let loaded = &mut |loaded: Loaded| bar.set_position(loaded.read);
    let decoder = Decoder::load(device, config, Source::Checkpoint(&checkpoint), loaded)?;
    bar.finish_and_clear();
    let name =
        folder.canonicalize()?.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    Ok(Model { name, decoder, text })
}
