// Rust computes no constants in types from generics.
#[tma_module]
mod m {
    type Halves<const N: u32> = Tile<f32, Shape2<{ N / 2 }, 64>>;

    #[tma_device]
    fn first<T: TileElement, const N: u32>(values: SharedArray<T, N>) -> u32 {
        let zeros = [0u32; N as usize];
        zeros[0] + values.len()
    }

    #[tma_kernel(threads = 32, instances((T, N) in [narrow = (f16, 64), wide = (f32, 128)]))]
    fn in_types<T: TileElement, const N: u32>(
        src: TensorMap<Tile<T, Shape2<{ N / 2 }, 64>>>,
        whole: TensorMap<Tile<T, Shape2<N, { N }>>>,
        out: Global<u32>,
    ) {
        let ring: Stages<Barrier, { 64 / size_of::<T>() as u32 }> = shared();
        let values: SharedArray<T, { N + K }> = shared();
        let other: SharedArray<T, { K * 2 }> = shared();
        src.prefetch([0, 0]);
        whole.prefetch([0, 0]);
        out.set(0, ring.len() + values.len() + other.len());
    }

    const K: u32 = 4;

    #[tma_kernel(threads = 32)]
    fn in_uses(map: TensorMap<Halves<16>>, out: Global<u32>) {
        let values: SharedArray<u32, 16> = shared();
        map.prefetch([0, 0]);
        out.set(0, first(values));
    }

    #[tma_kernel(threads = 32, instances(LANES in [two = 2, four = 4]))]
    fn in_arguments<const LANES: usize>(out: Global<u32>) {
        let pair = out.get_vec::<{ LANES / 2 }>(0);
        out.set(0, pair[0]);
    }
}
