//! GEMMs of a team's ranks, on integers, whose results are exact but for the rounding to the type of
//! C. Each is called several times without a wait of the host, on an A that changes in between.

use std::fmt::Debug;

use anyhow::ensure;
use tma_kernels::gemm::Tile;
use tma_kernels::gemm::team::{
    GatherWorkspace, ScatterWorkspace, TeamElement, TeamGemmOptions, all_gather_gemm, gemm_reduce_scatter,
};
use tma_runtime::prelude::*;

use crate::compare::{same, same_bits};
use crate::gpu::bench::products::problem::normal;
use crate::parallel::on_all_cores;
use crate::random::{Sample, hash, noise_of};

/// The calls of a test, which follow each other without a wait of the host.
const CALLS: usize = 3;

/// A GEMM on a team.
#[derive(Clone, Copy, Debug)]
pub struct TeamCase {
    /// The rows of each rank's part.
    pub m: usize,
    /// The columns of C of each rank.
    pub n: usize,
    /// The products that a rank sums.
    pub k: usize,
    /// The layout of B, the tile and the blocks.
    pub options: TeamGemmOptions,
}

impl TeamCase {
    /// Makes a case of m, n and k, with a B of N × K.
    pub fn nt(shape: [usize; 3], tile: Option<Tile>) -> Self {
        let [m, n, k] = shape;
        Self { m, n, k, options: TeamGemmOptions { transpose_b: true, tile, blocks: None } }
    }

    /// Makes a case of m, n and k, with a B of K × N.
    pub fn nn(shape: [usize; 3], tile: Option<Tile>) -> Self {
        let [m, n, k] = shape;
        Self { m, n, k, options: TeamGemmOptions { transpose_b: false, tile, blocks: None } }
    }

    /// Limits the blocks of each rank.
    #[must_use]
    pub fn blocks(mut self, blocks: u32) -> Self {
        self.options.blocks = Some(blocks);
        self
    }

    fn shape_of_b(&self) -> [usize; 2] {
        if self.options.transpose_b { [self.n, self.k] } else { [self.k, self.n] }
    }

    /// Returns A · B for `rows` rows of A.
    fn products(&self, rows: usize, a: &[i32], b: &[i32]) -> Vec<i32> {
        let Self { n, k, options, .. } = *self;
        if k == 0 {
            return vec![0; rows * n];
        }
        let column = |j: usize| match options.transpose_b {
            true => b[j * k..(j + 1) * k].to_vec(),
            false => (0..k).map(|x| b[x * n + j]).collect(),
        };
        let columns: Vec<Vec<i32>> = (0..n).map(column).collect();
        let row = |row: &[i32]| -> Vec<i32> {
            let dot = |column: &Vec<i32>| row.iter().zip(column).map(|(x, y)| x * y).sum();
            columns.iter().map(dot).collect()
        };
        on_all_cores(a.chunks(k).collect(), row).concat()
    }
}

/// The numbers of all ranks' A and B.
struct Numbers {
    a: Vec<Vec<i32>>,
    b: Vec<Vec<i32>>,
}

impl Numbers {
    fn of(ranks: usize, len_a: usize, len_b: usize) -> Self {
        let of = |seed: u64, range: u64, len: usize| -> Vec<Vec<i32>> {
            let number = |rank: usize, i: usize| (hash(seed + rank as u64, i as u64) % range) as i32 - 3;
            (0..ranks).map(|rank| (0..len).map(|i| number(rank, i)).collect()).collect()
        };
        Self { a: of(500, 7, len_a), b: of(600, 6, len_b) }
    }
}

#[tma_module]
mod kernels {
    use tma_runtime::prelude::*;

    /// Doubles all elements.
    #[tma_kernel(threads = 128, instances(T in [bf16, f16]))]
    pub fn double<T: Scalar + Number>(x: Global<T>) {
        let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
        if i < x.len() {
            x.set(i, cast::<T>(2.0f32 * cast::<f32>(x.get(i))));
        }
    }
}

/// An element of the tests.
pub trait TestElement: TeamElement + Sample + PartialEq + Debug {
    /// Rounds a number.
    fn of(x: f32) -> Self;

