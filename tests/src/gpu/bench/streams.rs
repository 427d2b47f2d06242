//! A stream of tiles for both blocks of a pair: by multicast, against a load for each.

use std::ops::Range;

use anyhow::Context;
use tma_runtime::prelude::*;

use super::kernels::streams::stream::{self, load_by_each, multicast_in_slices, multicast_in_turns};
use super::measure::{Plan, compare, in_turns, print_speeds};
use crate::compare::same;
use crate::random::noise;

/// 16 MiB, which stay in the L2 cache of an H100 and an H200.
const SHAPE: [usize; 2] = [4096, 1024];

/// Reads `src` with as many blocks: tensors, tiles across and in all.
type Read = fn(&Stream, u32, &DeviceTensor<u32, 2>, &mut DeviceTensor<u32, 1>, u32, u32) -> Result<(), Error>;

/// What is measured: by multicast, by loads of blocks without a cluster, and by loads of blocks in
/// clusters of two.
pub const CONTESTANTS: &[&str] = &[
    "multicast_in_turns::six",
    "multicast_in_turns::twelve",
    "multicast_in_slices::six",
    "multicast_in_slices::twelve",
    "load_by_each::six",
    "load_by_each::twelve",
    "load_in_pairs::six",
    "load_in_pairs::twelve",
];
const BY_MULTICAST: Range<usize> = 0..4;
const BY_EACH: Range<usize> = 4..6;
const IN_PAIRS: Range<usize> = 6..8;

/// Multicast must not be slower than two loads, ...
const TARGET: f64 = 1.0;
/// ... and as fast where the hardware makes one of them by itself: neighbours that ask for the same
/// at the same time.
const TARGET_IN_PAIRS: f64 = 0.99;

const LAUNCHES: [Read; 8] = [
    |stream, grid, src, sums, across, tiles| {
        multicast_in_turns::six::launch(stream, grid, src, sums, across, tiles)
    },
    |stream, grid, src, sums, across, tiles| {
        multicast_in_turns::twelve::launch(stream, grid, src, sums, across, tiles)
    },
    |stream, grid, src, sums, across, tiles| {
        multicast_in_slices::six::launch(stream, grid, src, sums, across, tiles)
    },
    |stream, grid, src, sums, across, tiles| {
        multicast_in_slices::twelve::launch(stream, grid, src, sums, across, tiles)
    },
    |stream, grid, src, sums, across, tiles| {
        load_by_each::six::launch(stream.with().cluster([1, 1, 1]), grid, src, sums, across, tiles)
    },
    |stream, grid, src, sums, across, tiles| {
        load_by_each::twelve::launch(stream.with().cluster([1, 1, 1]), grid, src, sums, across, tiles)
    },
    |stream, grid, src, sums, across, tiles| {
        load_by_each::six::launch(stream.with().cluster([2, 1, 1]), grid, src, sums, across, tiles)
    },
    |stream, grid, src, sums, across, tiles| {
        load_by_each::twelve::launch(stream.with().cluster([2, 1, 1]), grid, src, sums, across, tiles)
    },
];

/// A matrix that all pairs read, and what their threads add up.
struct Problem {
    host: Vec<u32>,
    src: DeviceTensor<u32, 2>,
    sums: DeviceTensor<u32, 1>,
    blocks: u32,
}

impl Problem {
    fn new(device: &Device, shape: [usize; 2], blocks: u32) -> Result<Self, Error> {
        let host = noise::<u32>(85, shape[0] * shape[1]);
        let src = device.tensor(&host, shape)?;
        let sums = device.zeros([(blocks * stream::ROWS) as usize])?;
        Ok(Self { host, src, sums, blocks })
    }

    /// Tiles across and in all.
    fn tiles(&self) -> (u32, u32) {
        let [rows, cols] = self.src.shape().map(|extent| extent as u32);
        let across = cols / stream::COLS;
        (across, rows / stream::ROWS * across)
    }

    fn launch(&mut self, read: Read, stream: &Stream) -> Result<(), Error> {
        let (across, tiles) = self.tiles();
        read(stream, self.blocks, &self.src, &mut self.sums, across, tiles)
    }

    /// That each contestant has read each tile in its turn.
    fn check(&mut self, queue: &Stream) -> anyhow::Result<()> {
        let ((across, tiles), clusters) = (self.tiles(), self.blocks / 2);
        let element = |cluster: u32, thread: u32, k: u32| {
            let tile = (cluster * (tiles / clusters) + k) % tiles;
            let row = tile / across * stream::ROWS + thread;
            let column = tile % across * stream::COLS + k % stream::COLS;
            self.host[(row * across * stream::COLS + column) as usize]
        };
        let sum = |i: u32| {
            let (block, thread) = (i / stream::ROWS, i % stream::ROWS);
            (0..stream::PASSES * tiles).fold(0u32, |sum, k| sum.wrapping_add(element(block / 2, thread, k)))
        };
        let wanted: Vec<_> = (0..self.blocks * stream::ROWS).map(sum).collect();
        for (name, read) in CONTESTANTS.iter().zip(LAUNCHES) {
            self.sums.copy_from(&vec![0; wanted.len()])?;
            self.sums.device().synchronize()?; // a stream does not wait for the copy
            self.launch(read, queue)?;
            queue.synchronize()?;
            same("sums", &self.sums.to_vec()?, &wanted).context(*name)?;
        }
        Ok(())
    }
}

/// That all contestants are right, on a small matrix.
///
/// # Errors
///
/// Those of the device; and which of them is wrong.
pub fn check(device: &Device) -> anyhow::Result<()> {
    Problem::new(device, [512, 160], 4)?.check(&device.stream()?)
}

/// Checks all contestants and measures them; says whether the fastest multicast is no slower than
/// the fastest loads of blocks without a cluster, and of blocks with one.
///
/// # Errors
///
/// Those of the device, and a wrong result.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    let stream = device.stream()?;
    // Whole clusters of two.
    let mut problem = Problem::new(device, SHAPE, device.multiprocessors() / 2 * 2)?;
    if plan.launches.is_none() {
        problem.check(&stream)?;
    }
    // What arrives in shared memory.
    let bytes = u64::from(problem.blocks * stream::PASSES) * problem.src.bytes();
    let contestants: Vec<_> = CONTESTANTS.iter().map(|&name| (name, bytes)).collect();
    let launch = |index: usize, stream: &Stream| problem.launch(LAUNCHES[index], stream);
    let Some(speeds) = in_turns(plan, "multicast", &contestants, &stream, launch)? else { return Ok(vec![]) };
    print_speeds("multicast", &contestants, &speeds);
    let against =
        |references, target| compare("multicast", &contestants, &speeds, BY_MULTICAST, references, target);
    Ok(vec![against(BY_EACH, TARGET), against(IN_PAIRS, TARGET_IN_PAIRS)])
}
