// Slots that are not loaded in all their parts, or not released as often as is counted.

#[tma_kernel(threads = 64)]
fn no_second_tile(
    left: TensorMap<Tile<f32, Shape2<32, 32>>>,
    right: TensorMap<Tile<f32, Shape2<32, 32>>>,
    out: Global<f32>,
    tiles: u32,
) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>, Tile<f32, Shape2<32, 32>>), 2> = shared();
    if thread_idx().x == 0 { ring.init(32); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let stage = producer.acquire(); //~ TMA0702
                left.load(stage.0, [k * 32, 0], stage.barrier());
            }
            right.prefetch([0, 0]);
        }
    } else {
        let mut consumer = ring.consumer();
        for k in 0..tiles {
            let slot = consumer.wait();
            out.set(k * 32 + lane_idx(), slot.0.get([0, lane_idx()]) + slot.1.get([0, lane_idx()]));
            slot.release();
        }
    }
}

#[tma_kernel(threads = 64)]
fn no_tile(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>, Tile<u32, Shape2<8, 32>>), 2> = shared();
    if thread_idx().x == 0 { ring.init(32); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                producer.acquire(); //~ TMA0702
                src.prefetch([k * 32, 0]);
            }
        }
    } else {
        let mut consumer = ring.consumer();
        for k in 0..tiles {
            let slot = consumer.wait();
            out.set(k * 32 + lane_idx(), slot.0.get([0, lane_idx()]) + slot.1.get([0, lane_idx()]) as f32);
            slot.release();
        }
    }
}

#[tma_kernel(threads = 64)]
fn not_the_first_of_a_tile(
    a: TensorMap<Tile<f32, Shape2<32, 32>>>,
    b: TensorMap<Tile<f32, Shape2<8, 32>>>,
    out: Global<f32>,
    tiles: u32,
) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>, Tile<f32, Shape2<8, 32>>), 2> = shared();
    if thread_idx().x == 0 { ring.init(32); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let slot = producer.acquire(); //~ TMA0702
                a.load(slot.0, [k * 32, 0], slot.barrier());
                if k > 0 {
                    b.load(slot.1, [k * 8, 0], slot.barrier());
                }
            }
        }
    } else {
        let mut consumer = ring.consumer();
        for k in 0..tiles {
            let slot = consumer.wait();
            out.set(k * 32 + lane_idx(), slot.0.get([0, lane_idx()]) + slot.1.get([0, lane_idx()]));
            slot.release();
        }
    }
}

#[tma_kernel(threads = 64)]
fn the_same_tile_twice(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 2> = shared();
    if thread_idx().x == 0 { ring.init(32); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            let slot = producer.acquire();
            src.load(slot.0, [0, 0], slot.barrier());
            src.load(slot.0, [32, 0], slot.barrier()); //~ TMA0706
        }
    } else {
        let mut consumer = ring.consumer();
        let slot = consumer.wait();
        out.set(lane_idx(), slot.0.get([0, lane_idx()]));
        slot.release();
    }
}

#[tma_kernel(threads = 96)]
fn never_released(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 4> = shared();
    if thread_idx().x == 0 { ring.init(4); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let slot = producer.acquire(); //~ TMA0701
                src.load(slot.0, [k * 32, 0], slot.barrier());
            }
        }
    } else {
        let mut consumer = ring.consumer();
        for k in 0..tiles {
            let slot = consumer.wait();
            out.set(k * 64 + thread_idx().x, slot.0.get([0, lane_idx()]));
        }
    }
}

#[tma_kernel(threads = 64)]
fn never_announced(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 4> = shared();
    if thread_idx().x == 0 { ring.init(32); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..3u32 {
                producer.wait();
                src.prefetch([k * 32, 0]);
            }
        }
    } else {
        let mut consumer = ring.consumer();
        for k in 0..3u32 {
            let slot = consumer.wait(); //~ TMA0701
            out.set(k * 32 + lane_idx(), slot.0.get([0, lane_idx()]));
            slot.release();
        }
    }
}
