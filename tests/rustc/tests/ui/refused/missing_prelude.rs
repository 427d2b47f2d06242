//! One error for a kernel, and one for a module, though no word is known in either.

#[tma_runtime::tma_kernel(threads = 32)]
pub fn alone(src: TensorMap<Tile<f16, Shape2<8, 64>>>, out: Global<u32>) {
    let tile: Tile<f16, Shape2<8, 64>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    sync_threads();
    full.wait(0);
    printf!("{}\n", tile.get([0, 0]).to_f32());
    out.set(0, 1);
}

#[tma_runtime::tma_module]
mod module {
    type Row = SharedArray<u32, 32>;

    #[tma_device]
    fn last(row: Row) -> u32 {
        sync_threads();
        row.get(31 - thread_idx().x)
    }

    #[tma_kernel(threads = 32)]
    pub fn first_of_module(out: Global<u32>) {
        let row: Row = shared();
        row.set(thread_idx().x, 1);
        out.set(0, last(row));
    }

    #[tma_kernel(threads = 32)]
    pub fn second_of_module(out: Global<u32>) {
        sync_threads();
        out.set(thread_idx().x, 1);
    }
}

fn main() {}
