//! Layouts of operands: without a swizzle, parts of tiles, and batches.

use tma_runtime::prelude::*;

use super::{inputs, product, scalars, transposed};
use crate::case::Case;
use crate::compare::same;

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    Case { name: "mma::panels", run: |device, _| check_panels(device) },
    Case { name: "mma::parts", run: |device, _| check_parts(device) },
    Case { name: "mma::batches", run: |device, _| check_batches(device) },
];

/// `c = a · b` and `d = -a · e`, of 128 × 32, 32 × 64 and 32 × 8, without a swizzle. All are in
/// panels of 16 bytes, written by copies and by `set`; `e` is a single panel. Two warpgroups
/// multiply 64 rows each.
#[tma_kernel(threads = 256)]
pub fn mma_panels(
    a: TensorMap<Tile<bf16, Shape2<128, 32>, Panels16>>,
    b: Global<bf16>,
    e: Global<bf16>,
    c: TensorMap<Tile<f32, Shape2<64, 32>, Panels16>>,
    d: Global<f32>,
) {
    let left: Tile<bf16, Shape2<128, 32>, Panels16> = shared();
    let right: Tile<bf16, Shape2<32, 64>, Panels16> = shared();
    let narrow: Tile<bf16, Shape2<32, 8>> = shared();
    let result: Stages<Tile<f32, Shape2<64, 32>, Panels16>, 4> = shared();
    let full: Barrier = shared();
    let i = thread_idx().x;
    if i == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(left.bytes());
        a.load(left, [0, 0], full);
    }
    for i in (i..32 * 64).step_by(256) {
        right.set([i / 64, i % 64], b.get(i));
    }
    narrow.set([i / 8, i % 8], e.get(i));
    fence_proxy_async();
    sync_threads();
    full.wait(0);

    let me = warpgroup_idx();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    let mut small = Accumulator::<f32, 64, 8>::zero();
    let first = sum.mma(left.band::<64>(me), right.t(), ());
    let second = small.mma(-left.band::<64>(me), narrow.t(), ());
    first.wait();
    second.wait();
    for j in unroll(0..2u32) {
        sum.columns::<32>(j).store(result[me * 2 + j]);
    }
    for i in unroll(0..small.len()) {
        let at = small.at(i);
        d.set((me * 64 + at[0]) * 8 + at[1], small[i]);
    }
    fence_proxy_async();
    sync_threads();
    if i == 0 {
        for part in 0..4u32 {
            c.store([part / 2 * 64, part % 2 * 32], result[part]);
        }
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
}

fn check_panels(device: &Device) -> anyhow::Result<()> {
    let (a, b) = (inputs::<bf16>(11, 128 * 32), inputs::<bf16>(12, 32 * 64));
    let e = inputs::<bf16>(13, 32 * 8);
    let left = device.tensor(&scalars::<bf16>(&a), [128, 32])?;
    let right = device.tensor(&scalars::<bf16>(&b), [b.len()])?;
    let narrow = device.tensor(&scalars::<bf16>(&e), [e.len()])?;
    let mut c = device.filled_bytes([128, 64], 0xab)?;
    let mut d = device.filled_bytes([128 * 8], 0xab)?;
    mma_panels::launch(device, 1, &left, &right, &narrow, &mut c, &mut d)?;
    same("the product", &c.to_vec()?, &scalars::<f32>(&product(&a, &transposed(&b, 64), 32)))?;
    let negative: Vec<_> = product(&a, &transposed(&e, 8), 32).into_iter().map(|sum| -sum).collect();
    same("the narrow product", &d.to_vec()?, &scalars::<f32>(&negative))
}

