//! A kernel that a macro makes: the build script reads files, and there is no kernel in this one.

use tma_runtime::prelude::*;

macro_rules! kernel {
    ($name:ident, $value:literal) => {
        #[tma_kernel(threads = 32)]
        fn $name(values: Global<u32>) {
            values.set(thread_idx().x, $value);
        }
    };
}

kernel!(seven, 7);

fn main() {}
