//! Operands: transposed, negated, parts of tiles, and in registers; several multiplications in
//! flight.

use tma_runtime::prelude::*;

use super::{inputs, product, scalars, transposed};
use crate::case::Case;
use crate::compare::same;

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    Case { name: "mma::transposed", run: |device, _| check_transposed(device) },
    Case { name: "mma::registers", run: |device, _| check_registers(device) },
    Case { name: "mma::flights", run: |device, _| check_flights(device) },
];

/// `c = -aᵀ · b - aᵀ · b + aᵀ · b`, of matrices of 64 × 64.
#[tma_kernel(threads = 128)]
pub fn mma_transposed(a: Global<f16>, b: Global<f16>, c: Global<f32>) {
    let left: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let right: Tile<f16, Shape2<64, 64>, Swizzle64> = shared();
    let result: Tile<f32, Shape2<64, 64>> = shared();
    for i in (thread_idx().x..64 * 64).step_by(128) {
        left.set([i / 64, i % 64], a.get(i));
        right.set([i / 64, i % 64], b.get(i));
    }
    fence_proxy_async();
    sync_threads();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    let mut flight = sum.mma(-left.t(), right.t(), 3u32);
    let three = flight.mma(left.t(), -right.t(), 4u32);
    let four = flight.mma(left.t(), right.t(), 5u32);
    if three + four + flight.wait() == 12 {
        sum.store(result);
    }
    sync_threads();
    for i in (thread_idx().x..64 * 64).step_by(128) {
        c.set(i, result.get([i / 64, i % 64]));
    }
}

fn check_transposed(device: &Device) -> anyhow::Result<()> {
    let (a, b) = (inputs::<f16>(3, 64 * 64), inputs::<f16>(4, 64 * 64));
    let left = device.tensor(&scalars::<f16>(&a), [a.len()])?;
    let right = device.tensor(&scalars::<f16>(&b), [b.len()])?;
    let mut c = device.filled_bytes([64 * 64], 0xab)?;
    mma_transposed::launch(device, 1, &left, &right, &mut c)?;
    let wanted = product(&transposed(&a, 64), &transposed(&b, 64), 64);
    let wanted: Vec<_> = wanted.into_iter().map(|sum| -sum).collect();
    same("the product", &c.to_vec()?, &scalars::<f32>(&wanted))
}

/// `c = (a · bᵀ) · b`, of 128 × 64 and 64 × 64, where the first matmul is a left operand in
/// registers. Two warpgroups multiply 64 rows each. `rows` has the maximum and the sum of each row
/// of the first matmul.
#[tma_kernel(threads = 256)]
pub fn mma_registers(a: Global<bf16>, b: Global<bf16>, c: Global<f32>, rows: Global<f32>) {
    let left: Tile<bf16, Shape2<128, 64>, Swizzle128> = shared();
    let right: Tile<bf16, Shape2<64, 64>, Swizzle128> = shared();
    let result: Stages<Tile<f32, Shape2<64, 16>, Swizzle64>, 2> = shared();
    for i in (thread_idx().x..128 * 64).step_by(256) {
        left.set([i / 64, i % 64], a.get(i));
    }
    for i in (thread_idx().x..64 * 64).step_by(256) {
        right.set([i / 64, i % 64], b.get(i));
    }
    fence_proxy_async();
    sync_threads();
    let me = warpgroup_idx();
    let mut scores = Accumulator::<f32, 64, 64>::zero();
    scores.mma(left.band::<64>(me), right, ()).wait();
    let greatest = scores.row_max();
    let total = scores.row_sum();
    for i in unroll(0..scores.len()) {
        let row = me * 64 + scores.at(i)[0];
        rows.set(row * 2, greatest[scores.row(i)]);
        rows.set(row * 2 + 1, total[scores.row(i)]);
    }
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    sum.mma(scores.pack::<bf16>(), right.t(), ()).wait();
    let part = result[me];
    for j in unroll(0..4u32) {
        sum.columns::<16>(j).store(part);
        sync_warpgroup();
        for i in (thread_idx().x % 128..64 * 16).step_by(128) {
            c.set((me * 64 + i / 16) * 64 + j * 16 + i % 16, part.get([i / 16, i % 16]));
        }
        sync_warpgroup();
    }
}

