// The load may precede the initialisation of its barrier, since no fence makes that visible.
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
pub fn k(
    src: TensorMap<Tile<u32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<32, 32>>>,
    out: Global<u32>,
) {
    let tile: Tile<u32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
        full.wait(0);
    }
}