/// `c = a · bᵀ - a₁ · b₁ᵀ`, of 128 × 128 and 64 × 128 in two panels each, where `a₁` and `b₁` are
/// their second panels. Each of two warpgroups multiplies its band, and writes 64 columns of its
/// rows, as bf16, to a panel of one tile.
#[tma_kernel(threads = 256)]
pub fn mma_parts(
    a: TensorMap<Tile<bf16, Shape2<128, 128>, Swizzle128>>,
    b: TensorMap<Tile<bf16, Shape2<64, 128>, Swizzle128>>,
    c: TensorMap<Tile<bf16, Shape2<64, 128>, Swizzle128>>,
) {
    let left: Tile<bf16, Shape2<128, 128>, Swizzle128> = shared();
    let right: Tile<bf16, Shape2<64, 128>, Swizzle128> = shared();
    let result: Tile<bf16, Shape2<64, 128>, Swizzle128> = shared();
    let full: Barrier = shared();
    let leader = thread_idx().x == 0;
    if leader {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(left.bytes() + right.bytes());
        a.load(left, [0, 0], full);
        b.load(right, [0, 0], full);
    }
    sync_threads();
    full.wait(0);

    let me = warpgroup_idx();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    let mut flight = sum.mma(left.band::<64>(me), right, ());
    let panel = left.columns::<64>(1);
    flight.mma(-panel.band::<64>(me), right.columns::<64>(1), ());
    flight.wait();
    sum.store(result.columns::<64>(me));
    fence_proxy_async();
    sync_threads();
    if leader {
        c.store([0, 0], result);
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
}

fn check_parts(device: &Device) -> anyhow::Result<()> {
    let (a, b) = (inputs::<bf16>(14, 128 * 128), inputs::<bf16>(15, 64 * 128));
    let left = device.tensor(&scalars::<bf16>(&a), [128, 128])?;
    let right = device.tensor(&scalars::<bf16>(&b), [64, 128])?;
    let mut c = device.filled_bytes([64, 128], 0xab)?;
    mma_parts::launch(device, 1, &left, &right, &mut c)?;
    // Subtracting the second panels leaves the first ones.
    let first = |matrix: &[i32]| -> Vec<i32> {
        matrix.chunks(128).flat_map(|row| row.iter().copied().take(64)).collect()
    };
    let sums = product(&first(&a), &first(&b), 64);
    let (upper, lower) = sums.split_at(64 * 64);
    let rows = upper.chunks(64).zip(lower.chunks(64));
    let wanted: Vec<_> = rows.flat_map(|(left, right)| [left, right].concat()).collect();
    same("the product", &c.to_vec()?, &scalars::<bf16>(&wanted))
}

/// `c[z] = a[z] · b[z]ᵀ`, of 128 × 64 and 64 × 64, one matrix of the batch per block, without a
/// copy between load and matmul; `d[z] = a[z] · b[1 - z]ᵀ`, with both matrices of `b` in one tile
/// and those of `d` too.
#[tma_kernel(threads = 256)]
pub fn mma_batches(
    a: TensorMap<Tile<f16, Shape3<1, 128, 64>, Swizzle128>>,
    b: TensorMap<Tile<f16, Shape3<1, 64, 64>, Swizzle128>>,
    both: TensorMap<Tile<f16, Shape3<2, 64, 64>, Swizzle128>>,
    c: TensorMap<Tile<f16, Shape3<1, 64, 64>, Swizzle128>>,
    d: TensorMap<Tile<f16, Shape3<2, 64, 64>, Swizzle128>>,
) {
    let left: Tile<f16, Shape3<1, 128, 64>, Swizzle128> = shared();
    let right: Tile<f16, Shape3<1, 64, 64>, Swizzle128> = shared();
    let rights: Tile<f16, Shape3<2, 64, 64>, Swizzle128> = shared();
    let out: Stages<Tile<f16, Shape3<1, 64, 64>, Swizzle128>, 2> = shared();
    let outs: Tile<f16, Shape3<2, 64, 64>, Swizzle128> = shared();
    let full: Barrier = shared();
    let leader = thread_idx().x == 0;
    let z = block_idx().x;
    assume(z < 2);
    if leader {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(left.bytes() + right.bytes() + rights.bytes());
        a.load(left, [z, 0, 0], full);
        b.load(right, [z, 0, 0], full);
        both.load(rights, [0, 0, 0], full);
    }
    sync_threads();
    full.wait(0);

    let me = warpgroup_idx();
    let mine = left.batch(0).band::<64>(me);
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    sum.mma(mine, right, ()).wait();
    sum.store(out[me]);
    let mut other = Accumulator::<f32, 64, 64>::zero();
    other.mma(mine, rights.batch(1 - z), ()).wait();
    other.store(outs.batch(me));
    fence_proxy_async();
    sync_threads();
    if leader {
        for half in 0..2u32 {
            c.store([z, half * 64, 0], out[half]);
        }
        d.store([2 * z, 0, 0], outs);
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
}

fn check_batches(device: &Device) -> anyhow::Result<()> {
    let (a, b) = (inputs::<f16>(16, 2 * 128 * 64), inputs::<f16>(17, 2 * 64 * 64));
    let left = device.tensor(&scalars::<f16>(&a), [2, 128, 64])?;
    let right = device.tensor(&scalars::<f16>(&b), [2, 64, 64])?;
    let mut c = device.filled_bytes([2, 128, 64], 0xab)?;
    let mut d = device.filled_bytes([4, 64, 64], 0xab)?;
    mma_batches::launch(device, 2, &left, &right, &right, &mut c, &mut d)?;
    let products = |of: [usize; 2]| -> Vec<i32> {
        let matrix = |z: usize| b.get(z * 64 * 64..(z + 1) * 64 * 64).unwrap_or_default();
        a.chunks(128 * 64).zip(of).flat_map(|(a, z)| product(a, matrix(z), 64)).collect()
    };
    same("the products", &c.to_vec()?, &scalars::<f16>(&products([0, 1])))?;
    same("the products with the other", &d.to_vec()?, &scalars::<f16>(&products([1, 0])))
}
