// Maps that kernels make: dimensions are those of the tile, types agree, and fields are what the
// copy engine takes.
#[tma_kernel(threads = 32)]
fn parsed(from: TensorMap<Tile<f32, Shape2<8, 32>>>, data: Global<f32>, maps: Maps<Tile<f32, Shape2<8, 32>>>, n: u32, halves: Global<f16>) {
    let m: SharedMap<Tile<f32, Shape2<8, 32>>> = shared();
    let t: Tile<f32, Shape2<8, 32>> = shared();
    let b: Barrier = shared();
    m.set_extent::<2>(n);
    m.set_stride::<1>(16);
    m.set_extent(n);
    let d = n as usize;
    m.set_extent::<d>(n);
    m.set_address(halves, 0);
    m.copy_from(maps.at(0));
    m.set_stride::<0>(n);
    m.publish(from, 0);
    maps.load(t, [0, 0], b);
    m.set_swizzle(3);
}

#[tma_kernel(threads = 32)]
fn checked(from: TensorMap<Tile<f32, Shape2<8, 32>>>, data: Global<f32>, maps: Maps<Tile<f32, Shape2<8, 32>>>, n: u32, halves: Global<f16>) {
    let m: SharedMap<Tile<f32, Shape2<8, 32>>> = shared();
    let t: Tile<f32, Shape2<8, 32>> = shared();
    let b: Barrier = shared();
    m.set_stride::<0>(1 << 40);
    m.set_stride::<0>(n as u64 * 32 + 8);
}
