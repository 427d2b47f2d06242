//! Memory of another GPU, where memory of this one is expected, and the reverse.

use tma_runtime::prelude::*;

#[tma_module]
mod kernels {
    use tma_runtime::prelude::*;

    #[tma_device]
    fn own(x: Global<u32>) -> u32 {
        x.get(0)
    }

    #[tma_device]
    fn of_a_rank(x: Peer<Global<u32>>) -> u32 {
        x.get(0)
    }

    #[tma_kernel(threads = 32)]
    pub fn peers(x: Peers<Global<u32>>) {
        let a = own(x.of(0));
        let b = of_a_rank(x.own());
        let c = x.of(1).atomic_add(0, a + b);
    }
}

/// The ranks write these tensors.
#[tma_kernel(threads = 32)]
fn written(x: Peers<Global<u32>>) {
    x.of(0).set(rank(), 1);
}

fn shared(device: &Device, x: &DeviceTensor<u32, 1>) -> Result<(), Error> {
    written::launch(device, 1, &[x])
}

fn main() {}
