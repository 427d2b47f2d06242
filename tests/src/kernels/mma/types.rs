//! Matmuls of every operand type, with every type of sums, stored as every type.

use tma_runtime::prelude::*;

use super::{Integral, inputs, product, scalars};
use crate::case::Case;
use crate::compare::same;

/// A case that runs the instance for these generics.
macro_rules! case {
    ($name:literal, $left:ty, $right:ty, $sum:ty, $stored:ty, $depth:literal) => {
        Case {
            name: concat!("mma::", $name),
            run: |device, _| check::<$left, $right, $sum, $stored, $depth>(device),
        }
    };
}

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    case!("f16_as_f32", f16, f16, f32, f32, 64),
    case!("f16_as_f16", f16, f16, f32, f16, 64),
    case!("f16_in_f16", f16, f16, f16, f16, 64),
    case!("bf16_as_bf16", bf16, bf16, f32, bf16, 64),
    case!("tf32_as_f32", tf32, tf32, f32, f32, 32),
    case!("e4m3_e5m2_as_e4m3", e4m3, e5m2, f32, e4m3, 128),
    case!("e5m2_as_e5m2", e5m2, e5m2, f32, e5m2, 128),
    case!("e5m2_e4m3_in_f16", e5m2, e4m3, f16, f16, 128),
    case!("i8_u8_as_i32", i8, u8, i32, i32, 128),
    case!("u8_as_i32", u8, u8, i32, i32, 128),
];

/// `c = a · bᵀ`, where `a` is 64 × K and `b` is 32 × K.
#[tma_kernel(threads = 128, instances((E, F, T, O, K) in [
    (f16, f16, f32, f32, 64), (f16, f16, f32, f16, 64), (f16, f16, f16, f16, 64), (bf16, bf16, f32, bf16, 64),
    (tf32, tf32, f32, f32, 32), (e4m3, e5m2, f32, e4m3, 128), (e5m2, e5m2, f32, e5m2, 128),
    (e5m2, e4m3, f16, f16, 128), (i8, u8, i32, i32, 128), (u8, u8, i32, i32, 128),
]))]
pub fn mma_types<E: MatrixElement, F: Multiply<E, T>, T: StoreAs<O>, O: TileElement, const K: u32>(
    a: Global<E>,
    b: Global<F>,
    c: Global<O>,
) {
    let left: Tile<E, Shape2<64, K>, Swizzle128> = shared();
    let right: Tile<F, Shape2<32, K>, Swizzle128> = shared();
    let result: Tile<O, Shape2<64, 32>, Swizzle128> = shared();
    for i in (thread_idx().x..64 * K).step_by(128) {
        left.set([i / K, i % K], a.get(i));
    }
    for i in (thread_idx().x..32 * K).step_by(128) {
        right.set([i / K, i % K], b.get(i));
    }
    fence_proxy_async();
    sync_threads();
    let mut sum = Accumulator::<T, 64, 32>::zero();
    sum.mma(left, right, ()).wait();
    sum.store(result);
    sync_threads();
    for i in (thread_idx().x..64 * 32).step_by(128) {
        c.set(i, result.get([i / 32, i % 32]));
    }
}

fn check<E, F, T, O, const K: u32>(device: &Device) -> anyhow::Result<()>
where
    E: Integral + MatrixElement,
    F: Integral + Multiply<E, T>,
    T: Scalar + StoreAs<O>,
    O: Integral + TileElement,
    mma_types::Instance<E, F, T, O, K>: mma_types::Compiled,
{
    let k = K as usize;
    let (a, b) = (inputs::<E>(1, 64 * k), inputs::<F>(2, 32 * k));
    let left = device.tensor(&scalars::<E>(&a), [a.len()])?;
    let right = device.tensor(&scalars::<F>(&b), [b.len()])?;
    let mut c = device.filled_bytes([64 * 32], 0xab)?;
    mma_types::launch::<E, F, T, O, K>(device, 1, &left, &right, &mut c)?;
    same("the product", &c.to_vec()?, &scalars::<O>(&product(&a, &b, k)))
}
