//! Casts of `bool` and of unsigned integers.

use tma_runtime::prelude::*;

/// `bool` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_bool(from: Global<bool>, to: Global<u64>) {
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
        ];
        for k in unroll(0..9) {
            to.set(i * 9 + k, bits[k as usize]);
        }
    }
}

/// `u8` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_u8(from: Global<u8>, to: Global<u64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < from.len() {
        let x = from.get(i);
        let bits = [
            x as i8 as u64,
            cast::<u8>(x) as u64,
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

/// `u16` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_u16(from: Global<u16>, to: Global<u64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < from.len() {
        let x = from.get(i);
        let bits = [
            x as i8 as u64,
            x as u8 as u64,
            x as i16 as u64,
            cast::<u16>(x) as u64,
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

/// `u32` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_u32(from: Global<u32>, to: Global<u64>) {
    let i = block_idx().x as u64 * 128 + thread_idx().x as u64;
    if i < from.len() {
        let x = from.get(i);
        let bits = [
            x as i8 as u64,
            x as u8 as u64,
            x as i16 as u64,
            x as u16 as u64,
            x as i32 as u64,
            cast::<u32>(x) as u64,
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

/// `u64` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_u64(from: Global<u64>, to: Global<u64>) {
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
            cast::<u64>(x),
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

/// `usize` as every other type.
#[tma_kernel(threads = 128)]
pub fn casts_usize(from: Global<usize>, to: Global<u64>) {
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
            cast::<usize>(x) as u64,
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
