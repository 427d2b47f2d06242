//! The collectives of `tma-kernels` on simulated teams: every type, several numbers of ranks, lengths
//! around vectors, blocks and slots, calls that follow each other without a wait, and errors.
#![cfg(feature = "llvm")]

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tma_kernels::team::{
    AllReduceMethod, AllReduceOptions, CollectiveError, CollectiveOptions, TeamWorkspace, all_gather,
    all_reduce, one_shot_bytes, reduce_scatter,
};
use tma_runtime::prelude::*;
use tma_tests::gpu::collectives::{Extent, Summand, gathered_and_scattered, reduced};

/// The seeds of each test.
const SEEDS: Range<u64> = 0..3;

/// The numbers of ranks: with groups of one to four, and of more ranks than a group has.
const RANKS: [usize; 6] = [1, 2, 3, 4, 5, 6];

/// Lengths around vectors of 4 and 8 elements and around a block's 512 threads, at any alignment.
const EXTENTS: [Extent; 7] = [
    Extent { len: 1, before: 0, blocks: None },
    Extent { len: 4101, before: 0, blocks: Some(3) },
    Extent { len: 13, before: 0, blocks: None },
    Extent { len: 0, before: 0, blocks: None },
    Extent { len: 700, before: 1, blocks: None },
    Extent { len: 2048, before: 8, blocks: None },
    Extent { len: 600, before: 0, blocks: Some(0) },
];

/// Runs a check under every seed with every number of ranks.
fn on_teams(check: impl Fn(&Team) -> anyhow::Result<()>) -> anyhow::Result<()> {
    for ranks in RANKS {
        SEEDS.into_iter().try_for_each(|seed| check(&Team::simulator(ranks)?.seed(seed)))?;
    }
    Ok(())
}

fn reduces<T: Summand>() -> anyhow::Result<()> {
    for method in [None, Some(AllReduceMethod::OneShot), Some(AllReduceMethod::TwoShot)] {
        on_teams(|team| reduced::<T>(team, &EXTENTS, method))?;
    }
    Ok(())
}

#[test]
fn f32_is_reduced() -> anyhow::Result<()> {
    reduces::<f32>()
}

#[test]
fn bf16_is_reduced() -> anyhow::Result<()> {
    reduces::<bf16>()
}

#[test]
fn f16_is_reduced() -> anyhow::Result<()> {
    reduces::<f16>()
}

#[test]
fn f32_is_gathered_and_scattered() -> anyhow::Result<()> {
    on_teams(|team| gathered_and_scattered::<f32>(team, &EXTENTS))
}

#[test]
fn bf16_is_gathered_and_scattered() -> anyhow::Result<()> {
    on_teams(|team| gathered_and_scattered::<bf16>(team, &EXTENTS))
}

#[test]
fn f16_is_gathered_and_scattered() -> anyhow::Result<()> {
    on_teams(|team| gathered_and_scattered::<f16>(team, &EXTENTS))
}

/// A thread has several vectors of each rank, in both loops of the kernels.
#[test]
fn threads_have_several_vectors() -> anyhow::Result<()> {
    let long = Extent { len: 9 * 2048 + 68, before: 0, blocks: Some(1) };
    for (ranks, seed) in [(2, 0), (4, 1)] {
        let team = Team::simulator(ranks)?.seed(seed);
        let odd = Extent { len: long.len / 4, before: 3, ..long };
        for method in [AllReduceMethod::OneShot, AllReduceMethod::TwoShot] {
            reduced::<f32>(&team, &[long, odd], Some(method))?;
        }
        gathered_and_scattered::<f32>(&team, &[long, odd])?;
    }
    Ok(())
}

/// Both methods are chosen by the size, and share a workspace.
#[test]
fn large_tensors_are_reduced_in_two_shots() -> anyhow::Result<()> {
    let ranks = 8;
    let most = one_shot_bytes(ranks) / size_of::<f32>();
    let names = Arc::new(Mutex::new(vec![]));
    let launched = Arc::clone(&names);
    let team = Team::simulator(ranks)?.rewriting(move |spec| {
        launched.lock().unwrap_or_else(PoisonError::into_inner).push(spec.name);
        None
    });
    let mut workspace = TeamWorkspace::new(&team)?;
    for (len, wanted) in [(most, "one_shot::f32_fours"), (most + 1, "two_shot::f32_fours")] {
        let mut x = team.zeros::<f32, 1>([len])?;
        all_reduce(&team, &mut x, &mut workspace, AllReduceOptions::default())?;
        let names = std::mem::take(&mut *names.lock().unwrap_or_else(PoisonError::into_inner));
        assert!(!names.is_empty() && names.iter().all(|name| *name == wanted), "{len}: {names:?}");
    }
    Ok(())
}

