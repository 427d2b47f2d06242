//! Stores tiles that threads have written: thread `i` writes row `i`.
//!
//! The copy engine sees threads' writes only after a `fence_proxy_async()` in each of them, and a
//! barrier. Then one thread issues the store, and before it ends it waits until the tile is read.

use tma_runtime::prelude::*;

/// Fills each row of `dst` with its number, one block per tile.
#[tma_kernel(threads = 64)]
pub fn tma_row_fill(dst: TensorMap<Tile<u32, Shape2<64, 32>, Swizzle128>>) {
    let tile: Tile<u32, Shape2<64, 32>, Swizzle128> = shared();
    let at = dst.block_tile();

    let row = thread_idx().x;
    for column in 0..tile.cols() {
        tile.set([row, column], at[0] + row);
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        dst.store(at, tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Fills a matrix, and checks it.
pub fn run(device: &Device) -> anyhow::Result<()> {
    let shape = [300, 100];
    let mut dst = device.zeros(shape)?;
    tma_row_fill::launch(device, tma_row_fill::tiles_of_dst(shape), &mut dst)?;

    let wanted: Vec<u32> = (0..shape[0] * shape[1]).map(|i| (i / shape[1]) as u32).collect();
    anyhow::ensure!(dst.to_vec()? == wanted, "a row is not filled with its number");
    println!("{}: filled {} rows of {} with their numbers", device.name(), shape[0], shape[1]);
    Ok(())
}

fn main() -> anyhow::Result<()> {
    run(&Device::open()?)
}
