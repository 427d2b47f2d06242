//! Uses of an accumulator while a multiplication is in flight.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 128)]
pub fn reads(out: Global<f32>) {
    let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    let flight = sum.mma(a, a, ());
    out.set(thread_idx().x, sum[0]);
    flight.wait();
}

#[tma_kernel(threads = 128)]
pub fn writes() {
    let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    let flight = sum.mma(a, a, ());
    sum[0] = 1.0;
    flight.wait();
}

#[tma_kernel(threads = 128)]
pub fn begins_again() {
    let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    let flight = sum.mma(a, a, ());
    sum = Accumulator::zero();
    flight.wait();
    sum.mma(a, a, ()).wait();
}

#[tma_kernel(threads = 128)]
pub fn starts_twice() {
    let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    let first = sum.mma(a, a, ());
    let second = sum.mma(a, a, ());
    first.wait();
    second.wait();
}

#[tma_kernel(threads = 128)]
pub fn stores() {
    let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let out: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    let flight = sum.mma(a, a, ());
    sum.store(out);
    flight.wait();
}

fn main() {}
