//! Grids whose blocks are all resident, since they synchronise by `sync_grid`: they may also wait
//! for each other by flags.

/// A matrix is written by rows and read by columns, with the grid's barrier in between.
#[tma_kernel(threads = 32)]
fn transposed_by_all(counter: Global<u32>, matrix: Global<u32>, out: Global<u32>) {
    let rows = grid_dim().x;
    matrix.set(block_idx().x * 32 + lane_idx(), block_idx().x + lane_idx());
    sync_grid(counter);
    let mut column = block_idx().x;
    let mut sum = 0;
    while column < 32 {
        if lane_idx() < rows {
            sum += matrix.get(lane_idx() * 32 + column);
        }
        column += rows;
    }
    out.set(block_idx().x * 32 + lane_idx(), sum);
}

/// A wavefront over the blocks: each step waits for the same step of the block to the left.
#[tma_kernel(threads = 32)]
fn wavefront(counter: Global<u32>, cells: Global<u32>, done: Global<u32>, steps: u32) {
    let block = block_idx().x;
    sync_grid(counter);
    for step in 0..steps {
        let mut value = step + lane_idx();
        if block > 0 {
            if lane_idx() == 0 {
                while done.load(block - 1, Order::Acquire, Scope::Device) <= step {}
            }
            sync_warp();
            value += cells.get((step * 32 + block - 1) * 32 + 31 - lane_idx());
        }
        cells.set((step * 32 + block) * 32 + lane_idx(), value);
        sync_warp();
        if lane_idx() == 0 {
            done.store(block, step + 1, Order::Release, Scope::Device);
        }
    }
}

/// A ring of two slots from each even block to the next one: one counter for writes, another one
/// for reads.
#[tma_kernel(threads = 32)]
fn ring_between_blocks(
    counter: Global<u32>,
    slots: Global<u32>,
    written: Global<u32>,
    read: Global<u32>,
    out: Global<u32>,
    items: u32,
) {
    assume(grid_dim().x % 2 == 0);
    sync_grid(counter);
    let pair = block_idx().x / 2;
    for item in 0..items {
        let slot = (pair * 2 + item % 2) * 32 + lane_idx();
        if block_idx().x % 2 == 0 {
            if lane_idx() == 0 {
                while item - read.load(pair, Order::Acquire, Scope::Device) >= 2 {}
            }
            sync_warp();
            slots.set(slot, item * lane_idx());
            sync_warp();
            if lane_idx() == 0 {
                written.store(pair, item + 1, Order::Release, Scope::Device);
            }
        } else {
            if lane_idx() == 0 {
                while written.load(pair, Order::Acquire, Scope::Device) <= item {}
            }
            sync_warp();
            out.set((pair * 64 + item) * 32 + lane_idx(), slots.get(slot));
            sync_warp();
            if lane_idx() == 0 {
                read.fetch_add(pair, 1, Order::Release, Scope::Device);
            }
        }
    }
}

/// Every block has a mailbox that its left neighbour fills and it empties, in each round.
#[tma_kernel(threads = 32)]
fn mailboxes_in_a_circle(counter: Global<u32>, full: Global<u32>, letters: Global<u32>, rounds: u32) {
    let right = (block_idx().x + 1) % grid_dim().x;
    let mut carried = block_idx().x;
    sync_grid(counter);
    if lane_idx() == 0 {
        for round in 0..rounds {
            while full.load(right, Order::Acquire, Scope::Device) != 0 {}
            letters.set(right, carried + round);
            full.store(right, 1, Order::Release, Scope::Device);
            while full.load(block_idx().x, Order::Acquire, Scope::Device) == 0 {}
            carried = letters.get(block_idx().x);
            full.store(block_idx().x, 0, Order::Release, Scope::Device);
        }
    }
}

