//! Casts of every scalar to every other.

use tma_runtime::prelude::*;

/// Casts a number to every type, and writes the bits of each result.
#[tma_kernel(threads = 128, instances(
    T in [i8, u8, i16, u16, i32, u32, i64, u64, usize, f16, bf16, f32, f64, e4m3, e5m2],
))]
pub fn casts<T: Scalar + Number>(from: Global<T>, to: Global<u64>) {
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

/// Casts a `bool` to every integer.
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

/// Casts `f32` and `f64` to `tf32`, and the result to `f64`.
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
