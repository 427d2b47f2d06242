//! GEMMs on simulated teams: exact results under several seeds, wrong arguments, and changes of the
//! kernels that the simulator finds.
#![cfg(feature = "llvm")]

use std::ops::Range;

use tma_kernels::gemm::team::{
    GatherWorkspace, ScatterWorkspace, TeamGemmOptions, all_gather_gemm, gemm_reduce_scatter,
};
use tma_kernels::gemm::{GemmError, Tile};
use tma_runtime::prelude::*;
use tma_tests::gpu::team_gemm::{TeamCase, gathers, scatters, scatters_alike};

/// The seeds of each test on simulated devices.
const SEEDS: Range<u64> = 0..3;

/// A check that launches on a team.
type Check = fn(&Team, TeamCase) -> anyhow::Result<()>;

#[track_caller]
fn holds(check: Check, ranks: usize, case: TeamCase) {
    for seed in SEEDS {
        let team = Team::simulator(ranks).expect("a team").seed(seed);
        if let Err(error) = check(&team, case) {
            panic!("seed {seed}, {ranks} ranks, {case:?}: {error:#}");
        }
    }
}

/// M of a part, N and K: small, ragged in every extent, of several chunks and pieces.
const SMALL: [usize; 3] = [72, 136, 72];
const RAGGED: [usize; 3] = [200, 264, 264];

#[test]
fn rows_are_gathered() {
    holds(gathers::<bf16>, 1, TeamCase::nt(SMALL, Some(Tile::T64x128)));
    holds(gathers::<bf16>, 2, TeamCase::nt(SMALL, None));
    holds(gathers::<f16>, 3, TeamCase::nn(SMALL, Some(Tile::T64x128)).blocks(2));
}

#[test]
fn rows_are_gathered_by_clusters() {
    holds(gathers::<bf16>, 2, TeamCase::nt(RAGGED, Some(Tile::T128x256Cluster2x1)));
    holds(gathers::<f16>, 2, TeamCase::nn(RAGGED, Some(Tile::T128x128Cluster2x1)).blocks(2));
}

#[test]
fn sums_are_scattered() {
    holds(scatters::<bf16>, 1, TeamCase::nt(SMALL, Some(Tile::T64x128)));
    holds(scatters::<bf16>, 2, TeamCase::nt(SMALL, None));
    holds(scatters::<f16>, 3, TeamCase::nn(SMALL, Some(Tile::T64x128)).blocks(2));
}

#[test]
fn sums_are_scattered_by_clusters() {
    holds(scatters::<bf16>, 2, TeamCase::nt(RAGGED, Some(Tile::T128x256Cluster2x1)));
    holds(scatters::<f16>, 2, TeamCase::nn(RAGGED, Some(Tile::T128x128Cluster2x1)).blocks(2));
}

#[test]
fn sums_have_the_same_bits_each_time() {
    holds(scatters_alike, 3, TeamCase::nt(SMALL, Some(Tile::T64x128)));
}

#[test]
fn extents_may_be_zero() {
    for shape in [[0, 64, 64], [64, 0, 64], [16, 8, 0]] {
        holds(gathers::<bf16>, 2, TeamCase::nt(shape, None));
        holds(scatters::<bf16>, 2, TeamCase::nt(shape, None));
    }
}
