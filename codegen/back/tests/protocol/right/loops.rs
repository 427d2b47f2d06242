//! Loops of every kind around barriers.

/// A persistent loop over tiles, with a phase that goes on from tile to tile.
#[tma_kernel(threads = 64)]
fn persistent(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    let mut phase = Phase::new();
    let mut at = block_idx().x;
    while at < tiles {
        if thread_idx().x == 0 {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [at * 32, 0], full);
        }
        full.wait_next(&mut phase);
        out.set(at * 64 + thread_idx().x, tile.get([lane_idx(), 0]));
        fence_proxy_async();
        sync_threads();
        at += grid_dim().x;
    }
}

/// Nested loops, all of whose iterations count phases of one barrier.
#[tma_kernel(threads = 64)]
fn nested(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, rows: u32, columns: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    let mut parity = 0;
    for row in 0..rows {
        for column in 0..columns {
            if thread_idx().x == 32 {
                full.arrive_expect_tx(tile.bytes());
                src.load(tile, [row * 32, column * 32], full);
            }
            full.wait(parity);
            parity ^= 1;
            out.set(thread_idx().x, tile.get([lane_idx(), 1]));
            fence_proxy_async();
            sync_threads();
        }
    }
}

/// A loop that ends in the middle of an iteration, after the wait.
#[tma_kernel(threads = 32)]
fn left_in_the_middle(src: TensorMap<Tile<u32, Shape2<32, 32>>>, out: Global<u32>, most: u32) {
    let tile: Tile<u32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_warp();
    let mut turn = 0;
    loop {
        if lane_idx() == 0 {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [turn * 32, 0], full);
        }
        full.wait(turn & 1);
        out.set(turn * 32 + lane_idx(), tile.get([0, lane_idx()]));
        turn += 1;
        if turn >= most { break; }
        fence_proxy_async();
        sync_warp();
    }
}

/// Iterations that are skipped, by a `continue` that all threads take.
#[tma_kernel(threads = 64)]
fn some_turns(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, lens: Global<u32>, tiles: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    let mut phase = Phase::new();
    for k in 0..tiles {
        if lens.get(k) == 0 { continue; }
        if thread_idx().x == 0 {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [k * 32, 0], full);
        }
        full.wait_next(&mut phase);
        out.set(thread_idx().x, tile.get([lane_idx(), 2]));
        fence_proxy_async();
        sync_threads();
    }
}

/// A peeled first load; the last iteration only reads.
#[tma_kernel(threads = 32)]
fn one_ahead(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let tiles_of: Stages<Tile<f32, Shape2<32, 32>>, 2> = shared();
    let full: Stages<Barrier, 2> = shared();
    if thread_idx().x == 0 {
        full[0].init(1);
        full[1].init(1);
        fence_barrier_init();
    }
    sync_threads();
    if tiles == 0 { return; }
    if thread_idx().x == 0 {
        full[0].arrive_expect_tx(tiles_of[0].bytes());
        src.load(tiles_of[0], [0, 0], full[0]);
    }
    for k in 0..tiles {
        let next = k + 1;
        if thread_idx().x == 0 && next < tiles {
            full[next % 2].arrive_expect_tx(tiles_of[next % 2].bytes());
            src.load(tiles_of[next % 2], [next * 32, 0], full[next % 2]);
        }
        full[k % 2].wait(k / 2 % 2);
        out.set(k * 32 + lane_idx(), tiles_of[k % 2].get([0, lane_idx()]));
        fence_proxy_async();
        sync_threads();
    }
}

/// A ring of three by hand, with stage and parity in variables.
#[tma_kernel(threads = 64)]
fn by_hand(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let tile: Stages<Tile<f32, Shape2<32, 32>>, 3> = shared();
    let full: Stages<Barrier, 3> = shared();
    let empty: Stages<Barrier, 3> = shared();
    if thread_idx().x == 0 {
        for stage in 0..3 {
            full[stage].init(1);
            empty[stage].init(32);
        }
        fence_barrier_init();
    }
    sync_threads();
    let mut stage = 0;
    let mut parity = 0;
    if warp_idx() == 0 {
        for k in 0..tiles {
            if lane_idx() == 0 {
                empty[stage].wait(parity ^ 1);
                full[stage].arrive_expect_tx(tile[stage].bytes());
                src.load(tile[stage], [k * 32, 0], full[stage]);
            }
            stage += 1;
            if stage == 3 { stage = 0; parity ^= 1; }
        }
    } else {
        for k in 0..tiles {
            full[stage].wait(parity);
            out.set(k * 32 + lane_idx(), tile[stage].get([0, lane_idx()]));
            fence_proxy_async();
            empty[stage].arrive();
            stage += 1;
            if stage == 3 { stage = 0; parity ^= 1; }
        }
    }
}

/// Downwards, in steps of two.
#[tma_kernel(threads = 32)]
fn in_steps(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    for k in (0..tiles).step_by(2) {
        if lane_idx() == 7 {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [(tiles - 1 - k) * 32, 0], full);
        }
        full.wait(k / 2 & 1);
        out.set(lane_idx(), tile.get([1, lane_idx()]));
        fence_proxy_async();
        sync_threads();
    }
}

/// The number of iterations is a number in memory that all threads read.
#[tma_kernel(threads = 64)]
fn as_the_data_says(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, counts: Global<u32>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    let count = counts.get(block_idx().x);
    let mut k = 0;
    while k != count {
        if thread_idx().x == 0 {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [k * 32, 0], full);
        }
        full.wait(k % 2);
        out.set(thread_idx().x, tile.get([lane_idx(), 5]));
        fence_proxy_async();
        sync_threads();
        k += 1;
    }
}

/// At least one iteration, by an assumption.
#[tma_kernel(threads = 64)]
fn at_least_one(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    assume(tiles > 0);
    if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    if thread_idx().x == 0 {
        for k in 0..tiles {
            if k == 0 {
                full.arrive_expect_tx(tile.bytes());
                src.load(tile, [0, 0], full);
            }
        }
    }
    full.wait(0);
    out.set(thread_idx().x, tile.get([0, lane_idx()]));
}

/// A persistent GEMM: the wait for the first step of a tile is unconditional, so launches must have
/// at least one step.
#[tma_kernel(threads = 64)]
fn tiles_of_steps(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32, steps: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 3> = shared();
    if thread_idx().x == 0 {
        ring.init(1);
        fence_barrier_init();
    }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for tile in (block_idx().x..tiles).step_by(grid_dim().x as usize) {
                for step in 0..steps {
                    let slot = producer.acquire();
                    src.load(slot.0, [tile * 32, step * 32], slot.barrier());
                }
            }
        }
    } else {
        let mut consumer = ring.consumer();
        for tile in (block_idx().x..tiles).step_by(grid_dim().x as usize) {
            let first = consumer.wait();
            let mut sum = first.0.get([0, lane_idx()]);
            sync_warp();
            if lane_idx() == 0 { first.release(); }
            for _ in 1..steps {
                let slot = consumer.wait();
                sum += slot.0.get([0, lane_idx()]);
                sync_warp();
                if lane_idx() == 0 { slot.release(); }
            }
            out.set(tile * 32 + lane_idx(), sum);
        }
    }
}
