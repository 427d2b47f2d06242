//! Loads a matrix of 8-bit floats, 256 × 256, in tiles of 64 × 128, and widens it.
//!
//! The copy engine treats 8-bit floats as bytes. `get` returns an `e4m3` (4 bits of exponent, 3 of
//! mantissa), which is only for storage: threads compute with the result of `to_f32`.

use tma_runtime::prelude::*;

/// Computes `dst = src` in f32. Thread `i` processes column `i` of its block's tile.
#[tma_kernel(threads = 128)]
pub fn tma_fp8(src: TensorMap<Tile<e4m3, Shape2<64, 128>, Swizzle128>>, dst: Global<f32>) {
    let tile: Tile<e4m3, Shape2<64, 128>, Swizzle128> = shared();
    let full: Barrier = shared();
    let at = src.block_tile();

    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, at, full);
    }
    sync_threads();
    full.wait(0);
    let column = thread_idx().x;
    for row in 0..tile.rows() {
        dst.set((at[0] + row) * 256 + at[1] + column, tile.get([row, column]).to_f32());
    }
}

/// Widens a matrix that contains every number of the type, and checks it.
pub fn run(device: &Device) -> anyhow::Result<()> {
    let shape = [256, 256];
    let numbers = (0..=255).map(e4m3::from_bits).filter(|x| !x.is_nan());
    let host: Vec<e4m3> = numbers.cycle().take(shape[0] * shape[1]).collect();

    let src = device.tensor(&host, shape)?;
    let mut dst = device.zeros([host.len()])?;
    tma_fp8::launch(device, tma_fp8::tiles_of_src(shape), &src, &mut dst)?;

    let wanted: Vec<f32> = host.iter().map(e4m3::to_f32).collect();
    anyhow::ensure!(dst.to_vec()? == wanted, "a number was not widened as on the host");
    println!("{}: widened {} × {} 8-bit floats, equal to plain Rust", device.name(), shape[0], shape[1]);
    Ok(())
}

fn main() -> anyhow::Result<()> {
    run(&Device::open()?)
}