fn check_registers(device: &Device) -> anyhow::Result<()> {
    let (a, b) = (inputs::<bf16>(5, 128 * 64), inputs::<bf16>(6, 64 * 64));
    let left = device.tensor(&scalars::<bf16>(&a), [a.len()])?;
    let right = device.tensor(&scalars::<bf16>(&b), [b.len()])?;
    let mut c = device.filled_bytes([128 * 64], 0xab)?;
    let mut rows = device.filled_bytes([128 * 2], 0xab)?;
    mma_registers::launch(device, 1, &left, &right, &mut c, &mut rows)?;
    let scores = product(&a, &b, 64);
    let of_row = |row: &[i32]| [row.iter().copied().max().unwrap_or_default(), row.iter().sum()];
    let wanted: Vec<_> = scores.chunks(64).flat_map(of_row).collect();
    same("maxima and sums", &rows.to_vec()?, &scalars::<f32>(&wanted))?;
    same("the product", &c.to_vec()?, &scalars::<f32>(&product(&scores, &transposed(&b, 64), 64)))
}

/// `c` and `d` are `steps` times `a · aᵀ` and `a · bᵀ`, of 64 × 32 and 32 × 32, both in
/// flight at the same time. A warpgroup without work leaves its registers to the one that
/// multiplies.
#[tma_kernel(threads = 256)]
pub fn mma_flights(a: Global<f16>, b: Global<f16>, c: Global<f32>, d: Global<f32>, steps: u32) {
    let left: Tile<f16, Shape2<64, 32>, Swizzle64> = shared();
    let right: Tile<f16, Shape2<32, 32>, Swizzle64> = shared();
    for i in (thread_idx().x..64 * 32).step_by(256) {
        left.set([i / 32, i % 32], a.get(i));
    }
    for i in (thread_idx().x..32 * 32).step_by(256) {
        right.set([i / 32, i % 32], b.get(i));
    }
    fence_proxy_async();
    if warpgroup_idx() == 0 {
        setmaxnreg_dec::<24>();
        named_barrier_arrive(1, 256);
    } else {
        setmaxnreg_inc::<240>();
        named_barrier_sync(1, 256);
        let mut own = Accumulator::<f32, 64, 64>::zero();
        let mut other = Accumulator::<f32, 64, 32>::zero();
        let mut first = own.mma(left, left, ());
        let mut second = other.mma(left, right, ());
        for _ in 1..steps {
            first.mma(left, left, ());
            second.mma(left, right, ());
        }
        first.wait();
        for i in unroll(0..own.len()) {
            c.set(own.at(i)[0] * 64 + own.at(i)[1], own[i]);
        }
        second.wait();
        for i in unroll(0..other.len()) {
            d.set(other.at(i)[0] * 32 + other.at(i)[1], other[i]);
        }
    }
}

fn check_flights(device: &Device) -> anyhow::Result<()> {
    let (a, b) = (inputs::<f16>(7, 64 * 32), inputs::<f16>(8, 32 * 32));
    let left = device.tensor(&scalars::<f16>(&a), [a.len()])?;
    let right = device.tensor(&scalars::<f16>(&b), [b.len()])?;
    let (mut c, mut d) = (device.filled_bytes([64 * 64], 0xab)?, device.filled_bytes([64 * 32], 0xab)?);
    let steps = 5;
    mma_flights::launch(device, 1, &left, &right, &mut c, &mut d, steps)?;
    let times = |matrix: Vec<i32>| -> Vec<f32> {
        scalars(&matrix.into_iter().map(|sum| sum * steps as i32).collect::<Vec<_>>())
    };
    same("the product with itself", &c.to_vec()?, &times(product(&a, &a, 32)))?;
    same("the product", &d.to_vec()?, &times(product(&a, &b, 32)))
}
