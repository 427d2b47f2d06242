//! Bulk copies and columns of pixels in clusters: to several blocks, and from block to block.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

pub(super) const CASES: &[Case] = &[
    Case { name: "bulk::multicast", run: multicast },
    Case { name: "bulk::columns_multicast", run: columns_multicast },
    Case { name: "bulk::to_the_next_block", run: to_the_next_block },
    Case { name: "bulk::into_the_next_block", run: into_the_next_block },
];

/// Block 1 of every cluster loads 64 elements into the blocks 0, 1 and 3. Each block writes out its
/// array, which in block 2 is unchanged.
#[tma_kernel(threads = 64, cluster = 4)]
pub fn bulk_multicast(src: Global<u32>, out: Global<u32>) {
    let part: SharedArray<u32, 64> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    part.set(t, 7);
    if t == 0 {
        full.init(1);
        fence_barrier_init();
    }
    fence_proxy_async();
    sync_cluster();
    let mine = cluster_rank() != 2;
    if t == 0 && mine {
        full.arrive_expect_tx(64 * 4);
        if cluster_rank() == 1 {
            let keep = l2_evict_last(1.0);
            src.hint(keep).bulk_load_multicast(part, 32, 32, block_idx().x * 64, full, 0b1011);
            src.bulk_load_multicast(part, 0, 32, block_idx().x * 64 + 32, full, 0b1011);
        }
    }
    if mine {
        full.wait(0);
    }
    out.set(block_idx().x * 64 + t, part.get(t));
    sync_cluster();
}

fn multicast(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<u32>(701, 512);
    let mut out = device.filled_bytes([512], 0xab)?;
    bulk_multicast::launch(device, 8, &device.tensor(&source, [512])?, &mut out)?;
    let element = |i: usize| {
        let (cluster, rank, t) = (i / 256, i / 64 % 4, i % 64);
        if rank == 2 { 7 } else { source[cluster * 256 + 64 + (t + 32) % 64] }
    };
    same("elements", &out.to_vec()?, &(0..512).map(element).collect::<Vec<_>>())
}

/// Each of two blocks loads a column of 16 pixels into both.
#[tma_kernel(threads = 64, cluster = 2)]
pub fn column_multicast(images: Im2colMap<Tile<f32, Shape2<16, 8>>, 4>, out: Global<f32>) {
    let tiles: Stages<Tile<f32, Shape2<16, 8>>, 2> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
    }
    sync_cluster();
    if t == 0 {
        full.arrive_expect_tx(2 * tiles[0].bytes());
        let rank = cluster_rank();
        images.load_multicast(tiles[rank], [0, rank as i32 * 2 - 1, -1, 0], [1, rank as u16], full, 0b11);
    }
    full.wait(0);
    for i in (t..256).step_by(64) {
        out.set(cluster_rank() * 256 + i, tiles[i / 128].get([i / 8 % 16, i % 8]));
    }
    sync_cluster();
}

fn columns_multicast(device: &Device, _: &Options) -> anyhow::Result<()> {
    let [height, width, channels] = [5, 6, 8];
    let source = noise::<f32>(703, height * width * channels);
    let images = device.tensor(&source, [1, height, width, channels])?;
    let mut out = device.filled_bytes([512], 0xab)?;
    let taps = Im2col { lower: [-1, -1], upper: [-1, -1], strides: [1, 1] };
    column_multicast::launch(device, 2, images.im2col(taps), &mut out)?;
    // Rows of the bounding box have the width of the image's.
    let element = |i: usize| {
        let (rank, pixel, channel) = (i / 128 % 2, i / 8 % 16, i % 8);
        let (row, column) = (rank * 2 + pixel / width, pixel % width + rank);
        match column.checked_sub(1) {
            Some(column) if row < height && column < width => {
                source[(row * width + column) * channels + channel]
            }
            _ => 0.0,
        }
    };
    same("pixels", &out.to_vec()?, &(0..512).map(element).collect::<Vec<_>>())
}

