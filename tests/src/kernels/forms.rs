//! Every form of the tensor-map instructions at every rank: loads, stores and reductions with and
//! without a hint, multicast, and prefetches. Also the waits besides `wait` in a kernel with
//! clusters.

use tma_model::ReduceOp;
use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::conformance::Reduce;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "forms::one_dimension", run: one_dimension },
    Case { name: "forms::two_dimensions", run: two_dimensions },
    Case { name: "forms::three_dimensions", run: three_dimensions },
    Case { name: "forms::four_dimensions", run: four_dimensions },
    Case { name: "forms::five_dimensions", run: five_dimensions },
    Case { name: "forms::waits", run: waits },
];

// The first of the two blocks of a cluster loads into its own tiles and, by multicast, into those
// of both, and stores. The second reduces the multicast tiles. `dst` has a tile for each write, one
// after the other along the outermost dimension.

/// Rank 1.
#[tma_kernel(threads = 32, cluster = 2)]
pub fn forms_1(src: TensorMap<Tile<u32, Shape1<64>>>, dst: TensorMap<Tile<u32, Shape1<64>>>) {
    let tiles: Stages<Tile<u32, Shape1<64>>, 4> = shared();
    let full: Barrier = shared();
    let policy = l2_evict_first(0.5);
    let first = cluster_rank() == 0;
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(if first { 4 } else { 2 } * tiles[0].bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 {
        if first {
            src.prefetch([0]);
            src.hint(policy).prefetch([0]);
            src.load(tiles[0], [0], full);
            src.hint(policy).load(tiles[1], [0], full);
            src.load_multicast(tiles[2], [0], full, 0b11);
            src.hint(policy).load_multicast(tiles[3], [0], full, 0b11);
        }
        full.wait(0);
        if first {
            dst.store([0], tiles[0]);
            dst.hint(policy).store([64], tiles[1]);
        } else {
            // for op in ReduceOp: dst.reduce_{op}([{128i + 128}], tiles[2]);
            // and: dst.hint(policy).reduce_{op}([{128i + 192}], tiles[3]);
            dst.reduce_add([128], tiles[2]);
            dst.hint(policy).reduce_add([192], tiles[3]);
            dst.reduce_min([256], tiles[2]);
            dst.hint(policy).reduce_min([320], tiles[3]);
            dst.reduce_max([384], tiles[2]);
            dst.hint(policy).reduce_max([448], tiles[3]);
            dst.reduce_inc([512], tiles[2]);
            dst.hint(policy).reduce_inc([576], tiles[3]);
            dst.reduce_dec([640], tiles[2]);
            dst.hint(policy).reduce_dec([704], tiles[3]);
            dst.reduce_and([768], tiles[2]);
            dst.hint(policy).reduce_and([832], tiles[3]);
            dst.reduce_or([896], tiles[2]);
            dst.hint(policy).reduce_or([960], tiles[3]);
            dst.reduce_xor([1024], tiles[2]);
            dst.hint(policy).reduce_xor([1088], tiles[3]);
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
    sync_cluster();
}

/// Rank 2.
#[tma_kernel(threads = 32, cluster = 2)]
pub fn forms_2(src: TensorMap<Tile<u32, Shape2<4, 16>>>, dst: TensorMap<Tile<u32, Shape2<4, 16>>>) {
    let tiles: Stages<Tile<u32, Shape2<4, 16>>, 4> = shared();
    let full: Barrier = shared();
    let policy = l2_evict_first(0.5);
    let first = cluster_rank() == 0;
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(if first { 4 } else { 2 } * tiles[0].bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 {
        if first {
            src.prefetch([0, 0]);
            src.hint(policy).prefetch([0, 0]);
            src.load(tiles[0], [0, 0], full);
            src.hint(policy).load(tiles[1], [0, 0], full);
            src.load_multicast(tiles[2], [0, 0], full, 0b11);
            src.hint(policy).load_multicast(tiles[3], [0, 0], full, 0b11);
        }
        full.wait(0);
        if first {
            dst.store([0, 0], tiles[0]);
            dst.hint(policy).store([4, 0], tiles[1]);
        } else {
            // for op in ReduceOp: dst.reduce_{op}([{8i + 8}, 0], tiles[2]);
            // and: dst.hint(policy).reduce_{op}([{8i + 12}, 0], tiles[3]);
            dst.reduce_add([8, 0], tiles[2]);
            dst.hint(policy).reduce_add([12, 0], tiles[3]);
            dst.reduce_min([16, 0], tiles[2]);
            dst.hint(policy).reduce_min([20, 0], tiles[3]);
            dst.reduce_max([24, 0], tiles[2]);
            dst.hint(policy).reduce_max([28, 0], tiles[3]);
            dst.reduce_inc([32, 0], tiles[2]);
            dst.hint(policy).reduce_inc([36, 0], tiles[3]);
            dst.reduce_dec([40, 0], tiles[2]);
            dst.hint(policy).reduce_dec([44, 0], tiles[3]);
            dst.reduce_and([48, 0], tiles[2]);
            dst.hint(policy).reduce_and([52, 0], tiles[3]);
            dst.reduce_or([56, 0], tiles[2]);
            dst.hint(policy).reduce_or([60, 0], tiles[3]);
            dst.reduce_xor([64, 0], tiles[2]);
            dst.hint(policy).reduce_xor([68, 0], tiles[3]);
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
    sync_cluster();
}

/// Rank 3.
#[tma_kernel(threads = 32, cluster = 2)]
pub fn forms_3(src: TensorMap<Tile<u32, Shape3<2, 2, 16>>>, dst: TensorMap<Tile<u32, Shape3<2, 2, 16>>>) {
    let tiles: Stages<Tile<u32, Shape3<2, 2, 16>>, 4> = shared();
    let full: Barrier = shared();
    let policy = l2_evict_first(0.5);
    let first = cluster_rank() == 0;
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(if first { 4 } else { 2 } * tiles[0].bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 {
        if first {
            src.prefetch([0, 0, 0]);
            src.hint(policy).prefetch([0, 0, 0]);
            src.load(tiles[0], [0, 0, 0], full);
            src.hint(policy).load(tiles[1], [0, 0, 0], full);
            src.load_multicast(tiles[2], [0, 0, 0], full, 0b11);
            src.hint(policy).load_multicast(tiles[3], [0, 0, 0], full, 0b11);
        }
        full.wait(0);
        if first {
            dst.store([0, 0, 0], tiles[0]);
            dst.hint(policy).store([2, 0, 0], tiles[1]);
        } else {
            // for op in ReduceOp: dst.reduce_{op}([{4i + 4}, 0, 0], tiles[2]);
            // and: dst.hint(policy).reduce_{op}([{4i + 6}, 0, 0], tiles[3]);
            dst.reduce_add([4, 0, 0], tiles[2]);
            dst.hint(policy).reduce_add([6, 0, 0], tiles[3]);
            dst.reduce_min([8, 0, 0], tiles[2]);
            dst.hint(policy).reduce_min([10, 0, 0], tiles[3]);
            dst.reduce_max([12, 0, 0], tiles[2]);
            dst.hint(policy).reduce_max([14, 0, 0], tiles[3]);
            dst.reduce_inc([16, 0, 0], tiles[2]);
            dst.hint(policy).reduce_inc([18, 0, 0], tiles[3]);
            dst.reduce_dec([20, 0, 0], tiles[2]);
            dst.hint(policy).reduce_dec([22, 0, 0], tiles[3]);
            dst.reduce_and([24, 0, 0], tiles[2]);
            dst.hint(policy).reduce_and([26, 0, 0], tiles[3]);
            dst.reduce_or([28, 0, 0], tiles[2]);
            dst.hint(policy).reduce_or([30, 0, 0], tiles[3]);
            dst.reduce_xor([32, 0, 0], tiles[2]);
            dst.hint(policy).reduce_xor([34, 0, 0], tiles[3]);
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
    sync_cluster();
}

/// Rank 4.
#[tma_kernel(threads = 32, cluster = 2)]
pub fn forms_4(src: TensorMap<Tile<u32, Shape4<2, 2, 2, 8>>>, dst: TensorMap<Tile<u32, Shape4<2, 2, 2, 8>>>) {
    let tiles: Stages<Tile<u32, Shape4<2, 2, 2, 8>>, 4> = shared();
    let full: Barrier = shared();
    let policy = l2_evict_first(0.5);
    let first = cluster_rank() == 0;
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(if first { 4 } else { 2 } * tiles[0].bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 {
        if first {
            src.prefetch([0, 0, 0, 0]);
            src.hint(policy).prefetch([0, 0, 0, 0]);
            src.load(tiles[0], [0, 0, 0, 0], full);
            src.hint(policy).load(tiles[1], [0, 0, 0, 0], full);
            src.load_multicast(tiles[2], [0, 0, 0, 0], full, 0b11);
            src.hint(policy).load_multicast(tiles[3], [0, 0, 0, 0], full, 0b11);
        }
        full.wait(0);
        if first {
            dst.store([0, 0, 0, 0], tiles[0]);
            dst.hint(policy).store([2, 0, 0, 0], tiles[1]);
        } else {
            // for op in ReduceOp: dst.reduce_{op}([{4i + 4}, 0, 0, 0], tiles[2]);
            // and: dst.hint(policy).reduce_{op}([{4i + 6}, 0, 0, 0], tiles[3]);
            dst.reduce_add([4, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_add([6, 0, 0, 0], tiles[3]);
            dst.reduce_min([8, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_min([10, 0, 0, 0], tiles[3]);
            dst.reduce_max([12, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_max([14, 0, 0, 0], tiles[3]);
            dst.reduce_inc([16, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_inc([18, 0, 0, 0], tiles[3]);
            dst.reduce_dec([20, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_dec([22, 0, 0, 0], tiles[3]);
            dst.reduce_and([24, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_and([26, 0, 0, 0], tiles[3]);
            dst.reduce_or([28, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_or([30, 0, 0, 0], tiles[3]);
            dst.reduce_xor([32, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_xor([34, 0, 0, 0], tiles[3]);
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
    sync_cluster();
}

/// Rank 5.
#[tma_kernel(threads = 32, cluster = 2)]
pub fn forms_5(
    src: TensorMap<Tile<u32, Shape5<2, 2, 2, 2, 4>>>,
    dst: TensorMap<Tile<u32, Shape5<2, 2, 2, 2, 4>>>,
) {
    let tiles: Stages<Tile<u32, Shape5<2, 2, 2, 2, 4>>, 4> = shared();
    let full: Barrier = shared();
    let policy = l2_evict_first(0.5);
    let first = cluster_rank() == 0;
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(if first { 4 } else { 2 } * tiles[0].bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 {
        if first {
            src.prefetch([0, 0, 0, 0, 0]);
            src.hint(policy).prefetch([0, 0, 0, 0, 0]);
            src.load(tiles[0], [0, 0, 0, 0, 0], full);
            src.hint(policy).load(tiles[1], [0, 0, 0, 0, 0], full);
            src.load_multicast(tiles[2], [0, 0, 0, 0, 0], full, 0b11);
            src.hint(policy).load_multicast(tiles[3], [0, 0, 0, 0, 0], full, 0b11);
        }
        full.wait(0);
        if first {
            dst.store([0, 0, 0, 0, 0], tiles[0]);
            dst.hint(policy).store([2, 0, 0, 0, 0], tiles[1]);
        } else {
            // for op in ReduceOp: dst.reduce_{op}([{4i + 4}, 0, 0, 0, 0], tiles[2]);
            // and: dst.hint(policy).reduce_{op}([{4i + 6}, 0, 0, 0, 0], tiles[3]);
            dst.reduce_add([4, 0, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_add([6, 0, 0, 0, 0], tiles[3]);
            dst.reduce_min([8, 0, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_min([10, 0, 0, 0, 0], tiles[3]);
            dst.reduce_max([12, 0, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_max([14, 0, 0, 0, 0], tiles[3]);
            dst.reduce_inc([16, 0, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_inc([18, 0, 0, 0, 0], tiles[3]);
            dst.reduce_dec([20, 0, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_dec([22, 0, 0, 0, 0], tiles[3]);
            dst.reduce_and([24, 0, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_and([26, 0, 0, 0, 0], tiles[3]);
            dst.reduce_or([28, 0, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_or([30, 0, 0, 0, 0], tiles[3]);
            dst.reduce_xor([32, 0, 0, 0, 0], tiles[2]);
            dst.hint(policy).reduce_xor([34, 0, 0, 0, 0], tiles[3]);
            // end for
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
    sync_cluster();
}

/// The number of elements of a tile.
const TILE: usize = 64;

/// The number of writes into the tensor: two stores, and each reduction twice.
const WRITES: usize = 2 + 2 * ReduceOp::ALL.len();

/// Returns the expected contents of the tensor.
fn wanted(before: &[u32], tile: &[u32]) -> Vec<u32> {
    let element = |(i, &old): (usize, &u32)| match i / TILE / 2 {
        0 => Some(tile[i % TILE]),
        op => old.reduced(ReduceOp::ALL[op - 1], tile[i % TILE]),
    };
    before.iter().enumerate().filter_map(element).collect()
}

/// Launches on random numbers: one tile, and a tensor with a tile for each write.
fn check<const N: usize>(
    device: &Device,
    tile: [usize; N],
    launch: impl Fn(&DeviceTensor<u32, N>, &mut DeviceTensor<u32, N>) -> Result<(), Error>,
) -> anyhow::Result<()> {
    let mut shape = tile;
    shape[0] *= WRITES;
    let (source, before) = (noise::<u32>(451, TILE), noise::<u32>(452, WRITES * TILE));
    let mut dst = device.tensor(&before, shape)?;
    launch(&device.tensor(&source, tile)?, &mut dst)?;
    same("the tensor", &dst.to_vec()?, &wanted(&before, &source))
}

fn one_dimension(device: &Device, _: &Options) -> anyhow::Result<()> {
    check(device, [64], |src, dst| forms_1::launch(device, 2, src, dst))
}

fn two_dimensions(device: &Device, _: &Options) -> anyhow::Result<()> {
    check(device, [4, 16], |src, dst| forms_2::launch(device, 2, src, dst))
}

fn three_dimensions(device: &Device, _: &Options) -> anyhow::Result<()> {
    check(device, [2, 2, 16], |src, dst| forms_3::launch(device, 2, src, dst))
}

fn four_dimensions(device: &Device, _: &Options) -> anyhow::Result<()> {
    check(device, [2, 2, 2, 8], |src, dst| forms_4::launch(device, 2, src, dst))
}

fn five_dimensions(device: &Device, _: &Options) -> anyhow::Result<()> {
    check(device, [2, 2, 2, 2, 4], |src, dst| forms_5::launch(device, 2, src, dst))
}

/// Two blocks write to each other three times, and each time wait in another way.
#[tma_kernel(threads = 32, cluster = 2)]
pub fn forms_waits(out: Global<u32>) {
    let words: SharedArray<u32, 3> = shared();
    let full: Barrier = shared();
    let other = 1 - cluster_rank();
    if thread_idx().x == 0 {
        full.init(2);
        fence_barrier_init();
    }
    sync_cluster();
    if thread_idx().x == 0 {
        let first = 3 * cluster_rank();
        remote(words, other).set(0, first + 10);
        remote(full, other).arrive();
        let token = full.arrive_token();
        full.wait_token(token);
        remote(words, other).set(1, first + 11);
        remote(full, other).arrive();
        full.arrive();
        while !full.test_wait(1) {}
        remote(words, other).set(2, first + 12);
        remote(full, other).arrive();
        full.arrive();
        while !full.try_wait_for(0, 1000) {}
        for i in 0..3u32 {
            out.set(first + i, words.get(i));
        }
    }
    sync_cluster();
}

fn waits(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut out = device.filled_bytes([6], 0xab)?;
    forms_waits::launch(device, 2, &mut out)?;
    same("words", &out.to_vec()?, &[13, 14, 15, 10, 11, 12])
}
