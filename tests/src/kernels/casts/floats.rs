//! Casts of floats.

use tma_runtime::prelude::*;

/// `f16` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_f16(from: Global<f16>, to: Global<u64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < from.len() {
        let x = from.get(i);
        let bits = [
            cast::<i8>(x) as u64,
            cast::<u8>(x) as u64,
            cast::<i16>(x) as u64,
            cast::<u16>(x) as u64,
            cast::<i32>(x) as u64,
            cast::<u32>(x) as u64,
            cast::<i64>(x) as u64,
            cast::<u64>(x),
            cast::<usize>(x) as u64,
            cast::<f32>(x).to_bits() as u64,
            cast::<f64>(x).to_bits(),
            cast::<f16>(x).to_bits() as u64,
            cast::<bf16>(x).to_bits() as u64,
            cast::<e4m3>(x).to_bits() as u64,
            cast::<e5m2>(x).to_bits() as u64,
        ];
        for k in unroll(0..15) {
            to.set(i * 15 + k, bits[k as usize]);
        }
    }
}

/// `bf16` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_bf16(from: Global<bf16>, to: Global<u64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < from.len() {
        let x = from.get(i);
        let bits = [
            cast::<i8>(x) as u64,
            cast::<u8>(x) as u64,
            cast::<i16>(x) as u64,
            cast::<u16>(x) as u64,
            cast::<i32>(x) as u64,
            cast::<u32>(x) as u64,
            cast::<i64>(x) as u64,
            cast::<u64>(x),
            cast::<usize>(x) as u64,
            cast::<f32>(x).to_bits() as u64,
            cast::<f64>(x).to_bits(),
            cast::<f16>(x).to_bits() as u64,
            cast::<bf16>(x).to_bits() as u64,
            cast::<e4m3>(x).to_bits() as u64,
            cast::<e5m2>(x).to_bits() as u64,
        ];
        for k in unroll(0..15) {
            to.set(i * 15 + k, bits[k as usize]);
        }
    }
}

/// `f32` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_f32(from: Global<f32>, to: Global<u64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < from.len() {
        let x = from.get(i);
        let bits = [
            x as i8 as u64,
            x as u8 as u64,
            x as i16 as u64,
            x as u16 as u64,
            x as i32 as u64,
            x as u32 as u64,
            x as i64 as u64,
            x as u64,
            x as usize as u64,
            cast::<f32>(x).to_bits() as u64,
            (x as f64).to_bits(),
            cast::<f16>(x).to_bits() as u64,
            cast::<bf16>(x).to_bits() as u64,
            cast::<e4m3>(x).to_bits() as u64,
            cast::<e5m2>(x).to_bits() as u64,
        ];
        for k in unroll(0..15) {
            to.set(i * 15 + k, bits[k as usize]);
        }
    }
}

/// `f64` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_f64(from: Global<f64>, to: Global<u64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < from.len() {
        let x = from.get(i);
        let bits = [
            x as i8 as u64,
            x as u8 as u64,
            x as i16 as u64,
            x as u16 as u64,
            x as i32 as u64,
            x as u32 as u64,
            x as i64 as u64,
            x as u64,
            x as usize as u64,
            (x as f32).to_bits() as u64,
            cast::<f64>(x).to_bits(),
            cast::<f16>(x).to_bits() as u64,
            cast::<bf16>(x).to_bits() as u64,
            cast::<e4m3>(x).to_bits() as u64,
            cast::<e5m2>(x).to_bits() as u64,
        ];
        for k in unroll(0..15) {
            to.set(i * 15 + k, bits[k as usize]);
        }
    }
}

/// `e4m3` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_e4m3(from: Global<e4m3>, to: Global<u64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < from.len() {
        let x = from.get(i);
        let bits = [
            cast::<i8>(x) as u64,
            cast::<u8>(x) as u64,
            cast::<i16>(x) as u64,
            cast::<u16>(x) as u64,
            cast::<i32>(x) as u64,
            cast::<u32>(x) as u64,
            cast::<i64>(x) as u64,
            cast::<u64>(x),
            cast::<usize>(x) as u64,
            cast::<f32>(x).to_bits() as u64,
            cast::<f64>(x).to_bits(),
            cast::<f16>(x).to_bits() as u64,
            cast::<bf16>(x).to_bits() as u64,
            cast::<e4m3>(x).to_bits() as u64,
            cast::<e5m2>(x).to_bits() as u64,
        ];
        for k in unroll(0..15) {
            to.set(i * 15 + k, bits[k as usize]);
        }
    }
}

/// `e5m2` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_e5m2(from: Global<e5m2>, to: Global<u64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < from.len() {
        let x = from.get(i);
        let bits = [
            cast::<i8>(x) as u64,
            cast::<u8>(x) as u64,
            cast::<i16>(x) as u64,
            cast::<u16>(x) as u64,
            cast::<i32>(x) as u64,
            cast::<u32>(x) as u64,
            cast::<i64>(x) as u64,
            cast::<u64>(x),
            cast::<usize>(x) as u64,
            cast::<f32>(x).to_bits() as u64,
            cast::<f64>(x).to_bits(),
            cast::<f16>(x).to_bits() as u64,
            cast::<bf16>(x).to_bits() as u64,
            cast::<e4m3>(x).to_bits() as u64,
            cast::<e5m2>(x).to_bits() as u64,
        ];
        for k in unroll(0..15) {
            to.set(i * 15 + k, bits[k as usize]);
        }
    }
}

/// `f32` and `f64` as `tf32`, and that as `f64`.
#[tma_kernel(threads = 128)]
pub fn casts_tf32(single: Global<f32>, double: Global<f64>, bits: Global<u32>, back: Global<f64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < single.len() {
        let x = tf32::from_f32(single.get(i));
        bits.set(2 * i, x.to_bits());
        bits.set(2 * i + 1, cast::<tf32>(double.get(i)).to_bits());
        back.set(i, x.to_f64());
    }
}
