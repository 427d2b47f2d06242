//! Reads of global memory by threads, and copies into it.

use tma_runtime::prelude::*;

/// Rows that are stored by copies, and read back.
#[tma_module]
pub(crate) mod rows {
    use tma_runtime::prelude::*;

    /// Eight times a warp stores a row, waits until the store is complete, and reads the row; the
    /// values are examined only after the last pass. The observations are the number of reads that
    /// are older than their store, and of those that are newer.
    #[tma_kernel(
        threads = 32,
        protocol = trusted("the bare instance lacks the fence that it is about"),
        instances(FENCED in [bare = false, fenced = true]),
    )]
    pub fn read_and_replaced<const FENCED: bool>(
        memory: Global<u32>,
        seen: Global<u32>,
        tests: u32,
        rounds: u32,
    ) {
        let row: SharedArray<u32, 32> = shared();
        let t = lane_idx();
        let first = block_idx().x * 32;
        for round in 0..rounds {
            let mut values = [0u32; 8];
            for pass in unroll(0..8u32) {
                row.set(t, round * 8 + pass + 1);
                fence_proxy_async();
                sync_warp();
                if t == 0 {
                    memory.bulk_store(first, row, 0, 32);
                    bulk_commit_group();
                    bulk_wait_group::<0>();
                }
                sync_warp();
                values[pass as usize] = memory.get(first + t);
                if FENCED {
                    fence_proxy_async_global();
                }
            }
            let mut older = 0;
            let mut newer = 0;
            for pass in unroll(0..8u32) {
                let stored = round * 8 + pass + 1;
                older += (values[pass as usize] < stored) as u32;
                newer += (values[pass as usize] > stored) as u32;
            }
            seen.set(round * tests + first + t, older);
            seen.set((rounds + round) * tests + first + t, newer);
        }
    }
}
