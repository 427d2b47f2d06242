//! A stream of tiles for both blocks of a pair: by multicast, against a load per block.

use std::ops::Range;

use anyhow::Context;
use tma_runtime::prelude::*;

use super::kernels::streams::stream::{self, load_by_each, multicast_in_slices, multicast_in_turns};
use super::measure::{Plan, compare, interleaved, print_speeds};
use crate::compare::same;
use crate::random::noise;

/// 16 MiB, which stay in the L2 cache of an H100 and of an H200.
const SHAPE: [usize; 2] = [4096, 1024];

/// Reads `src` with this many blocks. The last two arguments are the tiles across and in total.
type Read = fn(&Stream, u32, &DeviceTensor<u32, 2>, &mut DeviceTensor<u32, 1>, u32, u32) -> Result<(), Error>;

/// The names of the contestants: multicasts, loads of blocks without a cluster, and loads of blocks
/// in clusters of two.
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

/// The least ratio of the speed of multicast to that of two loads, ...
const TARGET: f64 = 1.0;
/// ... and to that of two loads of neighbours at the same time, which the hardware merges by
/// itself.
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

/// A matrix that all pairs read, and the sums of their threads.
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

    /// Returns the number of tiles across and in total.
    fn tiles(&self) -> (u32, u32) {
        let [rows, cols] = self.src.shape().map(|extent| extent as u32);
        let across = cols / stream::COLS;
        (across, rows / stream::ROWS * across)
    }

    fn launch(&mut self, read: Read, stream: &Stream) -> Result<(), Error> {
        let (across, tiles) = self.tiles();
        read(stream, self.blocks, &self.src, &mut self.sums, across, tiles)
    }

    /// Checks that each contestant has read each tile in its order.
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
            self.sums.device().synchronize()?; // the copy is not ordered with the stream
            self.launch(read, queue)?;
            queue.synchronize()?;
            same("sums", &self.sums.to_vec()?, &wanted).context(*name)?;
        }
        Ok(())
    }
}

/// Checks all contestants on a small matrix.
///
/// # Errors
///
/// Errors of the device, and a contestant with a wrong result.
pub fn check(device: &Device) -> anyhow::Result<()> {
    Problem::new(device, [512, 160], 4)?.check(&device.stream()?)
}

/// Checks all contestants and measures them. Returns whether the fastest multicast reaches its
/// targets relative to the fastest loads of blocks without a cluster, and of blocks in clusters.
///
/// # Errors
///
/// Errors of the device, and a wrong result.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    let stream = device.stream()?;
    // Full clusters of two.
    let mut problem = Problem::new(device, SHAPE, device.multiprocessors() / 2 * 2)?;
    if plan.launches.is_none() {
        problem.check(&stream)?;
    }
    // The bytes that arrive in shared memory.
    let bytes = u64::from(problem.blocks * stream::PASSES) * problem.src.bytes();
    let contestants: Vec<_> = CONTESTANTS.iter().map(|&name| (name, bytes)).collect();
    let launch = |index: usize, stream: &Stream| problem.launch(LAUNCHES[index], stream);
    let Some(speeds) = interleaved(plan, "multicast", &contestants, &stream, launch)? else {
        return Ok(vec![]);
    };
    print_speeds("multicast", &contestants, &speeds);
    let against =
        |references, target| compare("multicast", &contestants, &speeds, BY_MULTICAST, references, target);
    Ok(vec![against(BY_EACH, TARGET), against(IN_PAIRS, TARGET_IN_PAIRS)])
}
