// A hint is a policy, and one only.
#[tma_kernel(threads = 64)]
fn parsed(m: TensorMap<Tile<u32, Shape1<64>>>) {
    let p = l2_evict_last(1.0);
    m.hint(p).hint(p).prefetch([0]);
    m.hint(p).prefetch_descriptor();
    m.hint(0.5f32).prefetch([0]);
    m.hint(l2_evict_last(2)).prefetch([0]);
    m.reduce_sum([0], m);
}

#[tma_kernel(threads = 64)]
fn checked(m: TensorMap<Tile<u32, Shape1<64>>>) {
    m.hint(l2_evict_last(0.0)).prefetch([0]);
}
