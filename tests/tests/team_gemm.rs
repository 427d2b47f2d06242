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

const SMALL_TILE: TeamGemmOptions =
    TeamGemmOptions { transpose_b: true, tile: Some(Tile::T64x128), blocks: None };

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

/// Runs the check with `from` replaced by `to` in the PTX of its kernel, and expects a finding with
/// these words under some seed.
#[track_caller]
fn is_found(check: Check, from: &'static str, to: &'static str, words: &str) {
    let mut found = vec![];
    for seed in 0..4 {
        let team = Team::simulator(2).expect("a team").seed(seed).instruction_limit(1 << 24);
        let team = team.rewriting(move |spec| {
            let is_ours =
                spec.name.starts_with("gather_multiply") || spec.name.starts_with("multiply_scatter");
            assert!(!is_ours || spec.ptx.contains(from), "{} has no `{from}`", spec.name);
            is_ours.then(|| spec.ptx.replace(from, to))
        });
        let case = TeamCase { options: SMALL_TILE, ..TeamCase::nt(SMALL, None) };
        found.extend(check(&team, case).err().map(|error| error.to_string()));
    }
    assert!(found.iter().any(|error| error.contains(words)), "{from}: {found:#?}");
}

#[test]
fn missing_order_of_gathered_rows_is_found() {
    is_found(gathers::<bf16>, "ld.acquire.gpu", "ld.relaxed.gpu", "race: ");
    is_found(gathers::<bf16>, "st.release.gpu", "st.relaxed.gpu", "race: ");
    // The chunk may be counted before its copies have arrived.
    is_found(gathers::<bf16>, "bulk.wait_group 1", "bulk.wait_group.read 1", "race: ");
}

#[test]
fn missing_order_of_scattered_sums_is_found() {
    is_found(scatters::<bf16>, "ld.acquire.sys", "ld.relaxed.sys", "race: ");
    is_found(scatters::<bf16>, "st.release.sys", "st.relaxed.sys", "race: ");
    // The flag may overtake the sums.
    is_found(scatters::<bf16>, "bulk.wait_group 0", "bulk.wait_group.read 0", "race: ");
}