/// A barrier by hand: the last to arrive resets the count, and begins the next epoch.
#[tma_kernel(threads = 32)]
fn epochs_by_hand(counter: Global<u32>, state: Global<u32>, parts: Global<u32>, out: Global<u32>, epochs: u32) {
    sync_grid(counter);
    for epoch in 0..epochs {
        // Two halves: a block may be one epoch ahead of another one's reads.
        let half = epoch % 2 * 32;
        if lane_idx() == 0 {
            parts.set(half + block_idx().x, epoch + block_idx().x);
            if state.fetch_add(0, 1, Order::AcqRel, Scope::Device) + 1 == grid_dim().x {
                state.store(0, 0, Order::Relaxed, Scope::Device);
                state.store(1, epoch + 1, Order::Release, Scope::Device);
            } else {
                while state.load(1, Order::Acquire, Scope::Device) <= epoch {}
            }
        }
        sync_warp();
        let other = (block_idx().x + lane_idx()) % grid_dim().x;
        out.set((epoch * 32 + block_idx().x) * 32 + lane_idx(), parts.get(half + other));
        sync_warp();
    }
}

/// Even and odd blocks have their own barriers, which count up.
#[tma_kernel(threads = 32)]
fn teams_of_blocks(counter: Global<u32>, arrived: Global<u32>, parts: Global<u32>, out: Global<u32>, rounds: u32) {
    assume(grid_dim().x % 2 == 0);
    let team = block_idx().x % 2;
    let members = grid_dim().x / 2;
    sync_grid(counter);
    for round in 0..rounds {
        parts.set((round * 32 + block_idx().x) * 32 + lane_idx(), round);
        sync_warp();
        if lane_idx() == 0 {
            arrived.fetch_add(team, 1, Order::Release, Scope::Device);
            while arrived.load(team, Order::Acquire, Scope::Device) < members * (round + 1) {}
        }
        sync_warp();
        let mate = (block_idx().x + 2) % grid_dim().x;
        out.set((round * 32 + block_idx().x) * 32 + lane_idx(), parts.get((round * 32 + mate) * 32 + lane_idx()));
    }
}

/// The first block gathers the parts of all and returns the sum, in each round.
#[tma_kernel(threads = 32)]
fn gathered_and_handed_back(
    counter: Global<u32>,
    parts: Global<u32>,
    flags: Global<u32>,
    sums: Global<u32>,
    rounds: u32,
) {
    sync_grid(counter);
    let mut mine = block_idx().x;
    if lane_idx() == 0 {
        for round in 0..rounds {
            parts.set(block_idx().x, mine);
            flags.fetch_add(0, 1, Order::Release, Scope::Device);
            if block_idx().x == 0 {
                while flags.load(0, Order::Acquire, Scope::Device) != grid_dim().x * (round + 1) {}
                let mut sum = 0;
                for block in 0..grid_dim().x {
                    sum += parts.get(block);
                }
                sums.set(round, sum);
                flags.store(1, round + 1, Order::Release, Scope::Device);
            }
            while flags.load(1, Order::Acquire, Scope::Device) <= round {}
            mine += sums.get(round);
        }
    }
}

/// A dissemination barrier: in each round a block signals one at twice the distance.
#[tma_kernel(threads = 32)]
fn dissemination(counter: Global<u32>, told: Global<u32>, parts: Global<u32>, out: Global<u32>) {
    let block = block_idx().x;
    let blocks = grid_dim().x;
    parts.set(block * 32 + lane_idx(), block * 3);
    sync_grid(counter);
    parts.set((blocks + block) * 32 + lane_idx(), parts.get((block + 1) % blocks * 32 + lane_idx()));
    sync_warp();
    if lane_idx() == 0 {
        let mut round = 0;
        let mut distance = 1;
        while distance < blocks {
            told.store(round * 32 + (block + distance) % blocks, 1, Order::Release, Scope::Device);
            while told.load(round * 32 + block, Order::Acquire, Scope::Device) == 0 {}
            round += 1;
            distance *= 2;
        }
    }
    sync_warp();
    for other in 0..blocks {
        out.set((block * 32 + other) * 32 + lane_idx(), parts.get((blocks + other) * 32 + lane_idx()));
    }
}

