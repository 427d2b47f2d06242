//! Kernels whose ranks wait for each other, on all GPUs of the machine or with two ranks on one.

use std::time::Duration;

use tma_runtime::prelude::*;

use super::collectives;
use super::runner::Test;
use super::team_gemm::{gather_large, scatter_large};
use crate::compare::same;
use crate::kernels::faults::Fault;
use crate::random::hash;

/// The blocks of each rank. They are few, because all blocks of all ranks must run at the same time,
/// also where ranks share a GPU.
const BLOCKS: usize = 4;

/// The launches of a test, which follow each other without a wait of the host.
const LAUNCHES: usize = 3;

/// The rounds of a launch.
const ROUNDS: usize = 2;

/// The kernels of [`tests_of_two`]. Their file imports functions of another package, so that it
/// cannot be compiled alone.
pub const KERNELS: [&str; 2] = ["all_reduce", "tiles_of_peers"];

/// Returns the tests. They run on teams of their own, not on the device of the run.
pub fn tests() -> Vec<Test> {
    let mut tests = tests_on(|_| team());
    tests.extend(collectives::tests_on(|_| team()));
    tests.push(test("gather_large", gather_large, |_| team()));
    tests.push(test("scatter_large", scatter_large, |_| team()));
    tests
}

/// Returns the tests with two ranks on the device of the run.
pub fn tests_of_two() -> Vec<Test> {
    tests_on(|device| Team::on(device, 2))
}

fn tests_on(team: fn(&Device) -> Result<Team, Error>) -> Vec<Test> {
    vec![test("all_reduce", all_reduce, team), test("tiles_of_peers", tiles_of_peers, team)]
}

fn test(name: &str, run: fn(&Team) -> anyhow::Result<()>, team: fn(&Device) -> Result<Team, Error>) -> Test {
    Test { name: format!("teams::{name}"), run: Box::new(move |device| run(&team(device)?)) }
}

/// A rank that ends too early, while the waits of all have a limit.
pub const FAULTS: &[Fault] = &[Fault {
    name: "teams::a_rank_that_stops",
    run: |_| {
        let team = team()?;
        stopped(&team)?;
        team.synchronize()
    },
    code: Some("TMA0637"),
    printed: &[
        "rank 0: TMA0632: deadlock: warps of `stops` waited longer than 500ms",
        "warp 0 of 4 blocks (the first is block 0) wait for a value in global memory other than 0",
        "src/gpu/teams.rs",
    ],
}];

/// Launches a kernel whose last rank does not come to a barrier.
///
/// # Errors
///
/// An error of the launch.
pub fn stopped(team: &Team) -> Result<(), Error> {
    let mut flags = team.zeros::<u32, 1>([8 * BLOCKS])?;
    let limit = Duration::from_millis(500);
    kernels::stops::launch(team.with().watched(limit), BLOCKS as u32, &mut flags)
}

/// Opens all GPUs. A single one gets two ranks.
fn team() -> Result<Team, Error> {
    match Device::all_cuda()?.len() {
        1 => Team::cuda(&[0, 0]),
        _ => Team::open(),
    }
}

#[tma_module]
mod kernels {
    use tma_kernels::team::barrier::sync_team;
    use tma_runtime::prelude::*;

    /// Ends on the last rank, while the others wait for it.
    #[tma_kernel(threads = 128)]
    pub fn stops(flags: Peers<Global<u32>>) {
        if rank() + 1 < ranks() {
            sync_team(flags);
        }
    }

    /// In each round, doubles the data of each rank, and adds up that of all ranks.
    #[tma_kernel(threads = 128)]
    pub fn all_reduce(data: Peers<Global<f32>>, sums: Global<f32>, flags: Peers<Global<u32>>, rounds: u32) {
        let i = block_idx().x * 128 + thread_idx().x;
        for _ in 0..rounds {
            data.own().set(i, 2.0 * data.own().get(i));
            sync_team(flags);
            let mut sum = 0.0;
            for r in 0..ranks() {
                sum += data.of(r).get(i);
            }
            sums.set(i, sum);
            // The next round changes the data, which all ranks must have read.
            sync_team(flags);
        }
    }

