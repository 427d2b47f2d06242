//! Operands of a multiplication in flight cannot be used elsewhere.
use tma_runtime::prelude::*;

#[tma_kernel(protocol = trusted("a sketch"), threads = 128)]
pub fn releases_in_flight() {
    let ring: Pipeline<(Tile<f16, Shape2<64, 64>, Swizzle128>,), 4> = shared();
    let mut consumer = ring.consumer();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    let slot = consumer.wait();
    let flight = sum.mma(slot.0, slot.0, slot);
    slot.release();
    flight.wait();
}

#[tma_kernel(protocol = trusted("a sketch"), threads = 128)]
pub fn releases_the_next() {
    let ring: Pipeline<(Tile<f16, Shape2<64, 64>, Swizzle128>,), 4> = shared();
    let mut consumer = ring.consumer();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    let slot = consumer.wait();
    let mut flight = sum.mma(slot.0, slot.0, slot);
    let next = consumer.wait();
    let before = flight.mma(next.0, next.0, next);
    next.release();
    before.release();
    flight.wait().release();
}

#[tma_kernel(threads = 128)]
pub fn multiplies_registers_twice() {
    let values: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let scores = Accumulator::<f32, 64, 64>::zero();
    let weights = scores.pack::<f16>();
    let mut out = Accumulator::<f32, 64, 64>::zero();
    let mut flight = out.mma(weights, values.t(), ());
    flight.mma(weights, values.t(), ());
    flight.wait();
}

#[tma_kernel(threads = 128)]
pub fn waits_twice() {
    let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let mut sum = Accumulator::<f32, 64, 64>::zero();
    let flight = sum.mma(a, a, ());
    flight.wait();
    flight.wait();
}

fn main() {}
