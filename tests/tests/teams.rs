//! Launches on teams: kernels whose ranks wait for each other, on simulated devices; the barrier of
//! `tma-kernels`; arguments that do not fit; and what the chapter on several GPUs shows.
#![cfg(feature = "llvm")]

use std::ops::Range;

use tma_runtime::launch::{Arg, GlobalSlice, GlobalSliceMut, launch_team};
use tma_runtime::prelude::*;
use tma_tests::gpu::teams::{all_reduce, stopped, tiles_of_peers};
use tma_tests::kernels::teams::{team_gather, team_numbers};
use tma_tests::sources::code_blocks;

/// The seeds of each test on simulated devices.
const SEEDS: Range<u64> = 0..8;

/// Each rank writes its part to the same place in the memory of all ranks.
#[tma_kernel(threads = 256)]
pub fn all_gather(part: Peers<Global<f32>>, all: Peers<Global<f32>>) {
    let i = block_idx().x as u64 * 256 + thread_idx().x as u64;
    let n = part.own().len();
    if i < n {
        let x = part.own().get(i);
        for k in 0..ranks() {
            let r = (rank() + k) % ranks();
            all.of(r).set(rank() as u64 * n + i, x);
        }
    }
}

/// Passes numbers around the ring of ranks. `flags` are zero.
#[tma_kernel(threads = 128)]
pub fn ring_pass(x: Global<f32>, inbox: Peers<Global<f32>>, flags: Peers<Global<u32>>, y: Global<f32>) {
    let i = block_idx().x * 128 + thread_idx().x;
    let next = (rank() + 1) % ranks();
    inbox.of(next).set(i, x.get(i));
    sync_threads();
    if thread_idx().x == 0 {
        flags.of(next).store(block_idx().x, 1, Order::Release, Scope::System);
        while flags.own().load(block_idx().x, Order::Acquire, Scope::System) == 0 {}
    }
    sync_threads();
    y.set(i, inbox.own().get(i));
}

/// Writes its values to the next rank, and doubles those that the rank before it has written here.
#[tma_kernel(threads = 64)]
pub fn pass_on(
    values: Global<u32>,
    next: Global<u32>,
    next_arrived: Global<u32>,
    arrived: Global<u32>,
    received: Global<u32>,
    doubled: Global<u32>,
) {
    let i = thread_idx().x;
    next.set(i, values.get(i));
    sync_threads();
    if i == 0 {
        next_arrived.store(0, 1, Order::Release, Scope::System);
        while arrived.load(0, Order::Acquire, Scope::System) == 0 {}
    }
    sync_threads();
    doubled.set(i, 2 * received.get(i));
}

#[tma_module]
mod kernels {
    use tma_kernels::team::barrier::sync_team;
    use tma_runtime::prelude::*;

    /// In each round, a thread writes a number and reads that of the opposite thread.
    #[tma_kernel(threads = 128)]
    pub fn team_barrier(flags: Peers<Global<u32>>, out: Global<u32>, rounds: u32) {
        let numbers: SharedArray<u32, 128> = shared();
        let i = thread_idx().x;
        let mut seen = 0;
        for round in 0..rounds {
            numbers.set(i, 2 * i + round);
            sync_team(flags);
            seen = numbers.get(127 - i) + 2 * i;
            sync_team(flags);
        }
        out.set(block_idx().x * 128 + i, seen);
    }
}

/// A check that launches on a team.
type Check = fn(&Team) -> anyhow::Result<()>;

/// The simulator stops as soon as nobody can go on, with the rank that has ended.
#[test]
fn a_rank_that_stops_is_named() -> Result<(), Error> {
    for seed in SEEDS {
        let error = stopped(&Team::simulator(3)?.seed(seed)).expect_err("two ranks wait");
        assert!(error.to_string().contains("all blocks of rank 2 have ended"), "{error}");
    }
    Ok(())
}

#[test]
fn ranks_wait_for_each_other() -> anyhow::Result<()> {
    for check in [all_reduce as Check, tiles_of_peers] {
        for ranks in 1..=4 {
            SEEDS.into_iter().try_for_each(|seed| check(&Team::simulator(ranks)?.seed(seed)))?;
        }
    }
    Ok(())
}

/// Runs the check with `from` replaced by `to` in the PTX of its kernel, and expects a finding with
/// these words under some seed.
#[track_caller]
fn is_found(check: Check, from: &'static str, to: &'static str, words: &str) {
    let mut found = vec![];
    for seed in SEEDS {
        let team = Team::simulator(3).expect("a team").seed(seed).instruction_limit(1 << 22);
        let team = team.rewriting(move |spec| {
            assert!(spec.ptx.contains(from), "{} has no `{from}`", spec.name);
            Some(spec.ptx.replace(from, to))
        });
        found.extend(check(&team).err().map(|error| error.to_string()));
    }
    assert!(found.iter().any(|error| error.contains(words)), "{from}: {found:#?}");
}

