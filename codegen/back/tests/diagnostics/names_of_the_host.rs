// What the host has around a kernel is refused where the kernel names it.
#[tma_module]
mod m0 {
    fn min(a: u32, b: u32) -> u32 {
        a
    }
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        out.set(0, min(n, 1));
    }
}

#[tma_module]
mod m1 {
    fn other(a: u32) -> u32 {
        a
    }
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        out.set(0, other(n));
    }
}

#[tma_module]
mod m2 {
    #[tma_kernel(threads = 1)]
    fn j() {}
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        j();
    }
}

#[tma_module]
mod m3 {
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        k(n, out);
    }
}

#[tma_module]
mod m4 {
    struct Barrier;
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        let b: Barrier = shared();
    }
}

#[tma_module]
mod m5 {
    enum f16 {}
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        let x = f16::from_f32(1.0);
    }
}

#[tma_module]
mod m6 {
    struct u8(u32);
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        let x = n as u8;
    }
}

#[tma_module]
mod m7 {
    trait Swizzle128 {}
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        let t: Tile<f16, Shape2<8, 64>, Swizzle128> = shared();
    }
}

#[tma_module]
mod m8 {
    union Shape1 {
        x: u32,
    }
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        let t: Tile<f16, Shape1<64>> = shared();
    }
}

#[tma_module]
mod m9 {
    static N: u32 = 4;
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        out.set(0, N);
    }
}

#[tma_module]
mod m10 {
    macro_rules! assert {
        () => {};
    }
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        assert!(n > 1);
    }
}

#[tma_module]
mod m11 {
    fn unroll(x: u32) -> u32 {
        x
    }
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        for i in unroll(0..4u32) {
            out.set(i, 1);
        }
    }
}

#[tma_module]
mod m12 {
    fn shared(x: u32) -> u32 {
        x
    }
    #[tma_kernel(threads = 32)]
    fn k(n: u32, out: Global<u32>) {
        let b: Barrier = shared();
    }
}
