//! Transposes a matrix through shared memory, without bank conflicts and without a swizzle.
//!
//! A row of a tile is 64 floats: twice across all 32 banks. If the lanes of a warp read a column,
//! all would access the same bank. They therefore read along a diagonal: neighbours are one row and
//! one column apart, hence in neighbouring banks, both in the input and in the output.
//!
//! The order of the accesses to global memory determines the speed. A swizzle would also spread a
//! column over the banks, but a copy of a swizzled tile moves rows of at most 128 bytes, and memory
//! is faster with the 256 bytes of a row here. Concurrent blocks write neighbouring tiles of the
//! same rows of `dst`. With 512 threads per block only four blocks share a multiprocessor: fewer
//! tiles in flight are closer together.

use tma_runtime::prelude::*;

/// `dst = srcᵀ`, one block per tile of `dst`.
#[tma_kernel(threads = 512)]
pub fn transpose(src: TensorMap<Tile<f32, Shape2<64, 64>>>, dst: TensorMap<Tile<f32, Shape2<64, 64>>>) {
    let input: Tile<f32, Shape2<64, 64>> = shared();
    let output: Tile<f32, Shape2<64, 64>> = shared();
    let full: Barrier = shared();
    let at = dst.block_tile();
    let leader = thread_idx().x == 0;
    if leader {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(input.bytes());
        src.load(input, [at[1], at[0]], full);
    }
    sync_threads();
    full.wait(0);

    let row = thread_idx().x % 64;
    for diagonal in (thread_idx().x / 64..64).step_by(8) {
        let column = (row + diagonal) % 64;
        output.set([column, row], input.get([row, column]));
    }
    fence_proxy_async();
    sync_threads();
    if leader {
        dst.store(at, output);
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
    transpose::launch(device, transpose::tiles_of_dst(dst.shape()), src, dst)
}

/// The reference in plain Rust.
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
