// Bulk copies: multiples of 16 bytes, within shared memory whose elements lie one after the other,
// of types that the copy engine has.
#[tma_kernel(threads = 64)]
fn parsed(g: Global<f32>, n: u32, i: i64) {
    let a: SharedArray<f32, 64> = shared();
    let t: Tile<f32, Shape2<8, 16>> = shared();
    let w: Tile<f32, Shape2<8, 16>, Swizzle64> = shared();
    let h: SharedArray<f16, 64> = shared();
    let b: Barrier = shared();
    g.bulk_load(w, 0, 4, 0, b);
    g.bulk_load(h, 0, 8, 0, b);
    g.bulk_store(0, b, 0, 8);
    g.bulk_reduce_sum(0, a, 0, 4);
    g.bulk_reduce_max(0, a, 0, 4);
    g.hint(l2_evict_last(1.0)).atomic_add(0, 1.0);
    g.hint(l2_evict_last(1.0)).hint(l2_evict_last(1.0)).bulk_prefetch(0, 4);
}

#[tma_kernel(threads = 64)]
fn checked(g: Global<f32>, n: u32, i: i64) {
    let a: SharedArray<f32, 64> = shared();
    let t: Tile<f32, Shape2<8, 16>> = shared();
    let w: Tile<f32, Shape2<8, 16>, Swizzle64> = shared();
    let h: SharedArray<f16, 64> = shared();
    let b: Barrier = shared();
    g.bulk_load(a, 2, 4, i, b);
    g.bulk_load(a, 0, n * 2 + 1, i, b);
    g.bulk_store(i * 4 - 1, a, 0, 4);
    g.bulk_load(a, 32, 36, 0, b);
    g.bulk_load(t, n, 132, 0, b);
}
