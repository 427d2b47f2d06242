//! Barriers that other blocks of the cluster arrive at.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "remote_barriers::hand_over", run: hand_over },
    Case { name: "remote_barriers::all_arrive_at_all", run: all_at_all },
    Case { name: "remote_barriers::announced_by_another", run: announced },
];

/// A chain of blocks: each waits at its own barrier for values from the previous one, computes, and
/// passes the results to the next, when that one has signalled that there is room.
#[tma_kernel(threads = 32, cluster = BLOCKS, instances(two = <2>, four = <4>, eight = <8>))]
pub fn remote_hand_over<const BLOCKS: u32>(src: Global<u32>, out: Global<u32>, rounds: u32) {
    let inbox: Stages<SharedArray<u32, 32>, 2> = shared();
    let full: Stages<Barrier, 2> = shared();
    let empty: Stages<Barrier, 2> = shared();
    let t = thread_idx().x;
    let rank = cluster_rank();
    if t == 0 {
        for stage in unroll(0..2u32) {
            full[stage].init(32);
            empty[stage].init(32);
        }
        fence_barrier_init();
    }
    sync_cluster();
    for round in 0..rounds {
        let stage = round % 2;
        let parity = (round / 2) & 1;
        let taken = if rank == 0 {
            src.get(round * 32 + t)
        } else {
            full[stage].wait(parity);
            inbox[stage].get((t + 1) % 32)
        };
        if rank > 0 {
            sync_warp();
            // The block before may overwrite it.
            remote(empty, rank - 1)[stage].arrive();
        }
        let value = taken * 3 + rank;
        if rank + 1 == BLOCKS {
            out.set(round * 32 + t, value);
        } else {
            empty[stage].wait(parity ^ 1);
            remote(inbox[stage], rank + 1).set(t, value);
            remote(full[stage], rank + 1).arrive();
        }
    }
    sync_cluster();
}

fn hand_over(device: &Device, options: &Options) -> anyhow::Result<()> {
    let rounds = options.elements(1024) / 16;
    let source = noise::<u32>(83, rounds * 32);
    let src = device.tensor(&source, [source.len()])?;
    for blocks in [2u32, 4, 8] {
        let mut values = source.clone();
        for rank in 0..blocks {
            let before = values.clone();
            let shift = usize::from(rank > 0);
            for (i, value) in values.iter_mut().enumerate() {
                let taken = before[i / 32 * 32 + (i + shift) % 32];
                *value = taken.wrapping_mul(3).wrapping_add(rank);
            }
        }
        let mut out = device.filled_bytes([source.len()], 0xab)?;
        match blocks {
            2 => remote_hand_over::two::launch(device, blocks, &src, &mut out, rounds as u32)?,
            4 => remote_hand_over::four::launch(device, blocks, &src, &mut out, rounds as u32)?,
            _ => remote_hand_over::eight::launch(device, blocks, &src, &mut out, rounds as u32)?,
        }
        same(&format!("values through {blocks} blocks"), &out.to_vec()?, &values)?;
    }
    Ok(())
}

/// A barrier of the cluster made of mbarriers: a thread of each block arrives at each block's
/// barrier.
#[tma_kernel(threads = 64, cluster = [1, 2, 2])]
pub fn remote_meeting(out: Global<u32>, rounds: u32) {
    let values: Stages<SharedArray<u32, 64>, 2> = shared();
    let met: Barrier = shared();
    let t = thread_idx().x;
    let rank = cluster_rank();
    if t == 0 {
        met.init(4);
        fence_barrier_init();
    }
    sync_cluster();
    let mut mine = 64 * rank + t;
    for round in 0..rounds {
        let now = values[round % 2];
        now.set(t, mine);
        sync_threads();
        if t < 4 {
            remote(met, t).arrive();
        }
        while !met.try_wait(round & 1) {}
        mine = mine * 5 + remote(now, (rank + 1 + round) % 4).get(t ^ 1);
    }
    out.set(64 * rank + t, mine);
    sync_cluster();
}

fn all_at_all(device: &Device, _: &Options) -> anyhow::Result<()> {
    let rounds = 21;
    let mut values: Vec<u32> = (0..256).collect();
    for round in 0..rounds {
        let next = |i: usize| {
            let theirs = values[(i / 64 + 1 + round) % 4 * 64 + ((i % 64) ^ 1)];
            values[i].wrapping_mul(5).wrapping_add(theirs)
        };
        values = (0..256).map(next).collect();
    }
    let mut out = device.filled_bytes([256], 0xab)?;
    remote_meeting::launch(device, (1, 2, 2), &mut out, rounds as u32)?;
    same("values", &out.to_vec()?, &values)
}

/// The last block announces the bytes of each block's copy at that block's barrier.
#[tma_kernel(threads = 64, cluster = 2)]
pub fn remote_announced(src: TensorMap<Tile<u32, Shape2<4, 64>>>, out: Global<u32>) {
    let tile: Tile<u32, Shape2<4, 64>> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    let rank = cluster_rank();
    if t == 0 {
        full.init(1);
        fence_barrier_init();
    }
    sync_cluster();
    if rank == 1 && t < 2 {
        remote(full, t).arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if t == 0 {
        src.load(tile, [4 * rank, 0], full);
    }
    full.wait(0);
    for row in 0..tile.rows() {
        out.set((4 * rank + row) * 64 + t, tile.get([row, t]));
    }
    sync_cluster();
}

fn announced(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<u32>(84, 512);
    let mut out = device.filled_bytes([512], 0xab)?;
    remote_announced::launch(device, 2, &device.tensor(&source, [8, 64])?, &mut out)?;
    same("elements", &out.to_vec()?, &source)
}
