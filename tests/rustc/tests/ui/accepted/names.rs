//! Names of the vocabulary that mean something else where that is allowed, and imports of all
//! kinds.
#![deny(warnings)]
// The workspace asks for more than rustc does by itself.
#![allow(unreachable_pub, unused_qualifications, clippy::all)]

#[tma_runtime::tma_module]
mod module {
    use tma_runtime::prelude::*;

    const SHARED: u32 = 4;

    #[allow(non_camel_case_types)]
    type u8 = u64;

    type Swizzle64 = Swizzle128;

    #[tma_device]
    fn min(a: u32, b: u32) -> u32 {
        a + b
    }

    #[tma_kernel(threads = 32)]
    pub fn hidden_by_the_module(out: Global<u32>, map: TensorMap<Tile<f16, Shape2<8, 64>, Swizzle64>>) {
        map.prefetch_descriptor();
        let wide: u8 = u8::MAX;
        out.set(0, min(self::SHARED, self::min(1, wide as u32)));
    }
}

mod one_by_one {
    use tma_runtime::lang::{Global, min, thread_idx};
    use tma_runtime::{tma_kernel, tma_module};

    #[tma_kernel(threads = 32)]
    pub fn words_one_by_one(out: Global<u32>) {
        out.set(thread_idx().x, min(out.get(0), 2));
    }

    #[tma_module]
    pub mod by_path {
        #[tma_kernel(threads = 32)]
        pub fn words_by_path(out: tma_runtime::lang::Global<u32>) {
            let first = tma_runtime::lang::thread_idx().x == 0;
            std::assert!(first, "other threads");
            tma_runtime::printf!("{}\n", core::primitive::u32::MAX);
            out.set(0, ::tma_runtime::prelude::min(out.get(0), 2));
        }
    }
}

/// A trait's method of the same name as one of the type itself is not meant by rustc either.
mod extension {
    use tma_runtime::prelude::*;

    trait Extension {
        fn get(self, at: u32) -> u32;
    }

    impl Extension for Global<u32> {
        fn get(self, at: u32) -> u32 {
            at
        }
    }

    #[tma_kernel(threads = 32)]
    pub fn own_method(out: Global<u32>) {
        out.set(0, out.get(1));
    }

    pub fn uses(out: Global<u32>) -> u32 {
        Extension::get(out, 1)
    }
}

/// Nor is one that rustc would find later, one of another type, or one that is not in scope.
mod later {
    #[tma_runtime::tma_module]
    mod module {
        use tma_runtime::prelude::*;

        type Row = Tile<u32, Shape2<8, 32>>;

        pub struct Other;

        pub trait Mine {
            fn acquire(&mut self) -> u32;
            fn parity(&self) -> u32;
            fn wait(self) -> u32;
            fn stage(self) -> u32;
            fn sqrt(&self) -> f32;
        }

        impl Mine for Other {
            fn acquire(&mut self) -> u32 {
                1
            }
            fn parity(&self) -> u32 {
                2
            }
            fn wait(self) -> u32 {
                3
            }
            fn stage(self) -> u32 {
                4
            }
            fn sqrt(&self) -> f32 {
                5.0
            }
        }

        pub trait Same {
            fn parity(&self) -> u32;
            fn flip(&mut self);
        }

        impl<T> Same for T {
            fn parity(&self) -> u32 {
                6
            }
            fn flip(&mut self) {}
        }

        pub mod out_of_scope {
            pub trait Flip {
                fn flip(self);
            }

            impl<T> Flip for T {
                fn flip(self) {}
            }
        }

        #[tma_device]
        fn on_references(phase: &mut Phase, least: &mut u32, x: &f32, ring: &mut Producer<(Row,), 2>) -> f32 {
            phase.flip();
            *least = (*least).min(7);
            let slot = ring.acquire();
            *least += slot.stage();
            x.sqrt().min(2.0)
        }

        #[tma_kernel(protocol = trusted("a sketch"), threads = 32)]
        pub fn methods_of_others(out: Global<f32>) {
            let ring: Pipeline<(Row,), 2> = shared();
            ring.init(1);
            sync_threads();
            let mut producer = ring.producer();
            let mut phase = Phase::new();
            let mut least = 3;
            let mut x = out.get(0);
            x += 1.0;
            out.set(0, on_references(&mut phase, &mut least, &x, &mut producer));
            phase.flip();
            out.set(1, (phase.parity() + least) as f32);
        }
    }

