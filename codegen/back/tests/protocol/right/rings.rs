//! Single and several pipelines.

/// Two rings of different depth, which one thread fills in alternation.
#[tma_kernel(threads = 64)]
fn two_rings(
    a: TensorMap<Tile<f32, Shape2<32, 32>>>,
    b: TensorMap<Tile<f16, Shape2<32, 32>>>,
    out: Global<f32>,
    tiles: u32,
) {
    let wide: Pipeline<(Tile<f32, Shape2<32, 32>>,), 2> = shared();
    let deep: Pipeline<(Tile<f16, Shape2<32, 32>>,), 3> = shared();
    if thread_idx().x == 0 {
        wide.init(1);
        deep.init(1);
        fence_barrier_init();
    }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut first = wide.producer();
            let mut second = deep.producer();
            for k in 0..tiles {
                let slot = first.acquire();
                a.load(slot.0, [k * 32, 0], slot.barrier());
                let slot = second.acquire();
                b.load(slot.0, [k * 32, 0], slot.barrier());
            }
        }
    } else {
        let mut first = wide.consumer();
        let mut second = deep.consumer();
        for k in 0..tiles {
            let left = first.wait();
            let right = second.wait();
            out.set(k * 32 + lane_idx(), left.0.get([0, lane_idx()]) + cast::<f32>(right.0.get([0, lane_idx()])));
            sync_warp();
            if lane_idx() == 0 { left.release(); right.release(); }
        }
    }
}

/// A chain: one warp reads the first ring, and passes data to the next warp through shared memory.
#[tma_kernel(threads = 96)]
fn a_chain(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 2> = shared();
    let row: Stages<SharedArray<f32, 32>, 2> = shared();
    let made: Stages<Barrier, 2> = shared();
    let used: Stages<Barrier, 2> = shared();
    if thread_idx().x == 0 {
        ring.init(1);
        for stage in 0..2 { made[stage].init(32); used[stage].init(32); }
        fence_barrier_init();
    }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let slot = producer.acquire();
                src.load(slot.0, [k * 32, 0], slot.barrier());
            }
        }
    } else if warp_idx() == 1 {
        let mut consumer = ring.consumer();
        for k in 0..tiles {
            let slot = consumer.wait();
            used[k % 2].wait(k / 2 % 2 ^ 1);
            row[k % 2].set(lane_idx(), slot.0.get([lane_idx(), 0]));
            made[k % 2].arrive();
            sync_warp();
            if lane_idx() == 0 { slot.release(); }
        }
    } else {
        for k in 0..tiles {
            made[k % 2].wait(k / 2 % 2);
            out.set(k * 32 + lane_idx(), row[k % 2].get(31 - lane_idx()));
            used[k % 2].arrive();
        }
    }
}

/// Each consumer takes every second tile, and skips the others.
#[tma_kernel(threads = 96)]
fn every_second(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 4> = shared();
    if thread_idx().x == 0 { ring.init(1); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 2 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..12u32 {
                let slot = producer.acquire();
                src.load(slot.0, [k * 32, 0], slot.barrier());
            }
        }
    } else {
        let mut consumer = ring.consumer();
        if warp_idx() == 1 { consumer.skip(1); }
        for k in 0..6u32 {
            let slot = consumer.wait();
            out.set(k * 64 + thread_idx().x, slot.0.get([0, lane_idx()]));
            sync_warp();
            if lane_idx() == 0 { slot.release(); }
            consumer.skip(1);
        }
    }
}

/// The ring is filled once before anything is read, and is never filled again.
#[tma_kernel(threads = 32)]
fn filled_once(src: TensorMap<Tile<f32, Shape2<8, 32>>>, out: Global<f32>) {
    let ring: Pipeline<(Tile<f32, Shape2<8, 32>>,), 4> = shared();
    if thread_idx().x == 0 {
        ring.init(1);
        fence_barrier_init();
        let mut producer = ring.producer();
        for k in 0..4u32 {
            let slot = producer.acquire();
            src.load(slot.0, [k * 8, 0], slot.barrier());
        }
    }
    sync_threads();
    let mut consumer = ring.consumer();
    let mut sum = 0.0;
    for _ in 0..4u32 {
        let slot = consumer.wait();
        sum += slot.0.get([0, lane_idx()]);
    }
    out.set(lane_idx(), sum);
}

