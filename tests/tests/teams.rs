//! Launches on a team: the barrier of `tma-kernels`, and arguments that do not fit.

use tma_runtime::prelude::*;
use tma_tests::kernels::teams::{team_gather, team_numbers};

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
    is_refused(
        launched,
        "TMA0535",
        "`all` of kernel `team_gather::f32` has 1 tensor, but the team has 2 ranks",
    );
    let none: &[&DeviceTensor<f32, 1>] = &[];
    is_refused(team_gather::launch::<f32>(&device, 1, none, &mut [&mut all]), "TMA0535", "pass 1 to 8");
    let mut many = (0..9).map(|_| device.zeros::<u32, 1>([2])).collect::<Result<Vec<_>, _>>()?;
    let mut many: Vec<_> = many.iter_mut().collect();
    is_refused(team_numbers::launch(&device, 1, &mut many[..], 0), "TMA0535", "has 9 tensors; pass 1 to 8");
    Ok(())
}

#[test]
fn tensors_of_ranks_are_alike() -> Result<(), Error> {
    let device = Device::simulator();
    let (part, longer) = (device.zeros::<f32, 1>([128])?, device.zeros::<f32, 1>([132])?);
    let (mut a, mut b) = (device.zeros::<f32, 1>([256])?, device.zeros::<f32, 1>([256])?);
    let launched = team_gather::launch::<f32>(&device, 1, &[&part, &longer], &mut [&mut a, &mut b]);
    is_refused(launched, "TMA0536", "`part` of rank 1");
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

/// Every address is checked.
#[test]
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