#[test]
fn the_page_reduces_scatters_and_gathers() -> anyhow::Result<()> {
    let team = Team::simulator(2)?;
    let mut gradients = team.tensors(&[[1.0f32, 2.0, 3.0], [10.0, 20.0, 30.0]], [3])?;
    let rows = team.tensors(&[[1.0f32, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]], [2, 2])?;
    let mut piece = team.zeros::<f32, 2>([1, 2])?;
    let mut all = team.zeros::<f32, 2>([2, 2])?;

    // The gradients of each rank become the sum of all.
    let mut workspace = TeamWorkspace::new(&team)?;
    all_reduce(&team, &mut gradients, &mut workspace, AllReduceOptions::default())?;

    // Each rank adds up its piece of all rows, and sends it to the others.
    let options = CollectiveOptions::default();
    reduce_scatter(&team, &rows, &mut piece, &mut workspace, options)?;
    all_gather(&team, &piece, &mut all, &mut workspace, options)?;

    assert_eq!(gradients.to_vecs()?, [[11.0, 22.0, 33.0]; 2]);
    assert_eq!(piece.to_vecs()?, [[11.0, 22.0], [33.0, 44.0]]);
    assert_eq!(all.to_vecs()?, [[11.0, 22.0, 33.0, 44.0]; 2]);
    Ok(())
}

#[track_caller]
fn is_refused(result: Result<(), CollectiveError>, code: &str, message: &str) {
    let error = result.expect_err("the call is refused");
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn tma0579_tensors_match() -> anyhow::Result<()> {
    let team = Team::simulator(2)?;
    let mut workspace = TeamWorkspace::new(&team)?;
    let part = team.zeros::<f32, 2>([2, 3])?;
    let mut all = team.zeros::<f32, 1>([11])?;
    let options = CollectiveOptions::default();
    let gathered = all_gather(&team, &part, &mut all, &mut workspace, options);
    is_refused(gathered, "TMA0579", "`all` of rank 0 is [11], but must have 12 elements");
    let scattered = reduce_scatter(&team, &part, &mut all, &mut workspace, options);
    is_refused(scattered, "TMA0579", "`x` of rank 0 is [2, 3], but must have 22 elements");
    let mut longer = team.device(1)?.zeros::<f32, 1>([12])?;
    let mut x = [all.rank_mut(0)?.view_mut(), longer.view_mut()];
    let reduced = all_reduce(&team, &mut x, &mut workspace, AllReduceOptions::default());
    is_refused(reduced, "TMA0579", "`x` of rank 1 is [12], but must have the shape [11] of rank 0");
    Ok(())
}

#[test]
fn tensors_are_those_of_the_ranks() -> anyhow::Result<()> {
    let (team, other) = (Team::simulator(2)?, Team::simulator(2)?);
    let (mut workspace, mut of_other) = (TeamWorkspace::new(&team)?, TeamWorkspace::new(&other)?);
    let (mut x, mut there) = (team.zeros::<f32, 1>([8])?, other.zeros::<f32, 1>([8])?);
    let options = AllReduceOptions::default();
    is_refused(all_reduce(&team, &mut there, &mut workspace, options), "TMA0514", "`x`");
    is_refused(all_reduce(&team, &mut x, &mut of_other, options), "TMA0514", "`slots`");
    let mut one = [x.rank_mut(0)?];
    is_refused(all_reduce(&team, &mut one, &mut workspace, options), "TMA0636", "1 were passed");
    all_reduce(&team, &mut x, &mut workspace, options)?;
    Ok(())
}

/// Makes a workspace of memory with these bytes.
fn given(
    team: &Team,
    memory: &SymmetricTensor<u8, 1>,
    bytes: usize,
) -> Result<TeamWorkspace, CollectiveError> {
    let addresses: Vec<_> = memory.views().map(|view| view.as_ptr()).collect();
    // SAFETY: the memory outlives the workspace, and is used for nothing else.
    unsafe { TeamWorkspace::from_raw(team, &addresses, bytes) }
}

#[test]
fn tma0570_a_given_workspace_may_be_small() -> anyhow::Result<()> {
    let team = Team::simulator(2)?;
    let memory = team.filled_bytes::<u8, 1>([TeamWorkspace::bytes(&team)], 0xab)?;
    let mut x = team.tensors(&[vec![1.0f32; 1000], vec![2.0; 1000]], [1000])?;
    let one_shot = AllReduceOptions { method: Some(AllReduceMethod::OneShot), ..Default::default() };

    let refused = given(&team, &memory, 100).map(drop);
    is_refused(refused, "TMA0570", "it has 100 bytes on each rank, but this call needs 128");
    let mut flags_alone = given(&team, &memory, 128)?;
    let refused = all_reduce(&team, &mut x, &mut flags_alone, one_shot);
    is_refused(refused, "TMA0570", "it has 128 bytes on each rank, but this call needs 32256");
    all_reduce(&team, &mut x, &mut flags_alone, AllReduceOptions::default())?;
    drop(flags_alone);
    let mut enough = given(&team, &memory, 32256)?;
    all_reduce(&team, &mut x, &mut enough, one_shot)?;
    assert_eq!(x.to_vecs()?, vec![vec![6.0; 1000]; 2]);
    // SAFETY: the call is refused.
    let refused = unsafe { TeamWorkspace::from_raw(&team, &[memory.rank(0)?.as_ptr()], 128) };
    is_refused(refused.map(drop), "TMA0636", "wrong number of addresses: 1 were passed");
    Ok(())
}
