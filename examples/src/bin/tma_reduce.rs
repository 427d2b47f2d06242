//! Sums a stack of matrices, and finds their minimum and maximum elements. Blocks share the work
//! along the stack, and the copy engine combines their results.
//!
//! A split-K GEMM works in this way. Instead of one block that iterates over the whole stack, each
//! block takes four layers and reduces a partial tile into the result, like the other blocks:
//! element by element, in any order. The result must be initialised: to 0 for a sum.

use tma_runtime::prelude::*;

/// Combines four layers of `src` in each block, one element per thread. The number of layers must
/// be a multiple of four, because out-of-bounds zeros would affect the minimum and maximum.
#[tma_kernel(threads = 256)]
pub fn tma_reduce(
    src: TensorMap<Tile<i32, Shape3<4, 8, 32>>>,
    sums: TensorMap<Tile<i32, Shape2<8, 32>>>,
    least: TensorMap<Tile<i32, Shape2<8, 32>>>,
    greatest: TensorMap<Tile<i32, Shape2<8, 32>>>,
) {
    let layers: Tile<i32, Shape3<4, 8, 32>> = shared();
    let partial: Stages<Tile<i32, Shape2<8, 32>>, 3> = shared();
    let full: Barrier = shared();
    let at = sums.block_tile();
    let leader = thread_idx().x == 0;

    if leader {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(layers.bytes());
        src.load(layers, src.block_tile(), full);
    }
    sync_threads();
    full.wait(0);

    let element = [warp_idx(), lane_idx()];
    let mut sum = 0;
    let mut low = i32::MAX;
    let mut high = i32::MIN;
    for layer in 0..4 {
        let x = layers.get([layer, element[0], element[1]]);
        sum += x;
        low = min(low, x);
        high = max(high, x);
    }
    partial[0].set(element, sum);
    partial[1].set(element, low);
    partial[2].set(element, high);
    fence_proxy_async();
    sync_threads();
    if leader {
        sums.reduce_add(at, partial[0]);
        least.reduce_min(at, partial[1]);
        greatest.reduce_max(at, partial[2]);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Combines a stack of matrices, and checks the three results.
pub fn run(device: &Device) -> anyhow::Result<()> {
    let [layers, rows, cols] = [16, 50, 100];
    let matrix = rows * cols;
    let host: Vec<i32> = (0..layers * matrix).map(|i| (i * 7919 % 20_011) as i32 - 10_000).collect();

    let src = device.tensor(&host, [layers, rows, cols])?;
    let mut sums = device.zeros([rows, cols])?;
    let mut least = device.tensor(&vec![i32::MAX; matrix], [rows, cols])?;
    let mut greatest = device.tensor(&vec![i32::MIN; matrix], [rows, cols])?;
    let grid = tma_reduce::tiles_of_src(src.shape());
    tma_reduce::launch(device, grid, &src, &mut sums, &mut least, &mut greatest)?;

    let stack = |i: usize| host[i..].iter().step_by(matrix);
    let wanted: Vec<i32> = (0..matrix).map(|i| stack(i).sum()).collect();
    anyhow::ensure!(sums.to_vec()? == wanted, "a sum differs from plain Rust");
    let wanted: Vec<i32> = (0..matrix).filter_map(|i| stack(i).min().copied()).collect();
    anyhow::ensure!(least.to_vec()? == wanted, "a least element differs from plain Rust");
    let wanted: Vec<i32> = (0..matrix).filter_map(|i| stack(i).max().copied()).collect();
    anyhow::ensure!(greatest.to_vec()? == wanted, "a greatest element differs from plain Rust");
    println!("{}: combined {layers} matrices of {rows} × {cols}, equal to plain Rust", device.name());
    Ok(())
}

fn main() -> anyhow::Result<()> {
    run(&Device::open()?)
}
