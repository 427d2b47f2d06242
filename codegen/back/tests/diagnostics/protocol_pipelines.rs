// What can be done wrong with a pipeline.

#[tma_kernel(threads = 64)]
fn no_release(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 2> = shared();
    if thread_idx().x == 0 { ring.init(1); fence_barrier_init(); }
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
            out.set(k * 32 + lane_idx(), slot.0.get([0, lane_idx()]));
        }
    }
}

#[tma_kernel(threads = 96)]
fn one_release_of_two(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 2> = shared();
    if thread_idx().x == 0 { ring.init(2); fence_barrier_init(); }
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
            sync_warp();
            if thread_idx().x == 32 { slot.release(); }
        }
    }
}

#[tma_kernel(threads = 64)]
fn each_lane_releases(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 2> = shared();
    if thread_idx().x == 0 { ring.init(1); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let slot = producer.acquire();
                src.load(slot.0, [k * 32, 0], slot.barrier());
            }
        }
    } else {
        let mut consumer = ring.consumer();
        for k in 0..tiles {
            let slot = consumer.wait();
            out.set(k * 32 + lane_idx(), slot.0.get([0, lane_idx()]));
            slot.release(); //~ TMA0703
        }
    }
}

#[tma_kernel(threads = 64)]
fn released_while_others_read(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 2> = shared();
    if thread_idx().x == 0 { ring.init(1); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let slot = producer.acquire();
                src.load(slot.0, [k * 32, 0], slot.barrier()); //~ TMA0706
            }
        }
    } else {
        let mut consumer = ring.consumer();
        for k in 0..tiles {
            let slot = consumer.wait();
            out.set(k * 32 + lane_idx(), slot.0.get([0, lane_idx()]));
            if lane_idx() == 0 { slot.release(); }
        }
    }
}

#[tma_kernel(threads = 64)]
fn one_tile_of_two(
    a: TensorMap<Tile<f32, Shape2<32, 32>>>,
    b: TensorMap<Tile<f32, Shape2<8, 32>>>,
    out: Global<f32>,
    tiles: u32,
) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>, Tile<f32, Shape2<8, 32>>), 2> = shared();
    if thread_idx().x == 0 { ring.init(1); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let slot = producer.acquire(); //~ TMA0702
                a.load(slot.0, [k * 32, 0], slot.barrier());
            }
            b.prefetch([0, 0]);
        }
    } else {
        let mut consumer = ring.consumer();
        for k in 0..tiles {
            let slot = consumer.wait();
            out.set(k * 32 + lane_idx(), slot.0.get([0, lane_idx()]));
            sync_warp();
            if lane_idx() == 0 { slot.release(); }
        }
    }
}

#[tma_kernel(threads = 64)]
fn one_turn_more_than_is_filled(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 2> = shared();
    if thread_idx().x == 0 { ring.init(1); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let slot = producer.acquire();
                src.load(slot.0, [k * 32, 0], slot.barrier());
            }
        }
    } else {
        let mut consumer = ring.consumer();
        for k in 0..tiles + 1 {
            let slot = consumer.wait(); //~ TMA0701
            out.set(k * 32 + lane_idx(), slot.0.get([0, lane_idx()]));
            sync_warp();
            if lane_idx() == 0 { slot.release(); }
        }
    }
}

#[tma_kernel(threads = 64)]
fn one_turn_less_than_is_filled(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 2> = shared();
    if thread_idx().x == 0 { ring.init(1); fence_barrier_init(); }
    sync_threads();
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..6u32 {
                let slot = producer.acquire();
                src.load(slot.0, [k * 32, 0], slot.barrier()); //~ TMA0710
            }
        }
    } else {
        let mut consumer = ring.consumer();
        for k in 0..5u32 {
            let slot = consumer.wait();
            out.set(k * 32 + lane_idx(), slot.0.get([0, lane_idx()]));
            sync_warp();
            if lane_idx() == 0 { slot.release(); }
        }
    }
}

#[tma_kernel(threads = 64)]
fn not_initialised_for_others(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
    let ring: Pipeline<(Tile<f32, Shape2<32, 32>>,), 2> = shared();
    if thread_idx().x == 0 { ring.init(1); fence_barrier_init(); }
    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let slot = producer.acquire(); //~ TMA0708
                src.load(slot.0, [k * 32, 0], slot.barrier());
            }
        }
    } else {
        let mut consumer = ring.consumer();
        for k in 0..tiles {
            let slot = consumer.wait();
            out.set(k * 32 + lane_idx(), slot.0.get([0, lane_idx()]));
            sync_warp();
            if lane_idx() == 0 { slot.release(); }
        }
    }
}
