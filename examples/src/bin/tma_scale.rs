//! Multiplies a matrix by a number: tiles are loaded, modified in shared memory, and stored.
//!
//! The copy engine accesses shared memory through a separate proxy. To see threads' writes, it
//! needs a `fence_proxy_async()` in each thread that wrote, and a barrier for all threads.

use tma_runtime::prelude::*;

/// `dst = src × factor`, one block per tile.
#[tma_kernel(threads = 128)]
pub fn tma_scale(
    src: TensorMap<Tile<f32, Shape2<64, 32>>>,
    dst: TensorMap<Tile<f32, Shape2<64, 32>>>,
    factor: f32,
) {
    let tile: Tile<f32, Shape2<64, 32>> = shared();
    let full: Barrier = shared();
    let at = dst.block_tile();
    let leader = thread_idx().x == 0;

    if leader {
        full.init(1);
        fence_barrier_init();
    }
    sync_threads();
    if leader {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, at, full);
    }
    full.wait(0);
    for i in (thread_idx().x..tile.rows() * tile.cols()).step_by(128) {
        let element = [i / tile.cols(), i % tile.cols()];
        tile.set(element, tile.get(element) * factor);
    }
    fence_proxy_async();
    sync_threads();
    if leader {
        dst.store(at, tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Launches the multiplication over all of `src`.
pub fn launch(
    device: &Device,
    src: &DeviceTensor<f32, 2>,
    dst: &mut DeviceTensor<f32, 2>,
    factor: f32,
) -> Result<(), Error> {
    tma_scale::launch(device, tma_scale::tiles_of_dst(dst.shape()), src, dst, factor)
}

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    let shape = [300, 132];
    let host: Vec<f32> = (0..shape[0] * shape[1]).map(|i| i as f32 / 7.0).collect();

    let src = device.tensor(&host, shape)?;
    let mut dst = device.zeros(shape)?;
    launch(&device, &src, &mut dst, 2.5)?;

    let wanted: Vec<f32> = host.iter().map(|x| x * 2.5).collect();
    anyhow::ensure!(dst.to_vec()? == wanted, "the product differs from plain Rust");
    println!("{}: scaled {} × {} floats, equal to plain Rust", device.name(), shape[0], shape[1]);
    Ok(())
}