/// Iterates until nothing changes: three counters of changes in rotation, one of which is reset.
#[tma_kernel(threads = 32)]
fn until_nothing_changes(counter: Global<u32>, labels: Global<u32>, changes: Global<u32>) {
    let i = block_idx().x * 32 + lane_idx();
    let end = grid_dim().x * 32;
    labels.store(i, i / 8 + 1, Order::Relaxed, Scope::Device);
    let mut round = 0;
    loop {
        sync_grid(counter);
        if i + 8 < end {
            let right = labels.load(i + 8, Order::Relaxed, Scope::Device);
            if labels.fetch_max(i, right, Order::Relaxed, Scope::Device) < right {
                changes.fetch_add(round % 3, 1, Order::Relaxed, Scope::Device);
            }
        }
        if i == 0 {
            changes.store((round + 1) % 3, 0, Order::Relaxed, Scope::Device);
        }
        sync_grid(counter);
        if changes.load(round % 3, Order::Relaxed, Scope::Device) == 0 {
            break;
        }
        round += 1;
    }
}

/// The grid's barrier in both branches: the first block does work of its own before it.
#[tma_kernel(threads = 32)]
fn barrier_in_both_arms(counter: Global<u32>, table: Global<u32>, out: Global<u32>) {
    if block_idx().x == 0 {
        table.set(lane_idx(), lane_idx() + 9);
        sync_grid(counter);
    } else {
        sync_grid(counter);
        out.set(block_idx().x * 32 + lane_idx(), table.get(31 - lane_idx()));
    }
}

/// A broadcast through two buffers: the writer waits until all have read the last but one.
#[tma_kernel(threads = 32)]
fn broadcast_through_two_buffers(
    counter: Global<u32>,
    buffers: Global<u32>,
    epoch: Global<u32>,
    taken: Global<u32>,
    out: Global<u32>,
    rounds: u32,
) {
    let readers = grid_dim().x - 1;
    sync_grid(counter);
    for round in 0..rounds {
        let at = round % 2 * 32 + lane_idx();
        if block_idx().x == 0 {
            if round > 1 {
                while taken.load(round % 2, Order::Acquire, Scope::Device) < readers * (round / 2) {}
            }
            buffers.set(at, round * 100 + lane_idx());
            sync_warp();
            if lane_idx() == 0 {
                epoch.store(0, round + 1, Order::Release, Scope::Device);
            }
        } else {
            while epoch.load(0, Order::Acquire, Scope::Device) <= round {}
            out.set((round * 32 + block_idx().x) * 32 + lane_idx(), buffers.get(at));
            sync_warp();
            if lane_idx() == 0 {
                taken.fetch_add(round % 2, 1, Order::Release, Scope::Device);
            }
        }
    }
}

/// A histogram that all blocks add to; one of them computes its running sums, which all use.
#[tma_kernel(threads = 32)]
fn sorted_by_counting(
    counter: Global<u32>,
    values: Global<u32>,
    bins: Global<u32>,
    starts: Global<u32>,
    sorted: Global<u32>,
) {
    let value = values.get(block_idx().x * 32 + lane_idx()) % 4;
    bins.fetch_add(value, 1, Order::Relaxed, Scope::Device);
    sync_grid(counter);
    if block_idx().x == 0 && lane_idx() == 0 {
        let mut sum = 0;
        for bin in 0..4 {
            starts.store(bin, sum, Order::Relaxed, Scope::Device);
            sum += bins.load(bin, Order::Relaxed, Scope::Device);
        }
    }
    sync_grid(counter);
    sorted.set(starts.fetch_add(value, 1, Order::Relaxed, Scope::Device), value);
}
