use tma_runtime::prelude::*;

struct Filter;

impl Filter {
    #[tma_kernel(threads = 32)]
    pub fn method_without_self(out: Global<u32>) {
        out.set(thread_idx().x, 1);
    }

    #[tma_kernel(threads = 32)]
    pub fn method_with_self(&self, out: Global<u32>) {
        out.set(thread_idx().x, 2);
    }
}

trait Filters {
    #[tma_kernel(threads = 32)]
    fn method_of_a_trait(out: Global<u32>) {
        out.set(thread_idx().x, 3);
    }
}

fn main() {}
