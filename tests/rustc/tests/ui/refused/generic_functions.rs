//! Generic device functions: bounds, and methods of values whose type is a generic.
#![allow(dead_code)]

use tma_runtime::tma_module;

#[tma_module]
mod methods {
    use tma_runtime::prelude::*;

    pub trait Mine: Copy {
        fn sqrt(self) -> Self;
    }

    impl Mine for f32 {
        fn sqrt(self) -> Self {
            self
        }
    }

    #[tma_device]
    fn root<T: Mine>(x: T) -> T {
        x.sqrt()
    }

    #[tma_kernel(threads = 32)]
    pub fn method_of_a_bound(out: Global<f32>) {
        out.set(0, root(out.get(0)));
    }
}

#[tma_module]
mod bounds {
    use tma_runtime::prelude::*;

    #[tma_device]
    fn twice<T: Number>(x: T) -> T {
        x + x
    }

    #[tma_device]
    fn root<T: Precise>(x: T) -> T {
        sqrt(x)
    }

    #[tma_kernel(threads = 32)]
    pub fn without_bounds(out: Global<u32>) {
        out.set(0, twice(out.get(0)) + root(out.get(1)));
    }
}

#[tma_module]
mod paths {
    use tma_runtime::prelude::*;

    #[derive(Clone, Copy)]
    struct Point {
        x: u32,
    }

    #[tma_device]
    impl Point {
        fn first() -> u32 {
            1
        }
    }

    pub trait Mine {
        fn first() -> u32;
    }

    impl Mine for u32 {
        fn first() -> u32 {
            2
        }
    }

    /// To rustc this is a function of the trait, since the generic hides the struct.
    #[tma_device]
    fn first_of<Point: Mine>(_point: Point) -> u32 {
        Point::first()
    }

    #[tma_kernel(threads = 32)]
    pub fn function_of_a_bound(out: Global<u32>) {
        let point = Point { x: Point::first() };
        out.set(0, first_of(point.x));
    }
}

fn main() {}
