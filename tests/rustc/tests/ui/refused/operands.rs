//! Operands of a multiplication that do not fit each other.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 128)]
pub fn another_depth() {
    let a: Tile<bf16, Shape2<64, 64>, Swizzle128> = shared();
    let b: Tile<bf16, Shape2<128, 32>, Swizzle64> = shared();
    let mut sum = Accumulator::<f32, 64, 128>::zero();
    sum.mma(a, b, ()).wait();
}

#[tma_kernel(threads = 128)]
pub fn other_columns() {
    let a: Tile<bf16, Shape2<64, 64>, Swizzle128> = shared();
    let b: Tile<bf16, Shape2<128, 64>, Swizzle128> = shared();
    let mut sum = Accumulator::<f32, 64, 256>::zero();
    sum.mma(a, b, ()).wait();
}

#[tma_kernel(threads = 128)]
pub fn other_elements() {
    let a: Tile<bf16, Shape2<64, 64>, Swizzle128> = shared();
    let b: Tile<e4m3, Shape2<128, 64>, Swizzle64> = shared();
    let mut sum = Accumulator::<f32, 64, 128>::zero();
    sum.mma(a, b, ()).wait();
}

#[tma_kernel(threads = 128)]
pub fn another_sum() {
    let a: Tile<bf16, Shape2<64, 64>, Swizzle128> = shared();
    let mut sum = Accumulator::<f16, 64, 64>::zero();
    sum.mma(a, a, ()).wait();
}

#[tma_kernel(threads = 128)]
pub fn not_transposed() {
    let a: Tile<bf16, Shape2<64, 32>, Swizzle64> = shared();
    let b: Tile<bf16, Shape2<32, 64>, Swizzle128> = shared();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    sum.mma(a, b, ()).wait();
}

#[tma_kernel(threads = 128)]
pub fn transposed_bytes() {
    let a: Tile<e4m3, Shape2<64, 64>, Swizzle64> = shared();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    sum.mma(a, a.t(), ()).wait();
}

#[tma_kernel(threads = 128)]
pub fn registers_on_the_right() {
    let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let other = Accumulator::<f32, 64, 64>::zero();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    sum.mma(a, other.pack::<f16>(), ()).wait();
}

#[tma_kernel(threads = 128)]
pub fn interleaved() {
    let a: Tile<f16, Shape3<4, 64, 8>, Interleave16> = shared();
    let b: Tile<f16, Shape2<64, 32>, Swizzle64> = shared();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    sum.mma(a, b, ()).wait();
}

#[tma_kernel(threads = 128)]
pub fn converted_integers() {
    let out: Tile<f32, Shape2<64, 64>, Swizzle128> = shared();
    let sum = Accumulator::<i32, 64, 64>::zero();
    sum.store(out);
}

fn main() {}
