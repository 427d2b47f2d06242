//! Counters of blocks that have finished: the block that is counted last continues with the writes
//! of all. There are no waits, so grids of any size are right.

/// All threads of the last block sum: the thread that counts tells them by a shared word.
#[tma_kernel(threads = 64)]
fn last_block_with_all_threads(values: Global<u32>, parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let is_last: SharedArray<bool, 1> = shared();
    let t = thread_idx().x;
    parts.set(block_idx().x * 64 + t, values.get(block_idx().x * 64 + t) + 1);
    sync_threads();
    if t == 63 {
        let before = count.fetch_add(0, 1, Order::AcqRel, Scope::Device);
        is_last.set(0, before + 1 == grid_dim().x);
    }
    sync_threads();
    if !is_last.get(0) {
        return;
    }
    let mut sum = 0;
    for block in 0..grid_dim().x {
        sum += parts.get(block * 64 + t);
    }
    out.set(t, sum);
}

/// Each thread fences and counts itself: the last thread of the grid sums alone.
#[tma_kernel(threads = 32)]
fn last_thread_of_the_grid(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let i = block_idx().x * 32 + lane_idx();
    parts.set(i, i);
    fence();
    let before = count.atomic_add(0, 1);
    fence();
    if before + 1 == grid_dim().x * 32 {
        let mut sum = 0;
        for at in 0..grid_dim().x * 32 {
            sum += parts.get(at);
        }
        out.set(0, sum);
    }
}

/// The last warp of the grid: one lane counts, a shuffle passes the number, the barrier the order.
#[tma_kernel(threads = 96)]
fn last_warp_of_the_grid(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let warp = block_idx().x * 3 + warp_idx();
    parts.set(warp * 32 + lane_idx(), warp);
    sync_warp();
    let mut before = 0;
    if lane_idx() == 7 {
        before = count.fetch_add(0, 1, Order::AcqRel, Scope::Device);
    }
    before = shuffle_idx(before, 7);
    sync_warp();
    if before + 1 == grid_dim().x * 3 {
        for row in 0..grid_dim().x * 3 {
            out.set(row * 32 + lane_idx(), parts.get(row * 32 + 31 - lane_idx()));
        }
    }
}

/// Two levels: the last block of each pair counts the pair, and the last pair sums.
#[tma_kernel(threads = 32)]
fn pairs_then_all(parts: Global<u32>, pairs: Global<u32>, all: Global<u32>, out: Global<u32>) {
    if lane_idx() == 0 {
        let block = block_idx().x;
        parts.set(block, block + 1);
        let of_pair = min(2, grid_dim().x - block / 2 * 2);
        if pairs.fetch_add(block / 2, 1, Order::AcqRel, Scope::Device) + 1 == of_pair
            && all.fetch_add(0, 1, Order::AcqRel, Scope::Device) + 1 == (grid_dim().x + 1) / 2
        {
            let mut sum = 0;
            for other in 0..grid_dim().x {
                sum += parts.get(other);
            }
            out.set(0, sum);
        }
    }
}

/// A tree in the order of a heap: the second block to reach a node sums its children and climbs.
#[tma_kernel(threads = 32)]
fn climbs_a_tree(nodes: Global<u32>, arrived: Global<u32>) {
    // A power of two, like all grids of this kernel.
    assume(grid_dim().x & (grid_dim().x - 1) == 0);
    if lane_idx() == 0 {
        let mut node = grid_dim().x + block_idx().x;
        nodes.set(node, block_idx().x);
        while node > 1 {
            node /= 2;
            if arrived.fetch_add(node, 1, Order::AcqRel, Scope::Device) == 0 {
                return;
            }
            nodes.set(node, nodes.get(2 * node) + nodes.get(2 * node + 1));
        }
    }
}

/// Arrivals are bits of a word: the block that completes it is the last.
#[tma_kernel(threads = 32)]
fn arrivals_as_bits(parts: Global<u32>, arrived: Global<u32>, out: Global<u32>) {
    assume(grid_dim().x < 32);
    if lane_idx() == 0 {
        let bit = 1 << block_idx().x;
        parts.set(block_idx().x, bit * 3);
        let before = arrived.fetch_or(0, bit, Order::AcqRel, Scope::Device);
        if before | bit == (1 << grid_dim().x) - 1 {
            let mut all = 0;
            for block in 0..grid_dim().x {
                all ^= parts.get(block);
            }
            out.set(0, all);
        }
    }
}