    /// In each round, stores a tile to the next rank, and copies the one that the rank before has
    /// stored here.
    #[tma_kernel(threads = 32)]
    pub fn tiles_of_peers(
        src: TensorMap<Tile<f32, Shape2<32, 32>>>,
        inbox: Peers<TensorMap<Tile<f32, Shape2<32, 32>>>>,
        flags: Peers<Global<u32>>,
        dst: TensorMap<Tile<f32, Shape2<32, 32>>>,
        rounds: u32,
    ) {
        let tile: Tile<f32, Shape2<32, 32>> = shared();
        let full: Barrier = shared();
        let at = src.block_tile();
        let leader = thread_idx().x == 0;
        let mut phase = Phase::new();
        if leader {
            full.init(1);
            fence_barrier_init();
        }
        for _ in 0..rounds {
            if leader {
                full.arrive_expect_tx(tile.bytes());
                src.load(tile, at, full);
                full.wait_next(&mut phase);
                inbox.of((rank() + 1) % ranks()).store(at, tile);
                bulk_commit_group();
                // The flag must not overtake the store, so a wait for its reads is not enough.
                bulk_wait_group::<0>();
            }
            sync_team(flags);
            if leader {
                fence_proxy_async_global();
                full.arrive_expect_tx(tile.bytes());
                inbox.own().load(tile, at, full);
                full.wait_next(&mut phase);
                dst.store(at, tile);
                bulk_commit_group();
                bulk_wait_group_read::<0>();
            }
            // The next round overwrites the inbox, which its rank must have read.
            sync_team(flags);
        }
    }
}

/// Returns whole numbers of a rank, whose sums are exact.
fn numbers(rank: usize, count: usize) -> Vec<f32> {
    (0..count as u64).map(|i| (hash(340 + rank as u64, i) % 1000) as f32).collect()
}

/// Adds up the data of all ranks on each of them.
///
/// # Errors
///
/// An error of a launch, or wrong sums.
pub fn all_reduce(team: &Team) -> anyhow::Result<()> {
    let n = BLOCKS * 128;
    let values: Vec<_> = (0..team.ranks()).map(|rank| numbers(rank, n)).collect();
    let mut data = team.tensors(&values, [n])?;
    let mut sums = team.zeros::<f32, 1>([n])?;
    let mut flags = team.zeros::<u32, 1>([8 * BLOCKS])?;
    for _ in 0..LAUNCHES {
        kernels::all_reduce::launch(team, BLOCKS as u32, &mut data, &mut sums, &mut flags, ROUNDS as u32)?;
    }
    let factor = (1 << (LAUNCHES * ROUNDS)) as f32;
    let sum = |i: usize| values.iter().map(|of_rank| factor * of_rank[i]).sum();
    let wanted: Vec<f32> = (0..n).map(sum).collect();
    sums.to_vecs()?.iter().try_for_each(|found| same("the sums of all ranks", found, &wanted))
}

/// Moves the tiles of each rank to the next one through tensor maps.
///
/// # Errors
///
/// An error of a launch, or wrong tiles.
pub fn tiles_of_peers(team: &Team) -> anyhow::Result<()> {
    let shape = [32 * BLOCKS, 32];
    let values: Vec<_> = (0..team.ranks()).map(|rank| numbers(rank, shape[0] * shape[1])).collect();
    let src = team.tensors(&values, shape)?;
    let mut inbox = team.zeros::<f32, 2>(shape)?;
    let mut dst = team.zeros::<f32, 2>(shape)?;
    let mut flags = team.zeros::<u32, 1>([8 * BLOCKS])?;
    let grid = Grid::tiles(shape, [32, 32]);
    for _ in 0..LAUNCHES {
        kernels::tiles_of_peers::launch(team, grid, &src, &mut inbox, &mut flags, &mut dst, ROUNDS as u32)?;
    }
    for (rank, found) in dst.to_vecs()?.iter().enumerate() {
        let before = (rank + team.ranks() - 1) % team.ranks();
        same("the tiles of the rank before", found, &values[before])?;
    }
    Ok(())
}
