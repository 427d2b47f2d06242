//! The programs whose memory is global memory, as kernels.

use tma_runtime::prelude::*;

/// One kernel per program. In every round it runs `tests` tests at once, whose *roles* (the threads
/// of the program) are warps of a block, blocks of a cluster or blocks of the grid, depending on
/// the scope. Additional blocks make noise: they keep caches and queues busy.
///
/// Each round has its own elements of `memory`, initially 0, so nothing is reset. A role writes
/// each of its observations to its own element of `seen`.
#[tma_module]
pub(crate) mod litmus {
    use tma_runtime::prelude::*;

    /// Relaxed flags and data.
    const RELAXED: u32 = 0;
    /// Relaxed data; flags are released and acquired.
    const ORDERED: u32 = 1;
    /// Plain data, which are read only if the flag was seen; flags are released and acquired.
    const PLAIN: u32 = 2;

    /// The scope of all accesses of a program, and where its roles run.
    const BLOCK: u32 = 0;
    const CLUSTER: u32 = 1;
    const DEVICE: u32 = 2;

    /// The variables of a test.
    const X: u32 = 0;
    const Y: u32 = 1;
    const Z: u32 = 2;
    /// Counts the roles that are ready.
    const READY: u32 = 3;

    const THREADS: u32 = 128;

    /// Returns the role of a thread, where `stride` roles follow each other.
    #[tma_device]
    fn role_of<const SCOPE: u32>(stride: u32) -> u32 {
        if SCOPE == BLOCK { warp_idx() % stride } else { block_idx().x % stride }
    }

    /// Returns the number of a thread's test in each round.
    #[tma_device]
    fn test_of<const SCOPE: u32>(stride: u32) -> u32 {
        if SCOPE == BLOCK {
            (block_idx().x * (THREADS / 32) + warp_idx()) / stride * 32 + lane_idx()
        } else {
            block_idx().x / stride * THREADS + thread_idx().x
        }
    }

    /// Returns the element of a test's variable. Lanes of a warp use different cache lines, and the
    /// distance between two variables differs from test to test. `tests` is a power of two.
    #[tma_device]
    fn at(variable: u32, round: u32, rounds: u32, test: u32, tests: u32) -> u32 {
        let scattered = test * (1021 + 1686 * variable) + round * (13 + 64 * variable);
        (variable * rounds + round) * tests + scattered % tests
    }

    /// Returns a number that differs from warp to warp and from round to round.
    #[tma_device]
    fn drawn_for(seed: u32, round: u32) -> u32 {
        let number = seed + round * 8191 + (block_idx().x * (THREADS / 32) + warp_idx()) * 131071;
        let mixed = (number ^ number >> 15) * 0x2c1b_3c6d;
        let mixed = (mixed ^ mixed >> 12) * 0x297a_2d39;
        mixed ^ mixed >> 15
    }

    /// Lets the roles of a test begin at about the same time, each after a random delay of up to
    /// 4095 steps, with short delays as likely as long ones. No role depends on another one here.
    #[tma_device]
    fn begin(memory: Global<u32>, noise: Global<u32>, ready: u32, roles: u32, drawn: u32) {
        memory.fetch_add(ready, 1, Order::Relaxed, Scope::Device);
        for _ in 0..32 {
            if memory.load(ready, Order::Relaxed, Scope::Device) == roles {
                break;
            }
        }
        let mut state = drawn | 1;
        for _ in 0..(drawn >> 8) % (1 << (drawn % 13)) {
            state *= 0x915f_77f5;
        }
        noise.store(drawn % noise.len() as u32, state, Order::Relaxed, Scope::Device);
    }

    /// Accesses memory of no test.
    #[tma_device]
    fn make_noise(noise: Global<u32>, drawn: u32) {
        let mut state = drawn + thread_idx().x * 7919;
        let len = noise.len() as u32;
        for _ in 0..64 {
            state = state * 1664525 + 1013904223;
            let i = (state >> 8) % len;
            if state >> 30 == 0 {
                noise.store(i, state, Order::Relaxed, Scope::Device);
            } else {
                state += noise.load(i, Order::Relaxed, Scope::Device);
            }
        }
    }

    #[tma_device]
    fn read<const MODE: u32, const SCOPE: u32>(memory: Global<u32>, i: u32) -> u32 {
        if MODE == RELAXED {
            if SCOPE == BLOCK {
                memory.load(i, Order::Relaxed, Scope::Block)
            } else if SCOPE == CLUSTER {
                memory.load(i, Order::Relaxed, Scope::Cluster)
            } else {
                memory.load(i, Order::Relaxed, Scope::Device)
            }
        } else if SCOPE == BLOCK {
            memory.load(i, Order::Acquire, Scope::Block)
        } else if SCOPE == CLUSTER {
            memory.load(i, Order::Acquire, Scope::Cluster)
        } else {
            memory.load(i, Order::Acquire, Scope::Device)
        }
    }

