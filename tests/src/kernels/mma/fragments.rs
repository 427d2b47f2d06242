//! Left operands that are loaded into registers: dense and sparse, of every element size, and
//! transposed.

use tma_runtime::prelude::*;

use super::sparse::{compressed, registers, sparse};
use super::{Integral, inputs, product, scalars, transposed};
use crate::case::Case;
use crate::compare::same;

/// A case that runs an instance of [`mma_loaded`].
macro_rules! dense {
    ($name:literal, $left:ty, $right:ty, $sum:ty, $half:literal) => {
        Case {
            name: concat!("mma::loaded_", $name),
            run: |device, _| check::<$left, $right, $sum, $half, { 2 * $half }>(device),
        }
    };
}

/// A case that runs an instance of [`mma_sparse_loaded`].
macro_rules! sparse {
    ($name:literal, $left:ty, $right:ty, $sum:ty, $half:literal, $registers:literal) => {
        Case {
            name: concat!("mma::sparse_loaded_", $name),
            run: |device, _| check_sparse::<$left, $right, $sum, $half, { 2 * $half }, $registers>(device),
        }
    };
}

/// The cases of this module.
pub(super) const CASES: &[Case] = &[
    dense!("bf16", bf16, bf16, f32, 64),
    dense!("tf32", tf32, tf32, f32, 32),
    dense!("e4m3_e5m2", e4m3, e5m2, f32, 128),
    dense!("e5m2_e4m3_in_f16", e5m2, e4m3, f16, 128),
    dense!("i8_u8", i8, u8, i32, 128),
    Case { name: "mma::loaded_transposed", run: |device, _| check_transposed(device) },
    sparse!("f16", f16, f16, f32, 64, 4),
    sparse!("tf32", tf32, tf32, f32, 32, 4),
    sparse!("e4m3_e5m2", e4m3, e5m2, f32, 128, 8),
    sparse!("e5m2_e4m3_in_f16", e5m2, e4m3, f16, 128, 8),
    sparse!("i8_i8", i8, i8, i32, 128, 8),
    sparse!("u8_i8", u8, i8, i32, 128, 8),
];

/// `c = a · bᵀ`, of 128 × K and 64 × K: two warpgroups multiply 64 rows each, half of K at a time.
/// The rows of `a` have a layout that tensor cores cannot read.
#[tma_kernel(threads = 256, instances((E, F, T, HALF, K) in [
    (bf16, bf16, f32, 64, 128), (tf32, tf32, f32, 32, 64), (e4m3, e5m2, f32, 128, 256),
    (e5m2, e4m3, f16, 128, 256), (i8, u8, i32, 128, 256),
]))]
pub fn mma_loaded<
    E: MatrixElement,
    F: Multiply<E, T>,
    T: AccumulatorElement + Scalar,
    const HALF: u32,
    const K: u32,
>(
    a: Global<E>,
    b: Global<F>,
    c: Global<T>,
) {
    let left: Tile<E, Shape2<128, K>> = shared();
    let right: Tile<F, Shape2<64, K>, Swizzle128> = shared();
    for i in (thread_idx().x..128 * K).step_by(256) {
        left.set([i / K, i % K], a.get(i));
    }
    for i in (thread_idx().x..64 * K).step_by(256) {
        right.set([i / K, i % K], b.get(i));
    }
    fence_proxy_async();
    sync_threads();
    let first = warpgroup_idx() * 64;
    let mut sum = Accumulator::<T, 64, 64>::zero();
    let front = Fragment::<E, 64, HALF>::load(left, [first, 0]);
    let mut flight = sum.mma(front, right.columns::<HALF>(0), ());
    let back: Fragment<E, 64, HALF> = Fragment::<E, 64, HALF>::load(left, [first, HALF]);
    flight.mma(back, right.columns::<HALF>(1), ());
    flight.wait();
    for i in unroll(0..sum.len()) {
        let at = sum.at(i);
        c.set((first + at[0]) * 64 + at[1], sum[i]);
    }
}

fn check<E, F, T, const HALF: u32, const K: u32>(device: &Device) -> anyhow::Result<()>
where
    E: Integral + MatrixElement,
    F: Integral + Multiply<E, T>,
    T: Integral + AccumulatorElement,
    mma_loaded::Instance<E, F, T, HALF, K>: mma_loaded::Compiled,
{
    let k = K as usize;
    let (a, b) = (inputs::<E>(61, 128 * k), inputs::<F>(62, 64 * k));
    let left = device.tensor(&scalars::<E>(&a), [a.len()])?;
    let right = device.tensor(&scalars::<F>(&b), [b.len()])?;
    let mut c = device.filled_bytes([128 * 64], 0xab)?;
    mma_loaded::launch::<E, F, T, HALF, K>(device, 1, &left, &right, &mut c)?;
    same("the product", &c.to_vec()?, &scalars::<T>(&product(&a, &b, k)))
}

