//! Names that mean something else than the vocabulary, for reasons that the attribute does not see.
#![allow(dead_code, non_camel_case_types, unused_imports, unused_macros)]

mod renamed {
    use std::cmp::max as min;
    use tma_runtime::prelude::*;

    #[tma_kernel(threads = 32)]
    pub fn renamed_import(out: Global<u32>) {
        out.set(0, min(out.get(1), 2));
    }
}

mod host_function {
    use tma_runtime::prelude::*;

    fn min(a: u32, b: u32) -> u32 {
        a + b
    }

    #[tma_kernel(threads = 32)]
    pub fn function_around(out: Global<u32>) {
        out.set(0, min(out.get(1), 2));
    }
}

mod scalar {
    use tma_runtime::prelude::*;

    type u8 = u64;

    #[tma_kernel(threads = 32)]
    pub fn alias_of_a_scalar(out: Global<u32>) {
        out.set(0, out.get(1) as u8 as u32);
    }
}

mod constant {
    use tma_runtime::prelude::*;

    mod u32 {
        pub const MAX: core::primitive::u32 = 7;
    }

    #[tma_kernel(threads = 32)]
    pub fn constant_of_a_module(out: Global<u32>) {
        out.set(0, u32::MAX);
    }
}

mod generic_type {
    use tma_runtime::prelude::*;

    struct Global<T>(T);

    impl<T> Global<T> {
        fn set(&self, _: u32, _: T) {}
    }

    #[tma_kernel(threads = 32)]
    pub fn own_type(out: Global<u32>) {
        out.set(0, 1);
    }
}

mod imported_type {
    use std::sync::Barrier;
    use tma_runtime::prelude::*;

    #[tma_kernel(protocol = trusted("a sketch"), threads = 32)]
    pub fn barrier_of_std() {
        let met: Barrier = shared();
        met.init(1);
    }
}

mod swizzle {
    use tma_runtime::prelude::*;

    type Swizzle128 = NoSwizzle;

    #[tma_kernel(threads = 32)]
    pub fn own_swizzle(map: TensorMap<Tile<f32, Shape2<8, 32>, Swizzle128>>) {
        map.prefetch_descriptor();
    }
}

mod instance {
    use tma_runtime::prelude::*;

    type f16 = f32;

    #[tma_kernel(threads = 32, instances(half = <f16>))]
    pub fn type_of_an_instance<T: Scalar>(out: Global<T>) {
        out.set(0, out.get(1));
    }
}

mod by_path {
    use tma_runtime::prelude::*;

    mod own {
        pub fn max(a: u32, b: u32) -> u32 {
            a + b
        }
    }

    #[tma_kernel(threads = 32)]
    pub fn other_path(out: Global<u32>) {
        out.set(0, own::max(out.get(1), 2) + Ord::min(3, 4));
    }
}

mod macros {
    use tma_runtime::prelude::*;

    macro_rules! assert {
        ($($any:tt)*) => {};
    }

    #[tma_kernel(threads = 32)]
    pub fn own_assert(out: Global<u32>) {
        assert!(out.get(0) == 1);
    }

    mod nothing {
        macro_rules! nothing {
            ($($any:tt)*) => {};
        }
        pub(crate) use nothing;
    }

    mod imported {
        use super::nothing::nothing as printf;
        use tma_runtime::prelude::*;

        #[tma_kernel(threads = 32)]
        pub fn other_printf(out: Global<u32>) {
            printf!("{}", out.get(0));
        }
    }
}

mod shared_by_kernels {
    use tma_runtime::prelude::*;

    #[tma_module]
    mod module {
        use std::cmp::max as min;
        use tma_runtime::prelude::*;

        #[tma_device]
        fn least(a: u32) -> u32 {
            min(a, 2)
        }

        #[tma_kernel(threads = 32)]
        pub fn import_in_a_module(out: Global<u32>) {
            out.set(0, least(out.get(1)));
        }
    }
}

fn main() {
    use tma_runtime::prelude::*;

    fn thread_idx() -> Dim3 {
        loop {}
    }

    #[tma_kernel(threads = 32)]
    pub fn in_a_function(out: Global<u32>) {
        out.set(thread_idx().x, 1);
    }
}
