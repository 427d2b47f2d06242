//! Measures the examples against the driver's own copy, and launches against the driver's own launch.
//!
//! Contestants take turns within each round, the first of them another one each time, so that clocks, temperature and
//! what is left in the cache favour none. Each round gives each contestant a ratio to the driver's copy in that same
//! round; medians of these are compared with the targets.

use std::time::Instant;

use tma_runtime::launch::{Arg, prepare};
use tma_runtime::prelude::*;

use super::runner::Tally;
use crate::examples::transpose::transpose;
use crate::examples::{tma_copy::tma_copy, tma_copy_pipelined::tma_copy_pipelined, tma_scale::tma_scale};
use crate::random::noise;

/// 1 GiB of `f16`, and of `f32`.
const HALVES: [usize; 2] = [16384, 32768];
const FLOATS: [usize; 2] = [16384, 16384];

/// Rounds that are measured, after some that are not.
const ROUNDS: usize = 200;
const WARM_UP: usize = 6;

/// Launches of a contestant in a round.
const LAUNCHES: usize = 4;

/// Launches that one measurement of the host's time spans: fewer than the driver queues before it blocks.
const BATCH: u32 = 256;
const BATCHES: usize = 80;

/// What is launched, and what it must reach.
struct Contestant<'a> {
    name: &'static str,
    /// Bytes read and written.
    bytes: u64,
    /// The ratio to the driver's copy, by bytes, that is asked for.
    target: Option<f64>,
    launch: Box<Launch<'a>>,
}

type Launch<'a> = dyn FnMut(&Stream) -> Result<(), Error> + 'a;

/// Measures everything and prints a JSON line a benchmark.
///
/// # Errors
///
/// Those of the device.
pub fn run(device: &Device) -> anyhow::Result<Tally> {
    let mut verdicts = bandwidth(device)?;
    verdicts.push(launch_overhead(device)?);
    let passed = verdicts.iter().filter(|&&met| met).count();
    Ok(Tally { passed, failed: verdicts.len() - passed })
}

/// Bandwidth of each contestant; says of each that has a target whether it is met.
fn bandwidth(device: &Device) -> anyhow::Result<Vec<bool>> {
    let halves = device.tensor(&noise::<f16>(81, HALVES[0] * HALVES[1]), HALVES)?;
    let floats = device.tensor(&noise::<f32>(82, FLOATS[0] * FLOATS[1]), FLOATS)?;
    let stream = device.stream()?;
    let mut copied = [device.zeros(HALVES)?, device.zeros(HALVES)?, device.zeros(HALVES)?];
    let mut computed = [device.zeros(FLOATS)?, device.zeros(FLOATS)?];
    let [memcpy_to, copy_to, pipelined_to] = &mut copied;
    let [scale_to, transpose_to] = &mut computed;
    let across = HALVES[1].div_ceil(256) as u32;
    let tiles = HALVES[0].div_ceil(32) as u32 * across;
    let mut work = device.zeros([2])?;
    let blocks = device.multiprocessors().min(tiles);

    let mut contestants = [
        Contestant {
            name: "cuMemcpyDtoDAsync",
            bytes: 2 * halves.bytes(),
            target: None,
            launch: Box::new(|stream| memcpy_to.copy_from_device(&halves, stream)),
        },
        Contestant {
            name: "tma_copy",
            bytes: 2 * halves.bytes(),
            target: Some(0.95),
            launch: Box::new(|stream| {
                tma_copy::launch(stream, Grid::tiles(HALVES, [128, 64]), &halves, &mut *copy_to)
            }),
        },
        Contestant {
            name: "tma_copy_pipelined::deep",
            bytes: 2 * halves.bytes(),
            target: Some(1.0),
            launch: Box::new(|stream| {
                let dst = &mut *pipelined_to;
                tma_copy_pipelined::deep::launch(stream, blocks, &halves, dst, &mut work, across, tiles)
            }),
        },
        Contestant {
            name: "tma_scale",
            bytes: 2 * floats.bytes(),
            target: None,
            launch: Box::new(|stream| {
                tma_scale::launch(stream, Grid::tiles(FLOATS, [64, 32]), &floats, &mut *scale_to, 1.5)
            }),
        },
        Contestant {
            name: "transpose",
            bytes: 2 * floats.bytes(),
            target: Some(0.85),
            launch: Box::new(|stream| {
                transpose::launch(stream, Grid::tiles(FLOATS, [64, 64]), &floats, &mut *transpose_to)
            }),
        },
    ];

    // Gigabytes a second of each contestant in each round.
    let mut speeds = vec![vec![]; contestants.len()];
    for round in 0..WARM_UP + ROUNDS {
        for turn in 0..contestants.len() {
            let index = (round + turn) % contestants.len();
            let speed = contestants[index].speed(&stream)?;
            if round >= WARM_UP {
                speeds[index].push(speed);
            }
        }
    }

    let mut verdicts = vec![];
    for (contestant, speeds_of) in contestants.iter().zip(&speeds) {
        let ratios: Vec<f64> =
            speeds_of.iter().zip(&speeds[0]).map(|(speed, memcpy)| speed / memcpy).collect();
        let (speed, ratio) = (Spread::of(speeds_of), Spread::of(&ratios));
        println!(
            "{{\"benchmark\": \"{}\", \"gb_per_s\": {:.1}, \"ratio_to_memcpy\": {:.4}, \"spread\": {:.4}}}",
            contestant.name, speed.median, ratio.median, ratio.width
        );
        verdicts.extend(contestant.target.map(|target| ratio.median >= target));
    }
    Ok(verdicts)
}

