//! Tables of the instances of team kernels: launches by types and keys, with optional tensors, and with
//! arguments that a table adds.
#![cfg(feature = "llvm")]

use tma_runtime::launch::{Arg, Instances, TeamArg};
use tma_runtime::prelude::*;

/// Multiplies `V` elements of each thread, adds the number that there is for its rank in `offsets`, and
/// writes them to the rank `STEP` after this one.
#[tma_kernel(threads = 32, instances(T in [f32, bf16], STEP in [1, 2], let V = 16 / size_of::<T>()))]
pub fn send<T: TileElement + Number, const STEP: u32, const V: usize>(
    x: Global<T>,
    inbox: Peers<Global<T>>,
    factor: f32,
    offsets: Option<Global<f32>>,
) {
    let to = (rank() + STEP) % ranks();
    let mut offset = 0.0f32;
    if let Some(offsets) = offsets {
        offset = offsets.get(0);
    }
    let first = thread_idx().x * V as u32;
    let mut vector = x.get_vec::<V>(first);
    for k in unroll(0..V) {
        vector[k] = cast::<T>(cast::<f32>(vector[k]) * factor + offset);
    }
    inbox.of(to).set_vec(first, vector);
}

use send::{Key, Launcher};

/// The ranks of a team.
const RANKS: usize = 3;

/// The elements of a tensor of `f32`: 4 for each of 32 threads.
const N: usize = 128;

/// Returns the numbers of a rank.
fn numbers(rank: usize) -> Vec<f32> {
    (0..N).map(|i| (100 * rank + i) as f32).collect()
}

/// Returns the numbers that each rank receives.
fn sent(ranks: usize, step: u32, factor: f32, offset: f32) -> Vec<Vec<f32>> {
    let from = |rank: usize| numbers((rank + ranks - step as usize) % ranks);
    (0..ranks).map(|rank| from(rank).iter().map(|x| x * factor + offset).collect()).collect()
}

/// Sends by an instance of the table.
fn launched(table: &Instances<'_, Key>, step: u32, offset: Option<f32>) -> Result<(), Error> {
    let team = Team::simulator(RANKS)?;
    let x = team.tensors(&[numbers(0), numbers(1), numbers(2)], [N])?;
    let mut inbox = team.zeros::<f32, 1>([N])?;
    let offsets = offset.map(|offset| team.tensors(&[[offset]; RANKS], [1])).transpose()?;
    let launcher: Launcher<'_, f32> = table.find(Key { step }).expect("an instance");
    launcher.launch(&team, 1, &x, &mut inbox, 2.0, offsets.as_ref())?;
    let wanted = sent(RANKS, step, 2.0, offset.unwrap_or_default());
    assert_eq!(inbox.to_vecs()?, wanted, "{}", launcher.spec().name);
    Ok(())
}

#[test]
fn instances_are_found_by_types_and_keys() -> Result<(), Error> {
    assert!(send::keys::<bf16>().eq([Key { step: 1 }, Key { step: 2 }]));
    assert!(send::find::<f32>(Key { step: 3 }).is_none());
    assert!(send::find::<u32>(Key { step: 1 }).is_none());
    for step in [1, 2] {
        for offset in [None, Some(0.5)] {
            launched(&send::table(), step, offset)?;
            launched(&send::table_of::<f32>(), step, offset)?;
        }
    }
    Ok(())
}

/// Launches with the arguments that the table adds to the two tensors.
fn launched_with(added: Vec<Arg<'_>>, has_offsets: bool, team: &Team) -> Result<Vec<Vec<f32>>, Error> {
    let x = team.tensors(&[numbers(0), numbers(1)], [N])?;
    let mut inbox = team.zeros::<f32, 1>([N])?;
    let table = send::table_of::<f32>().with(added);
    let instance = table.instance::<(f32,)>(Key { step: 1 }).expect("an instance");
    let (x, mut to) = (&x, &mut inbox);
    let args = [TeamArg::globals(&x), TeamArg::peer_globals_mut(&mut to)];
    instance.launch_on_team(team, 1.into(), &args, &[TeamArg::scalar(has_offsets)])?;
    drop(args);
    inbox.to_vecs()
}

/// What a table adds is the same on every rank. A tensor on one device is no tensor of the others.
#[test]
fn a_table_adds_arguments_for_every_rank() -> Result<(), Error> {
    let team = Team::simulator(2)?;
    let none = Arg::optional::<f32>(None);
    assert_eq!(launched_with(vec![Arg::scalar(4.0f32), none], false, &team)?, sent(2, 1, 4.0, 0.0));
    let offsets = team.device(0)?.zeros::<f32, 1>([1])?;
    let added = vec![Arg::scalar(1.0f32), Arg::optional(Some(offsets.slice()))];
    let error = launched_with(added, true, &team).expect_err("rank 1 has no tensor");
    assert_eq!(error.code(), "TMA0514", "{error}");
    Ok(())
}
