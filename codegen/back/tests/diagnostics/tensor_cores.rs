//! Mistakes with tensor cores, each marked in its line.
#[tma_module]
mod m {
    type A = Tile<f16, Shape2<64, 64>, Swizzle128>;
    type Bytes = Tile<u8, Shape2<64, 64>, Swizzle64>;

    #[tma_kernel(threads = 128)]
    fn operands() {
        let a: A = shared();
        let bytes: Bytes = shared();
        let mut sum = Accumulator::<f32, 64, 128>::zero();
        sum.mma(a, a, ()).wait();
        let mut count = Accumulator::<i32, 64, 64>::zero();
        count.mma(a, bytes, ()).wait();
        count.mma(-bytes, bytes.t(), ()).wait();
        let rows = count.row_max();
        let weights = count.pack::<f16>();
        count.store(a);
    }

    #[tma_kernel(threads = 64)]
    fn accumulators(n: u32, out: Global<f32>) {
        let wide = Accumulator::<f32, 96, 260>::zero();
        let small = Accumulator::<bf16, 128, 64>::zero();
        let large = Accumulator::<f32, 256, 256>::zero();
        let mut sum = Accumulator::<f32, 64, 64>::zero();
        for i in 0..sum.len() {
            sum[i] += 1.0;
        }
        let a: A = shared();
        sum.columns::<32>(2).store(a);
        sum.columns::<64>(n).store(a);
        setmaxnreg_dec::<42>();
    }

    #[tma_kernel(threads = 256)]
    fn flights(n: u32) {
        let a: A = shared();
        let mut sum = Accumulator::<f32, 64, 64>::zero();
        if n > 1 {
            let flight = sum.mma(a, a, ());
        }
        let flight = sum.mma(a, a, ());
    }

    #[tma_kernel(threads = 128)]
    fn no_tiles() {
        let bytes: Bytes = shared();
        let mut count = Accumulator::<i32, 64, 64>::zero();
        count.mma(3.0, bytes.band::<48>(0), ()).wait();
    }

    #[tma_device]
    fn goes_on(flight: &mut Flight<'_, f32, 64, 64, u32>, a: Transposed<f32>, b: Negated<A>) {
        flight.mma(b, b, true);
    }

    #[tma_device]
    fn starts(sum: &mut Accumulator<f32, 64, 64>, a: A) -> Flight<'_, f32, 64, 64, ()> {
        sum.mma(a, a, ())
    }

    #[tma_kernel(threads = 128)]
    fn calls(n: u32) {
        let a: A = shared();
        let mut sum = Accumulator::<f32, 64, 64>::zero();
        let mut flight = sum.mma(a, a, n);
        goes_on(&mut flight, a, -a);
        flight.wait();
        starts(&mut sum, a).wait();
    }
}
