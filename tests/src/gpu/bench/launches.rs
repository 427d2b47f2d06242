//! The typed launcher against the driver's own launch, by the time that each takes on the host.

use std::time::Instant;

use tma_runtime::prelude::*;

use super::measure::{Plan, Spread, WARM_UP, interleaved, ratio};
use crate::examples::tma_copy::tma_copy;

/// The number of launches per measurement of the host's time: fewer than the driver queues before
/// it blocks.
const BATCH: u32 = 256;
const BATCHES: usize = 80;

/// The names of the contestants.
pub const CONTESTANTS: &[&str] = &["typed", "bare"];

/// Measures the host's time of the typed launcher, which looks up descriptors and kernel, and of a
/// prepared launch. Returns whether their ratio is at most 1.2.
///
/// # Errors
///
/// Errors of the device.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    let stream = device.stream()?;
    let src = device.zeros::<f16, 2>([32, 256])?;
    let (mut typed_to, mut bare_to) = (device.zeros([32, 256])?, device.zeros::<f16, 2>([32, 256])?);
    let prepared = device.prepare(|on| tma_copy::launch(on, 1, &src, &mut bare_to))?;

    if plan.launches.is_some() {
        // The launches move hardly any bytes.
        let contestants: Vec<_> = CONTESTANTS.iter().map(|&name| (name, 0)).collect();
        interleaved(plan, "launch_overhead", &contestants, &stream, |index, stream| match index {
            0 => tma_copy::launch(stream, 1, &src, &mut typed_to),
            _ => prepared.launch(stream),
        })?;
        return Ok(vec![]);
    }
    let (mut typed, mut bare) = (vec![], vec![]);
    for batch in 0..WARM_UP + BATCHES {
        let mut typed_time = || microseconds(&stream, || tma_copy::launch(&stream, 1, &src, &mut typed_to));
        let bare_time = || microseconds(&stream, || prepared.launch(&stream));
        let (typed_now, bare_now) = if batch % 2 == 0 {
            let typed_now = typed_time()?;
            (typed_now, bare_time()?)
        } else {
            let bare_now = bare_time()?;
            (typed_time()?, bare_now)
        };
        if batch >= WARM_UP {
            typed.push(typed_now);
            bare.push(bare_now);
        }
    }
    let ratio = ratio(&typed, &bare);
    println!(
        "{{\"benchmark\": \"launch_overhead\", \"typed_us\": {:.3}, \"bare_us\": {:.3}, \"ratio\": {:.4}, \"spread\": {:.4}}}",
        Spread::of(&typed).median,
        Spread::of(&bare).median,
        ratio.median,
        ratio.width
    );
    Ok(vec![ratio.median <= 1.2])
}

/// Returns the microseconds that the host takes per launch of a batch, starting with an empty
/// queue.
fn microseconds(stream: &Stream, mut launch: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    stream.synchronize()?;
    let start = Instant::now();
    for _ in 0..BATCH {
        launch()?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH))
}
