//! A kernel that breaks no rule, and its launch with all that a launcher takes.

use tma_runtime::prelude::*;

#[tma_kernel(threads = 128)]
fn scale(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>, factor: f32) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..256).step_by(128) {
        out.set(i, tile.get([i / 32, i % 32]) * factor);
    }
}

fn launch(device: &Device, src: &DeviceTensor<f32, 2>, out: &mut DeviceTensor<f32, 1>) -> Result<(), Error> {
    let stream = device.stream()?;
    scale::launch(device, 1, src, &mut *out, 2.0)?;
    scale::launch(&stream, (1, 1), src.view(), out.view_mut(), 2.0)
}

fn main() {
    _ = launch;
}
