//! The tuner on a GPU: measures times, and remembers its choice.

use std::{env, fs, process, ptr};

use anyhow::{Context, ensure};
use tma_runtime::layout::DeviceId;
use tma_runtime::prelude::*;
use tma_runtime::tune::{Cache, Outcome, Tuner, Unit, candidates};

use super::bench::products::contestants::tiled;
use super::bench::products::{precision::Bf16, problem::Problem};
use super::runner::Test;

/// Returns a test that tunes the GEMMs of the benchmarks.
pub fn tests() -> [Test; 1] {
    let run = |device: &Device| tune_products(device, [1024, 1024, 512]);
    [Test { name: "tuning::products".to_owned(), run: Box::new(run) }]
}

fn tune_products(device: &Device, shape: [usize; 3]) -> anyhow::Result<()> {
    let (stream, folder) = (device.stream()?, env::temp_dir().join(format!("tma-tuning-{}", process::id())));
    let kernels = tiled::of_bf16();
    let mut matrices = Problem::<Bf16>::new(device, shape)?.matrices;
    let all = candidates(kernels.iter().map(|kernel| kernel.kernel), &[()]);
    let tuner = Tuner::new(&stream).cache(&folder).rounds(3).slice_ms(0.5).quiet();
    let mut tune = || {
        tuner.tune("products", &shape, &all, |candidate, stream| {
            let kernel = kernels.iter().find(|kernel| ptr::eq(kernel.kernel, candidate.kernel));
            kernel.map_or(Ok(()), |kernel| kernel.multiply(stream, &mut matrices))
        })
    };
    let (first, second) = (tune(), tune());
    fs::remove_dir_all(&folder).context("nothing was remembered")?;
    let (first, second) = (first?, second?);
    let unit = match device.id() {
        DeviceId::Cuda(_) | DeviceId::Context(_) => Unit::Microseconds,
        DeviceId::Simulator(_) => Unit::Instructions,
    };
    ensure!(first.unit == unit && first.cache == Cache::Miss, "{first}");
    ensure!(second.cache == Cache::Hit && second.trials == first.trials, "{second}");
    let cost = |index: usize| match first.trials[index].outcome {
        Outcome::Measured { cost, .. } => cost,
        Outcome::Refused { .. } => f64::NAN,
    };
    let best = cost(first.best);
    ensure!(best > 0.0 && (0..all.len()).all(|index| cost(index) >= best), "{first}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulator_tunes_products_too() {
        tune_products(&Device::simulator(), [128, 256, 64]).unwrap();
    }
}