/// One thread loads, and then reads with the others.
#[tma_kernel(threads = 64)]
fn producer_and_consumer(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 3> = shared();
    if thread_idx().x == 0 { ring.init(64); fence_barrier_init(); }
    sync_threads();
    let mut producer = ring.producer();
    let mut consumer = ring.consumer();
    let mut asked = 0;
    for k in 0..tiles {
        if thread_idx().x == 0 {
            while asked < tiles && asked < k + 2 {
                let slot = producer.acquire();
                src.load(slot.0, [asked * 32, 0], slot.barrier());
                asked += 1;
            }
        }
        let slot = consumer.wait();
        out.set(k * 64 + thread_idx().x, slot.0.get([lane_idx(), 0]));
        slot.release();
    }
}

/// Two consumers of different kinds: one reads tiles, the other stores them.
#[tma_kernel(threads = 96)]
fn read_and_stored(
    src: TensorMap<Tile<f32, Shape2<32, 32>>>,
    dst: TensorMap<Tile<f32, Shape2<32, 32>>>,
    out: Global<f32>,
    tiles: u32,
) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 2> = shared();
    if thread_idx().x == 0 { ring.init(2); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let slot = producer.acquire();
                src.load(slot.0, [k * 32, 0], slot.barrier());
            }
        }
    } else if warp_idx() == 1 {
        let mut consumer = ring.consumer();
        for k in 0..tiles {
            let slot = consumer.wait();
            out.set(k * 32 + lane_idx(), slot.0.get([0, lane_idx()]));
            sync_warp();
            if lane_idx() == 0 { slot.release(); }
        }
    } else if elect_one() {
        let mut consumer = ring.consumer();
        for k in 0..tiles {
            let slot = consumer.wait();
            dst.store([k * 32, 0], slot.0);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
            slot.release();
        }
        bulk_wait_group::<0>();
    }
}

/// A ring of arrays, filled by bulk copies whose number is a parameter.
#[tma_kernel(threads = 64)]
fn bulk_rings(src: Global<f32>, out: Global<f32>, pieces: u32) {
    let piece: Stages<SharedArray<f32, 128>, 2> = shared();
    let full: Stages<Barrier, 2> = shared();
    let empty: Stages<Barrier, 2> = shared();
    if thread_idx().x == 0 {
        for stage in 0..2 { full[stage].init(1); empty[stage].init(32); }
        fence_barrier_init();
    }
    sync_threads();
    if thread_idx().x == 32 {
        for k in 0..pieces {
            empty[k % 2].wait(k / 2 % 2 ^ 1);
            full[k % 2].arrive_expect_tx(512);
            src.bulk_load(piece[k % 2], 0, 128, k * 128, full[k % 2]);
        }
    }
    if warp_idx() == 0 {
        for k in 0..pieces {
            full[k % 2].wait(k / 2 % 2);
            out.set(k * 32 + lane_idx(), piece[k % 2].get(lane_idx()));
            fence_proxy_async();
            empty[k % 2].arrive();
        }
    }
}

/// After the loop, the producer waits until all slots are released.
#[tma_kernel(threads = 64)]
fn drained(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 2> = shared();
    if thread_idx().x == 0 { ring.init(1); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 1 {
        let mut producer = ring.producer();
        for k in 0..tiles {
            if lane_idx() == 3 {
                let slot = producer.acquire();
                src.load(slot.0, [k * 32, 0], slot.barrier());
            }
        }
        if lane_idx() == 3 { producer.drain(); }
    } else {
        let mut consumer = ring.consumer();
        for k in 0..tiles {
            let slot = consumer.wait();
            out.set(k * 32 + lane_idx(), slot.0.get([lane_idx(), 0]));
            sync_warp();
            if lane_idx() == 31 { slot.release(); }
        }
    }
}
