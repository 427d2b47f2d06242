//! The examples that move whole matrices, against the driver's own copy of the same number of
//! bytes.

use tma_runtime::prelude::*;

use super::measure::{Plan, Spread, interleaved, ratio};
use crate::examples::transpose::transpose;
use crate::examples::{tma_copy::tma_copy, tma_copy_pipelined::tma_copy_pipelined, tma_scale::tma_scale};
use crate::random::noise;

/// 1 GiB of `f16`, and of `f32`.
const HALVES: [usize; 2] = [16384, 32768];
const FLOATS: [usize; 2] = [16384, 16384];

/// The names of the contestants, the driver's copy first.
pub const CONTESTANTS: &[&str] =
    &["cuMemcpyDtoDAsync", "tma_copy", "tma_copy_pipelined::deep", "tma_scale", "transpose"];

/// The least ratios of the bandwidth to that of the driver's copy.
const TARGETS: &[Option<f64>] = &[None, Some(0.97), Some(1.0), None, Some(0.97)];

type Launch<'a> = dyn FnMut(&Stream) -> Result<(), Error> + 'a;

/// Measures the bandwidth of each contestant. Returns for each that has a target whether it reaches
/// it.
///
/// # Errors
///
/// Errors of the device.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
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

    let mut launches: [Box<Launch<'_>>; 5] = [
        Box::new(|stream| memcpy_to.copy_from_device(&halves, stream)),
        Box::new(|stream| tma_copy::launch(stream, tma_copy::tiles_of_dst(HALVES), &halves, &mut *copy_to)),
        Box::new(|stream| {
            let dst = &mut *pipelined_to;
            tma_copy_pipelined::deep::launch(stream, blocks, &halves, dst, &mut work, across, tiles)
        }),
        Box::new(|stream| {
            tma_scale::launch(stream, Grid::tiles(FLOATS, [64, 32]), &floats, &mut *scale_to, 1.5)
        }),
        Box::new(|stream| {
            transpose::launch(stream, transpose::tiles_of_dst(FLOATS), &floats, &mut *transpose_to)
        }),
    ];
    // Each contestant reads and writes the same number of bytes.
    let contestants: Vec<_> = CONTESTANTS.iter().map(|&name| (name, 2 * halves.bytes())).collect();
    let launch = |index: usize, stream: &Stream| launches[index](stream);
    let Some(speeds) = interleaved(plan, "copies", &contestants, &stream, launch)? else { return Ok(vec![]) };

    let mut verdicts = vec![];
    for ((name, target), speeds_of) in CONTESTANTS.iter().zip(TARGETS).zip(&speeds) {
        let (speed, ratio) = (Spread::of(speeds_of), ratio(speeds_of, &speeds[0]));
        println!(
            "{{\"benchmark\": \"{name}\", \"gb_per_s\": {:.1}, \"ratio_to_memcpy\": {:.4}, \"spread\": {:.4}}}",
            speed.median, ratio.median, ratio.width
        );
        verdicts.extend(target.map(|target| ratio.median >= target));
    }
    Ok(verdicts)
}