    /// Returns the number.
    fn value(self) -> f32;

    /// Queues the doubling of all elements.
    ///
    /// # Errors
    ///
    /// An error of the launch.
    fn double(on: &Stream, x: &mut DeviceTensor<Self, 2>) -> Result<(), Error>;
}

macro_rules! elements {
    ($($ty:ident)+) => { $(
        impl TestElement for $ty {
            fn of(x: f32) -> Self {
                $ty::from_f32(x)
            }

            fn value(self) -> f32 {
                self.to_f32()
            }

            fn double(on: &Stream, x: &mut DeviceTensor<Self, 2>) -> Result<(), Error> {
                let grid = Grid::tiles([x.len()], [128]);
                kernels::double::$ty::launch(on, grid, x)
            }
        }
    )+ };
}

elements! { bf16 f16 }

fn tensors<T: TestElement>(
    team: &Team,
    numbers: &[Vec<i32>],
    shape: [usize; 2],
) -> Result<SymmetricTensor<T, 2>, Error> {
    let of = |numbers: &Vec<i32>| numbers.iter().map(|&x| T::of(x as f32)).collect();
    let host: Vec<Vec<T>> = numbers.iter().map(of).collect();
    team.tensors(&host, shape)
}

/// Doubles the elements of all ranks, in order with the team's launches.
fn double<T: TestElement>(team: &Team, a: &mut SymmetricTensor<T, 2>) -> Result<(), Error> {
    if a.shape().contains(&0) {
        return Ok(());
    }
    (0..team.ranks()).try_for_each(|rank| T::double(team.stream(rank)?, a.rank_mut(rank)?))
}

/// Checks C, and the gathered A, on all ranks.
///
/// # Errors
///
/// An error of a launch, or wrong results.
pub fn gathers<T: TestElement>(team: &Team, case: TeamCase) -> anyhow::Result<()> {
    let ranks = team.ranks();
    let TeamCase { m, n, k, options } = case;
    let numbers = Numbers::of(ranks, m * k, n * k);
    let mut a = tensors::<T>(team, &numbers.a, [m, k])?;
    let b = tensors::<T>(team, &numbers.b, case.shape_of_b())?;
    let mut workspace = GatherWorkspace::new(team, m, k)?;
    let results = (0..CALLS).map(|_| team.filled_bytes::<T, 2>([ranks * m, n], 0xab));
    let mut results = results.collect::<Result<Vec<_>, _>>()?;
    for c in &mut results {
        all_gather_gemm(team, &a, &b, c, &mut workspace, options)?;
        double(team, &mut a)?;
    }
    let all = numbers.a.concat();
    for rank in 0..ranks {
        let sums = case.products(ranks * m, &all, &numbers.b[rank]);
        for (call, c) in results.iter().enumerate() {
            let wanted: Vec<T> = sums.iter().map(|&sum| T::of((sum << call) as f32)).collect();
            same(&format!("{case:?}: C of rank {rank}, call {call}"), &c.rank(rank)?.to_vec()?, &wanted)?;
        }
        let wanted: Vec<T> = all.iter().map(|&x| T::of((x << (CALLS - 1)) as f32)).collect();
        if m * n * k == 0 {
            continue;
        }
        let gathered = workspace.gathered(rank)?;
        ensure!(gathered.shape() == [ranks * m, k], "{:?}", gathered.shape());
        // SAFETY: the workspace outlives it, and has whole rows if K is a multiple of 8.
        let gathered = unsafe {
            DeviceTensor::<T, 1>::from_raw(team.device(rank)?, gathered.as_ptr(), [ranks * m * k])?
        };
        same(&format!("{case:?}: A on rank {rank}"), &gathered.to_vec()?, &wanted)?;
    }
    Ok(())
}

