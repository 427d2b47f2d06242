//! Matmuls of every operand type, with every type of sums.

use tma_runtime::prelude::*;

use super::super::{Integral, inputs, product, scalars};
use crate::case::Case;
use crate::compare::same;
use crate::random::hash;

/// A case that runs the instance for these generics.
macro_rules! case {
    ($name:literal, $left:ty, $right:ty, $sum:ty, $stored:ty, $depth:literal) => {
        Case {
            name: concat!("mma::warp_", $name),
            run: |device, _| check::<$left, $right, $sum, $stored, $depth>(device),
        }
    };
}

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    case!("f16", f16, f16, f32, f32, 24),
    case!("f16_in_f16", f16, f16, f16, f16, 24),
    case!("bf16", bf16, bf16, f32, bf16, 24),
    case!("tf32", tf32, tf32, f32, f32, 12),
    case!("e4m3", e4m3, e4m3, f32, e4m3, 48),
    case!("e4m3_e5m2", e4m3, e5m2, f32, f16, 48),
    case!("e5m2_e4m3", e5m2, e4m3, f32, e5m2, 48),
    case!("e5m2", e5m2, e5m2, f32, f32, 48),
    case!("e4m3_in_f16", e4m3, e4m3, f16, f16, 48),
    case!("e4m3_e5m2_in_f16", e4m3, e5m2, f16, f16, 48),
    case!("e5m2_e4m3_in_f16", e5m2, e4m3, f16, f16, 48),
    case!("e5m2_in_f16", e5m2, e5m2, f16, f16, 48),
    case!("i8", i8, i8, i32, i32, 48),
    case!("i8_u8", i8, u8, i32, i32, 48),
    case!("u8_i8", u8, i8, i32, i32, 48),
    case!("u8", u8, u8, i32, i32, 48),
    case!("f64", f64, f64, f64, f64, 28),
    Case { name: "mma::warp_f64_rounded", run: |device, _| check_rounded(device) },
];

/// `c = a · bᵀ`, where `a` is 32 × K and `b` is 24 × K: each warp multiplies 16 rows. K is not a
/// multiple of the K of an instruction, so the last instructions have smaller shapes.
#[tma_kernel(threads = 64, instances((E, F, T, O, K) in [
    (f16, f16, f32, f32, 24), (f16, f16, f16, f16, 24), (bf16, bf16, f32, bf16, 24), (tf32, tf32, f32, f32, 12),
    (e4m3, e4m3, f32, e4m3, 48), (e4m3, e5m2, f32, f16, 48), (e5m2, e4m3, f32, e5m2, 48),
    (e5m2, e5m2, f32, f32, 48), (e4m3, e4m3, f16, f16, 48), (e4m3, e5m2, f16, f16, 48),
    (e5m2, e4m3, f16, f16, 48), (e5m2, e5m2, f16, f16, 48), (i8, i8, i32, i32, 48), (i8, u8, i32, i32, 48),
    (u8, i8, i32, i32, 48), (u8, u8, i32, i32, 48), (f64, f64, f64, f64, 28),
]))]
pub fn mma_sync_types<E, F, T, O, const K: u32>(a: Global<E>, b: Global<F>, c: Global<O>)
where
    E: WarpElement,
    F: WarpMultiply<E, T>,
    T: WarpStoreAs<O>,
    O: TileElement,
{
    let left: Tile<E, Shape2<32, K>> = shared();
    let right: Tile<F, Shape2<24, K>> = shared();
    let result: Tile<O, Shape2<32, 48>> = shared();
    for i in (thread_idx().x..32 * K).step_by(64) {
        left.set([i / K, i % K], a.get(i));
    }
    for i in (thread_idx().x..24 * K).step_by(64) {
        right.set([i / K, i % K], b.get(i));
    }
    sync_threads();
    let row = warp_idx() * 16;
    let mut sum = WarpAccumulator::<T, 16, 24>::zero();
    let x = WarpLeft::<E, 16, K>::load(left, [row, 0]);
    let y = WarpRight::<F, 24, K>::load(right, [0, 0]);
    sum.mma_sync(x, y);
    sum.store(result, [row, 16]);
    sync_threads();
    for i in (thread_idx().x..32 * 24).step_by(64) {
        c.set(i, result.get([i / 24, 16 + i % 24]));
    }
}

fn check<E, F, T, O, const K: u32>(device: &Device) -> anyhow::Result<()>
where
    E: Integral + WarpElement,
    F: Integral + WarpMultiply<E, T>,
    T: Scalar + WarpStoreAs<O>,
    O: Integral + TileElement,
    mma_sync_types::Instance<E, F, T, O, K>: mma_sync_types::Compiled,
{
    let k = K as usize;
    let (a, b) = (inputs::<E>(51, 32 * k), inputs::<F>(52, 24 * k));
    let left = device.tensor(&scalars::<E>(&a), [a.len()])?;
    let right = device.tensor(&scalars::<F>(&b), [b.len()])?;
    let mut c = device.filled_bytes([32 * 24], 0xab)?;
    mma_sync_types::launch::<E, F, T, O, K>(device, 1, &left, &right, &mut c)?;
    same("the product", &c.to_vec()?, &scalars::<O>(&product(&a, &b, k)))
}

/// Numbers whose products and sums are rounded: one `fma` adds each product, in the order of K.
fn check_rounded(device: &Device) -> anyhow::Result<()> {
    let number = |seed, i| (hash(seed, i) >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
    let a: Vec<f64> = (0..32 * 28).map(|i| number(53, i)).collect();
    let b: Vec<f64> = (0..24 * 28).map(|i| number(54, i)).collect();
    let (left, right) = (device.tensor(&a, [a.len()])?, device.tensor(&b, [b.len()])?);
    let mut c = device.filled_bytes([32 * 24], 0xab)?;
    mma_sync_types::launch::<f64, f64, f64, f64, 28>(device, 1, &left, &right, &mut c)?;
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).fold(0.0, |sum, (x, y)| x.mul_add(*y, sum));
    let wanted: Vec<f64> = a.chunks(28).flat_map(|x| b.chunks(28).map(move |y| dot(x, y))).collect();
    same("the product", &c.to_vec()?, &wanted)
}
