//! Values that cannot be printed as a tile.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 128)]
pub fn sums() {
    let sum = Accumulator::<f32, 64, 64>::zero();
    print_tile(sum);
}

#[tma_kernel(threads = 32)]
pub fn an_array() {
    let numbers: SharedArray<u32, 32> = shared();
    print_tile(numbers);
}

fn main() {}