    #[tma_device]
    fn write<const MODE: u32, const SCOPE: u32>(memory: Global<u32>, i: u32, value: u32) {
        if MODE == RELAXED {
            if SCOPE == BLOCK {
                memory.store(i, value, Order::Relaxed, Scope::Block);
            } else if SCOPE == CLUSTER {
                memory.store(i, value, Order::Relaxed, Scope::Cluster);
            } else {
                memory.store(i, value, Order::Relaxed, Scope::Device);
            }
        } else if SCOPE == BLOCK {
            memory.store(i, value, Order::Release, Scope::Block);
        } else if SCOPE == CLUSTER {
            memory.store(i, value, Order::Release, Scope::Cluster);
        } else {
            memory.store(i, value, Order::Release, Scope::Device);
        }
    }

    /// Adds, and returns the old value.
    #[tma_device]
    fn add<const MODE: u32, const SCOPE: u32>(memory: Global<u32>, i: u32, value: u32) -> u32 {
        if MODE == RELAXED {
            if SCOPE == BLOCK {
                memory.fetch_add(i, value, Order::Relaxed, Scope::Block)
            } else if SCOPE == CLUSTER {
                memory.fetch_add(i, value, Order::Relaxed, Scope::Cluster)
            } else {
                memory.fetch_add(i, value, Order::Relaxed, Scope::Device)
            }
        } else if SCOPE == BLOCK {
            memory.fetch_add(i, value, Order::AcqRel, Scope::Block)
        } else if SCOPE == CLUSTER {
            memory.fetch_add(i, value, Order::AcqRel, Scope::Cluster)
        } else {
            memory.fetch_add(i, value, Order::AcqRel, Scope::Device)
        }
    }

    /// Reads until it finds `wanted`, but only a limited number of times.
    #[tma_device]
    fn poll<const MODE: u32, const SCOPE: u32>(memory: Global<u32>, i: u32, wanted: u32, drawn: u32) -> u32 {
        let mut found = read::<MODE, SCOPE>(memory, i);
        for _ in 0..drawn >> 4 & 31 {
            if found == wanted {
                break;
            }
            found = read::<MODE, SCOPE>(memory, i);
        }
        found
    }

    #[tma_device]
    fn write_datum<const MODE: u32, const SCOPE: u32>(memory: Global<u32>, i: u32, value: u32) {
        if MODE == PLAIN {
            memory.set(i, value);
        } else {
            write::<RELAXED, SCOPE>(memory, i, value);
        }
    }

    /// Reads a datum. Returns 2 for a plain one that may not be read, as the flag was not seen.
    #[tma_device]
    fn read_datum<const MODE: u32, const SCOPE: u32>(memory: Global<u32>, i: u32, is_there: bool) -> u32 {
        if MODE == PLAIN {
            if is_there { memory.get(i) } else { 2 }
        } else {
            read::<RELAXED, SCOPE>(memory, i)
        }
    }

