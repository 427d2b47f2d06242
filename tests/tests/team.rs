//! Compiled kernels on teams of simulated devices, whose parameters point to the memory of peers.
#![cfg(feature = "llvm")]

use tma_runtime::launch::{Arg, GlobalSlice, GlobalSliceMut, launch_team};
use tma_runtime::prelude::*;

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

/// Launches the kernel, and returns the results of all ranks.
fn run(team: &Team) -> Result<Vec<Vec<u32>>, Error> {
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
        for seed in 0..8 {
            let found = run(&Team::simulator(ranks)?.seed(seed))?;
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
    for seed in 0..8 {
        let team = Team::simulator(2)?.seed(seed);
        let team = team.rewriting(|spec| Some(spec.ptx.replace(".acquire.sys", ".acquire.gpu")));
        let error = run(&team).expect_err("the scope is too narrow").to_string();
        assert!(error.contains("scope too narrow: "), "seed {seed}: {error}");
        let help = "use system scope, `Scope::System` (`.sys`), in both threads";
        assert!(error.contains("device scope does not reach from rank") && error.contains(help), "{error}");
    }
    Ok(())
}

#[test]
fn a_missing_acquire_is_a_race() -> Result<(), Error> {
    for seed in 0..8 {
        let team = Team::simulator(3)?.seed(seed);
        let team = team.rewriting(|spec| Some(spec.ptx.replace("ld.acquire.sys", "ld.relaxed.sys")));
        let error = run(&team).expect_err("nothing orders the ranks").to_string();
        assert!(error.contains("race: ") && error.contains("of rank"), "seed {seed}: {error}");
    }
    Ok(())
}
