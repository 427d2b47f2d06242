//! Shared memory that two phases of a kernel use as different types.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::{noise, samples};

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "reused::tile", run: tile },
    Case { name: "reused::pipeline", run: pipeline },
    Case { name: "reused::bytes", run: bytes },
];

/// Converts a tensor to `f16`, a tile in the memory of the other.
#[tma_kernel(threads = 128)]
pub fn converted_in_place(
    src: TensorMap<Tile<f32, Shape2<64, 32>, Swizzle128>>,
    dest: TensorMap<Tile<f16, Shape2<64, 32>, Swizzle64>>,
) {
    let tile: Tile<f32, Shape2<64, 32>, Swizzle128> = shared();
    let half: Tile<f16, Shape2<64, 32>, Swizzle64> = reuse(tile);
    let full: Barrier = shared();
    let at = [block_idx().y * 64, block_idx().x * 32];
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, at, full);
    }
    sync_threads();
    full.wait(0);
    let row = thread_idx().x / 2;
    let first = thread_idx().x % 2 * 16;
    let mut values = [0.0; 16];
    for i in unroll(0..16) {
        values[i as usize] = tile.get([row, first + i]);
    }
    sync_threads();
    for i in unroll(0..16) {
        half.set([row, first + i], f16::from_f32(values[i as usize]));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        dest.store(at, half);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn tile(device: &Device, _: &Options) -> anyhow::Result<()> {
    let (rows, columns) = (192, 96);
    let values: Vec<f32> = samples(71, rows * columns);
    let src = device.tensor(&values, [rows, columns])?;
    let mut dest = device.zeros::<f16, 2>([rows, columns])?;
    let grid = (columns as u32 / 32, rows as u32 / 64);
    converted_in_place::launch(device, grid, &src, &mut dest)?;
    let wanted: Vec<f16> = values.iter().map(|&value| f16::from_f32(value)).collect();
    same("halves", &dest.to_vec()?, &wanted)
}

/// Sums the rows of each block of 128 rows, and adds the sum of the opposite row, which passes
/// through the memory of the pipeline.
#[tma_kernel(threads = 160)]
pub fn rounds_in_one_memory(
    src: TensorMap<Tile<u32, Shape2<128, 16>>>,
    out: Global<u32>,
    rounds: u32,
    k_tiles: u32,
) {
    let ring: Pipeline<(Tile<u32, Shape2<128, 16>>,), 2> = shared();
    let sums: SharedArray<u32, 128> = reuse(ring);
    if thread_idx().x == 0 {
        ring.init(128);
        fence_barrier_init();
    }
    sync_threads();

    if warp_idx() == 4 {
        let mut producer = ring.producer();
        for round in 0..rounds {
            if lane_idx() == 0 {
                for k in 0..k_tiles {
                    let slot = producer.acquire();
                    src.load(slot.0, [round * 128, k * 16], slot.barrier());
                }
            }
            sync_threads();
        }
    } else {
        let row = thread_idx().x;
        let mut consumer = ring.consumer();
        for round in 0..rounds {
            let mut sum = 0;
            for _ in 0..k_tiles {
                let slot = consumer.wait();
                for column in 0..16 {
                    sum += slot.0.get([row, column]);
                }
                slot.release();
            }
            named_barrier_sync(1, 128);
            sums.set(row, sum);
            named_barrier_sync(1, 128);
            out.set(round * 128 + row, sum + sums.get(127 - row));
            fence_proxy_async();
            sync_threads();
        }
    }
}

fn pipeline(device: &Device, _: &Options) -> anyhow::Result<()> {
    for (rounds, k_tiles) in [(1, 1), (3, 5), (4, 2)] {
        let (rows, columns) = (rounds * 128, k_tiles * 16);
        let values: Vec<u32> = noise::<u32>(72, rows * columns).iter().map(|value| value % 1000).collect();
        let src = device.tensor(&values, [rows, columns])?;
        let mut out = device.zeros([rows])?;
        rounds_in_one_memory::launch(device, 1, &src, &mut out, rounds as u32, k_tiles as u32)?;
        let sums: Vec<u32> = values.chunks(columns).map(|row| row.iter().sum()).collect();
        let wanted: Vec<u32> =
            (0..rows).map(|row| sums[row] + sums[row / 128 * 128 + 127 - row % 128]).collect();
        same("sums", &out.to_vec()?, &wanted)?;
    }
    Ok(())
}

/// Returns the bytes of numbers, the lowest first.
#[tma_kernel(threads = 32)]
pub fn bytes_by_another_name(values: Global<u32>, bytes: Global<u8>) {
    let words: SharedArray<u32, 32> = shared();
    let parts: SharedArray<u8, 128> = reuse(words);
    let lane = lane_idx();
    words.set(lane, values.get(lane));
    sync_threads();
    for i in 0..4 {
        bytes.set(i * 32 + lane, parts.get(i * 32 + lane));
    }
}

fn bytes(device: &Device, _: &Options) -> anyhow::Result<()> {
    let values = noise::<u32>(73, 32);
    let mut bytes = device.zeros([128])?;
    bytes_by_another_name::launch(device, 1, &device.tensor(&values, [32])?, &mut bytes)?;
    let wanted: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    same("bytes", &bytes.to_vec()?, &wanted)
}
