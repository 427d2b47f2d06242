//! A stream of tiles for both blocks of a cluster: by multicast, against a load for each.

use anyhow::Context;
use tma_runtime::prelude::*;

use super::kernels::streams::stream::{self, load_by_each, multicast_in_slices, multicast_in_turns};
use super::measure::{Plan, fastest_of_each, in_turns};
use crate::compare::same;
use crate::random::noise;

/// 16 MiB, which stay in the L2 cache of an H100 and an H200.
const SHAPE: [usize; 2] = [4096, 1024];

/// Multicast must not be slower.
const TARGET: f64 = 1.0;

/// Reads `src` with as many blocks: tensors, tiles across and in all.
type Read = fn(&Stream, u32, &DeviceTensor<u32, 2>, &mut DeviceTensor<u32, 1>, u32, u32) -> Result<(), Error>;

/// What is measured: first the forms by multicast, then those without.
pub const CONTESTANTS: &[&str] = &[
    "multicast_in_turns::eight",
    "multicast_in_turns::twelve",
    "multicast_in_slices::eight",
    "multicast_in_slices::twelve",
    "load_by_each::eight",
    "load_by_each::twelve",
];
const BY_MULTICAST: usize = 4;
const LAUNCHES: [Read; 6] = [
    |stream, grid, src, sums, across, tiles| {
        multicast_in_turns::eight::launch(stream, grid, src, sums, across, tiles)
    },
    |stream, grid, src, sums, across, tiles| {
        multicast_in_turns::twelve::launch(stream, grid, src, sums, across, tiles)
    },
    |stream, grid, src, sums, across, tiles| {
        multicast_in_slices::eight::launch(stream, grid, src, sums, across, tiles)
    },
    |stream, grid, src, sums, across, tiles| {
        multicast_in_slices::twelve::launch(stream, grid, src, sums, across, tiles)
    },
    |stream, grid, src, sums, across, tiles| {
        load_by_each::eight::launch(stream, grid, src, sums, across, tiles)
    },
    |stream, grid, src, sums, across, tiles| {
        load_by_each::twelve::launch(stream, grid, src, sums, across, tiles)
    },
];

/// A matrix that all clusters read, and what their threads add up.
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
            (0..tiles).fold(0u32, |sum, k| sum.wrapping_add(element(block / 2, thread, k)))
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

/// Checks all contestants and measures them; says whether the fastest multicast is no slower than the fastest without.
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
    let bytes = u64::from(problem.blocks) * problem.src.bytes();
    let contestants: Vec<_> = CONTESTANTS.iter().map(|&name| (name, bytes)).collect();
    let launch = |index: usize, stream: &Stream| problem.launch(LAUNCHES[index], stream);
    let speeds = in_turns(plan, "multicast", &contestants, &stream, launch)?;
    let verdict = |speeds: Vec<_>| fastest_of_each("multicast", &contestants, &speeds, BY_MULTICAST, TARGET);
    Ok(speeds.map(verdict).into_iter().collect())
}