/// Each block copies half of its array, and a row of its tile, to the next block of the cluster.
#[tma_kernel(threads = 64, cluster = 3)]
pub fn bulk_next(out: Global<u16>) {
    let array: SharedArray<u16, 64> = shared();
    let landing: SharedArray<u16, 64> = shared();
    let tile: Tile<u16, Shape2<2, 64>> = shared();
    let below: Tile<u16, Shape2<2, 64>> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    let mark = (block_idx().x * 1000 + t) as u16;
    array.set(t, mark);
    landing.set(t, 1);
    tile.set([0, t], mark + 100);
    tile.set([1, t], mark + 200);
    below.set([0, t], 2);
    below.set([1, t], 3);
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx((32 + 64) * 2);
    }
    fence_proxy_async();
    sync_cluster();
    if t == 0 {
        let next = (cluster_rank() + 1) % 3;
        array.bulk_copy_to(remote(landing, next), 32, 32, remote(full, next));
        tile.bulk_copy_to(remote(below, next), 64, 64, remote(full, next));
    }
    full.wait(0);
    let at = block_idx().x * 192 + t;
    out.set(at, landing.get(t));
    out.set(at + 64, below.get([0, t]));
    out.set(at + 128, below.get([1, t]));
    sync_cluster();
}

fn to_the_next_block(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut out = device.filled_bytes([3 * 192], 0xab)?;
    bulk_next::launch(device, 3, &mut out)?;
    let element = |i: usize| {
        let (block, part, t) = (i / 192, i / 64 % 3, i % 64);
        let mark = ((block + 2) % 3 * 1000 + t) as u16;
        match part {
            0 if t < 32 => 1,
            0 => mark,
            1 => 2,
            _ => mark + 200,
        }
    };
    same("elements", &out.to_vec()?, &(0..3 * 192).map(element).collect::<Vec<_>>())
}

/// Each block reduces eight arrays, one by each operation, into those of the other.
#[tma_kernel(threads = 32, cluster = 2, instances(u32s = <u32>))]
pub fn bulk_into<T: BulkCount + RemoteInteger + RemoteAdd>(src: Global<T>, out: Global<T>) {
    let mine: SharedArray<T, 32> = shared();
    let sums: Stages<SharedArray<T, 32>, 8> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    let block = cluster_rank();
    mine.set(t, src.get(block * 288 + t));
    for i in unroll(0..8u32) {
        sums[i].set(t, src.get(block * 288 + 32 + i * 32 + t));
    }
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(8 * 32 * 4);
    }
    fence_proxy_async();
    sync_cluster();
    if t == 0 {
        let other = 1 - block;
        let done = remote(full, other);
        mine.bulk_reduce_add_to(remote(sums[0], other), 0, 32, done);
        mine.bulk_reduce_min_to(remote(sums[1], other), 0, 32, done);
        mine.bulk_reduce_max_to(remote(sums[2], other), 0, 32, done);
        mine.bulk_reduce_inc_to(remote(sums[3], other), 0, 32, done);
        mine.bulk_reduce_dec_to(remote(sums[4], other), 0, 32, done);
        mine.bulk_reduce_and_to(remote(sums[5], other), 0, 32, done);
        mine.bulk_reduce_or_to(remote(sums[6], other), 0, 32, done);
        mine.bulk_reduce_xor_to(remote(sums[7], other), 0, 32, done);
    }
    full.wait(0);
    for i in unroll(0..8u32) {
        out.set(block * 256 + i * 32 + t, sums[i].get(t));
    }
    sync_cluster();
}

fn into_the_next_block(device: &Device, _: &Options) -> anyhow::Result<()> {
    // Small numbers, so that counting reaches its bounds.
    let source: Vec<u32> = noise::<u32>(707, 2 * 288).into_iter().map(|x| x % 6).collect();
    let mut out = device.filled_bytes([512], 0xab)?;
    bulk_into::u32s::launch(device, 2, &device.tensor(&source, [2 * 288])?, &mut out)?;
    let element = |i: usize| {
        let (block, op, t) = (i / 256, i / 32 % 8, i % 32);
        let (old, with) = (source[block * 288 + 32 + i % 256], source[(1 - block) * 288 + t]);
        match op {
            0 => old.wrapping_add(with),
            1 => old.min(with),
            2 => old.max(with),
            3 if old >= with => 0,
            3 => old + 1,
            4 if old == 0 || old > with => with,
            4 => old - 1,
            5 => old & with,
            6 => old | with,
            _ => old ^ with,
        }
    };
    same("elements", &out.to_vec()?, &(0..512).map(element).collect::<Vec<_>>())
}