    /// A datum, then its flag.
    #[tma_kernel(threads = 128, cluster = launch, instances(
        MODE in [RELAXED, ORDERED, PLAIN], SCOPE in [BLOCK, CLUSTER, DEVICE],
    ))]
    pub fn message<const MODE: u32, const SCOPE: u32>(
        memory: Global<u32>,
        seen: Global<u32>,
        noise: Global<u32>,
        counter: Global<u32>,
        tests: u32,
        rounds: u32,
        seed: u32,
    ) {
        let role = role_of::<SCOPE>(2);
        let test = test_of::<SCOPE>(2);
        for round in 0..rounds {
            let drawn = drawn_for(seed, round);
            if test < tests {
                let x = at(X, round, rounds, test, tests);
                let y = at(Y, round, rounds, test, tests);
                begin(memory, noise, at(READY, round, rounds, test, tests), 2, drawn);
                if role == 0 {
                    write_datum::<MODE, SCOPE>(memory, x, 1);
                    write::<MODE, SCOPE>(memory, y, 1);
                } else {
                    let flag = poll::<MODE, SCOPE>(memory, y, 1, drawn);
                    let datum = read_datum::<MODE, SCOPE>(memory, x, flag == 1);
                    seen.set(round * tests + test, flag);
                    seen.set((rounds + round) * tests + test, datum);
                }
            } else {
                make_noise(noise, drawn);
            }
            sync_grid(counter);
        }
    }

    /// Each role writes, and then reads the other's variable.
    #[tma_kernel(threads = 128, cluster = launch, instances(
        MODE in [RELAXED, ORDERED], SCOPE in [BLOCK, CLUSTER, DEVICE],
    ))]
    pub fn store_buffering<const MODE: u32, const SCOPE: u32>(
        memory: Global<u32>,
        seen: Global<u32>,
        noise: Global<u32>,
        counter: Global<u32>,
        tests: u32,
        rounds: u32,
        seed: u32,
    ) {
        let role = role_of::<SCOPE>(2);
        let test = test_of::<SCOPE>(2);
        for round in 0..rounds {
            let drawn = drawn_for(seed, round);
            if test < tests {
                let mine = at(role, round, rounds, test, tests);
                let other = at(1 - role, round, rounds, test, tests);
                begin(memory, noise, at(READY, round, rounds, test, tests), 2, drawn);
                write::<MODE, SCOPE>(memory, mine, 1);
                let found = read::<MODE, SCOPE>(memory, other);
                seen.set((role * rounds + round) * tests + test, found);
            } else {
                make_noise(noise, drawn);
            }
            sync_grid(counter);
        }
    }

    /// Each role reads the other's variable, and then writes.
    #[tma_kernel(threads = 128, cluster = launch, instances(
        MODE in [RELAXED, ORDERED], SCOPE in [BLOCK, CLUSTER, DEVICE],
    ))]
    pub fn load_buffering<const MODE: u32, const SCOPE: u32>(
        memory: Global<u32>,
        seen: Global<u32>,
        noise: Global<u32>,
        counter: Global<u32>,
        tests: u32,
        rounds: u32,
        seed: u32,
    ) {
        let role = role_of::<SCOPE>(2);
        let test = test_of::<SCOPE>(2);
        for round in 0..rounds {
            let drawn = drawn_for(seed, round);
            if test < tests {
                let mine = at(role, round, rounds, test, tests);
                let other = at(1 - role, round, rounds, test, tests);
                begin(memory, noise, at(READY, round, rounds, test, tests), 2, drawn);
                let found = read::<MODE, SCOPE>(memory, other);
                write::<MODE, SCOPE>(memory, mine, 1);
                seen.set((role * rounds + round) * tests + test, found);
            } else {
                make_noise(noise, drawn);
            }
            sync_grid(counter);
        }
    }

    /// Each role writes the value that it has read, so that only 0 is possible.
    #[tma_kernel(threads = 128, cluster = launch, instances(SCOPE in [BLOCK, CLUSTER, DEVICE]))]
    pub fn thin_air<const SCOPE: u32>(
        memory: Global<u32>,
        seen: Global<u32>,
        noise: Global<u32>,
        counter: Global<u32>,
        tests: u32,
        rounds: u32,
        seed: u32,
    ) {
        let role = role_of::<SCOPE>(2);
        let test = test_of::<SCOPE>(2);
        for round in 0..rounds {
            let drawn = drawn_for(seed, round);
            if test < tests {
                let mine = at(role, round, rounds, test, tests);
                let other = at(1 - role, round, rounds, test, tests);
                begin(memory, noise, at(READY, round, rounds, test, tests), 2, drawn);
                let found = read::<RELAXED, SCOPE>(memory, other);
                write::<RELAXED, SCOPE>(memory, mine, found);
                seen.set((role * rounds + round) * tests + test, found);
            } else {
                make_noise(noise, drawn);
            }
            sync_grid(counter);
        }
    }

    /// One role writes 1 and then 2, the other reads twice.
    #[tma_kernel(threads = 128, cluster = launch, instances(SCOPE in [BLOCK, CLUSTER, DEVICE]))]
    pub fn coherence<const SCOPE: u32>(
        memory: Global<u32>,
        seen: Global<u32>,
        noise: Global<u32>,
        counter: Global<u32>,
        tests: u32,
        rounds: u32,
        seed: u32,
    ) {
        let role = role_of::<SCOPE>(2);
        let test = test_of::<SCOPE>(2);
        for round in 0..rounds {
            let drawn = drawn_for(seed, round);
            if test < tests {
                let x = at(X, round, rounds, test, tests);
                begin(memory, noise, at(READY, round, rounds, test, tests), 2, drawn);
                if role == 0 {
                    write::<RELAXED, SCOPE>(memory, x, 1);
                    write::<RELAXED, SCOPE>(memory, x, 2);
                } else {
                    let first = poll::<RELAXED, SCOPE>(memory, x, 1 + drawn % 2, drawn);
                    let second = read::<RELAXED, SCOPE>(memory, x);
                    seen.set(round * tests + test, first);
                    seen.set((rounds + round) * tests + test, second);
                }
            } else {
                make_noise(noise, drawn);
            }
            sync_grid(counter);
        }
    }

    /// A message that a third role passes on: the test ISA2.
    #[tma_kernel(threads = 128, cluster = launch, instances(
        MODE in [RELAXED, ORDERED, PLAIN], SCOPE in [BLOCK, CLUSTER, DEVICE],
    ))]
    pub fn passed_on<const MODE: u32, const SCOPE: u32>(
        memory: Global<u32>,
        seen: Global<u32>,
        noise: Global<u32>,
        counter: Global<u32>,
        tests: u32,
        rounds: u32,
        seed: u32,
    ) {
        let role = role_of::<SCOPE>(4);
        let test = test_of::<SCOPE>(4);
        for round in 0..rounds {
            let drawn = drawn_for(seed, round);
            if test < tests {
                let x = at(X, round, rounds, test, tests);
                let y = at(Y, round, rounds, test, tests);
                let z = at(Z, round, rounds, test, tests);
                begin(memory, noise, at(READY, round, rounds, test, tests), 4, drawn);
                if role == 0 {
                    write_datum::<MODE, SCOPE>(memory, x, 1);
                    write::<MODE, SCOPE>(memory, y, 1);
                } else if role == 1 {
                    let first = poll::<MODE, SCOPE>(memory, y, 1, drawn);
                    write::<MODE, SCOPE>(memory, z, first);
                    seen.set(round * tests + test, first);
                } else if role == 2 {
                    let second = poll::<MODE, SCOPE>(memory, z, 1, drawn);
                    let datum = read_datum::<MODE, SCOPE>(memory, x, second == 1);
                    seen.set((rounds + round) * tests + test, second);
                    seen.set((2 * rounds + round) * tests + test, datum);
                }
            } else {
                make_noise(noise, drawn);
            }
            sync_grid(counter);
        }
    }

    /// A relaxed addition between a release and its acquire, which continues the release sequence.
    #[tma_kernel(threads = 128, cluster = launch, instances(
        MODE in [RELAXED, ORDERED, PLAIN], SCOPE in [BLOCK, CLUSTER, DEVICE],
    ))]
    pub fn chain<const MODE: u32, const SCOPE: u32>(
        memory: Global<u32>,
        seen: Global<u32>,
        noise: Global<u32>,
        counter: Global<u32>,
        tests: u32,
        rounds: u32,
        seed: u32,
    ) {
        let role = role_of::<SCOPE>(4);
        let test = test_of::<SCOPE>(4);
        for round in 0..rounds {
            let drawn = drawn_for(seed, round);
            if test < tests {
                let x = at(X, round, rounds, test, tests);
                let y = at(Y, round, rounds, test, tests);
                begin(memory, noise, at(READY, round, rounds, test, tests), 4, drawn);
                if role == 0 {
                    write_datum::<MODE, SCOPE>(memory, x, 1);
                    add::<MODE, SCOPE>(memory, y, 1);
                } else if role == 1 {
                    seen.set(round * tests + test, add::<RELAXED, SCOPE>(memory, y, 2));
                } else if role == 2 {
                    let sum = poll::<MODE, SCOPE>(memory, y, 3, drawn);
                    let datum = read_datum::<MODE, SCOPE>(memory, x, sum % 2 == 1);
                    seen.set((rounds + round) * tests + test, sum);
                    seen.set((2 * rounds + round) * tests + test, datum);
                }
            } else {
                make_noise(noise, drawn);
            }
            sync_grid(counter);
        }
    }

    /// Two roles write, and two others read both, in either order: the test IRIW.
    #[tma_kernel(threads = 128, cluster = launch, instances(
        MODE in [RELAXED, ORDERED], SCOPE in [BLOCK, CLUSTER, DEVICE],
    ))]
    pub fn independent_reads<const MODE: u32, const SCOPE: u32>(
        memory: Global<u32>,
        seen: Global<u32>,
        noise: Global<u32>,
        counter: Global<u32>,
        tests: u32,
        rounds: u32,
        seed: u32,
    ) {
        let role = role_of::<SCOPE>(4);
        let test = test_of::<SCOPE>(4);
        for round in 0..rounds {
            let drawn = drawn_for(seed, round);
            if test < tests {
                let mine = at(role % 2, round, rounds, test, tests);
                let other = at(1 - role % 2, round, rounds, test, tests);
                begin(memory, noise, at(READY, round, rounds, test, tests), 4, drawn);
                if role < 2 {
                    write::<MODE, SCOPE>(memory, mine, 1);
                } else {
                    let first = poll::<MODE, SCOPE>(memory, mine, 1, drawn);
                    let second = read::<MODE, SCOPE>(memory, other);
                    seen.set(((2 * role - 4) * rounds + round) * tests + test, first);
                    seen.set(((2 * role - 3) * rounds + round) * tests + test, second);
                }
            } else {
                make_noise(noise, drawn);
            }
            sync_grid(counter);
        }
    }
}
