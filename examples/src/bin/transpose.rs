//! Transposes a matrix through swizzled tiles, without bank conflicts in shared memory.
//!
//! A tile's row is 32 floats: 128 bytes, once across all 32 banks. Without a swizzle, a read of a
//! column would access one bank 32 times. `Swizzle128` permutes the eight 16-byte chunks of a row
//! by its number (mod 8), so a column is in different chunks of eight rows. A chunk's four floats
//! are the other factor of 32: each group of eight lanes takes another one, group `g` column
//! `4 * chunk + (g ^ j)`. The writes, down a column of the other tile, are then conflict-free too.
//! `get` and `set` apply the swizzle; the kernel only picks the order.

use tma_runtime::prelude::*;

/// `dst = srcᵀ`, one block per 64 × 64: two tiles of 64 × 32 in, two out, a quarter per warp.
#[tma_kernel(threads = 128)]
pub fn transpose(
    src: TensorMap<Tile<f32, Shape2<64, 32>, Swizzle128>>,
    dst: TensorMap<Tile<f32, Shape2<64, 32>, Swizzle128>>,
) {
    let inputs: Stages<Tile<f32, Shape2<64, 32>, Swizzle128>, 2> = shared();
    let outputs: Stages<Tile<f32, Shape2<64, 32>, Swizzle128>, 2> = shared();
    let full: Barrier = shared();

    let row = block_idx().y * 64;
    let col = block_idx().x * 64;
    let leader = thread_idx().x == 0;
    if leader {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(inputs[0].bytes() + inputs[1].bytes());
        src.load(inputs[0], [row, col], full);
        src.load(inputs[1], [row, col + 32], full);
    }
    sync_threads();
    full.wait(0);

    let lane = lane_idx();
    let down = warp_idx() % 2;
    let right = warp_idx() / 2;
    let input = inputs[right];
    let output = outputs[down];
    for chunk in 0..8 {
        for j in unroll(0..4) {
            let column = chunk * 4 + ((lane / 8) ^ j);
            output.set([right * 32 + column, lane], input.get([down * 32 + lane, column]));
        }
    }
    fence_proxy_async();
    sync_threads();
    if leader {
        dst.store([col, row], outputs[0]);
        dst.store([col, row + 32], outputs[1]);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Launches the transposition of all of `src`.
pub fn launch(
    device: &Device,
    src: &DeviceTensor<f32, 2>,
    dst: &mut DeviceTensor<f32, 2>,
) -> Result<(), Error> {
    transpose::launch(device, Grid::tiles(src.shape(), [64, 64]), src, dst)
}

/// The same in plain Rust.
pub fn reference(src: &[f32], [rows, cols]: [usize; 2]) -> Vec<f32> {
    (0..cols).flat_map(|c| (0..rows).map(move |r| src[r * cols + c])).collect()
}

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    let shape = [300, 132];
    let host: Vec<f32> = (0..shape[0] * shape[1]).map(|i| i as f32).collect();

    let src = device.tensor(&host, shape)?;
    let mut dst = device.zeros([shape[1], shape[0]])?;
    launch(&device, &src, &mut dst)?;

    anyhow::ensure!(dst.to_vec()? == reference(&host, shape), "the result differs from plain Rust");
    println!("{}: transposed {} × {} floats, equal to plain Rust", device.name(), shape[0], shape[1]);
    Ok(())
}
