//! Copies a matrix strip by strip, and prefetches tiles into the L2 cache.
//!
//! A block that loads one tile at a time waits for memory each time. A prefetch does not wait and
//! uses no shared memory: a tile travels to L2 while those before it are copied. Data that is read
//! and written only once need not stay there, hence `l2_evict_first`.

use tma_runtime::prelude::*;

/// Copies 64 rows in each block, tile after tile along the row.
#[tma_kernel(threads = 32)]
pub fn tma_prefetch(
    src: TensorMap<Tile<f32, Shape2<64, 32>>>,
    dst: TensorMap<Tile<f32, Shape2<64, 32>>>,
    tiles: u32,
) {
    let tile: Tile<f32, Shape2<64, 32>> = shared();
    let full: Barrier = shared();
    let row = block_idx().x * 64;
    let ahead = 4;
    let once = l2_evict_first(1.0);

    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        for k in 0..min(ahead, tiles) {
            src.prefetch([row, k * 32]);
        }
        for k in 0..tiles {
            if k + ahead < tiles {
                src.prefetch([row, (k + ahead) * 32]);
            }
            full.arrive_expect_tx(tile.bytes());
            src.hint(once).load(tile, [row, k * 32], full);
            full.wait(k & 1);
            dst.hint(once).store([row, k * 32], tile);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
    }
}

/// Copies a matrix, and checks it.
pub fn run(device: &Device) -> anyhow::Result<()> {
    let shape = [200, 500];
    let host: Vec<f32> = (0..shape[0] * shape[1]).map(|i| i as f32).collect();

    let src = device.tensor(&host, shape)?;
    let mut dst = device.zeros(shape)?;
    let (strips, tiles) = (shape[0].div_ceil(64) as u32, shape[1].div_ceil(32) as u32);
    tma_prefetch::launch(device, strips, &src, &mut dst, tiles)?;

    anyhow::ensure!(dst.to_vec()? == host, "the copy differs from its source");
    println!("{}: copied {} × {} floats, every bit as it was", device.name(), shape[0], shape[1]);
    Ok(())
}

fn main() -> anyhow::Result<()> {
    run(&Device::open()?)
}
