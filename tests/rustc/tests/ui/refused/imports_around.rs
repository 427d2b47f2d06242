//! Imports that mean something else to rustc, or that it does not allow.

use tma_runtime::prelude::*;

// The build script does not evaluate conditions, and finds the first of the two.
#[cfg(any())]
#[tma_module]
pub mod sizes {
    pub const ROWS: u32 = 1;
}

#[cfg(not(any()))]
#[tma_module]
pub mod sizes {
    pub const ROWS: u32 = 2;
}

#[tma_module]
pub mod other_module {
    use super::sizes::ROWS;
    use tma_runtime::prelude::*;

    #[tma_kernel(threads = 32)]
    pub fn fill(out: Global<u32>) {
        out.set(thread_idx().x, ROWS);
    }
}

#[tma_module]
pub mod shared {
    use super::max;
    use tma_runtime::prelude::*;

    #[tma_device]
    pub fn positive(x: f32) -> f32 {
        max(x, 0.0)
    }

    #[tma_device]
    fn helper(x: f32) -> f32 {
        x
    }
}

fn max(x: f32, y: f32) -> f32 {
    x + y
}

#[tma_module]
pub mod private_item {
    use super::shared::helper;
    use tma_runtime::prelude::*;

    #[tma_kernel(threads = 32)]
    pub fn fill(out: Global<f32>) {
        out.set(thread_idx().x, helper(1.0));
    }
}

#[tma_module]
pub mod unknown_item {
    use super::shared::nothing;
    use tma_runtime::prelude::*;

    #[tma_kernel(threads = 32)]
    pub fn fill(out: Global<f32>) {
        out.set(thread_idx().x, nothing(1.0));
    }
}

fn main() {}
