// What a newcomer writes who knows Rust and CUDA, but not the language.
#[tma_module]
mod m {
    #[derive(Clone, Copy)]
    struct Running {
        most: f32,
        sum: f32,
    }

    #[tma_device]
    fn bump(value: &mut f32) {
        *value += 1.0;
    }
    #[tma_device]
    fn twice(value: &f32) -> f32 {
        *value + *value
    }
    #[tma_device]
    fn by_value(n: u32) -> u32 {
        n += 1;
        n
    }
    #[tma_device]
    fn by_reference(n: &u32) {
        *n += 1;
    }
    #[tma_device]
    fn total(t: u32) -> f32 {
        let parts: SharedArray<f32, 32> = shared();
        parts.get(t)
    }

    #[tma_kernel(threads = 32)]
    fn functions(x: Global<f32>, y: Global<f32>, n: u32) {
        let t = thread_idx().x;
        let value = x.get(t);
        y.set(t, value.rsqrt());
        y.set(t, value.exp2());
        y.set(t, value.powf(2.0));
        y.set(t, value.to_f32());
        y.set(t, f32::max(value, 1.0));
        y.set(t, u32::min(n, 1) as f32);
        y.set(t, f32::from_f32(value));
        if value.is_nan() || value.is_infinite() || !value.is_finite() {
            trap();
        }
        debug_assert!(n > 0);
        assert_ne!(n, 0);
    }

    #[tma_kernel(threads = 32)]
    fn references(y: Global<f32>) {
        let mut values = [1.0f32; 4];
        bump(&mut values[2]);
        y.set(0, twice(&values[1]));
    }

    #[tma_kernel(threads = 32)]
    fn parameters(y: Global<u32>, n: u32) {
        n += 1;
        let mut other = by_value(n);
        by_reference(&other);
        y.set(0, other);
    }

    #[tma_kernel(threads = 32)]
    fn arrays(y: Global<f32>) {
        let running: SharedArray<Running, 4> = shared();
        let rows: SharedArray<[f32; 32], 4> = shared();
        let counts: SharedArray<u32, 32> = shared();
        counts.set(thread_idx().x, 0);
        counts.atomic_add(0, 1);
        counts.fetch(0, 1);
        for _ in 0..2 {
            y.set(0, total(thread_idx().x));
        }
    }

    #[tma_kernel(threads = 32)]
    fn widened(y: Global<f32>, row: u64, t: u32, v: i32) {
        let values = [1.0f32; 4];
        y.set(row + t, values[t]);
        let i: u64 = t;
        let j: u32 = v;
        let k: u32 = row;
    }

    #[tma_kernel(threads = 32, instances(float = <f32>))]
    fn zeros<T: Scalar>(y: Global<T>) {
        y.set(0, T::ZERO);
        y.set(1, T::ONE);
    }

    trait Map {
        fn map(self) -> Self;
    }

    #[tma_device]
    fn mapped<T: Scalar + Map>(x: T) -> T {
        x.map()
    }

    #[tma_kernel(threads = 32, instances(float = <f32>))]
    fn traits<T>(x: Global<T>, y: Global<T>)
    where
        T: Map,
    {
        y.set(0, mapped(x.get(0)));
        y.set(1, T::map(x.get(1)));
        y.set(2, T::START);
    }

    #[tma_kernel(threads = 32, instances(T in [Running, crate::Meters]))]
    fn listed<T: Scalar>(x: Global<T>) {}

    #[tma_kernel(threads = 32)]
    fn no_instances<T: Scalar, const N: u32, const FAST: bool>(y: Global<T>) {}

    #[tma_kernel(threads = 128)]
    fn accumulators(out: Global<f32>) {
        let mut sum = Accumulator::zero();
        sum.store_to(out.matrix(0, [64, 64], 64), [0, 0]);
        let unused = Accumulator::zero();
    }

    #[tma_kernel(threads = 160)]
    fn first_warp_loads(out: Global<f32>) {
        if warp_idx() == 0 {
            return;
        }
        let sum = Accumulator::<f32, 64, 64>::zero();
        sum.store_to(out.matrix(0, [64, 64], 64), [0, 0]);
        sync_warpgroup();
    }
}
