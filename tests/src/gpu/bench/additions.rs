//! Adds one matrix to another: the copy engine's reduction against threads that load, add and
//! store.

use anyhow::Context;
use tma_runtime::prelude::*;

use super::kernels::additions::add::{self, add_by_reduction, add_in_threads};
use super::measure::{Plan, compare, interleaved, print_speeds};
use crate::compare::same_bits;
use crate::random::{hash, noise_of};

/// 1 GiB of `f32`.
const SHAPE: [usize; 2] = [16384, 16384];

/// The least ratio of the reduction's bandwidth to that of the threads.
const TARGET: f64 = 1.0;

/// Queues the addition with this number of blocks.
type Add = fn(&mut Problem, &Stream, u32) -> Result<(), Error>;

/// The names of the contestants: first the reductions, then the kernels whose threads add.
pub const CONTESTANTS: &[&str] = &[
    "add_by_reduction::four",
    "add_by_reduction::six",
    "add_by_reduction::ahead",
    "add_by_reduction::low",
    "add_in_threads::three",
    "add_in_threads::four",
    "add_in_threads::low_four",
    "add_in_threads::low_six",
];
const BY_REDUCTION: usize = 4;
const LAUNCHES: [Add; 8] = [
    by_reduction::<32, 4, false>,
    by_reduction::<32, 6, false>,
    by_reduction::<32, 4, true>,
    by_reduction::<16, 4, true>,
    in_threads::<32, 16, 3>,
    in_threads::<32, 16, 4>,
    in_threads::<16, 8, 4>,
    in_threads::<16, 8, 6>,
];

fn by_reduction<const ROWS: u32, const STAGES: u32, const AHEAD: bool>(
    problem: &mut Problem,
    stream: &Stream,
    blocks: u32,
) -> Result<(), Error>
where
    add_by_reduction::Instance<ROWS, STAGES, AHEAD>: add_by_reduction::Compiled,
{
    let [across, tiles] = problem.tiles(ROWS);
    let Problem { src, sum, work, .. } = problem;
    add_by_reduction::launch::<ROWS, STAGES, AHEAD>(stream, blocks, src, sum, work, across, tiles)
}

fn in_threads<const ROWS: u32, const EACH: usize, const STAGES: u32>(
    problem: &mut Problem,
    stream: &Stream,
    blocks: u32,
) -> Result<(), Error>
where
    add_in_threads::Instance<ROWS, EACH, STAGES>: add_in_threads::Compiled,
{
    let [across, tiles] = problem.tiles(ROWS);
    let Problem { src, sum, work, .. } = problem;
    add_in_threads::launch::<ROWS, EACH, STAGES>(stream, blocks, src, sum, work, across, tiles)
}

/// The matrix to add, the one that it is added to, and the work counters of the kernels.
struct Problem {
    src: DeviceTensor<f32, 2>,
    sum: DeviceTensor<f32, 2>,
    work: DeviceTensor<u32, 1>,
    /// The initial contents of source and destination.
    host: [Vec<f32>; 2],
}

impl Problem {
    fn new(device: &Device, shape: [usize; 2]) -> Result<Self, Error> {
        // Integers, so that a few thousand additions are exact.
        let numbers = |seed| noise_of(shape[0] * shape[1], |i| (hash(seed, i) % 1024) as f32 - 512.0);
        let host = [numbers(83), numbers(84)];
        let (src, sum) = (device.tensor(&host[0], shape)?, device.tensor(&host[1], shape)?);
        Ok(Self { src, sum, work: device.zeros([2])?, host })
    }

    /// Returns the number of tiles of this many rows: across, and in total.
    fn tiles(&self, rows_of_tile: u32) -> [u32; 2] {
        let [rows, cols] = self.src.shape();
        let (down, across) =
            (rows.div_ceil(rows_of_tile as usize) as u32, cols.div_ceil(add::COLS as usize) as u32);
        [across, down * across]
    }

    /// Checks that each contestant adds the source exactly once.
    fn check(&mut self, blocks: u32, stream: &Stream) -> anyhow::Result<()> {
        let wanted: Vec<_> = self.host[0].iter().zip(&self.host[1]).map(|(a, b)| a + b).collect();
        for (name, add) in CONTESTANTS.iter().zip(LAUNCHES) {
            self.sum.copy_from(&self.host[1])?;
            self.sum.device().synchronize()?; // the copy is not ordered with the stream
            add(self, stream, blocks)?;
            stream.synchronize()?;
            same_bits(&self.sum.to_vec()?, &wanted).context(*name)?;
        }
        Ok(())
    }
}

/// Checks all contestants on a small matrix with tiles that cross its edges.
///
/// # Errors
///
/// Errors of the device, and a contestant with a wrong result.
pub fn check(device: &Device) -> anyhow::Result<()> {
    Problem::new(device, [100, 500])?.check(3, &device.stream()?)
}

/// Checks all contestants on the whole matrix and measures them. Returns whether the fastest
/// reduction reaches the target.
///
/// # Errors
///
/// Errors of the device, and a wrong result.
pub fn run(device: &Device, plan: &Plan) -> anyhow::Result<Vec<bool>> {
    let (stream, blocks) = (device.stream()?, device.multiprocessors());
    let mut problem = Problem::new(device, SHAPE)?;
    if plan.launches.is_none() {
        problem.check(blocks, &stream)?;
    }
    // The source is read once; the destination is read and written.
    let contestants: Vec<_> = CONTESTANTS.iter().map(|&name| (name, 3 * problem.src.bytes())).collect();
    let launch = |index: usize, stream: &Stream| LAUNCHES[index](&mut problem, stream, blocks);
    let Some(speeds) = interleaved(plan, "reduce_add", &contestants, &stream, launch)? else {
        return Ok(vec![]);
    };
    print_speeds("reduce_add", &contestants, &speeds);
    let (reductions, threads) = (0..BY_REDUCTION, BY_REDUCTION..contestants.len());
    Ok(vec![compare("reduce_add", &contestants, &speeds, reductions, threads, TARGET)])
}
