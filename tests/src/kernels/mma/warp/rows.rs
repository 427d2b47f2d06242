//! Sums of a warp: their rows, their elements, and as operands of another matmul.

use tma_runtime::prelude::*;

use super::super::{inputs, product, scalars, transposed};
use crate::case::Case;
use crate::compare::same;

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    Case { name: "mma::warp_rows", run: |device, _| check_rows(device) },
    Case { name: "mma::warp_halves", run: |device, _| check_halves(device) },
];

/// `c = (a · bᵀ - maximum of each row) · b`, of 32 × 32 and 32 × 32, 32 rows per warp, where the
/// first matmul is a left operand in registers. `rows` has the maximum and the sum of each row of
/// the first matmul.
#[tma_kernel(threads = 32)]
pub fn mma_sync_rows(a: Global<f16>, b: Global<f16>, c: Global<f32>, rows: Global<f32>) {
    let left: Tile<f16, Shape2<32, 32>, Swizzle64> = shared();
    let right: Tile<f16, Shape2<32, 32>, Swizzle64> = shared();
    for i in (thread_idx().x..32 * 32).step_by(32) {
        left.set([i / 32, i % 32], a.get(i));
        right.set([i / 32, i % 32], b.get(i));
    }
    sync_warp();
    let mut scores = WarpAccumulator::<f32, 32, 32>::zero();
    scores
        .mma_sync(WarpLeft::<f16, 32, 32>::load(left, [0, 0]), WarpRight::<f16, 32, 32>::load(right, [0, 0]));
    let greatest = scores.row_max();
    let mut total: WarpRows<f32, 32> = WarpRows::<f32, 32>::filled(0.0);
    let sums = scores.row_sum();
    for r in unroll(0..sums.len()) {
        total[r] += sums[r];
    }
    for i in unroll(0..scores.len()) {
        let row = scores.at(i)[0];
        rows.set(row * 2, greatest[scores.row(i)]);
        rows.set(row * 2 + 1, total[scores.row(i)]);
        scores[i] -= greatest[scores.row(i)];
    }
    let mut sum: WarpAccumulator<f32, 32, 32> = WarpAccumulator::zero();
    sum.mma_sync(scores.pack::<f16>(), WarpRight::<f16, 32, 32>::load(right.t(), [0, 0]));
    sum.store_to(c.matrix(0, [32, 32], 32), [0, 0]);
}

fn check_rows(device: &Device) -> anyhow::Result<()> {
    let (a, b) = (inputs::<f16>(61, 32 * 32), inputs::<f16>(62, 32 * 32));
    let left = device.tensor(&scalars::<f16>(&a), [a.len()])?;
    let right = device.tensor(&scalars::<f16>(&b), [b.len()])?;
    let mut c = device.filled_bytes([32 * 32], 0xab)?;
    let mut rows = device.filled_bytes([32 * 2], 0xab)?;
    mma_sync_rows::launch(device, 1, &left, &right, &mut c, &mut rows)?;
    let scores = product(&a, &b, 32);
    let greatest = |row: &[i32]| row.iter().copied().max().unwrap_or_default();
    let of_row = |row: &[i32]| [greatest(row), row.iter().sum()];
    let wanted: Vec<_> = scores.chunks(32).flat_map(of_row).collect();
    same("maxima and sums", &rows.to_vec()?, &scalars::<f32>(&wanted))?;
    let less: Vec<i32> =
        scores.chunks(32).flat_map(|row| row.iter().map(move |score| score - greatest(row))).collect();
    same("the product", &c.to_vec()?, &scalars::<f32>(&product(&less, &transposed(&b, 32), 32)))
}

/// `c = 2 (a · bᵀ) + row`, of 16 × 16 and 16 × 16, summed in f16: each element starts at the index
/// of its row.
#[tma_kernel(threads = 32)]
pub fn mma_sync_halves(a: Global<f16>, b: Global<f16>, c: Global<f16>) {
    let left: Tile<f16, Shape2<16, 16>, Swizzle32> = shared();
    let right: Tile<f16, Shape2<16, 16>, Swizzle32> = shared();
    for i in (thread_idx().x..16 * 16).step_by(32) {
        left.set([i / 16, i % 16], a.get(i));
        right.set([i / 16, i % 16], b.get(i));
    }
    sync_warp();
    let mut sum = WarpAccumulator::<f16, 16, 16>::zero();
    let x = WarpLeft::<f16, 16, 16>::load(left, [0, 0]);
    let y = WarpRight::<f16, 16, 16>::load(right, [0, 0]);
    for i in unroll(0..sum.len()) {
        sum[i] = cast::<f16>(sum.at(i)[0]);
    }
    sum.mma_sync(x, y);
    sum.mma_sync(x, y);
    sum.store_to(c.matrix(0, [16, 16], 16), [0, 0]);
}

fn check_halves(device: &Device) -> anyhow::Result<()> {
    let (a, b) = (inputs::<f16>(63, 256), inputs::<f16>(64, 256));
    let left = device.tensor(&scalars::<f16>(&a), [a.len()])?;
    let right = device.tensor(&scalars::<f16>(&b), [b.len()])?;
    let mut c = device.filled_bytes([256], 0xab)?;
    mma_sync_halves::launch(device, 1, &left, &right, &mut c)?;
    let wanted: Vec<i32> = product(&a, &b, 16).iter().zip(0..).map(|(sum, at)| 2 * sum + at / 16).collect();
    same("the product", &c.to_vec()?, &scalars::<f16>(&wanted))
}
