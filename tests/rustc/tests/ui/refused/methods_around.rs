//! Traits whose methods rustc finds before those of the vocabulary.
#![allow(dead_code, unused_mut)]

mod by_value {
    use tma_runtime::prelude::*;

    trait Mine {
        fn parity(self) -> u32;
        fn flip(self);
    }

    impl Mine for Phase {
        fn parity(self) -> u32 {
            7
        }
        fn flip(self) {}
    }

    #[tma_kernel(threads = 32)]
    pub fn phase(out: Global<u32>) {
        let mut phase = Phase::new();
        out.set(0, phase.parity());
        let mut other = Phase::new();
        other.flip();
    }
}

mod by_reference {
    use tma_runtime::prelude::*;

    trait Mine {
        fn flip(&self);
    }

    impl<T> Mine for T {
        fn flip(&self) {}
    }

    #[tma_kernel(threads = 32)]
    pub fn flip(out: Global<u32>) {
        let mut phase = Phase::new();
        phase.flip();
        out.set(0, phase.parity());
    }
}

/// For the pipelines of one type only.
mod pipeline {
    #[tma_runtime::tma_module]
    mod module {
        use tma_runtime::prelude::*;

        type Row = Tile<u32, Shape2<8, 32>>;

        trait States {
            fn acquire(&self) -> LoadingSlot<(Row,)>;
            fn drain(self);
        }

        impl States for Producer<(Row,), 4> {
            fn acquire(&self) -> LoadingSlot<(Row,)> {
                loop {}
            }
            fn drain(self) {}
        }

        trait Waits<Slot> {
            fn wait(&self) -> Slot;
            fn ready(self) -> bool
            where
                Self: Sized,
            {
                true
            }
        }

        impl Waits<FullSlot<(Row,)>> for Consumer<(Row,), 4> {
            fn wait(&self) -> FullSlot<(Row,)> {
                loop {}
            }
        }

        impl Waits<EmptySlot<(Row,)>> for Producer<(Row,), 4> {
            fn wait(&self) -> EmptySlot<(Row,)> {
                loop {}
            }
        }

        trait Slots: Sized {
            fn stage(self) -> u32 {
                7
            }
            fn barrier(self) -> Barrier {
                loop {}
            }
        }

        impl Slots for EmptySlot<(Row,)> {}
        impl Slots for LoadingSlot<(Row,)> {}
        impl Slots for FullSlot<(Row,)> {}

        #[tma_kernel(threads = 32, protocol = trusted("a sketch"))]
        pub fn fills(src: TensorMap<Row>, out: Global<u32>) {
            let ring: Pipeline<(Row,), 4> = shared();
            ring.init(1);
            sync_threads();
            let mut producer = ring.producer();
            let slot = producer.acquire();
            src.load(slot.0, [0, 0], slot.barrier());
            out.set(0, producer.wait().stage());
            out.set(1, producer.acquire().stage());
            if producer.ready() {
                ring.producer().drain();
            }
        }

        #[tma_kernel(threads = 32, protocol = trusted("a sketch"))]
        pub fn reads(out: Global<u32>) {
            let ring: Pipeline<(Row,), 4> = shared();
            ring.init(32);
            sync_threads();
            let mut consumer = ring.consumer();
            out.set(0, consumer.wait().stage());
            if consumer.ready() {
                out.set(1, 1);
            }
        }
    }
}

/// A reference comes before what it refers to.
mod references {
    #[tma_runtime::tma_module]
    mod module {
        use tma_runtime::prelude::*;

        trait Mine {
            fn sqrt(&self) -> f32;
            fn parity(self) -> u32;
        }

        impl Mine for f32 {
            fn sqrt(&self) -> f32 {
                7.0
            }
            fn parity(self) -> u32 {
                7
            }
        }

        impl Mine for &mut Phase {
            fn sqrt(&self) -> f32 {
                7.0
            }
            fn parity(self) -> u32 {
                7
            }
        }

        #[tma_device]
        fn root(x: &f32) -> f32 {
            x.sqrt()
        }

        #[tma_device]
        fn parity_of(phase: &mut Phase) -> u32 {
            phase.parity()
        }

        #[tma_kernel(threads = 32)]
        pub fn by_reference(out: Global<f32>, bits: Global<u32>) {
            let mut x = out.get(0);
            x += 1.0;
            out.set(0, root(&x));
            let mut phase = Phase::new();
            bits.set(0, parity_of(&mut phase));
        }
    }
}

/// The methods of a generic's bounds, and of traits for all types.
mod generics {
    use tma_runtime::prelude::*;

    trait Mine: TileElement {
        fn sqrt(self) -> Self;
        fn rows(&self) -> u32;
    }

    impl Mine for f32 {
        fn sqrt(self) -> f32 {
            7.0
        }
        fn rows(&self) -> u32 {
            7
        }
    }

