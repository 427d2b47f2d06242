//! The all-reduce from flags in the chapter on several GPUs, and the mistakes that it lists.
#![cfg(feature = "llvm")]

use std::ops::Range;

use tma_runtime::prelude::*;
use tma_tests::sources::code_blocks;

/// Replaces the elements of all ranks by their sums. `flags` has 8 numbers for each block, which are
/// zero before the first launch. `launch` counts the launches, from 0.
#[tma_kernel(threads = 128)]
pub fn add_up(x: Peers<Global<f32>>, flags: Peers<Global<u32>>, launch: u32) {
    let i = block_idx().x * 128 + thread_idx().x;
    let first = block_idx().x * 8;
    let peer = thread_idx().x;
    // Wait until the elements of all ranks are there.
    if peer < ranks() {
        flags.of(peer).store(first + rank(), 2 * launch + 1, Order::Release, Scope::System);
        while flags.own().load(first + peer, Order::Acquire, Scope::System) < 2 * launch + 1 {}
    }
    sync_threads();
    let mut sum = 0.0;
    for r in 0..ranks() {
        sum += x.of(r).get(i);
    }
    // Wait until all ranks have read the elements.
    sync_threads();
    if peer < ranks() {
        flags.of(peer).store(first + rank(), 2 * launch + 2, Order::Release, Scope::System);
        while flags.own().load(first + peer, Order::Acquire, Scope::System) < 2 * launch + 2 {}
    }
    sync_threads();
    x.own().set(i, sum);
}

/// The same without the second wait.
#[tma_kernel(threads = 128)]
pub fn add_up_at_once(x: Peers<Global<f32>>, flags: Peers<Global<u32>>, launch: u32) {
    let i = block_idx().x * 128 + thread_idx().x;
    let first = block_idx().x * 8;
    let peer = thread_idx().x;
    if peer < ranks() {
        flags.of(peer).store(first + rank(), launch + 1, Order::Release, Scope::System);
        while flags.own().load(first + peer, Order::Acquire, Scope::System) < launch + 1 {}
    }
    sync_threads();
    let mut sum = 0.0;
    for r in 0..ranks() {
        sum += x.of(r).get(i);
    }
    x.own().set(i, sum);
}

/// The seeds of each test.
const SEEDS: Range<u64> = 0..8;

/// The blocks of each rank.
const BLOCKS: usize = 2;

/// Launches the kernel with these numbers of launches before, without a wait in between, and checks
/// the sums.
fn launched(team: &Team, launches: &[u32], waits_twice: bool) -> Result<(), Error> {
    let n = BLOCKS * 128;
    let host: Vec<_> = (0..team.ranks()).map(|rank| vec![(rank + 1) as f32; n]).collect();
    let mut x = team.tensors(&host, [n])?;
    let mut flags = team.zeros::<u32, 1>([8 * BLOCKS])?;
    for &launch in launches {
        match waits_twice {
            true => add_up::launch(team, BLOCKS as u32, &mut x, &mut flags, launch)?,
            false => add_up_at_once::launch(team, BLOCKS as u32, &mut x, &mut flags, launch)?,
        }
    }
    let sum: f32 = host.iter().map(|x| x[0]).sum();
    let wanted = sum * (team.ranks() as f32).powi(launches.len() as i32 - 1);
    assert_eq!(x.to_vecs()?, vec![vec![wanted; n]; team.ranks()]);
    Ok(())
}

#[test]
fn ranks_add_up() -> Result<(), Error> {
    for ranks in 1..=4 {
        SEEDS
            .into_iter()
            .try_for_each(|seed| launched(&Team::simulator(ranks)?.seed(seed), &[0, 1, 2], true))?;
    }
    Ok(())
}

/// Expects a finding with these words under some seed.
#[track_caller]
fn is_found(words: &str, run: impl Fn(Team) -> Result<(), Error>) {
    let mut found = vec![];
    for seed in SEEDS {
        let team = Team::simulator(3).expect("a team").seed(seed).instruction_limit(1 << 22);
        found.extend(run(team).err().map(|error| error.to_string()));
    }
    assert!(found.iter().any(|error| error.contains(words)), "{found:#?}");
}

/// Expects a finding with these words if `from` is `to` in the PTX.
#[track_caller]
fn is_found_with(from: &'static str, to: &'static str, words: &str) {
    is_found(words, |team| {
        let team = team.rewriting(move |spec| {
            assert!(spec.ptx.contains(from), "{} has no `{from}`", spec.name);
            Some(spec.ptx.replace(from, to))
        });
        launched(&team, &[0, 1], true)
    });
}

#[test]
fn mistakes_of_the_chapter_are_found() {
    is_found_with("ld.acquire.sys", "ld.acquire.gpu", "device scope does not reach from rank");
    is_found_with("ld.acquire.sys", "ld.relaxed.sys", "race: ");
    is_found_with("st.release.sys", "st.relaxed.sys", "race: ");
    is_found_with("barrier.sync", "// barrier.sync", "race: ");
    is_found("race: ", |team| launched(&team, &[0], false));
    is_found("race: ", |team| launched(&team, &[0, 0], true));
}

#[test]
fn the_kernel_is_that_of_the_chapter() {
    let blocks = code_blocks(include_str!("../../docs/language/several-gpus.md"));
    let block = blocks.iter().find(|block| block.code.contains("pub fn add_up("));
    let block = block.expect("the chapter has the kernel");
    assert!(include_str!("team_sums.rs").contains(&block.code));
}
