//! Every word of the vocabulary, each of which rustc has to find to be the vocabulary's.
// The workspace asks for more than rustc does by itself.
#![allow(unused, missing_docs, unused_qualifications, clippy::all)]

use tma_runtime::prelude::*;

#[tma_kernel(protocol = trusted("a sketch"), threads = 32, cluster = 2, instances(a = <f16, Swizzle128>))]
pub fn every_word<T: TileElement, W: Swizzle>(
    out: Global<u32>,
    fixed: Global<f16>,
    r#type: u32,
    m: TensorMap<Tile<T, Shape2<8, 64>, W>>,
    c: Im2colMap<Tile<f16, Shape2<8, 64>>, 4>,
    maps: Maps<Tile<f32, Shape1<64>>>,
) {
    let _ = maps;
    m.prefetch_descriptor();
    c.prefetch_descriptor();
    let t: Tile<f32, Shape3<2, 2, 8>> = shared();
    let four: Tile<f32, Shape4<2, 2, 2, 8>> = shared::<Tile<f32, Shape4<2, 2, 2, 8>>>();
    let five: Tile<f32, Shape5<1, 2, 2, 2, 8>, NoSwizzle> = shared();
    let row: SharedArray<u32, 8> = shared();
    let bars: Stages<Barrier, 2> = shared();
    let p: Pipeline<(Tile<f32, Shape1<64>>,), 2> = shared();
    let bytes = size_of::<bf16>();
    let again: SharedArray<f32, 64> = reuse(p);
    again.set(0, bytes as f32);
    let x = thread_idx().x
        + block_idx().x
        + block_dim().x
        + grid_dim().x
        + cluster_idx().x
        + block_in_cluster().x
        + cluster_dim().x
        + cluster_rank()
        + lane_idx()
        + warp_idx()
        + warpgroup_idx();
    let e = elect_one();
    let a = min(x, u32::MAX)
        + max(x, u32::BITS)
        + cast::<u32>(abs(-1.5f32))
        + cast::<u32>(fma(1.0f32, f32::INFINITY, f32::NAN));
    let b = sqrt(2.0f32) + rsqrt(2.0) + exp2(1.0) + exp2_ftz(1.0) + log2(2.0) + recip(2.0f32);
    let halved = exp2_half(f16::ONE);
    let c = exp(1.0) + log(2.0) + pow(2.0, 0.5) + sin(1.0) + cos(1.0) + tanh(1.0);
    let d = clamp(c, 0.0, 1.0) + copysign(1.0f32, c).clamp(-1.0, 1.0).copysign(c) + a.clamp(1, 9) as f32;
    row.set_vec(0, row.get_vec::<4>(4));
    t.set_vec([0, 0, 0], t.get_vec::<4>([1, 1, 4]));
    out.set_vec(0, out.get_vec::<2>(2));
    let same = (fixed.get_nc(0), fixed.hint(l2_evict_last(1.0)).get_vec_nc::<8>(8));
    out.store(0, out.load(1, Order::Acquire, Scope::Device), Order::Release, Scope::System);
    let lanes = ballot(vote_all(e) || vote_any(e)) | match_any(d) | match_all(a);
    let moved = shuffle_xor(d, 1) + shuffle_up(d, 1) + shuffle_down(d, 1) + shuffle_idx(d, 0);
    let reduced = warp_reduce_add(moved) + warp_reduce_min(moved) + warp_reduce_max(moved);
    let held = warp_reduce_and(lanes) | warp_reduce_or(lanes) | warp_reduce_xor(lanes);
    let bits = held.count_ones() + held.rotate_left(3).leading_zeros() + held.swap_bytes().trailing_ones();
    let wrapped =
        held.wrapping_add(1).wrapping_sub(2).wrapping_mul(3).wrapping_neg().wrapping_shl(4).wrapping_shr(5);
    let saturated =
        held.saturating_add(1).saturating_sub(2).saturating_mul(3).abs_diff(4).pow(2) + held.ilog2();
    let multiple = mul_hi(wrapped, saturated).next_multiple_of(8).div_ceil(3);
    let f = multiple.is_power_of_two() && d.powi(3) > 0.0;
    for i in (0..multiple).rev() {
        out.set(i, f as u32);
    }
    let h = f16::from_f32(b).to_f32()
        + bf16::from_f32(1.0).to_f32()
        + f16::ONE.to_f32()
        + tf32::from_f32(1.0).to_f32()
        + e4m3::from_bits(1).to_f32()
        + e5m2::from_bits(1u8).to_f32()
        + f32::from_bits(3);
    let other: Remote<Barrier> = remote(bars[0], 1);
    sync_threads();
    sync_warp();
    sync_cluster();
    cluster_arrive();
    cluster_wait();
    named_barrier_sync(1, 32);
    grid_dependency_wait();
    grid_dependency_launch();
    fence_proxy_async();
    fence_proxy_async_global();
    fence();
    fence_barrier_init();
    let pol: CachePolicy = l2_evict_first(1.0);
    let pol2 = l2_evict_last(0.5);
    let pol3 = l2_evict_normal(0.5);
    let pol4 = l2_evict_unchanged(0.5);
    bulk_commit_group();
    bulk_wait_group::<0>();
    bulk_wait_group_read::<1>();
    let ph = Phase::new();
    for i in unroll(0..4) {
        if i == 3 && e {
            trap();
        }
    }
    let d: Dim3 = thread_idx();
    assert!(a > 3, "no");
    assume(a > 4);
    #[trusted = "a sketch"]
    let _ = a;
    let mut picked = 0u32;
    // SAFETY: the instruction only computes `picked`.
    unsafe { ptx!("prmt.b32 {picked}, {a}, {a}, {order};", out picked, in a, order = in 0x3120u32) };
    printf!("x {} {type}\n", h);
    print_tile(t);
    trace_span!("all of it");
    out.set(tma_runtime::lang::min(a, 3), a + r#type);
    let i8s: [i8; 2] = [1i8, i8::MIN];
    let z = 1 as u64 as u16 as i16 as i64 as usize as u8 as i32 as f64;
}

#[tma_kernel(protocol = trusted("a sketch"), threads = 32, cluster = 2)]
pub fn every_other_word(
    counter: Global<u32>,
    map: TensorMap<Tile<f32, Shape2<8, 8>>>,
    wide: TensorMap<Tile<f32, Shape2<8, 8>, Swizzle32>>,
    wider: TensorMap<Tile<f32, Shape2<8, 16>, Swizzle64>>,
) {
    let full: Barrier = shared();
    let tiles: Tile<f32, Shape2<16, 8>> = shared();
    let edited: SharedMap<Tile<f32, Shape2<8, 8>>> = shared();
    let near: Tile<f16, Shape3<4, 8, 8>, Interleave16> = shared();
    let far: Tile<f16, Shape3<4, 8, 16>, Interleave32> = shared();
    let ring: Pipeline<(Tile<f32, Shape2<8, 8>>,), 2> = shared();
    let token: Token = full.arrive_token();
    full.wait_token(token);
    let axis: u32 = 0;
    map.load_sliced(tiles, [0, axis], full, ClusterAxis::X);
    wide.prefetch_descriptor();
    wider.prefetch_descriptor();
    let mut producer: Producer<(Tile<f32, Shape2<8, 8>>,), 2> = ring.producer();
    let mut consumer: Consumer<(Tile<f32, Shape2<8, 8>>,), 2> = ring.consumer();
    let empty: EmptySlot<(Tile<f32, Shape2<8, 8>>,)> = producer.wait();
    let loading: LoadingSlot<(Tile<f32, Shape2<8, 8>>,)> = producer.acquire();
    let held: FullSlot<(Tile<f32, Shape2<8, 8>>,)> = consumer.wait();
    let yes: bool = true;
    let precise: f64 = 1.0;
    sync_grid(counter);
}

#[tma_kernel(protocol = trusted("a sketch"), threads = 32)]
pub fn every_word_of_teams(
    x: Peers<Global<u32>>,
    maps: Peers<TensorMap<Tile<f32, Shape2<8, 8>>>>,
    halves: Peers<Global<f16>>,
) {
    let tile: Tile<f32, Shape2<8, 8>> = shared();
    let array: SharedArray<u32, 8> = shared();
    let full: Barrier = shared();
    let peer: Peer<Global<u32>> = x.of((rank() + 1) % ranks());
    let own: Global<u32> = x.own();
    own.set(0, peer.get(0) + peer.len() as u32);
    peer.set(1, own.get(1));
    peer.set_vec(0, peer.get_vec::<2>(2));
    peer.store(0, peer.load(1, Order::Acquire, Scope::System), Order::Release, Scope::System);
    peer.fetch_add(0, peer.swap(0, 1, Order::Relaxed, Scope::System), Order::AcqRel, Scope::System);
    peer.compare_exchange(0, 1, 2, Order::AcqRel, Scope::System);
    halves.of(0).add_vec(0, [f16::ONE; 2], Order::Relaxed, Scope::System);
    peer.bulk_load(array, 0, 8, 0, full);
    peer.bulk_store(0, array, 0, 8);
    peer.bulk_reduce_add(0, array, 0, 8);
    maps.of(0).load(tile, [0, 0], full);
    maps.own().store([0, 0], tile);
}

#[tma_kernel(protocol = trusted("a sketch"), threads = 128)]
pub fn every_word_of_tensor_cores(n: u32, out: Global<f32>) {
    let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
    let mut sum: Accumulator<f32, 64, 64> = Accumulator::<f32, 64, 64>::zero();
    let mut flight: Flight<'_, f32, 64, 64, u32> = sum.mma(a, a, n);
    let left: Negated<Tile<f16, Shape2<64, 64>, Swizzle128>> = -a;
    let right: Transposed<Tile<f16, Shape2<64, 64>, Swizzle128>> = a.t();
    flight.mma(left, right, n);
    let untouched: Transposed<Tile<f16, Shape2<64, 64>, Swizzle128>, false> = a.t_if::<false>();
    flight.mma(untouched, a, n);
    flight.wait();
    let mut rows: Rows<f32, 64> = sum.row_max();
    rows = Rows::<f32, 64>::filled(rows[1]);
    let part: Columns<'_, f32, 64, 64> = sum.columns::<64>(0);
    part.store(a);
    let weights: Fragment<f16, 64, 64> = sum.pack::<f16>();
    let _: Accumulator<f32, 64, 64> = weights.unpack();
    sum.mma(weights, a.band::<64>(0), ()).wait();
    let rows: GlobalMatrix<f32> = out.matrix(0, [64, 64], 64);
    sum.store_to(rows, [0, 0]);
    sum.columns::<8>(1).store_to(rows, [0, 8]);
    let batch: Tile<f16, Shape3<1, 64, 64>, Panels16> = shared();
    sum.store(batch.batch(0).columns::<64>(0));
    let bytes: Tile<u8, Shape2<64, 64>, Swizzle64> = shared();
    let mut count = Accumulator::<i32, 64, 64>::zero();
    let mut counts = count.mma_saturating(bytes, bytes, ());
    counts.mma_and_popc(bytes, bytes, ());
    counts.mma_saturating(bytes, bytes, ());
    counts.wait();
    count.mma_and_popc(bytes, bytes, ()).wait();
    count.mma_and_popc(Fragment::<u8, 64, 64>::load(bytes, [0, 0]), bytes, ()).wait();
    let half: Tile<f16, Shape2<64, 32>, Swizzle64> = shared();
    let weights_of_more: Sparse<Fragment<f16, 64, 64>, 128> = sum.pack::<f16>().sparse([n, n]);
    sum.mma(Fragment::<f16, 64, 64>::load(a, [0, 0]), a, ()).wait();
    sum.mma(Fragment::<f16, 64, 64>::widen(a, [0, 0]), a, ()).wait();
    let thin: Sparse<Tile<f16, Shape2<64, 32>, Swizzle64>, 64> = half.sparse([n]);
    sum.mma(-thin, a, ()).wait();
    setmaxnreg_dec::<160>();
    setmaxnreg_inc::<168>();
    sync_warpgroup();
    named_barrier_arrive(1, 128);
}

#[tma_kernel(threads = 32)]
pub fn every_word_of_products_of_warps(out: Global<f32>) {
    let a: Tile<f16, Shape2<32, 32>, Swizzle64> = shared();
    let left: WarpLeft<f16, 16, 32> = WarpLeft::<f16, 16, 32>::load(a, [0, 0]);
    let right: WarpRight<f16, 32, 32> = WarpRight::<f16, 32, 32>::load(a.t(), [0, 0]);
    let mut sum: WarpAccumulator<f32, 16, 32> = WarpAccumulator::zero();
    sum.mma_sync(left, right);
    sum.mma_sync(left, WarpRight::<f16, 32, 32>::load(a.t_if::<false>(), [0, 0]));
    let narrow: Tile<e4m3, Shape2<32, 32>, Swizzle32> = shared();
    sum.mma_sync(
        WarpLeft::<f16, 16, 32>::widen(narrow, [0, 0]),
        WarpRight::<f16, 32, 32>::widen(narrow, [0, 0]),
    );
    let mut rows: WarpRows<f32, 16> = sum.row_max();
    rows = WarpRows::<f32, 16>::filled(rows[0] + sum.row_sum()[1]);
    for i in unroll(0..sum.len()) {
        sum[i] += rows[sum.row(i)] + sum.at(i)[1] as f32 + rows.len() as f32;
    }
    sum.store(a, [0, 0]);
    sum.store_to(out.matrix(0, [16, 32], 32), [0, 0]);
    let weights: WarpLeft<f16, 16, 32> = sum.pack::<f16>();
    sum.mma_sync(weights, right);
    let bytes: Tile<u8, Shape2<16, 32>> = shared();
    let mut count = WarpAccumulator::<i32, 16, 16>::zero();
    let ones = WarpLeft::<u8, 16, 32>::load(bytes, [0, 0]);
    let others = WarpRight::<u8, 16, 32>::load(bytes, [0, 0]);
    count.mma_sync_saturating(ones, others);
    count.mma_sync_and_popc(ones, others);
    count.mma_sync_xor_popc(ones, others);
}

fn main() {}