#[test]
fn a_narrow_scope_between_ranks_is_found() {
    for check in [all_reduce as Check, tiles_of_peers] {
        is_found(check, ".release.sys", ".release.gpu", "device scope does not reach from rank");
        is_found(check, ".acquire.sys", ".acquire.gpu", "device scope does not reach from rank");
    }
}

#[test]
fn missing_order_between_ranks_is_found() {
    for check in [all_reduce as Check, tiles_of_peers] {
        is_found(check, "ld.acquire.sys", "ld.relaxed.sys", "race: ");
        is_found(check, "st.release.sys", "st.relaxed.sys", "race: ");
    }
    // The flag may overtake the copy if the wait is only for the copy's reads.
    is_found(tiles_of_peers, "bulk.wait_group 0", "bulk.wait_group.read 0", "of rank");
}

/// Launches the kernel, and returns the results of all ranks.
fn passed_on(team: &Team) -> Result<Vec<Vec<u32>>, Error> {
    let ranks = team.ranks();
    let of_rank = |rank| (0..64).map(|i| rank as u32 * 100 + i).collect::<Vec<u32>>();
    let values = team.tensors(&(0..ranks).map(of_rank).collect::<Vec<_>>(), [64])?;
    let received = team.zeros::<u32, 1>([64])?;
    let arrived = team.zeros::<u32, 1>([1])?;
    let mut doubled = team.zeros::<u32, 1>([64])?;
    let mut args = Vec::new();
    for (rank, doubled) in doubled.views_mut().enumerate() {
        let next = (rank + 1) % ranks;
        // SAFETY: the tensors outlive the launch, and nothing else borrows them. Only this rank
        // writes to those of the next one.
        let [to, flag] = unsafe {
            [(&received, 64), (&arrived, 1)].map(|(tensor, len)| {
                let address = tensor.rank(next).map(DeviceTensor::as_ptr).unwrap_or_default();
                team.device(rank).map(|device| TensorViewMut::<u32, 1>::from_raw(device, address, [len], [1]))
            })
        };
        args.push(vec![
            Arg::global(values.rank(rank)?.slice()),
            Arg::global_mut(GlobalSliceMut::new(to?)),
            Arg::global_mut(GlobalSliceMut::new(flag?)),
            Arg::global(arrived.rank(rank)?.slice()),
            Arg::global(GlobalSlice::new(received.rank(rank)?.view())),
            Arg::global_mut(GlobalSliceMut::new(doubled)),
        ]);
    }
    launch_team(team, &pass_on::SPEC, Grid::x(1), &args)?;
    drop(args);
    doubled.to_vecs()
}

#[test]
fn ranks_pass_values_on() -> Result<(), Error> {
    for ranks in 2..=4_usize {
        for seed in SEEDS {
            let found = passed_on(&Team::simulator(ranks)?.seed(seed))?;
            for (rank, found) in found.into_iter().enumerate() {
                let before = ((rank + ranks - 1) % ranks) as u32;
                assert!(found.into_iter().eq((0..64).map(|i| 2 * (before * 100 + i))), "seed {seed}");
            }
        }
    }
    Ok(())
}

#[test]
fn device_scope_is_too_narrow_and_the_help_is_in_the_words_of_the_language() -> Result<(), Error> {
    for seed in SEEDS {
        let team = Team::simulator(2)?.seed(seed);
        let team = team.rewriting(|spec| Some(spec.ptx.replace(".acquire.sys", ".acquire.gpu")));
        let error = passed_on(&team).expect_err("the scope is too narrow").to_string();
        assert!(error.contains("scope too narrow: "), "seed {seed}: {error}");
        let help = "use system scope, `Scope::System` (`.sys`), in both threads";
        assert!(error.contains("device scope does not reach from rank") && error.contains(help), "{error}");
    }
    Ok(())
}

#[test]
fn a_missing_acquire_is_a_race() -> Result<(), Error> {
    for seed in SEEDS {
        let team = Team::simulator(3)?.seed(seed);
        let team = team.rewriting(|spec| Some(spec.ptx.replace("ld.acquire.sys", "ld.relaxed.sys")));
        let error = passed_on(&team).expect_err("nothing orders the ranks").to_string();
        assert!(error.contains("race: ") && error.contains("of rank"), "seed {seed}: {error}");
    }
    Ok(())
}

