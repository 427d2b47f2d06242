//! The copy engine between blocks: its writes are complete before they are released, and its reads
//! are acquired before a proxy fence.

/// A row that the copy engine stored is read by the block with the next ticket.
#[tma_kernel(threads = 32)]
fn stored_and_read(tickets: Global<u32>, rows: Global<u32>, flags: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let ticket: SharedArray<u32, 1> = shared();
    if lane_idx() == 0 {
        ticket.set(0, tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device));
    }
    sync_threads();
    let mine = ticket.get(0);
    row.set(lane_idx(), mine + lane_idx());
    fence_proxy_async();
    sync_threads();
    if lane_idx() == 0 {
        rows.bulk_store(mine as u64 * 32, row, 0, 32);
        bulk_commit_group();
        bulk_wait_group::<0>();
        flags.store(mine, 1, Order::Release, Scope::Device);
    }
    if mine > 0 {
        while flags.load(mine - 1, Order::Acquire, Scope::Device) == 0 {}
        out.set(mine * 32 + lane_idx(), rows.get((mine - 1) * 32 + lane_idx()));
    }
}

/// A row that threads wrote is loaded by the block with the next ticket: acquire, fence, copy.
#[tma_kernel(threads = 32)]
fn written_and_loaded(tickets: Global<u32>, rows: Global<u32>, flags: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let ticket: SharedArray<u32, 1> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 {
        full.init(1);
        fence_barrier_init();
        ticket.set(0, tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device));
    }
    sync_threads();
    let mine = ticket.get(0);
    rows.set(mine * 32 + lane_idx(), mine + lane_idx());
    sync_threads();
    if lane_idx() == 0 {
        flags.store(mine, 1, Order::Release, Scope::Device);
    }
    if mine > 0 {
        if lane_idx() == 0 {
            while flags.load(mine - 1, Order::Acquire, Scope::Device) == 0 {}
            fence_proxy_async_global();
            full.arrive_expect_tx(128);
            rows.bulk_load(row, 0, 32, (mine as u64 - 1) * 32, full);
        }
        full.wait(0);
        out.set(mine * 32 + lane_idx(), row.get(31 - lane_idx()));
    }
}

/// A tile goes through a tensor from block to block, by the copy engine on both sides.
#[tma_kernel(threads = 32)]
fn tiles_from_block_to_block(
    tickets: Global<u32>,
    map: TensorMap<Tile<u32, Shape2<8, 32>>>,
    flags: Global<u32>,
    out: Global<u32>,
) {
    let sent: Tile<u32, Shape2<8, 32>> = shared();
    let got: Tile<u32, Shape2<8, 32>> = shared();
    let ticket: SharedArray<u32, 1> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 {
        full.init(1);
        fence_barrier_init();
        ticket.set(0, tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device));
    }
    sync_threads();
    let mine = ticket.get(0);
    for row in 0..8 {
        sent.set([row, lane_idx()], mine * 8 + row);
    }
    fence_proxy_async();
    sync_threads();
    if lane_idx() == 0 {
        map.store([mine * 8, 0], sent);
        bulk_commit_group();
        bulk_wait_group::<0>();
        flags.fetch_add(mine, 1, Order::Release, Scope::Device);
        if mine > 0 {
            while flags.load(mine - 1, Order::Acquire, Scope::Device) == 0 {}
            fence_proxy_async_global();
            full.arrive_expect_tx(got.bytes());
            map.load(got, [mine * 8 - 8, 0], full);
        }
    }
    if mine > 0 {
        full.wait(0);
        out.set(mine * 32 + lane_idx(), got.get([7, lane_idx()]));
    }
}

/// All blocks reduce into one row by the copy engine, and the last one reads it.
#[tma_kernel(threads = 32)]
fn reduced_by_all(sums: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let last: SharedArray<bool, 1> = shared();
    row.set(lane_idx(), block_idx().x + lane_idx());
    fence_proxy_async();
    sync_threads();
    if elect_one() {
        sums.bulk_reduce_add(0, row, 0, 32);
        bulk_commit_group();
        bulk_wait_group::<0>();
        let before = count.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        last.set(0, before + 1 == grid_dim().x);
    }
    sync_threads();
    if last.get(0) {
        out.set(lane_idx(), sums.get(lane_idx()));
    }
}

