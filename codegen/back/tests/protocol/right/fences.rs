//! Proxy fences by the thread that starts the copy, after the barrier. They take effect in that
//! thread, and compose with the synchronisation before them (PTX ISA, "membar, fence").

/// Written by all threads, fenced by the one that stores.
#[tma_kernel(threads = 64)]
fn fenced_before_the_store(dst: TensorMap<Tile<f32, Shape2<2, 32>>>) {
    let tile: Tile<f32, Shape2<2, 32>> = shared();
    tile.set([warp_idx(), lane_idx()], 1.0);
    sync_threads();
    if thread_idx().x == 0 {
        fence_proxy_async();
        dst.store([0, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Read by all threads, fenced by the one that loads again, which a barrier orders after the reads.
#[tma_kernel(threads = 64)]
fn fenced_before_the_refill(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    for k in 0..tiles {
        if thread_idx().x == 0 {
            fence_proxy_async();
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [k * 32, 0], full);
        }
        full.wait(k % 2);
        out.set(thread_idx().x, tile.get([warp_idx(), lane_idx()]));
        sync_threads();
    }
}

/// The same, ordered after the reads by an mbarrier.
#[tma_kernel(threads = 64)]
fn fenced_by_the_producer(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    let empty: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); empty.init(32); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        if lane_idx() == 0 {
            for k in 0..tiles {
                empty.wait((k % 2) ^ 1);
                fence_proxy_async();
                full.arrive_expect_tx(tile.bytes());
                src.load(tile, [k * 32, 0], full);
            }
        }
    } else {
        for k in 0..tiles {
            full.wait(k % 2);
            out.set(lane_idx(), tile.get([0, lane_idx()]));
            empty.arrive();
        }
    }
}

/// The read value goes to shared memory, and from there back: the copy cannot overtake the read.
#[tma_kernel(threads = 32)]
fn in_place(x: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let first = block_idx().x * 32;
    let more = x.get(first + lane_idx()) + 1;
    row.set(lane_idx(), more);
    fence_proxy_async();
    sync_warp();
    if lane_idx() == 0 {
        x.bulk_store(first, row, 0, 32);
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
}

/// The proxy fence orders the second store after the reads of the first.
#[tma_kernel(threads = 32)]
fn a_row_read_between_two_stores(x: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let first = block_idx().x * 32;
    row.set(lane_idx(), 1);
    fence_proxy_async();
    sync_warp();
    if lane_idx() == 0 {
        x.bulk_store(first, row, 0, 32);
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
    sync_warp();
    let read = x.get(first + lane_idx());
    fence_proxy_async_global();
    row.set(lane_idx(), 2);
    fence_proxy_async();
    sync_warp();
    if lane_idx() == 0 {
        x.bulk_store(first, row, 0, 32);
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
    out.set(first + lane_idx(), read);
}