impl Contestant<'_> {
    /// Gigabytes a second over some launches, by the device's clock.
    fn speed(&mut self, stream: &Stream) -> Result<f64, Error> {
        let start = stream.record()?;
        for _ in 0..LAUNCHES {
            (self.launch)(stream)?;
        }
        let seconds = f64::from(start.elapsed_ms(&stream.record()?)?) / 1e3;
        Ok(self.bytes as f64 * LAUNCHES as f64 / seconds / 1e9)
    }
}

/// The typed launcher, which looks up descriptors and kernel, against a launch with everything prepared: the host's
/// time for each. Says whether their ratio is at most 1.2.
fn launch_overhead(device: &Device) -> anyhow::Result<bool> {
    let stream = device.stream()?;
    let src = device.zeros::<f16, 2>([128, 64])?;
    let (mut typed_to, bare_to) = (device.zeros([128, 64])?, device.zeros::<f16, 2>([128, 64])?);
    let arguments = [Arg::map(src.view()), Arg::map(bare_to.view())];
    let prepared = prepare(&stream, &tma_copy::SPEC, Grid::x(1), &arguments)?;

    let (mut typed, mut bare) = (vec![], vec![]);
    for batch in 0..WARM_UP + BATCHES {
        let mut typed_time = || microseconds(&stream, || tma_copy::launch(&stream, 1, &src, &mut typed_to));
        let bare_time = || microseconds(&stream, || prepared.run());
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
    let ratios: Vec<f64> = typed.iter().zip(&bare).map(|(typed, bare)| typed / bare).collect();
    let ratio = Spread::of(&ratios);
    println!(
        "{{\"benchmark\": \"launch_overhead\", \"typed_us\": {:.3}, \"bare_us\": {:.3}, \"ratio\": {:.4}, \"spread\": {:.4}}}",
        Spread::of(&typed).median,
        Spread::of(&bare).median,
        ratio.median,
        ratio.width
    );
    Ok(ratio.median <= 1.2)
}

/// Microseconds of the host for each of a batch of launches, which start with an empty queue.
fn microseconds(stream: &Stream, mut launch: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    stream.synchronize()?;
    let start = Instant::now();
    for _ in 0..BATCH {
        launch()?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH))
}

/// The middle of some measurements, and how far apart they lie.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    /// The distance between the tenth and the ninetieth hundredth, as a part of the median.
    width: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| sorted[((sorted.len() - 1) as f64 * part).round() as usize];
        Self { median: at(0.5), width: (at(0.9) - at(0.1)) / at(0.5) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_leaves_out_what_is_far_off() {
        let mut values: Vec<f64> = (0..=100).map(|i| 100.0 + f64::from(i)).collect();
        assert_eq!(Spread::of(&values), Spread { median: 150.0, width: 80.0 / 150.0 });
        values[3] = 1e9;
        assert!(Spread::of(&values).width < 0.6);
    }
}
