// Tiles whose extents are not in a shape, and maps of what is no tile.
#[tma_module]
mod m {
    const ROWS: u32 = 16;

    #[tma_kernel(threads = 32)]
    fn extents(src: TensorMap<Tile<bf16, 64, 128>>, other: TensorMap<Tile<u8, ROWS, 32, Swizzle32>>) {
        let line: Tile<f64, 8> = shared();
        let grid: Tile<f32> = shared();
        let swizzled: Tile<f32, Shape2<8, 8>, 32> = shared();
        src.prefetch([0, 0]);
    }

    #[tma_kernel(threads = 32, instances(T in [halves = f16], COLS in [a = 8]))]
    fn generic<T: TileElement, const COLS: u32>(src: TensorMap<Tile<T, 4, COLS>>) {
        src.prefetch([0, 0]);
    }

    #[tma_kernel(threads = 32)]
    fn moved(
        scalar: TensorMap<u16>,
        array: Maps<[f64; 12]>,
        shared_array: TensorMap<SharedArray<i32, 256>>,
        stages: TensorMap<Stages<Tile<f32, Shape2<8, 8>>, 2>>,
        slice: TensorMap<Global<f32>>,
        barrier: TensorMap<Barrier>,
        pixels: Im2colMap<Tile<f16, Shape3<2, 8, 64>>, 4>,
        channels: Im2colMap<Tile<u8, Shape1<96>>, 5>,
    ) {
        let ring: Pipeline<Tile<u16, Shape2<4, 32>>, 3> = shared();
        let rows: SharedArray<[u16; 24], 6> = shared();
        let maps: Global<[u16; 24]> = shared();
        ring.init(1);
    }
}