    #[tma_kernel(threads = 32, instances(floats = <f32>))]
    pub fn by_bound<T: Mine>(out: Global<T>) {
        out.set(0, out.get(1).sqrt());
    }

    trait ForAll: Sized {
        fn min(&mut self, _other: Self) -> u32 {
            7
        }
    }

    impl<T> ForAll for T {}

    #[tma_kernel(threads = 32, instances(words = <u32>))]
    pub fn for_all_types<T: TileElement>(data: Global<T>, out: Global<u32>) {
        let mut x = data.get(0);
        out.set(0, x.min(data.get(1)));
    }

    trait Cells {
        fn set(&self, at: u32, value: u32);
    }

    impl Cells for Global<u32> {
        fn set(&self, _at: u32, _value: u32) {}
    }

    #[tma_kernel(threads = 32, instances(words = <Global<u32>>))]
    pub fn of_a_handle<T: Cells>(out: T) {
        out.set(0, 1);
    }

    mod other_ord {
        use tma_runtime::prelude::*;

        trait Ord {
            fn max(self, other: Self) -> Self;
        }

        impl Ord for u32 {
            fn max(self, _other: u32) -> u32 {
                7
            }
        }

        #[tma_kernel(threads = 32, instances(words = <u32>))]
        pub fn not_the_bound_of_std<T: Ord + TileElement>(data: Global<T>) {
            data.set(0, data.get(0).max(data.get(1)));
        }
    }
}

/// `min` of integers comes from a prelude, which a module may do without.
mod no_prelude {
    #![no_implicit_prelude]

    mod by_value {
        use ::tma_runtime::prelude::*;

        trait Mine {
            fn min(self, other: Self) -> Self;
        }

        impl Mine for u32 {
            fn min(self, _other: u32) -> u32 {
                7
            }
        }

        #[tma_kernel(threads = 32)]
        pub fn min_of_a_value(out: Global<u32>) {
            out.set(0, out.get(1).min(2));
        }
    }

    mod by_reference {
        use ::tma_runtime::prelude::*;

        trait Mine {
            fn max(&self, other: Self) -> Self;
        }

        impl Mine for i32 {
            fn max(&self, _other: i32) -> i32 {
                7
            }
        }

        #[tma_kernel(threads = 32)]
        pub fn max_of_a_reference(out: Global<i32>) {
            out.set(0, out.get(1).max(2));
        }
    }

    mod for_all_types {
        use ::tma_runtime::prelude::*;

        trait Mine {
            fn min(self, other: Self) -> Self;
        }

        impl<T> Mine for T {
            fn min(self, _other: T) -> T {
                self
            }
        }

        #[tma_kernel(threads = 32)]
        pub fn min_of_all(out: Global<u32>) {
            out.set(0, out.get(1).min(2));
        }
    }
}

/// Of what tensor cores work on.
mod tensor_cores {
    #[tma_runtime::tma_module]
    mod module {
        use tma_runtime::prelude::*;

        type A = Tile<f16, Shape2<64, 64>, Swizzle128>;

