//! Casts of signed integers.

use tma_runtime::prelude::*;

/// `i8` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_i8(from: Global<i8>, to: Global<u64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < from.len() {
        let x = from.get(i);
        let bits = [
            cast::<i8>(x) as u64,
            x as u8 as u64,
            x as i16 as u64,
            x as u16 as u64,
            x as i32 as u64,
            x as u32 as u64,
            x as i64 as u64,
            x as u64,
            x as usize as u64,
            (x as f32).to_bits() as u64,
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

/// `i16` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_i16(from: Global<i16>, to: Global<u64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < from.len() {
        let x = from.get(i);
        let bits = [
            x as i8 as u64,
            x as u8 as u64,
            cast::<i16>(x) as u64,
            x as u16 as u64,
            x as i32 as u64,
            x as u32 as u64,
            x as i64 as u64,
            x as u64,
            x as usize as u64,
            (x as f32).to_bits() as u64,
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

/// `i32` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_i32(from: Global<i32>, to: Global<u64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < from.len() {
        let x = from.get(i);
        let bits = [
            x as i8 as u64,
            x as u8 as u64,
            x as i16 as u64,
            x as u16 as u64,
            cast::<i32>(x) as u64,
            x as u32 as u64,
            x as i64 as u64,
            x as u64,
            x as usize as u64,
            (x as f32).to_bits() as u64,
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

/// `i64` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_i64(from: Global<i64>, to: Global<u64>) {
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
            cast::<i64>(x) as u64,
            x as u64,
            x as usize as u64,
            (x as f32).to_bits() as u64,
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
