//! A decoder's pass over a text, for comparisons.

use anyhow::Result;
use tma_models::Activations;
use tma_models::cache::{Cache, PAGE_ROWS};
use tma_models::decoder::{Batch, Decoder, Wanted};

/// Returns the log-probabilities of all positions of a text.
pub(crate) fn log_probabilities(decoder: &Decoder, tokens: &[u32]) -> Result<Vec<f32>> {
    let (device, config, rows) = (decoder.device(), decoder.config(), tokens.len());
    let pages = rows.div_ceil(PAGE_ROWS);
    let mut cache = Cache::new(device, config, pages)?;
    let mut activations = Activations::new(device, config, rows, rows)?;
    let positions: Vec<u32> = (0..rows as u32).collect();
    let (tokens, positions) = (device.tensor(tokens, [rows])?, device.tensor(&positions, [rows])?);
    let (lengths, counts) = (device.zeros([1])?, device.tensor(&[rows as u32], [1])?);
    let table: Vec<u32> = (0..pages as u32).collect();
    let table = device.tensor(&table, [1, pages])?;
    let batch = Batch {
        tokens: tokens.view(),
        positions: positions.view(),
        lengths: lengths.view(),
        counts: counts.view(),
        table: table.view(),
        is_first: true,
        wanted: Wanted::All,
        is_reproducible: false,
    };
    let stream = device.stream()?;
    decoder.forward(&stream, &batch, &mut cache, &mut activations)?;
    stream.synchronize()?;
    let mut out = device.zeros::<f32, 2>([rows, config.vocabulary])?;
    tma_kernels::model::softmax(
        device,
        activations.logits(rows, config.vocabulary)?,
        &mut out,
        tma_kernels::model::SoftmaxOptions { scale: 1.0, log: true },
    )?;
    Ok(out.to_vec()?)
}
