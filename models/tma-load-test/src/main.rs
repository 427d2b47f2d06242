//! `tma-load-test`: many clients of the server, for a while.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use tma_generate::load;
use tma_load_test::{LoadOptions, Report, run};
use tma_models::cache::PAGE_ROWS;
use tma_models::engine::EngineOptions;
use tma_models_reference::Reference;

/// Sends requests of many clients to the server of tma-generate, and compares the answers with
/// those of the same requests alone.
#[derive(Parser)]
struct Arguments {
    /// The folder of a model. The default is a small one with weights of noise.
    #[arg(long)]
    model: Option<PathBuf>,
    /// The device: sim, cuda, or cuda:1 and so on.
    #[arg(long, default_value = "sim")]
    device: String,
    #[arg(long, default_value_t = 64)]
    clients: usize,
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The number of different requests.
    #[arg(long, default_value_t = 48)]
    requests: usize,
    /// The greatest number of tokens of a text.
    #[arg(long, default_value_t = 16)]
    tokens: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Texts that are generated at the same time.
    #[arg(long, default_value_t = 16)]
    sequences: usize,
    /// Requests that wait.
    #[arg(long, default_value_t = 32)]
    queue: usize,
    /// The greatest number of tokens of a sequence.
    #[arg(long, default_value_t = 100)]
    context: usize,
    /// Pages of the cache. The default is fewer than all texts may need.
    #[arg(long)]
    pages: Option<usize>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let device = load::device(Some(&arguments.device))?;
    let folder = tempfile::tempdir()?;
    let path = match &arguments.model {
        Some(path) => path,
        None => {
            Reference::open("llama3")?.write(folder.path())?;
            folder.path()
        }
    };
    let model = load::model(path, &device, None)?;
    let Arguments { clients, requests, tokens, seed, sequences, queue, context, .. } = arguments;
    let of_sequence = context.div_ceil(PAGE_ROWS);
    let pages = Some(arguments.pages.unwrap_or(sequences * of_sequence * 3 / 4).max(of_sequence));
    let options = LoadOptions {
        clients,
        duration: Duration::from_secs(arguments.seconds),
        requests,
        most_tokens: tokens,
        seed,
        engine: EngineOptions { sequences, context, pages, chunk: 64, queue, reproducible: true },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let Report { counts, resident, time, pages: [all, free] } = runtime.block_on(run(model, options))?;
    println!("{clients} clients, {:.1} s on {}: {counts:?}", time.as_secs_f64(), device.name());
    println!("{free} of {all} pages are free");
    if let Some([first, last]) = resident.ends() {
        println!(
            "resident set: {first} KiB first, {last} KiB last, greatest by tenths {:?}",
            resident.peaks(10)
        );
    }
    Ok(())
}