#[test]
fn the_chapter_launches_on_a_team() -> Result<(), Error> {
    let team = Team::open()?;
    let ranks = team.ranks();
    let of_ranks: Vec<_> = (0..ranks).map(|rank| vec![rank as f32; 128]).collect();
    let x = team.tensors(&of_ranks, [128])?;
    let (mut inbox, mut y) = (team.zeros([128])?, team.zeros([128])?);
    let mut flags = team.zeros([1])?;
    ring_pass::launch(&team, 1, &x, &mut inbox, &mut flags, &mut y)?;
    for (rank, y) in y.to_vecs()?.into_iter().enumerate() {
        assert_eq!(y, [((rank + ranks - 1) % ranks) as f32; 128]);
    }
    Ok(())
}

#[test]
fn the_chapter_launches_on_a_device() -> Result<(), Error> {
    let (first, second) = ([1.0f32; 300], [2.0f32; 300]);
    let device = Device::open()?;
    let parts = [device.tensor(&first, [300])?, device.tensor(&second, [300])?];
    let mut all = [device.zeros::<f32, 1>([600])?, device.zeros::<f32, 1>([600])?];
    let [a, b] = &mut all;
    all_gather::launch(&device, Grid::tiles([300], [256]), &[&parts[0], &parts[1]], &mut [a, b])?;
    for all in all {
        assert_eq!(all.to_vec()?, [first, second].concat());
    }
    Ok(())
}

/// The kernels that the chapter launches are those that this file does.
#[test]
fn the_kernels_are_those_of_the_chapter() {
    let blocks = code_blocks(include_str!("../../docs/language/several-gpus.md"));
    for name in ["all_gather", "ring_pass"] {
        let block = blocks.iter().find(|block| block.code.contains(&format!("pub fn {name}(")));
        let block = block.unwrap_or_else(|| panic!("the chapter has no `{name}`"));
        assert!(include_str!("teams.rs").contains(&block.code), "{name}");
    }
}

/// With one rank, the barrier is one of the block, and its counters only grow.
#[test]
fn counters_of_a_barrier_grow_from_launch_to_launch() -> Result<(), Error> {
    let (blocks, rounds) = (3, 4);
    let device = Device::simulator();
    let mut flags = device.zeros::<u32, 1>([blocks * 8])?;
    for launch in 1..4 {
        let mut out = device.zeros::<u32, 1>([blocks * 128])?;
        kernels::team_barrier::launch(&device, blocks as u32, &mut [&mut flags], &mut [&mut out], rounds)?;
        assert_eq!(out.to_vec()?, vec![2 * 127 + rounds - 1; blocks * 128]);
        let counts = |i| if i % 8 == 0 { 2 * rounds * launch } else { 0 };
        assert_eq!(flags.to_vec()?, (0..blocks * 8).map(counts).collect::<Vec<_>>());
    }
    Ok(())
}

/// A counter may wrap between two rounds.
#[test]
fn counters_of_a_barrier_wrap() -> Result<(), Error> {
    let device = Device::simulator();
    let mut flags = device.tensor(&[u32::MAX - 2; 8], [8])?;
    let mut out = device.zeros::<u32, 1>([128])?;
    kernels::team_barrier::launch(&device, 1, &mut [&mut flags], &mut [&mut out], 2)?;
    assert_eq!(
        flags.to_vec()?,
        [1, u32::MAX - 2, u32::MAX - 2, u32::MAX - 2, u32::MAX - 2, u32::MAX - 2, u32::MAX - 2, u32::MAX - 2]
    );
    Ok(())
}

