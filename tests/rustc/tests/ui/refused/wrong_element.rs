//! A tensor of other elements than the kernel's, and one of another rank.

use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
fn wrong_element(src: TensorMap<Tile<f16, Shape2<8, 64>>>, out: Global<f16>) {
    let tile: Tile<f16, Shape2<8, 64>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
        full.wait(0);
        out.set(0, tile.get([0, 0]));
    }
}

fn element(device: &Device, src: &DeviceTensor<f32, 2>, out: &mut DeviceTensor<f16, 1>) -> Result<(), Error> {
    wrong_element::launch(device, 1, src, out)
}

fn rank(device: &Device, src: &DeviceTensor<f16, 3>, out: &mut DeviceTensor<f16, 1>) -> Result<(), Error> {
    wrong_element::launch(device, 1, src, out)
}

fn main() {}