    pub fn uses() {
        use module::{Mine, Same, out_of_scope};
        let mut other = module::Other;
        let _ = (other.acquire(), Mine::parity(&other), other.sqrt());
        let _ = (Mine::wait(module::Other), Mine::stage(module::Other));
        Same::flip(&mut other);
        let _ = Same::parity(&other);
        out_of_scope::Flip::flip(other);
    }
}

/// A generic's value has the methods of `Ord`, its bound, and other values have theirs.
mod generics {
    use tma_runtime::prelude::*;

    pub trait Rows {
        fn rows(&self) -> u32;
    }

    impl Rows for u32 {
        fn rows(&self) -> u32 {
            7
        }
    }

    #[tma_kernel(threads = 32, instances(words = <u32>))]
    pub fn methods_beside_generics<T: TileElement + Ord + Rows>(data: Global<T>, out: Global<f32>) {
        let tile: Tile<u32, Shape2<8, 8>> = shared();
        let least = data.get(0).min(data.get(1)).max(data.get(2));
        data.set(3, least);
        out.set(0, out.get(tile.rows()).sqrt());
    }
}

/// Device functions have generics of their own, of the names of other types, and constants call
/// functions.
mod generic_functions {
    #[tma_runtime::tma_module]
    mod module {
        use tma_runtime::prelude::*;

        type Row = Tile<f32, Shape2<8, 8>>;

        const fn rows(n: u32) -> u32 {
            if n > 2 { n.div_ceil(2) } else { 1 }
        }

        const COUNT: u32 = rows(7) * 8;

        #[tma_device]
        fn least<Row: Ord + Copy, const COUNT: usize>(all: [Row; COUNT]) -> Row {
            all[0].min(all[COUNT - 1])
        }

        #[tma_device]
        fn element<T, const M: u32, const N: u32, W>(tile: Tile<T, Shape2<M, N>, W>) -> T
        where
            T: TileElement,
            W: Swizzle,
        {
            tile.get([0, 0])
        }

        #[tma_kernel(threads = COUNT)]
        pub fn generics_of_functions(out: Global<u32>) {
            let tile: Row = shared();
            tile.set([0, 0], 1.5);
            sync_threads();
            let first = element(tile).sqrt() + element::<f32, 8, _, NoSwizzle>(tile);
            out.set(0, least([out.get(1), 7, COUNT]).max(first as u32));
            out.set(1, least::<_, { rows(3) as usize }>([3, 2]));
        }
    }
}

/// Without a prelude `Ord` is imported, or its methods are not used.
mod no_prelude {
    #![no_implicit_prelude]
    use ::std::assert;
    use ::std::cmp::Ord;
    use ::tma_runtime::prelude::*;

    #[tma_kernel(threads = 32)]
    pub fn ord_imported(out: Global<u32>) {
        let least = out.get(1).min(2).max(1);
        assert!(least > 0);
        out.set(0, least);
    }

    mod functions {
        use ::tma_runtime::prelude::*;

        #[tma_kernel(protocol = trusted("a sketch"), threads = 32)]
        pub fn function_of_the_language(out: Global<f32>) {
            let ring: Pipeline<(Tile<f32, Shape2<8, 32>>,), 2> = shared();
            ring.init(1);
            sync_threads();
            ring.producer().drain();
            out.set(0, min(out.get(1), 2.0).min(1.0).sqrt());
        }
    }
}

/// Modules take no names of functions, macros and scalars.
mod modules {
    use std::f32;
    use tma_runtime::prelude::*;

    mod shared {}
    mod min {}
    mod u8 {}

    #[tma_kernel(protocol = trusted("a sketch"), threads = 32)]
    pub fn names_of_modules(out: Global<f32>) {
        let met: Barrier = shared();
        met.init(1);
        out.set(0, min(f32::MAX, 3.5f32 as u8 as f32));
    }
}

fn main() {
    let _ = extension::uses;
    let _ = generics::Rows::rows(&1);
    let _ = later::uses;
    // A function imports for itself what the module around it calls otherwise.
    struct Barrier;
    let _ = Barrier;
    {
        use tma_runtime::prelude::*;

        #[tma_kernel(protocol = trusted("a sketch"), threads = 32)]
        pub fn in_a_block(out: Global<u32>) {
            let met: Barrier = shared();
            met.init(1);
            out.set(0, thread_idx().x);
        }
    }
}
