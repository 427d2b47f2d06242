// Variables are not called, and paths are read whole.
#[tma_module]
mod m {
    #[tma_device]
    fn f(x: u32) -> u32 {
        x
    }

    type Row = SharedArray<u32, 4>;
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        let MAX = 3;
        out.set(0, <u32>::MAX);
        out.set(0, <u32>::min(n, 1));
        out.set(0, std::cmp::max(n, 1));
        out.set(0, u32::min(n, 1));
        out.set(0, super::other(n));
        let b: std::sync::Barrier = shared();
        out.set(0, super::n);
        let four = 4;
        out.set(0, match n { four => 1, _ => 2 });
        out.set(0, super::f(n));
        let r: super::Row = shared();
        let unroll = n;
        for i in unroll(0..4u32) {
            out.set(i, 1);
        }
        let min = n;
        out.set(0, min(n, 1));
    }
}
