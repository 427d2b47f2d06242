//! Programs in which blocks count by atomic operations.

use tma_runtime::prelude::*;

/// Kernels in which four blocks take part in each test, by atomic operations at device scope.
#[tma_module]
pub(crate) mod counters {
    use tma_runtime::prelude::*;

    /// Relaxed parts, and a relaxed count.
    const RELAXED: u32 = 0;
    /// Relaxed parts; the count releases and acquires.
    const ORDERED: u32 = 1;
    /// Plain parts; the count releases and acquires.
    const PLAIN: u32 = 2;

    /// Returns the element of a test's variable, in another cache line for each lane.
    #[tma_device]
    fn at(variable: u32, round: u32, rounds: u32, test: u32, tests: u32) -> u32 {
        (variable * rounds + round) * tests + (test * (1021 + 1686 * variable) + round * 13) % tests
    }

    /// Each role writes a part and counts itself; the one that is counted last sums all parts.
    #[tma_kernel(threads = 128, instances(MODE in [RELAXED, ORDERED, PLAIN]))]
    pub fn last_adds_up<const MODE: u32>(
        memory: Global<u32>,
        seen: Global<u32>,
        counter: Global<u32>,
        tests: u32,
        rounds: u32,
    ) {
        let role = block_idx().x % 4;
        let test = block_idx().x / 4 * 128 + thread_idx().x;
        for round in 0..rounds {
            let mine = at(role, round, rounds, test, tests);
            let count = at(4, round, rounds, test, tests);
            if MODE == PLAIN {
                memory.set(mine, 1 << role);
            } else {
                memory.store(mine, 1 << role, Order::Relaxed, Scope::Device);
            }
            let before = if MODE == RELAXED {
                memory.fetch_add(count, 1, Order::Relaxed, Scope::Device)
            } else {
                memory.fetch_add(count, 1, Order::AcqRel, Scope::Device)
            };
            if before == 3 {
                let mut sum = 0;
                for part in unroll(0..4u32) {
                    let i = at(part, round, rounds, test, tests);
                    if MODE == PLAIN {
                        sum += memory.get(i);
                    } else {
                        sum += memory.load(i, Order::Relaxed, Scope::Device);
                    }
                }
                seen.set(round * tests + test, sum);
            }
            sync_grid(counter);
        }
    }

    /// All threads of the grid take tickets of one counter, and mark them.
    #[tma_kernel(threads = 128)]
    pub fn tickets(memory: Global<u32>, seen: Global<u32>, counter: Global<u32>, tests: u32, rounds: u32) {
        let test = block_idx().x * 128 + thread_idx().x;
        for round in 0..rounds {
            // The first elements are the counters of the rounds.
            let ticket = memory.fetch_add(round, 1, Order::Relaxed, Scope::Device);
            let marked = if ticket < tests {
                memory.fetch_or(rounds + round * tests + ticket, 1, Order::Relaxed, Scope::Device)
            } else {
                2
            };
            seen.set(round * tests + test, marked);
            sync_grid(counter);
        }
    }

    /// Each role swaps its number in, and then claims another variable unless one has claimed it.
    #[tma_kernel(threads = 128)]
    pub fn swaps(memory: Global<u32>, seen: Global<u32>, counter: Global<u32>, tests: u32, rounds: u32) {
        let role = block_idx().x % 4;
        let test = block_idx().x / 4 * 128 + thread_idx().x;
        for round in 0..rounds {
            let x = at(0, round, rounds, test, tests);
            let y = at(1, round, rounds, test, tests);
            let old = memory.swap(x, role + 1, Order::Relaxed, Scope::Device);
            let owner = memory.compare_exchange(y, 0, role + 1, Order::Relaxed, Scope::Device);
            seen.set((role * rounds + round) * tests + test, old);
            seen.set(((4 + role) * rounds + round) * tests + test, owner);
            sync_grid(counter);
        }
    }
}
