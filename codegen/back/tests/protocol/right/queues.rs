//! Work that is taken from a queue, and counts that are unknown in advance.

/// Thread 0 takes the next tile for all.
#[tma_kernel(threads = 64)]
fn one_takes_for_all(queue: Global<u32>, out: Global<u32>, tiles: u32) {
    let next: SharedArray<u32, 1> = shared();
    loop {
        if thread_idx().x == 0 { next.set(0, queue.atomic_add(0, 1)); }
        sync_threads();
        let tile = next.get(0);
        sync_threads();
        if tile >= tiles { break; }
        out.set(tile * 64 + thread_idx().x, tile);
    }
}

/// The number is taken one iteration ahead, in alternate words: one barrier each is enough.
#[tma_kernel(threads = 64)]
fn a_turn_ahead(queue: Global<u32>, out: Global<u32>, tiles: u32) {
    let next: Stages<SharedArray<u32, 1>, 2> = shared();
    if thread_idx().x == 0 { next[0].set(0, queue.atomic_add(0, 1)); }
    sync_threads();
    let mut turn = 0;
    loop {
        let tile = next[turn % 2].get(0);
        if tile >= tiles { break; }
        if thread_idx().x == 0 { next[1 - turn % 2].set(0, queue.atomic_add(0, 1)); }
        out.set(tile * 64 + thread_idx().x, tile);
        sync_threads();
        turn += 1;
    }
}

/// Each warp takes tiles by itself, and no other warp waits for it.
#[tma_kernel(threads = 64)]
fn a_queue_per_warp(queue: Global<u32>, out: Global<u32>, tiles: u32) {
    let row: Stages<SharedArray<u32, 32>, 2> = shared();
    loop {
        let mut tile = 0;
        if lane_idx() == 0 { tile = queue.atomic_add(0, 1); }
        tile = shuffle_idx(tile, 0);
        if tile >= tiles { break; }
        row[warp_idx()].set(lane_idx(), tile);
        sync_warp();
        out.set(tile * 32 + lane_idx(), row[warp_idx()].get(31 - lane_idx()));
        sync_warp();
    }
}

/// A producer takes tiles from the queue, and passes them to the consumers through a ring. A last
/// number says that there are no more.
#[tma_kernel(threads = 64)]
fn a_queue_through_a_ring(queue: Global<u32>, out: Global<u32>, tiles: u32) {
    let number: Stages<SharedArray<u32, 1>, 2> = shared();
    let full: Stages<Barrier, 2> = shared();
    let empty: Stages<Barrier, 2> = shared();
    if thread_idx().x == 0 {
        for stage in 0..2 {
            full[stage].init(1);
            empty[stage].init(32);
        }
        fence_barrier_init();
    }
    sync_threads();
    let mut turn = 0;
    if warp_idx() == 0 {
        if lane_idx() == 0 {
            loop {
                empty[turn % 2].wait(turn / 2 % 2 ^ 1);
                let tile = queue.atomic_add(0, 1);
                number[turn % 2].set(0, tile);
                full[turn % 2].arrive();
                if tile >= tiles { break; }
                turn += 1;
            }
        }
    } else {
        loop {
            full[turn % 2].wait(turn / 2 % 2);
            let tile = number[turn % 2].get(0);
            empty[turn % 2].arrive();
            if tile >= tiles { break; }
            out.set(tile * 32 + lane_idx(), tile);
            turn += 1;
        }
    }
}

/// The lengths of rows are in memory, and both sides of a ring read them.
#[tma_kernel(threads = 64)]
fn rows_of_any_length(
    src: TensorMap<Tile<f32, Shape2<32, 32>>>,
    lens: Global<u32>,
    out: Global<f32>,
    rows: u32,
) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 2> = shared();
    if thread_idx().x == 0 { ring.init(1); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 1 {
        if elect_one() {
            let mut producer = ring.producer();
            for row in 0..rows {
                for k in 0..lens.get(row) {
                    let slot = producer.acquire();
                    src.load(slot.0, [row * 32, k * 32], slot.barrier());
                }
            }
        }
    } else {
        let mut consumer = ring.consumer();
        for row in 0..rows {
            for _ in 0..lens.get(row) {
                let slot = consumer.wait();
                out.set(row * 32 + lane_idx(), slot.0.get([0, lane_idx()]));
                sync_warp();
                if lane_idx() == 0 { slot.release(); }
            }
        }
    }
}

/// The end of a walk is in memory: a list whose last element refers to itself.
#[tma_kernel(threads = 64)]
fn a_walk(links: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 64> = shared();
    let mut at = block_idx().x;
    loop {
        row.set(thread_idx().x, at);
        sync_threads();
        out.set(thread_idx().x, row.get(63 - thread_idx().x));
        sync_threads();
        let next = links.get(at);
        if next == at { break; }
        at = next;
    }
}

/// A counter in shared memory that one thread counts down between barriers.
#[tma_kernel(threads = 64)]
fn counted_down(out: Global<u32>, turns: u32) {
    let left: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { left.set(0, turns); }
    sync_threads();
    loop {
        let now = left.get(0);
        sync_threads();
        if now == 0 { break; }
        out.set(thread_idx().x, now);
        if thread_idx().x == 0 { left.set(0, now - 1); }
        sync_threads();
    }
}

/// A warp reads the ends of the groups, and both sides search them for the group of a tile.
#[tma_kernel(threads = 96)]
fn searched_groups(ends: Global<u32>, out: Global<u32>, groups: u32) {
    let known: SharedArray<u32, 64> = shared();
    let ready: Barrier = shared();
    let number: Stages<SharedArray<u32, 1>, 2> = shared();
    let full: Stages<Barrier, 2> = shared();
    let empty: Stages<Barrier, 2> = shared();
    if thread_idx().x == 0 {
        ready.init(32);
        for stage in 0..2 {
            full[stage].init(1);
            empty[stage].init(1);
        }
    }
    sync_threads();
    if warp_idx() == 0 {
        for group in (lane_idx()..groups).step_by(32) {
            known.set(group, ends.get(group));
        }
        ready.arrive();
    }
    if thread_idx().x == 32 {
        ready.wait(0);
        let mut group = 0;
        let mut tile = block_idx().x;
        let mut turn = 0;
        loop {
            while group < groups {
                if tile < known.get(group) { break; }
                group += 1;
            }
            if group == groups { break; }
            empty[turn % 2].wait((turn / 2 & 1) ^ 1);
            number[turn % 2].set(0, tile);
            full[turn % 2].arrive();
            turn += 1;
            tile += grid_dim().x;
        }
    }
    if thread_idx().x == 64 {
        ready.wait(0);
        let mut group = 0;
        let mut tile = block_idx().x;
        let mut turn = 0;
        loop {
            while group < groups {
                if tile < known.get(group) { break; }
                group += 1;
            }
            if group == groups { break; }
            full[turn % 2].wait(turn / 2 & 1);
            out.set(tile, number[turn % 2].get(0));
            empty[turn % 2].arrive();
            turn += 1;
            tile += grid_dim().x;
        }
    }
}
