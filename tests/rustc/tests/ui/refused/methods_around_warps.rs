//! Traits whose methods rustc finds before those of the accumulators of warps.
#![allow(dead_code, unused_mut)]

use tma_runtime::prelude::*;

type A = Tile<f16, Shape2<16, 16>, Swizzle32>;
type Left = WarpLeft<f16, 16, 16>;
type Right = WarpRight<f16, 16, 16>;

trait Sums: Sized {
    fn mma_sync(self, _a: Left, _b: Right) {}
    fn len(self) -> usize {
        7
    }
    fn row(self, _i: usize) -> usize {
        7
    }
    fn at(self, _i: usize) -> [u32; 2] {
        [7, 7]
    }
    fn store(self, _tile: A, _at: [u32; 2]) {}
    fn store_to(self, _matrix: GlobalMatrix<f32>, _at: [u32; 2]) {}
    fn pack<E>(self) -> Left {
        loop {}
    }
    fn row_max(self) -> WarpRows<f32, 16> {
        loop {}
    }
    fn row_sum(self) -> WarpRows<f32, 16> {
        loop {}
    }
}

impl Sums for WarpAccumulator<f32, 16, 16> {}

trait Counts: Sized {
    fn mma_sync_saturating(self, _a: WarpLeft<u8, 16, 32>, _b: WarpRight<u8, 16, 32>) {}
    fn mma_sync_and_popc(self, _a: WarpLeft<u8, 16, 32>, _b: WarpRight<u8, 16, 32>) {}
    fn mma_sync_xor_popc(self, _a: WarpLeft<u8, 16, 32>, _b: WarpRight<u8, 16, 32>) {}
}

impl Counts for WarpAccumulator<i32, 16, 16> {}

trait Others {
    fn len(self) -> usize;
}

impl Others for WarpRows<f32, 16> {
    fn len(self) -> usize {
        7
    }
}

#[tma_kernel(threads = 32)]
pub fn multiplies() {
    let a: Tile<f16, Shape2<16, 16>, Swizzle32> = shared();
    let bytes: Tile<u8, Shape2<16, 32>, Swizzle32> = shared();
    let mut sum = WarpAccumulator::<f32, 16, 16>::zero();
    sum.mma_sync(WarpLeft::<f16, 16, 16>::load(a, [0, 0]), WarpRight::<f16, 16, 16>::load(a, [0, 0]));
    let left = WarpLeft::<u8, 16, 32>::load(bytes, [0, 0]);
    let right = WarpRight::<u8, 16, 32>::load(bytes, [0, 0]);
    let mut one = WarpAccumulator::<i32, 16, 16>::zero();
    one.mma_sync_saturating(left, right);
    let mut two = WarpAccumulator::<i32, 16, 16>::zero();
    two.mma_sync_and_popc(left, right);
    let mut three = WarpAccumulator::<i32, 16, 16>::zero();
    three.mma_sync_xor_popc(left, right);
}

#[tma_kernel(threads = 32)]
pub fn counts(out: Global<u32>) {
    let one = WarpAccumulator::<f32, 16, 16>::zero();
    out.set(0, cast::<u32>(one.len()));
    let two = WarpAccumulator::<f32, 16, 16>::zero();
    out.set(0, cast::<u32>(two.row(1)));
    let three = WarpAccumulator::<f32, 16, 16>::zero();
    out.set(0, three.at(1)[0]);
    let rows = WarpRows::<f32, 16>::filled(0.0);
    out.set(0, cast::<u32>(rows.len()));
}

#[tma_kernel(threads = 32)]
pub fn stores(out: Global<f32>) {
    let a: Tile<f16, Shape2<16, 16>, Swizzle32> = shared();
    let one = WarpAccumulator::<f32, 16, 16>::zero();
    one.store(a, [0, 0]);
    let two = WarpAccumulator::<f32, 16, 16>::zero();
    two.store_to(out.matrix(0, [16, 16], 16), [0, 0]);
    let three = WarpAccumulator::<f32, 16, 16>::zero();
    let _weights = three.pack::<f16>();
    let four = WarpAccumulator::<f32, 16, 16>::zero();
    out.set(0, four.row_max()[0]);
    let five = WarpAccumulator::<f32, 16, 16>::zero();
    out.set(0, five.row_sum()[0]);
}

trait Fragments: Sized {
    fn unpack(self) -> Accumulator<f32, 64, 64> {
        loop {}
    }
}

impl Fragments for Fragment<f16, 64, 64> {}

#[tma_kernel(threads = 128)]
pub fn unpacks(out: Global<f32>) {
    let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let weights = Fragment::<f16, 64, 64>::load(a, [0, 0]);
    out.set(0, weights.unpack()[0]);
}

fn main() {}
