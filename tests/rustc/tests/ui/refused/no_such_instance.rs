//! Generics that no instance has, and a generic function that does not ask for one.

use tma_runtime::prelude::*;

#[tma_kernel(threads = 32, instances(halves = <f16, 64>, floats = <f32, 32>))]
fn no_such_instance<T: TileElement, const COLS: u32>(src: TensorMap<Tile<T, Shape2<8, COLS>>>, out: Global<T>) {
    let tile: Tile<T, Shape2<8, COLS>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, src.block_tile(), full);
        full.wait(0);
        out.set(0, tile.get([0, 0]));
    }
}

fn width(device: &Device, src: &DeviceTensor<f16, 2>, out: &mut DeviceTensor<f16, 1>) -> Result<(), Error> {
    no_such_instance::launch::<f16, 32>(device, 1, src, out)
}

fn generic<T: TileElement>(src: &DeviceTensor<T, 2>, out: &mut DeviceTensor<T, 1>) -> Result<(), Error> {
    no_such_instance::launch::<T, 64>(src.device(), 1, src, out)
}

fn grid() -> Grid {
    no_such_instance::tiles_of_src::<u8, 64>([8, 64])
}

fn main() {}