#[track_caller]
fn is_refused(result: Result<(), GemmError>, code: &str, message: &str) {
    let error = result.expect_err("the call is refused");
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn matrices_that_do_not_match_are_refused() -> Result<(), Error> {
    let team = Team::simulator(2)?;
    let mut gathered = GatherWorkspace::<bf16>::new(&team, 16, 32)?;
    let mut sums = ScatterWorkspace::<bf16>::new(&team, 16, 8)?;
    let (a, b) = (team.zeros::<bf16, 2>([16, 32])?, team.zeros::<bf16, 2>([8, 32])?);
    let (mut c, mut part) = (team.zeros::<bf16, 2>([16, 8])?, team.zeros::<bf16, 2>([16, 8])?);
    let refused = all_gather_gemm(&team, &a, &b, &mut c, &mut gathered, SMALL_TILE);
    is_refused(refused, "TMA0546", "C of rank 0 is [16, 8], but must be [32, 8]");
    let refused = gemm_reduce_scatter(&team, &a, &b, &mut part, &mut sums, SMALL_TILE);
    is_refused(refused, "TMA0546", "A of rank 0 is [16, 32], but must be [32, 32]");
    let other = team.device(1)?.zeros::<bf16, 2>([16, 32])?;
    let of_other_shape = [b.rank(0)?.view(), other.view()];
    let refused = all_gather_gemm(&team, &a, &of_other_shape, &mut c, &mut gathered, SMALL_TILE);
    is_refused(refused, "TMA0546", "B of rank 1 is [16, 32], but must be [8, 32]");
    let refused = all_gather_gemm(&team, &of_other_shape[..1], &b, &mut c, &mut gathered, SMALL_TILE);
    is_refused(refused, "TMA0636", "wrong number of matrices A: 1 were passed, but the team has 2 ranks");
    Ok(())
}

#[test]
fn what_no_kernel_supports_is_refused() -> Result<(), Error> {
    let team = Team::simulator(2)?;
    let mut gathered = GatherWorkspace::<bf16>::new(&team, 16, 32)?;
    let (a, b) = (team.zeros::<bf16, 2>([16, 32])?, team.zeros::<bf16, 2>([12, 32])?);
    let mut c = team.zeros::<bf16, 2>([32, 12])?;
    let refused = all_gather_gemm(&team, &a, &b, &mut c, &mut gathered, SMALL_TILE);
    is_refused(refused, "TMA0547", "rows of C that are not multiples of 16 bytes");
    let (b, mut c) = (team.zeros::<bf16, 2>([8, 32])?, team.zeros::<bf16, 2>([32, 8])?);
    let options = TeamGemmOptions { tile: Some(Tile::SplitK128x128), ..SMALL_TILE };
    is_refused(all_gather_gemm(&team, &a, &b, &mut c, &mut gathered, options), "TMA0547", "this `tile`");
    Ok(())
}

#[test]
fn workspaces_that_are_too_small_or_of_another_team_are_refused() -> Result<(), Error> {
    let (team, other) = (Team::simulator(2)?, Team::simulator(2)?);
    let (a, b) = (team.zeros::<bf16, 2>([32, 64])?, team.zeros::<bf16, 2>([136, 64])?);
    let (mut c, mut part) = (team.zeros::<bf16, 2>([64, 136])?, team.zeros::<bf16, 2>([16, 136])?);
    let mut gathered = GatherWorkspace::new(&team, 31, 64)?;
    let refused = all_gather_gemm(&team, &a, &b, &mut c, &mut gathered, SMALL_TILE);
    is_refused(refused, "TMA0570", &format!("needs {}", GatherWorkspace::<bf16>::bytes(&team, 32, 64)));
    let mut sums = ScatterWorkspace::new(&team, 16, 64)?;
    let options = TeamGemmOptions { tile: Some(Tile::T128x256Cluster2x1), ..SMALL_TILE };
    gemm_reduce_scatter(&team, &a, &b, &mut part, &mut sums, SMALL_TILE)
        .expect("it suffices for small tiles");
    let mut none = ScatterWorkspace::new(&team, 0, 0)?;
    is_refused(gemm_reduce_scatter(&team, &a, &b, &mut part, &mut none, options), "TMA0570", "on each rank");
    let mut of_other = GatherWorkspace::new(&other, 32, 64)?;
    is_refused(all_gather_gemm(&team, &a, &b, &mut c, &mut of_other, SMALL_TILE), "TMA0514", "`a`");
    Ok(())
}

#[test]
fn one_workspace_serves_layers_of_several_extents() -> anyhow::Result<()> {
    for seed in SEEDS {
        let team = Team::simulator(2)?.seed(seed);
        let mut sums = ScatterWorkspace::<bf16>::new(&team, 96, 264)?;
        let mut gathered = GatherWorkspace::<bf16>::new(&team, 96, 264)?;
        for [m, n, k] in [[96, 136, 64], [24, 264, 64], [64, 8, 264]] {
            let ones = |len: usize| vec![vec![bf16::from_f32(1.0); len]; 2];
            let (a, b) = (team.tensors(&ones(2 * m * k), [2 * m, k])?, team.tensors(&ones(n * k), [n, k])?);
            let mut part = team.zeros::<bf16, 2>([m, n])?;
            gemm_reduce_scatter(&team, &a, &b, &mut part, &mut sums, SMALL_TILE)?;
            assert_eq!(part.to_vecs()?, vec![vec![bf16::from_f32(2.0 * k as f32); m * n]; 2]);
            let (a, mut c) = (team.tensors(&ones(m * k), [m, k])?, team.zeros::<bf16, 2>([2 * m, n])?);
            all_gather_gemm(&team, &a, &b, &mut c, &mut gathered, SMALL_TILE)?;
            assert_eq!(c.to_vecs()?, vec![vec![bf16::from_f32(k as f32); 2 * m * n]; 2]);
        }
    }
    Ok(())
}

/// A multilayer perceptron without its activation, as in `docs/team-gemm.md`.
#[test]
fn the_chapter_gathers_and_scatters() -> anyhow::Result<()> {
    let team = Team::simulator(2)?;
    let [rows, hidden, inner] = [16, 64, 32];
    let ones = |shape: [usize; 2]| {
        team.tensors(&vec![vec![bf16::from_f32(1.0); shape[0] * shape[1]]; team.ranks()], shape)
    };
    let (x, up, down) = (ones([rows, hidden])?, ones([inner, hidden])?, ones([hidden, inner])?);
    let (mut h, mut y) = (team.zeros([2 * rows, inner])?, team.zeros([rows, hidden])?);
    let mut gathered = GatherWorkspace::new(&team, rows, hidden)?; // rows of each rank
    let mut sums = ScatterWorkspace::new(&team, rows, hidden)?;
    let options = TeamGemmOptions { transpose_b: true, ..Default::default() }; // weights of N × K
    all_gather_gemm(&team, &x, &up, &mut h, &mut gathered, options)?;
    gemm_reduce_scatter(&team, &h, &down, &mut y, &mut sums, options)?;
    let sum = bf16::from_f32((2 * inner * hidden) as f32);
    assert_eq!(y.to_vecs()?, vec![vec![sum; rows * hidden]; 2]);
    Ok(())
}