/// Checks the part of C of all ranks.
///
/// # Errors
///
/// An error of a launch, or wrong results.
pub fn scatters<T: TestElement>(team: &Team, case: TeamCase) -> anyhow::Result<()> {
    let ranks = team.ranks();
    let TeamCase { m, n, k, options } = case;
    let numbers = Numbers::of(ranks, ranks * m * k, n * k);
    let mut a = tensors::<T>(team, &numbers.a, [ranks * m, k])?;
    let b = tensors::<T>(team, &numbers.b, case.shape_of_b())?;
    let mut workspace = ScatterWorkspace::new(team, m, n)?;
    let results = (0..CALLS).map(|_| team.filled_bytes::<T, 2>([m, n], 0xab));
    let mut results = results.collect::<Result<Vec<_>, _>>()?;
    for c in &mut results {
        gemm_reduce_scatter(team, &a, &b, c, &mut workspace, options)?;
        double(team, &mut a)?;
    }
    let products = |rank: usize| case.products(ranks * m, &numbers.a[rank], &numbers.b[rank]);
    let sums: Vec<_> = (0..ranks).map(products).collect();
    for rank in 0..ranks {
        for (call, c) in results.iter().enumerate() {
            let element = |i: usize| {
                let of_rank = |from: usize| (sums[from][rank * m * n + i] << call) as f32;
                let peers = (0..ranks).filter(|&from| from != rank);
                // What a peer sends is rounded.
                T::of(peers.fold(of_rank(rank), |sum, from| sum + T::of(of_rank(from)).value()))
            };
            let wanted: Vec<T> = (0..m * n).map(element).collect();
            same(&format!("{case:?}: C of rank {rank}, call {call}"), &c.rank(rank)?.to_vec()?, &wanted)?;
        }
    }
    Ok(())
}

/// Checks that the sums of random numbers have the same bits each time.
///
/// # Errors
///
/// An error of a launch, or different results.
pub fn scatters_alike(team: &Team, case: TeamCase) -> anyhow::Result<()> {
    let ranks = team.ranks();
    let TeamCase { m, n, k, options } = case;
    let of = |seed: usize, len: usize| -> Vec<Vec<bf16>> {
        let of_rank = |rank| noise_of(len, |i| bf16::from_f32(normal((seed + rank) as u64, i) as f32));
        (0..ranks).map(of_rank).collect()
    };
    let a = team.tensors(&of(700, ranks * m * k), [ranks * m, k])?;
    let b = team.tensors(&of(800, n * k), case.shape_of_b())?;
    let mut workspace = ScatterWorkspace::new(team, m, n)?;
    let results = (0..CALLS).map(|_| team.zeros::<bf16, 2>([m, n]));
    let mut results = results.collect::<Result<Vec<_>, _>>()?;
    for c in &mut results {
        gemm_reduce_scatter(team, &a, &b, c, &mut workspace, options)?;
    }
    let found = results.iter().map(SymmetricTensor::to_vecs).collect::<Result<Vec<_>, _>>()?;
    for of_call in &found {
        of_call.iter().zip(&found[0]).try_for_each(|(found, first)| same_bits(found, first))?;
    }
    Ok(())
}

/// The cases of a GPU: M, N and K of a rank, for a B of N × K.
const SHAPES: [[usize; 3]; 4] = [[512, 768, 1024], [1000, 520, 264], [256, 2048, 512], [64, 64, 4096]];

/// Runs a check on all shapes, with the default tile and with each of the others.
fn on_shapes(team: &Team, check: fn(&Team, TeamCase) -> anyhow::Result<()>) -> anyhow::Result<()> {
    for shape in SHAPES {
        check(team, TeamCase::nn(shape, None))?;
        for tile in [Tile::T128x256Cluster2x1, Tile::T128x128Cluster2x1, Tile::T64x128] {
            check(team, TeamCase::nt(shape, Some(tile)))?;
        }
    }
    Ok(())
}

/// Gathers A of larger matrices.
///
/// # Errors
///
/// An error of a launch, or wrong results.
pub fn gather_large(team: &Team) -> anyhow::Result<()> {
    on_shapes(team, gathers::<bf16>)?;
    on_shapes(team, gathers::<f16>)
}

/// Scatters C of larger matrices.
///
/// # Errors
///
/// An error of a launch, or wrong results.
pub fn scatter_large(team: &Team) -> anyhow::Result<()> {
    on_shapes(team, scatters::<bf16>)?;
    on_shapes(team, scatters::<f16>)?;
    on_shapes(team, scatters_alike)
}
