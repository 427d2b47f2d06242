//! Programs whose memory is shared memory.

use tma_runtime::prelude::*;

/// A message in shared memory. All memory is reset in each round.
#[tma_module]
pub(crate) mod shared_litmus {
    use tma_runtime::prelude::*;

    /// Relaxed flags and data.
    const RELAXED: u32 = 0;
    /// Relaxed data; flags are released and acquired.
    const ORDERED: u32 = 1;
    /// Plain data, which are read only if the flag was seen; flags are released and acquired.
    const PLAIN: u32 = 2;

    /// Delays by up to `most` steps.
    #[tma_device]
    fn delay(noise: Global<u32>, number: u32, most: u32) {
        let mixed = (number ^ number >> 15) * 0x2c1b_3c6d;
        let mixed = (mixed ^ mixed >> 12) * 0x297a_2d39;
        let mut state = mixed;
        for _ in 0..(mixed >> 8) % most {
            state *= 0x915f_77f5;
        }
        noise.store(mixed % noise.len() as u32, state, Order::Relaxed, Scope::Device);
    }

    /// A datum, then its flag: between two warps of a block.
    #[tma_kernel(threads = 128, instances(MODE in [RELAXED, ORDERED, PLAIN]))]
    pub fn in_block<const MODE: u32>(
        seen: Global<u32>,
        noise: Global<u32>,
        tests: u32,
        rounds: u32,
        seed: u32,
    ) {
        let data: SharedArray<u32, 64> = shared();
        let flags: SharedArray<u32, 64> = shared();
        // Both warps of a pair have the same elements.
        let i = warp_idx() / 2 * 32 + lane_idx();
        let test = block_idx().x * 64 + i;
        for round in 0..rounds {
            if warp_idx() % 2 == 0 {
                data.store(i, 0, Order::Relaxed, Scope::Block);
                flags.store(i, 0, Order::Relaxed, Scope::Block);
            }
            sync_threads();
            delay(noise, seed + round * 8191 + (block_idx().x * 4 + warp_idx()) * 131071, 1024);
            if warp_idx() % 2 == 0 {
                if MODE == PLAIN {
                    data.set(i, 1);
                } else {
                    data.store(i, 1, Order::Relaxed, Scope::Block);
                }
                if MODE == RELAXED {
                    flags.store(i, 1, Order::Relaxed, Scope::Block);
                } else {
                    flags.store(i, 1, Order::Release, Scope::Block);
                }
            } else {
                let flag = if MODE == RELAXED {
                    flags.load(i, Order::Relaxed, Scope::Block)
                } else {
                    flags.load(i, Order::Acquire, Scope::Block)
                };
                let datum = if MODE != PLAIN {
                    data.load(i, Order::Relaxed, Scope::Block)
                } else if flag == 1 {
                    data.get(i)
                } else {
                    2
                };
                seen.set(round * tests + test, flag);
                seen.set((rounds + round) * tests + test, datum);
            }
            sync_threads();
        }
    }

    /// A datum, then its flag: both in the memory of the block that reads them.
    #[tma_kernel(threads = 128, cluster = 2, instances(MODE in [RELAXED, ORDERED, PLAIN]))]
    pub fn in_cluster<const MODE: u32>(
        seen: Global<u32>,
        noise: Global<u32>,
        tests: u32,
        rounds: u32,
        seed: u32,
    ) {
        let data: SharedArray<u32, 128> = shared();
        let flags: SharedArray<u32, 128> = shared();
        let i = thread_idx().x;
        let test = cluster_idx().x * 128 + i;
        for round in 0..rounds {
            if cluster_rank() == 1 {
                data.store(i, 0, Order::Relaxed, Scope::Block);
                flags.store(i, 0, Order::Relaxed, Scope::Block);
            }
            sync_cluster();
            delay(noise, seed + round * 8191 + (block_idx().x * 4 + warp_idx()) * 131071, 1024);
            if cluster_rank() == 0 {
                if MODE == PLAIN {
                    remote(data, 1).set(i, 1);
                } else {
                    remote(data, 1).store(i, 1, Order::Relaxed, Scope::Cluster);
                }
                if MODE == RELAXED {
                    remote(flags, 1).store(i, 1, Order::Relaxed, Scope::Cluster);
                } else {
                    remote(flags, 1).store(i, 1, Order::Release, Scope::Cluster);
                }
            } else {
                let flag = if MODE == RELAXED {
                    flags.load(i, Order::Relaxed, Scope::Cluster)
                } else {
                    flags.load(i, Order::Acquire, Scope::Cluster)
                };
                let datum = if MODE != PLAIN {
                    data.load(i, Order::Relaxed, Scope::Cluster)
                } else if flag == 1 {
                    data.get(i)
                } else {
                    2
                };
                seen.set(round * tests + test, flag);
                seen.set((rounds + round) * tests + test, datum);
            }
            sync_cluster();
        }
    }
}
