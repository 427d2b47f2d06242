//! Every word exists, and rustc infers the types that kernels leave out.
//!
//! The functions below are kernels as rustc sees them. The test is that they compile; none is ever
//! run.

use super::*;

/// The copy kernel of the module's documentation.
#[expect(dead_code, reason = "type-checked only")]
fn tma_copy(src: TensorMap<Tile<f16, Shape2<128, 64>>>, dst: TensorMap<Tile<f16, Shape2<128, 64>>>) {
    let tile: Tile<f16, Shape2<128, 64>> = shared();
    let full: Barrier = shared();
    let at = dst.block_tile();
    let leader = thread_idx().x == 0;

    if leader {
        full.init(1);
        fence_barrier_init();
    }
    sync_threads();
    if leader {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, at, full);
    }
    full.wait(0);
    if leader {
        dst.store(at, tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Stages of tiles whose shapes are const generics, a producer warp, and phases tracked by hand.
#[expect(dead_code, reason = "type-checked only")]
fn staged<const BM: u32, const BN: u32, const BK: u32, const STAGES: u32>(
    a: TensorMap<Tile<bf16, Shape2<BM, BK>, Swizzle128>>,
    b: TensorMap<Tile<bf16, Shape2<BN, BK>, Swizzle128>>,
    out: Global<f32>,
    k_tiles: u32,
) {
    let x: Stages<Tile<bf16, Shape2<BM, BK>, Swizzle128>, STAGES> = shared();
    let y: Stages<Tile<bf16, Shape2<BN, BK>, Swizzle128>, STAGES> = shared();
    let full: Stages<Barrier, STAGES> = shared();
    let empty: Stages<Barrier, STAGES> = shared();
    if thread_idx().x == 0 {
        a.prefetch_descriptor();
        for stage in unroll(0..STAGES) {
            full[stage].init(1);
            empty[stage].init(block_dim().x - 32);
        }
        fence_barrier_init();
    }
    sync_threads();

    if warp_idx() == 0 {
        if elect_one() {
            for k in 0..k_tiles {
                let stage = k % STAGES;
                empty[stage].wait(((k / STAGES) & 1) ^ 1);
                full[stage].arrive_expect_tx(x[stage].bytes() + y[stage].bytes());
                a.load(x[stage], [block_idx().y * BM, k * BK], full[stage]);
                b.load(y[stage], [block_idx().x * BN, k * BK], full[stage]);
            }
        }
    } else {
        let mut sum = 0.0;
        for k in 0..k_tiles {
            let stage = k % full.len();
            full[stage].wait((k / full.len()) & 1);
            let tile = x[stage];
            for column in (0..tile.cols()).step_by(2) {
                sum = fma(tile.get([0, column]).to_f32(), cast::<f32>(y[stage].get([0, column])), sum);
            }
            empty[stage].arrive();
        }
        out.set(thread_idx().x, sum);
    }
}

/// Coordinates and indices: bare literals, literals next to `u32` and `i32`, ranks 1 to 5.
#[expect(dead_code, reason = "type-checked only")]
fn coordinates(map: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<u8>, wide: u64, offset: i32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    map.load(tile, [0, 0], full);
    map.load(tile, [block_idx().y * 128, 0], full);
    map.load(tile, [0, offset - 4], full);
    map.store([0, block_idx().x], tile);
    tile.set([0, 1], tile.get([lane_idx(), 0]));

    let line: Tile<u8, Shape1<64>> = shared();
    let cube: Tile<i64, Shape3<2, 4, 8>, Swizzle64> = shared();
    let four: Tile<f64, Shape4<2, 2, 2, 4>, Swizzle32> = shared();
    let five: Tile<e4m3, Shape5<1, 2, 3, 4, 16>, NoSwizzle> = shared();
    cube.set([0, 1, 2], line.get([3]) as i64);
    four.set([0, 0, 0, lane_idx() % 4], five.get([0, 0, 0, 0, 0]).to_f64());

    out.set(0, out.get(wide));
    out.set(1usize, out.get(lane_idx()));
    out.set(offset as i64, 0);
    let last = out.len() - 1;
    out.set(last, 7);
}

/// Reductions, prefetches and policies.
#[expect(dead_code, reason = "type-checked only")]
fn reductions(sums: TensorMap<Tile<f32, Shape2<32, 32>>>, counts: TensorMap<Tile<u32, Shape1<64>>>) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let count: Tile<u32, Shape1<64>> = shared();
    let policy: CachePolicy = l2_evict_last(0.5);
    let sums = sums.hint(policy);
    sums.prefetch([0, 32]);
    sums.reduce_add([block_idx().y * 32, 0], tile);
    counts.hint(l2_evict_first(1.0)).reduce_inc([0], count);
    counts.hint(l2_evict_normal(1.0)).reduce_dec([0], count);
    counts.hint(l2_evict_unchanged(1.0)).reduce_min([64], count);
    counts.reduce_max([64], count);
    counts.reduce_and([-0], count);
    counts.reduce_or([0], count);
    counts.reduce_xor([0], count);
}

/// Columns of pixels, of tensors of every rank.
#[expect(dead_code, reason = "type-checked only")]
fn columns(
    images: Im2colMap<Tile<f16, Shape2<64, 32>, Swizzle64>, 4>,
    lines: Im2colMap<Tile<u32, Shape2<16, 4>>, 3>,
    volumes: Im2colMap<Tile<u32, Shape2<16, 4>>, 5>,
    y: u32,
) {
    let tile: Tile<f16, Shape2<64, 32>, Swizzle64> = shared();
    let small: Tile<u32, Shape2<16, 4>> = shared();
    let full: Barrier = shared();
    images.prefetch_descriptor();
    images.prefetch([0, -1, -1, 0], [1, 2]);
    images.hint(l2_evict_last(1.0)).load(tile, [block_idx().x, y, 0, 0], [y as u16, 2], full);
    lines.load(small, [0, -1, 0], [2], full);
    lines.store([0, 0, 0], small);
    lines.reduce_add([0, 0, 0], small);
    volumes.load(small, [0, -1, 0, 0, 0], [2, 0, 1], full);
    volumes.reduce_xor([0, 1, 0, 0, 0], small);
}

/// Maps made by a kernel.
#[expect(dead_code, reason = "type-checked only")]
fn descriptors(
    template: TensorMap<Tile<f32, Shape2<8, 32>>>,
    data: Global<f32>,
    maps: Maps<Tile<f32, Shape2<8, 32>>>,
) {
    let map: SharedMap<Tile<f32, Shape2<8, 32>>> = shared();
    let staged: Stages<SharedMap<Tile<f32, Shape2<8, 32>>>, 2> = shared();
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    map.copy_from(template);
    map.set_address(data, 64);
    map.set_extent::<0>(block_idx().x);
    map.set_stride::<0>(128);
    staged[1].publish(maps, 0);
    maps.acquire(0);
    maps.at(0).hint(l2_evict_first(1.0)).load(tile, [0, 0], full);
}

/// Copies without a tensor map.
#[expect(dead_code, reason = "type-checked only")]
fn bulk_copies(words: Global<u32>, reals: Global<f64>, n: u64) {
    let array: SharedArray<u32, 64> = shared();
    let tile: Tile<f64, Shape2<4, 8>> = shared();
    let full: Barrier = shared();
    words.bulk_prefetch(0, 64);
    words.hint(l2_evict_last(1.0)).bulk_load(array, 0, 64, block_idx().x * 64, full);
    reals.bulk_load(tile, 2, 30, n, full);
    reals.bulk_reduce_add(n, tile, 0, 32);
    words.bulk_store(0, array, 4, 8);
    words.bulk_reduce_add(0, array, 4, 8);
    words.bulk_reduce_min(0, array, 4, 8);
    words.bulk_reduce_max(0, array, 4, 8);
    words.bulk_reduce_inc(0, array, 4, 8);
    words.bulk_reduce_dec(0, array, 4, 8);
    words.bulk_reduce_and(0, array, 4, 8);
    words.bulk_reduce_or(0, array, 4, 8);
    words.bulk_reduce_xor(0, array, 4, 8);
}

/// Words that no other kernel here uses.
#[expect(dead_code, reason = "type-checked only")]
fn remaining_words(n: u32, x: f32) -> f32 {
    let full: Barrier = shared();
    let flags: SharedArray<bool, 32> = shared();
    let rows: Stages<SharedArray<e5m2, 16>, 2> = shared();
    full.expect_tx(16);
    while !full.try_wait(1) {
        named_barrier_sync(1, 64);
    }
    full.invalidate();
    flags.set(lane_idx(), flags.len() == grid_dim().x);
    rows[1].set(0, cast(x));
    sync_warp();
    fence_proxy_async();
    bulk_wait_group::<1>();

    let mut values = [0.0f32; 4];
    for i in unroll((0..4usize).step_by(2)) {
        values[i] = min(x, 1.0) + max(0.0, x);
    }
    for i in unroll(1..=3usize) {
        values[i] += rsqrt(x) + exp2(x) + log2(x);
    }
    let half = fma(f16::from_f32(x), f16::ONE, abs(f16::NEG_ONE));
    let whole = abs(-3) + cast::<i32>(cast::<e5m2>(half)) + cast::<i32>(n as usize);
    assert!(n > 0, "nothing to do");
    printf!("{} of {:x}, {x:.3} and {:8}\n", warpgroup_idx(), n, whole);
    match n {
        0 => trap(),
        1 | 2 => sqrt(x),
        3..=9 => recip(values[0]),
        _ => x.mul_add(2.0, x),
    }
}

/// Phases, tokens and pipelines: states taken by `&mut`, slots that are kept, reassigned and
/// released by one lane.
#[expect(dead_code, reason = "type-checked only")]
fn pipelined<const STAGES: u32>(
    a: TensorMap<Tile<f16, Shape2<64, 64>, Swizzle128>>,
    b: TensorMap<Tile<f32, Shape1<64>>>,
    out: Global<f32>,
    full: Barrier,
) {
    type Both = (Tile<f16, Shape2<64, 64>, Swizzle128>, Tile<f32, Shape1<64>>);

    fn fill<const STAGES: u32>(producer: &mut Producer<Both, STAGES>) -> u32 {
        let empty = producer.wait();
        let stage = empty.stage();
        let slot = empty.announce();
        stage + slot.stage()
    }

    let ring: Pipeline<Both, STAGES> = shared();
    ring.init(2);
    let mut producer = ring.producer();
    let slot = producer.acquire();
    a.load(slot.0, [0, 0], slot.barrier());
    b.load(slot.1, [64], slot.barrier());
    fill(&mut producer);
    if producer.ready() {
        producer.drain();
    }

    let mut consumer = ring.consumer();
    let mut old = consumer.wait();
    while consumer.ready() {
        let new = consumer.wait();
        out.set(new.stage(), new.0.get([0, 1]).to_f32() + old.1.get([2]));
        if lane_idx() == 0 {
            old.release();
        }
        old = new;
    }
    ring.invalidate();

    let mut phase = Phase::opposite();
    full.wait_next(&mut phase);
    phase = Phase::new();
    phase.flip();
    full.arrive_many(ring.len());
    full.wait_token(full.arrive_token());
    if full.test_wait(phase.parity()) || full.try_wait_for(0, 1000) {
        full.arrive_drop();
    }
}

/// Handles are `Copy` whatever their type parameters, and have no size.
#[test]
fn handles_are_copy_and_have_no_size() {
    fn size_of_copy<X: Copy>() -> usize {
        size_of::<X>()
    }
    assert_eq!(size_of_copy::<Tile<f16, Shape2<128, 64>, Swizzle128>>(), 0);
    assert_eq!(size_of_copy::<Barrier>(), 0);
    assert_eq!(size_of_copy::<SharedArray<f32, 128>>(), 0);
    assert_eq!(size_of_copy::<Stages<Barrier, 4>>(), 0);
    assert_eq!(size_of_copy::<Pipeline<(Tile<f16, Shape1<64>>, Tile<f32, Shape1<64>>), 4>>(), 0);
    assert_eq!(size_of_copy::<TensorMap<Tile<f16, Shape1<64>>>>(), 0);
    assert_eq!(size_of_copy::<Global<u8>>(), 0);
}

#[test]
fn extents_are_outermost_first() {
    assert_eq!(<Shape3<2, 4, 8> as Shape>::EXTENTS, [2, 4, 8]);
}

/// Nothing runs on the host.
#[test]
#[should_panic(expected = "only inside a `#[tma_kernel]` function")]
fn a_word_called_on_the_host_panics() {
    sync_threads();
}