/// Two blocks exchange their numbers; the second finds the first's and works for both.
#[tma_kernel(threads = 32)]
fn second_of_a_pair(slots: Global<u32>, left: Global<u32>, out: Global<u32>) {
    assume(grid_dim().x % 2 == 0);
    let mut other = 0;
    let i = block_idx().x * 32 + lane_idx();
    left.set(i, i * 5);
    sync_warp();
    if elect_one() {
        other = slots.swap(block_idx().x / 2, block_idx().x + 1, Order::AcqRel, Scope::Device);
    }
    other = warp_reduce_max(other);
    sync_warp();
    if other > 0 {
        out.set(block_idx().x / 2 * 32 + lane_idx(), left.get(i) + left.get((other - 1) * 32 + lane_idx()));
    }
}

/// A GEMM that is split along K: each tile has its own counter, which the last block resets.
#[tma_kernel(threads = 32)]
fn split_sums_of_tiles(values: Global<f32>, parts: Global<f32>, counts: Global<u32>, out: Global<f32>) {
    let is_last: SharedArray<bool, 1> = shared();
    let tile = block_idx().x / 2;
    let part = block_idx().x % 2;
    let splits = min(2, grid_dim().x - tile * 2);
    parts.set((tile * 2 + part) * 32 + lane_idx(), values.get(block_idx().x * 32 + lane_idx()) * 2.0);
    sync_threads();
    if lane_idx() == 0 {
        let before = counts.fetch_add(tile, 1, Order::AcqRel, Scope::Device);
        is_last.set(0, before + 1 == splits);
        if before + 1 == splits {
            counts.store(tile, 0, Order::Relaxed, Scope::Device);
        }
    }
    sync_threads();
    if is_last.get(0) {
        let mut sum = 0.0;
        for split in 0..splits {
            sum += parts.get((tile * 2 + split) * 32 + lane_idx());
        }
        out.set(tile * 32 + lane_idx(), sum);
    }
}

/// The maximum, with its index in the lower half of the word; the last block splits the word.
#[tma_kernel(threads = 32)]
fn place_of_the_greatest(values: Global<u32>, best: Global<u64>, count: Global<u32>, out: Global<u32>) {
    let i = block_idx().x * 32 + lane_idx();
    let word = (values.get(i) as u64) << 32 | i as u64;
    best.fetch_max(0, word, Order::Relaxed, Scope::Device);
    sync_warp();
    if lane_idx() == 0 && count.fetch_add(0, 1, Order::AcqRel, Scope::Device) + 1 == grid_dim().x {
        let word = best.load(0, Order::Relaxed, Scope::Device);
        out.set(0, (word >> 32) as u32);
        out.set(1, word as u32);
    }
}

/// In each phase the last block sums the parts and resets the count.
#[tma_kernel(threads = 32)]
fn phases_of_the_last(parts: Global<u32>, counts: Global<u32>, out: Global<u32>, phases: u32) {
    if lane_idx() == 0 {
        for phase in 0..phases {
            parts.set(phase * 32 + block_idx().x, phase + block_idx().x);
            if counts.fetch_add(phase, 1, Order::AcqRel, Scope::Device) + 1 == grid_dim().x {
                let mut sum = 0;
                for block in 0..grid_dim().x {
                    sum += parts.get(phase * 32 + block);
                }
                out.set(phase, sum);
                counts.store(phase, 0, Order::Relaxed, Scope::Device);
            }
        }
    }
}

/// The second and third warp of the last block learn the count through a named barrier.
#[tma_kernel(threads = 96)]
fn told_by_a_named_barrier(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let before: SharedArray<u32, 1> = shared();
    if warp_idx() == 0 {
        parts.set(block_idx().x * 32 + lane_idx(), block_idx().x);
        sync_warp();
        if lane_idx() == 0 {
            before.set(0, count.fetch_add(0, 1, Order::AcqRel, Scope::Device));
        }
        named_barrier_arrive(1, 96);
    } else {
        named_barrier_sync(1, 96);
        if before.get(0) + 1 == grid_dim().x {
            for block in 0..grid_dim().x {
                out.set(block * 64 + thread_idx().x - 32, parts.get(block * 32 + lane_idx()));
            }
        }
    }
}
