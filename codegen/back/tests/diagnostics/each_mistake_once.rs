// A mistake in each instance and in each call of a device function is told once.
#[tma_module]
mod m {
    #[tma_device]
    fn helper(x: u32) -> u32 {
        x + nope
    }
    #[tma_kernel(threads = 32, instances(N in [a = 1, b = 2, c = 3]))]
    fn k<const N: u32>(out: Global<u32>) {
        out.set(0, helper(N));
        out.set(1, helper(N));
    }
}