        trait Sums: Sized {
            fn mma(self, _a: A, _b: A, _keep: u32) -> Flight<'static, f32, 64, 64, u32> {
                loop {}
            }
            fn len(self) -> usize {
                7
            }
            fn row(self, _i: usize) -> usize {
                7
            }
            fn at(self, _i: usize) -> [u32; 2] {
                [7, 7]
            }
            fn columns<const C: u32>(self, _j: u32) -> Columns<'static, f32, 64, C> {
                loop {}
            }
            fn store(self, _tile: A) {}
            fn store_to(self, _matrix: GlobalMatrix<u32>, _at: [u32; 2]) {}
            fn pack<E>(self) -> Fragment<f16, 64, 64> {
                loop {}
            }
            fn row_max(self) -> Rows<f32, 64> {
                loop {}
            }
            fn row_sum(self) -> Rows<f32, 64> {
                loop {}
            }
        }

        impl Sums for Accumulator<f32, 64, 64> {}

        trait Parts: Sized {
            fn len(self) -> usize {
                7
            }
            fn at(self, _i: usize) -> [u32; 2] {
                [7, 7]
            }
            fn store(self, _tile: A) {}
            fn store_to(self, _matrix: GlobalMatrix<u32>, _at: [u32; 2]) {}
        }

        impl Parts for Columns<'_, f32, 64, 64> {}

        trait Others {
            fn len(self) -> usize;
            fn skip(&self, steps: u32);
        }

        impl Others for Rows<f32, 64> {
            fn len(self) -> usize {
                7
            }
            fn skip(&self, _steps: u32) {}
        }

        impl Others for Consumer<(A,), 2> {
            fn len(self) -> usize {
                7
            }
            fn skip(&self, _steps: u32) {}
        }

        trait Flights {
            fn mma(&self, a: A, b: A, keep: u32) -> u32;
            fn wait(self) -> u32;
        }

        impl Flights for Flight<'_, f32, 64, 64, u32> {
            fn mma(&self, _a: A, _b: A, _keep: u32) -> u32 {
                7
            }
            fn wait(self) -> u32 {
                7
            }
        }

        type Bytes = Tile<u8, Shape2<64, 64>, Swizzle64>;

        trait Counts: Sized {
            fn mma_saturating(self, _a: Bytes, _b: Bytes, _keep: u32) -> Flight<'static, i32, 64, 64, u32> {
                loop {}
            }
            fn mma_and_popc(self, _a: Bytes, _b: Bytes, _keep: u32) -> Flight<'static, i32, 64, 64, u32> {
                loop {}
            }
        }

        impl Counts for Accumulator<i32, 64, 64> {}

        trait CountsOn {
            fn mma_saturating(&self, _a: Bytes, _b: Bytes, _keep: u32) -> u32 {
                7
            }
            fn mma_and_popc(&self, _a: Bytes, _b: Bytes, _keep: u32) -> u32 {
                7
            }
        }

        impl CountsOn for Flight<'_, i32, 64, 64, u32> {}

        #[tma_kernel(threads = 128)]
        pub fn saturates(out: Global<u32>) {
            let a: Bytes = shared();
            let mut one = Accumulator::<i32, 64, 64>::zero();
            out.set(0, one.mma_saturating(a, a, 1).wait());
            let mut two = Accumulator::<i32, 64, 64>::zero();
            out.set(0, two.mma_and_popc(a, a, 1).wait());
        }

        #[tma_kernel(threads = 128)]
        pub fn saturates_on(out: Global<u32>) {
            let a: Bytes = shared();
            let mut sum = Accumulator::<i32, 64, 64>::zero();
            let mut flight = sum.mma(a, a, 1u32);
            out.set(0, flight.mma_saturating(a, a, 2));
            out.set(0, flight.mma_and_popc(a, a, 3));
            flight.wait();
        }

        #[tma_kernel(threads = 128)]
        pub fn starts(out: Global<u32>) {
            let a: A = shared();
            let mut sum = Accumulator::<f32, 64, 64>::zero();
            out.set(0, sum.mma(a, a, 1).wait());
        }

        /// `wait` takes the flight: no trait comes before it.
        #[tma_kernel(threads = 128)]
        pub fn goes_on(out: Global<u32>) {
            let a: A = shared();
            let mut sum = Accumulator::<f32, 64, 128>::zero();
            let b: Tile<f16, Shape2<128, 64>, Swizzle128> = shared();
            let mut flight = sum.mma(a, b, 1u32);
            out.set(0, flight.mma(a, b, 2));
            out.set(0, flight.wait());
        }

        #[tma_kernel(threads = 128)]
        pub fn counts(out: Global<u32>) {
            let one = Accumulator::<f32, 64, 64>::zero();
            out.set(0, cast::<u32>(one.len()));
            let two = Accumulator::<f32, 64, 64>::zero();
            out.set(0, cast::<u32>(two.row(1)));
            let three = Accumulator::<f32, 64, 64>::zero();
            out.set(0, three.at(1)[0]);
            let rows = Rows::<f32, 64>::filled(0.0);
            out.set(0, cast::<u32>(rows.len()));
            let ring: Pipeline<(A,), 2> = shared();
            let mut consumer = ring.consumer();
            consumer.skip(1);
        }

        #[tma_kernel(threads = 128)]
        pub fn stores(out: Global<u32>) {
            let a: A = shared();
            let one = Accumulator::<f32, 64, 64>::zero();
            one.store(a);
            let two = Accumulator::<f32, 64, 64>::zero();
            two.columns::<64>(0).store(a);
            let four = Accumulator::<f32, 64, 64>::zero();
            four.store_to(out.matrix(0, [64, 64], 64), [0, 0]);
            two.columns::<64>(0).store_to(out.matrix(0, [64, 64], 64), [0, 0]);
            let three = Accumulator::<f32, 64, 128>::zero();
            out.set(0, cast::<u32>(three.columns::<64>(1).len()));
            out.set(0, three.columns::<64>(0).at(3)[1]);
        }

        #[tma_kernel(threads = 128)]
        pub fn reduces(out: Global<f32>) {
            let one = Accumulator::<f32, 64, 64>::zero();
            out.set(0, one.row_max()[0]);
            let two = Accumulator::<f32, 64, 64>::zero();
            out.set(0, two.row_sum()[0]);
            let three = Accumulator::<f32, 64, 64>::zero();
            let _weights = three.pack::<f16>();
        }
    }
}
fn main() {}