/// `c = aᵀ · bᵀ`, of 64 × 128 and 32 × 64: one warpgroup has two bands of 64 rows.
#[tma_kernel(threads = 128)]
pub fn mma_loaded_transposed(a: Global<f16>, b: Global<f16>, c: Global<f32>) {
    let left: Tile<f16, Shape2<64, 128>, Swizzle128> = shared();
    let right: Tile<f16, Shape2<32, 64>, Swizzle128> = shared();
    for i in (thread_idx().x..64 * 128).step_by(128) {
        left.set([i / 128, i % 128], a.get(i));
    }
    for i in (thread_idx().x..32 * 64).step_by(128) {
        right.set([i / 64, i % 64], b.get(i));
    }
    fence_proxy_async();
    sync_threads();
    let mut sum = Accumulator::<f32, 128, 32>::zero();
    sum.mma(Fragment::<f16, 128, 64>::load(left.t(), [0, 0]), right, ()).wait();
    sum.store_to(c.matrix(0, [128, 32], 32), [0, 0]);
}

fn check_transposed(device: &Device) -> anyhow::Result<()> {
    let (a, b) = (inputs::<f16>(63, 64 * 128), inputs::<f16>(64, 32 * 64));
    let left = device.tensor(&scalars::<f16>(&a), [a.len()])?;
    let right = device.tensor(&scalars::<f16>(&b), [b.len()])?;
    let mut c = device.filled_bytes([128 * 32], 0xab)?;
    mma_loaded_transposed::launch(device, 1, &left, &right, &mut c)?;
    same("the product", &c.to_vec()?, &scalars::<f32>(&product(&transposed(&a, 128), &b, 64)))
}

/// `c = a · bᵀ`, of 128 × K and 64 × K, where half of `a` is stored: one warpgroup multiplies both
/// bands of rows, and `C` registers of each thread have the metadata.
#[tma_kernel(threads = 128, instances((E, F, T, HALF, K, C) in [
    (f16, f16, f32, 64, 128, 4), (tf32, tf32, f32, 32, 64, 4), (e4m3, e5m2, f32, 128, 256, 8),
    (e5m2, e4m3, f16, 128, 256, 8), (i8, i8, i32, 128, 256, 8), (u8, i8, i32, 128, 256, 8),
]))]
pub fn mma_sparse_loaded<
    E: MatrixElement,
    F: Multiply<E, T>,
    T: AccumulatorElement + Scalar,
    const HALF: u32,
    const K: u32,
    const C: usize,
>(
    a: Global<E>,
    b: Global<F>,
    metadata: Global<u32>,
    c: Global<T>,
) {
    let left: Tile<E, Shape2<128, HALF>, Swizzle128> = shared();
    let right: Tile<F, Shape2<64, K>, Swizzle128> = shared();
    let t = thread_idx().x;
    for i in (t..128 * HALF).step_by(128) {
        left.set([i / HALF, i % HALF], a.get(i));
    }
    for i in (t..64 * K).step_by(128) {
        right.set([i / K, i % K], b.get(i));
    }
    let mut places = [0u32; C];
    for i in unroll(0..C) {
        places[i] = metadata.get(i as u32 * 128 + t);
    }
    fence_proxy_async();
    sync_threads();
    let mut sum = Accumulator::<T, 128, 64>::zero();
    let there = Fragment::<E, 128, HALF>::load(left, [0, 0]);
    sum.mma(there.sparse(places), right, ()).wait();
    for i in unroll(0..sum.len()) {
        let at = sum.at(i);
        c.set(at[0] * 64 + at[1], sum[i]);
    }
}

fn check_sparse<E, F, T, const HALF: u32, const K: u32, const C: usize>(device: &Device) -> anyhow::Result<()>
where
    E: Integral + MatrixElement,
    F: Integral + Multiply<E, T>,
    T: Integral + AccumulatorElement,
    mma_sparse_loaded::Instance<E, F, T, HALF, K, C>: mma_sparse_loaded::Compiled,
{
    let k = K as usize;
    let (a, bits) = sparse::<E>(65, 128, k);
    let b = inputs::<F>(67, 64 * k);
    let there = compressed::<E>(&a, &bits);
    let left = device.tensor(&scalars::<E>(&there), [there.len()])?;
    let right = device.tensor(&scalars::<F>(&b), [b.len()])?;
    let words = registers::<E>(&bits, 128, C / 2);
    let metadata = device.tensor(&words, [words.len()])?;
    let mut c = device.filled_bytes([128 * 64], 0xab)?;
    mma_sparse_loaded::launch::<E, F, T, HALF, K, C>(device, 1, &left, &right, &metadata, &mut c)?;
    same("the product", &c.to_vec()?, &scalars::<T>(&product(&a, &b, k)))
}
