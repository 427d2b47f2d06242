//! One instruction of the tensor cores, and the thread that holds each element of its result.
//!
//! `wgmma.mma_async.m64n8k16` is the smallest multiplication: 64 × 16 elements of A by 16 × 8 of B.
//! The 128 threads of a warpgroup execute it together, and each has four of the 512 sums in its
//! registers. Everything larger consists of such instructions.

use tma_runtime::picture::TileLayout;
use tma_runtime::prelude::*;
use tma_runtime::spec::Scalar;

/// `c = a · bᵀ`. Each thread also records the elements of `c` that it holds.
#[tma_kernel(threads = 128)]
pub fn wgmma_atom(
    a: TensorMap<Tile<f16, Shape2<64, 16>, Swizzle32>>,
    b: TensorMap<Tile<f16, Shape2<8, 16>, Swizzle32>>,
    c: Global<f32>,
    holders: Global<u32>,
) {
    let left: Tile<f16, Shape2<64, 16>, Swizzle32> = shared();
    let right: Tile<f16, Shape2<8, 16>, Swizzle32> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(left.bytes() + right.bytes());
        a.load(left, [0, 0], full);
        b.load(right, [0, 0], full);
    }
    sync_threads();
    full.wait(0);

    let mut sum = Accumulator::<f32, 64, 8>::zero();
    sum.mma(left, right, ()).wait();

    for i in unroll(0..sum.len()) {
        let at = sum.at(i);
        c.set(at[0] * 8 + at[1], sum[i]);
        holders.set(at[0] * 8 + at[1], thread_idx().x * 4 + i as u32);
    }
}

/// Computes `a · bᵀ` in plain Rust.
fn reference(a: &[f16], b: &[f16]) -> Vec<f32> {
    let dot = |x: &[f16], y: &[f16]| x.iter().zip(y).map(|(x, y)| x.to_f32() * y.to_f32()).sum();
    a.chunks(16).flat_map(|x| b.chunks(16).map(move |y| dot(x, y))).collect()
}

/// Multiplies, compares with plain Rust, and shows the thread that holds each sum.
pub fn run(device: &Device) -> anyhow::Result<()> {
    // Whole numbers from -4 to 4, for which every sum is exact.
    let numbers = |len: usize, step: usize| -> Vec<f16> {
        (0..len).map(|i| f16::from_f32((i * step % 9) as f32 - 4.0)).collect()
    };
    let (host_a, host_b) = (numbers(64 * 16, 5), numbers(8 * 16, 7));
    let a = device.tensor(&host_a, [64, 16])?;
    let b = device.tensor(&host_b, [8, 16])?;
    let mut c = device.zeros([64 * 8])?;
    let mut holders = device.zeros([64 * 8])?;
    wgmma_atom::launch(device, Grid::x(1), &a, &b, &mut c, &mut holders)?;
    anyhow::ensure!(c.to_vec()? == reference(&host_a, &host_b), "the product differs from plain Rust");

    let layout = TileLayout::accumulator(Scalar::F32, [64, 8])?;
    for (at, holder) in (0..).zip(holders.to_vec()?) {
        let drawn = layout.coordinates(holder / 4, holder % 4);
        anyhow::ensure!(drawn == Some([at / 8, at % 8]), "the picture differs from the kernel");
    }
    println!("{}: 64 × 8 sums of 16 products each, equal to plain Rust", device.name());
    print!("{layout}");
    Ok(())
}

fn main() -> anyhow::Result<()> {
    run(&Device::open()?)
}
