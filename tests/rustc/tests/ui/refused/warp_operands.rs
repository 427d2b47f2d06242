//! Operands of a warp's multiplication that do not fit each other.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
pub fn another_depth() {
    let a: Tile<f16, Shape2<16, 64>, Swizzle128> = shared();
    let mut sum = WarpAccumulator::<f32, 16, 16>::zero();
    sum.mma_sync(WarpLeft::<f16, 16, 32>::load(a, [0, 0]), WarpRight::<f16, 16, 16>::load(a, [0, 0]));
}

#[tma_kernel(threads = 32)]
pub fn other_columns() {
    let a: Tile<f16, Shape2<16, 64>, Swizzle128> = shared();
    let mut sum = WarpAccumulator::<f32, 16, 16>::zero();
    sum.mma_sync(WarpLeft::<f16, 16, 16>::load(a, [0, 0]), WarpRight::<f16, 8, 16>::load(a, [0, 0]));
}

#[tma_kernel(threads = 32)]
pub fn two_left_operands() {
    let a: Tile<f16, Shape2<16, 64>, Swizzle128> = shared();
    let mut sum = WarpAccumulator::<f32, 16, 16>::zero();
    sum.mma_sync(WarpLeft::<f16, 16, 16>::load(a, [0, 0]), WarpLeft::<f16, 16, 16>::load(a, [0, 0]));
}

#[tma_kernel(threads = 32)]
pub fn tiles() {
    let a: Tile<f16, Shape2<16, 64>, Swizzle128> = shared();
    let mut sum = WarpAccumulator::<f32, 16, 16>::zero();
    sum.mma_sync(a, a);
}

#[tma_kernel(threads = 32)]
pub fn other_elements() {
    let a: Tile<f16, Shape2<16, 64>, Swizzle128> = shared();
    let b: Tile<bf16, Shape2<16, 64>, Swizzle128> = shared();
    let mut sum = WarpAccumulator::<f32, 16, 16>::zero();
    sum.mma_sync(WarpLeft::<f16, 16, 16>::load(a, [0, 0]), WarpRight::<bf16, 16, 16>::load(b, [0, 0]));
}

#[tma_kernel(threads = 32)]
pub fn another_sum() {
    let a: Tile<bf16, Shape2<16, 64>, Swizzle128> = shared();
    let mut sum = WarpAccumulator::<f16, 16, 16>::zero();
    sum.mma_sync(WarpLeft::<bf16, 16, 16>::load(a, [0, 0]), WarpRight::<bf16, 16, 16>::load(a, [0, 0]));
}

#[tma_kernel(threads = 32)]
pub fn converted_on_the_way() {
    let a: Tile<f16, Shape2<16, 64>, Swizzle128> = shared();
    let left = WarpLeft::<bf16, 16, 16>::load(a, [0, 0]);
}

#[tma_kernel(threads = 32)]
pub fn transposed_bytes() {
    let a: Tile<e4m3, Shape2<32, 64>, Swizzle64> = shared();
    let left = WarpLeft::<e4m3, 16, 32>::load(a.t(), [0, 0]);
}

#[tma_kernel(threads = 32)]
pub fn an_operand_of_a_warpgroup() {
    let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let other = Accumulator::<f32, 64, 64>::zero();
    let mut sum = WarpAccumulator::<f32, 16, 16>::zero();
    sum.mma_sync(other.pack::<f16>(), WarpRight::<f16, 16, 16>::load(a, [0, 0]));
}

fn main() {}
