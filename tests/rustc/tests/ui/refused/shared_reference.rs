//! A tensor that the kernel writes is passed as `&`.

use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
fn shared_reference(src: TensorMap<Tile<f32, Shape2<8, 32>>>, dst: TensorMap<Tile<f32, Shape2<8, 32>>>) {
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
        full.wait(0);
        dst.store([0, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn launch(device: &Device, src: &DeviceTensor<f32, 2>, dst: &DeviceTensor<f32, 2>) -> Result<(), Error> {
    shared_reference::launch(device, 1, src, dst)
}

fn main() {}