/// The maximum of all tiles through a tensor map; the last block loads it by the same map.
#[tma_kernel(threads = 64)]
fn greatest_of_all_tiles(best: TensorMap<Tile<u32, Shape1<64>>>, count: Global<u32>, out: Global<u32>) {
    let mine: Tile<u32, Shape1<64>> = shared();
    let of_all: Tile<u32, Shape1<64>> = shared();
    let is_last: SharedArray<bool, 1> = shared();
    let full: Barrier = shared();
    mine.set([thread_idx().x], block_idx().x ^ thread_idx().x);
    fence_proxy_async();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
    }
    sync_threads();
    if thread_idx().x == 0 {
        best.reduce_max([0], mine);
        bulk_commit_group();
        bulk_wait_group::<0>();
        fence();
        let before = count.fetch_add(0, 1, Order::Relaxed, Scope::Device);
        fence();
        is_last.set(0, before + 1 == grid_dim().x);
        if before + 1 == grid_dim().x {
            fence_proxy_async_global();
            full.arrive_expect_tx(of_all.bytes());
            best.load(of_all, [0], full);
        }
    }
    sync_threads();
    if is_last.get(0) {
        full.wait(0);
        out.set(thread_idx().x, of_all.get([thread_idx().x]));
    }
}

/// Rows are exchanged by copies in both directions, around the grid's barrier.
#[tma_kernel(threads = 32)]
fn copies_around_a_grid_barrier(counter: Global<u32>, rows: Global<u32>, out: Global<u32>) {
    let sent: SharedArray<u32, 32> = shared();
    let got: SharedArray<u32, 32> = shared();
    let full: Barrier = shared();
    let block = block_idx().x as u64;
    sent.set(lane_idx(), block_idx().x * 32 + lane_idx());
    fence_proxy_async();
    sync_threads();
    if lane_idx() == 0 {
        full.init(1);
        fence_barrier_init();
        rows.bulk_store(block * 32, sent, 0, 32);
        bulk_commit_group();
        bulk_wait_group::<0>();
    }
    sync_grid(counter);
    if lane_idx() == 0 {
        fence_proxy_async_global();
        full.arrive_expect_tx(128);
        rows.bulk_load(got, 0, 32, (block + 1) % grid_dim().x as u64 * 32, full);
    }
    full.wait(0);
    out.set(block_idx().x * 32 + lane_idx(), got.get(31 - lane_idx()));
}

/// One block of a cluster loads, for both, the row that the other one wrote.
#[tma_kernel(threads = 32, cluster = 2)]
fn multicast_of_the_other_row(rows: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let full: Barrier = shared();
    let first = cluster_idx().x * 32;
    if lane_idx() == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(128);
    }
    if cluster_rank() == 1 {
        rows.set(first + lane_idx(), lane_idx() * 3);
    }
    sync_cluster();
    if cluster_rank() == 0 && lane_idx() == 0 {
        fence_proxy_async_global();
        rows.bulk_load_multicast(row, 0, 32, first as u64, full, 3);
    }
    full.wait(0);
    out.set(block_idx().x * 32 + lane_idx(), row.get(31 - lane_idx()));
    sync_cluster();
}

/// Rows are stored from two buffers; each is announced later, when its store is complete.
#[tma_kernel(threads = 32)]
fn announced_one_row_later(tickets: Global<u32>, rows: Global<u32>, done: Global<u32>, out: Global<u32>) {
    let buffers: Stages<SharedArray<u32, 32>, 2> = shared();
    let mut ticket = 0;
    if lane_idx() == 0 {
        ticket = tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device);
    }
    ticket = shuffle_idx(ticket, 0);
    for row in 0..4 {
        if lane_idx() == 0 {
            bulk_wait_group::<1>();
            if row > 1 {
                done.store(ticket, row - 1, Order::Release, Scope::Device);
            }
        }
        sync_warp();
        buffers[row % 2].set(lane_idx(), ticket * 4 + row);
        fence_proxy_async();
        sync_warp();
        if lane_idx() == 0 {
            rows.bulk_store((ticket * 4 + row) as u64 * 32, buffers[row % 2], 0, 32);
            bulk_commit_group();
        }
    }
    if lane_idx() == 0 {
        bulk_wait_group::<0>();
        done.store(ticket, 4, Order::Release, Scope::Device);
    }
    if ticket > 0 {
        for row in 0..4 {
            while done.load(ticket - 1, Order::Acquire, Scope::Device) <= row {}
            out.set((ticket * 4 + row) * 32 + lane_idx(), rows.get((ticket * 4 - 4 + row) * 32 + lane_idx()));
        }
    }
}

/// All lanes add vectors; strong loads of the last block see the additions of all counted blocks.
#[tma_kernel(threads = 32)]
fn vectors_added_by_all(sums: Global<f32>, count: Global<u32>, out: Global<f32>) {
    sums.add_vec(lane_idx() * 4, [1.0, 2.0, 3.0, 4.0], Order::Relaxed, Scope::Device);
    sync_warp();
    if lane_idx() == 0 {
        let before = count.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        if before + 1 == grid_dim().x {
            for i in 0..128 {
                out.set(i, sums.load(i, Order::Relaxed, Scope::Device));
            }
        }
    }
}