#[track_caller]
fn is_refused(result: Result<(), Error>, code: &str, message: &str) {
    let error = result.expect_err("the launch is refused");
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn every_rank_has_a_tensor() -> Result<(), Error> {
    let device = Device::simulator();
    let part = device.zeros::<f32, 1>([128])?;
    let mut all = device.zeros::<f32, 1>([256])?;
    let launched = team_gather::launch::<f32>(&device, 1, &[&part, &part], &mut [&mut all]);
    is_refused(launched, "TMA0636", "`team_gather::f32` got 1 for `all`, but the team has 2 ranks");
    let none: &[&DeviceTensor<f32, 1>] = &[];
    is_refused(team_gather::launch::<f32>(&device, 1, none, &mut [&mut all]), "TMA0634", "1 to 8 ranks: 0");
    let mut many = (0..9).map(|_| device.zeros::<u32, 1>([2])).collect::<Result<Vec<_>, _>>()?;
    let mut many: Vec<_> = many.iter_mut().collect();
    is_refused(team_numbers::launch(&device, 1, &mut many[..], 0), "TMA0634", "1 to 8 ranks: 9");
    Ok(())
}

/// A block may wait for any other, if all of a rank run at the same time.
#[test]
fn blocks_of_a_resident_launch_fit() -> Result<(), Error> {
    let team = Team::simulator(2)?;
    let (x, mut flags) = (team.zeros::<f32, 1>([128])?, team.zeros::<u32, 1>([1])?);
    let (mut inbox, mut y) = (team.zeros([128])?, team.zeros([128])?);
    let on = team.with().resident();
    is_refused(ring_pass::launch(on, 1 << 10, &x, &mut inbox, &mut flags, &mut y), "TMA0625", "`ring_pass`");
    ring_pass::launch(on, 1, &x, &mut inbox, &mut flags, &mut y)?;
    assert_eq!(flags.to_vecs()?, [[1]; 2]);
    Ok(())
}

#[test]
fn tensors_of_ranks_are_alike() -> Result<(), Error> {
    let device = Device::simulator();
    let (part, longer) = (device.zeros::<f32, 1>([128])?, device.zeros::<f32, 1>([132])?);
    let (mut a, mut b) = (device.zeros::<f32, 1>([256])?, device.zeros::<f32, 1>([256])?);
    let launched = team_gather::launch::<f32>(&device, 1, &[&part, &longer], &mut [&mut a, &mut b]);
    is_refused(launched, "TMA0535", "`part` of rank 1");
    Ok(())
}

#[test]
fn tensors_of_ranks_are_on_the_device_of_the_launch() -> Result<(), Error> {
    let (device, other) = (Device::simulator(), Device::simulator());
    let (here, there) = (device.zeros::<f32, 1>([128])?, other.zeros::<f32, 1>([128])?);
    let (mut a, mut b) = (device.zeros::<f32, 1>([256])?, device.zeros::<f32, 1>([256])?);
    let launched = team_gather::launch::<f32>(&device, 1, &[&here, &there], &mut [&mut a, &mut b]);
    is_refused(launched, "TMA0514", "`part`");
    Ok(())
}

#[test]
fn tensors_are_those_of_the_team() -> Result<(), Error> {
    let (team, other) = (Team::simulator(3)?, Team::simulator(3)?);
    let part = team.filled_bytes::<f32, 1>([128], 0)?;
    let mut all = team.zeros::<f32, 1>([3 * 128])?;
    team_gather::launch::<f32>(&team, 1, &part, &mut all)?;
    team_gather::launch::<f32>(team.with(), 1, &part, &mut all)?;
    is_refused(team_gather::launch::<f32>(&other, 1, &part, &mut all), "TMA0514", "`part`");
    // In the wrong order.
    let turned = [part.rank(1)?, part.rank(2)?, part.rank(0)?];
    is_refused(team_gather::launch::<f32>(&team, 1, &turned, &mut all), "TMA0514", "`part`");
    let two = [part.rank(0)?, part.rank(1)?];
    is_refused(team_gather::launch::<f32>(&team, 1, &two, &mut all), "TMA0636", "got 2 for `part`");
    let longer = team.device(2)?.zeros::<f32, 1>([132])?;
    let unlike = [part.rank(0)?, part.rank(1)?, &longer];
    is_refused(team_gather::launch::<f32>(&team, 1, &unlike, &mut all), "TMA0535", "`part` of rank 2");
    Ok(())
}

/// Every address is checked.
#[test]
#[expect(clippy::single_range_in_vec_init, reason = "a view of one dimension is sliced by one range")]
fn tensors_of_ranks_are_aligned() -> Result<(), Error> {
    let device = Device::simulator();
    let whole = device.zeros::<f32, 1>([132])?;
    let (first, second) = (whole.view().slice([0..128])?, whole.view().slice([1..129])?);
    let (mut a, mut b) = (device.zeros::<f32, 1>([256])?, device.zeros::<f32, 1>([256])?);
    let launched = team_gather::launch::<f32>(&device, 1, &[first, second], &mut [&mut a, &mut b]);
    is_refused(launched, "TMA0531", "`part`");
    Ok(())
}

/// The specification lists what a launch adds.
#[test]
fn specifications_of_team_kernels_have_two_more_numbers() {
    let spec = team_numbers::SPEC;
    assert!(spec.team);
    assert_eq!(
        spec.params.iter().map(|param| param.name).collect::<Vec<_>>(),
        ["out", "first", "rank()", "ranks()"]
    );
}
