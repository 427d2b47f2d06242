//! mbarriers: their lifetimes, and phases that complete too early.

/// Others may still be in the wait.
#[tma_kernel(threads = 64)]
fn invalidated_beside_a_wait() {
    let met: Barrier = shared();
    if thread_idx().x == 0 { met.init(64); }
    sync_threads();
    met.arrive();
    met.wait(0);
    if thread_idx().x == 0 { met.invalidate(); }
}

/// Nothing orders the invalidation before the initialisation by another thread.
#[tma_kernel(threads = 64)]
fn invalidated_and_initialised_by_two() {
    let met: Barrier = shared();
    if thread_idx().x == 0 { met.init(1); met.invalidate(); }
    if thread_idx().x == 32 { met.init(2); }
    sync_threads();
    if thread_idx().x < 2 { met.arrive(); }
    met.wait(0);
}

/// Bytes are announced after the arrival: the phase completes without them.
#[tma_kernel(threads = 64)]
fn bytes_after_the_arrival(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    if thread_idx().x == 0 {
        full.expect_tx(tile.bytes());
        src.load(tile, [0, 0], full);
    }
    if thread_idx().x == 32 { full.arrive(); }
    full.wait(0);
    out.set(thread_idx().x, tile.get([0, lane_idx()]));
}

/// A ring in which both arrivals may come before the bytes are announced.
#[tma_kernel(threads = 64)]
fn a_ring_with_arrivals_before_bytes(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(2); fence_barrier_init(); }
    sync_threads();
    let mut phase = Phase::new();
    for k in 0..tiles {
        if thread_idx().x == 0 {
            full.arrive();
            full.expect_tx(tile.bytes());
            src.load(tile, [k, 0], full);
        }
        if thread_idx().x == 32 { full.arrive(); }
        full.wait_next(&mut phase);
        out.set(k * 64 + thread_idx().x, tile.get([0, lane_idx()]));
        sync_threads();
    }
}

/// Blocks 2 and 3 do not exist.
#[tma_kernel(threads = 64, cluster = 2)]
fn multicast_to_blocks_beyond(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if thread_idx().x == 0 && cluster_rank() == 0 {
        src.load_multicast(tile, [0, 0], full, 0b11 | 0b1000 << cluster_rank());
    }
    full.wait(0);
    out.set(thread_idx().x, tile.get([0, lane_idx()]));
    sync_cluster();
}

/// One warpgroup may take the registers that another's later decrease needs.
#[tma_kernel(threads = 384, max_registers = 168)]
fn registers_by_luck() {
    let done: Barrier = shared();
    if thread_idx().x == 0 { done.init(128); }
    sync_threads();
    if warpgroup_idx() == 0 {
        setmaxnreg_dec::<104>();
        done.wait(0);
        setmaxnreg_dec::<24>();
    } else if warpgroup_idx() == 1 {
        setmaxnreg_inc::<232>();
        done.arrive();
    } else {
        setmaxnreg_inc::<232>();
    }
}
