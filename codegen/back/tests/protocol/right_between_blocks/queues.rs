//! Queues and tickets: the assignment of work to blocks is decided at run time.

/// A persistent loop whose next ticket is taken while the block works: two words in alternation,
/// and one barrier per iteration.
#[tma_kernel(threads = 64)]
fn ticket_taken_ahead(queue: Global<u32>, out: Global<u32>, tiles: u32) {
    let next: Stages<SharedArray<u32, 1>, 2> = shared();
    if thread_idx().x == 0 {
        next[0].set(0, queue.fetch_add(0, 1, Order::Relaxed, Scope::Device));
    }
    let mut turn = 0;
    loop {
        sync_threads();
        let tile = next[turn % 2].get(0);
        if tile >= tiles {
            break;
        }
        turn += 1;
        if thread_idx().x == 0 {
            next[turn % 2].set(0, queue.fetch_add(0, 1, Order::Relaxed, Scope::Device));
        }
        out.set(tile * 64 + thread_idx().x, tile);
    }
}

/// Each warp has its own tickets: a lane takes one, and a shuffle passes it to the others.
#[tma_kernel(threads = 128)]
fn tickets_of_warps(queue: Global<u32>, out: Global<u32>, rows: u32) {
    loop {
        let mut row = 0;
        if lane_idx() == 0 {
            row = queue.fetch_add(0, 1, Order::Relaxed, Scope::Device);
        }
        row = shuffle_idx(row, 0);
        if row >= rows {
            return;
        }
        out.set(row * 32 + lane_idx(), row * lane_idx());
    }
}

/// Takes half of the remaining rows at a time, by compare-exchange, as in guided scheduling.
#[tma_kernel(threads = 32)]
fn half_of_what_is_left(taken: Global<u32>, out: Global<u32>, rows: u32) {
    let first: SharedArray<u32, 2> = shared();
    loop {
        if lane_idx() == 0 {
            let mut from = taken.load(0, Order::Relaxed, Scope::Device);
            let mut until = from;
            while from < rows {
                until = from + (rows - from + 1) / 2;
                let seen = taken.compare_exchange(0, from, until, Order::Relaxed, Scope::Device);
                if seen == from {
                    break;
                }
                from = seen;
                until = seen;
            }
            first.set(0, from);
            first.set(1, until);
        }
        sync_warp();
        let from = first.get(0);
        let until = first.get(1);
        sync_warp();
        if from >= until {
            break;
        }
        for row in from..until {
            out.set(row * 32 + lane_idx(), row);
        }
    }
}

/// The last block resets the queue, after the last ticket of every other block.
#[tma_kernel(threads = 64)]
fn queue_that_is_reset(queue: Global<u32>, done: Global<u32>, out: Global<u32>, tiles: u32) {
    let next: SharedArray<u32, 1> = shared();
    loop {
        if thread_idx().x == 32 {
            next.set(0, queue.fetch_add(0, 1, Order::Relaxed, Scope::Device));
        }
        sync_threads();
        let tile = next.get(0);
        sync_threads();
        if tile >= tiles {
            break;
        }
        out.set(tile * 64 + 63 - thread_idx().x, tile);
    }
    if thread_idx().x == 32 && done.fetch_add(0, 1, Order::AcqRel, Scope::Device) + 1 == grid_dim().x {
        queue.store(0, 0, Order::Relaxed, Scope::Device);
        done.store(0, 0, Order::Relaxed, Scope::Device);
    }
}

/// Two queues: a block goes to the other one when its own is empty.
#[tma_kernel(threads = 32)]
fn from_the_other_queue(queues: Global<u32>, out: Global<u32>, tiles: u32) {
    let own = block_idx().x % 2;
    for turn in 0..2 {
        let queue = own ^ turn;
        loop {
            let mut tile = 0;
            if lane_idx() == 0 {
                tile = queues.fetch_add(queue, 1, Order::Relaxed, Scope::Device);
            }
            tile = shuffle_idx(tile, 0);
            if tile >= tiles {
                break;
            }
            out.set((tile * 2 + queue) * 32 + lane_idx(), tile);
        }
    }
}

/// One block of a cluster takes a ticket for both, and writes it to their shared memory.
#[tma_kernel(threads = 32, cluster = 2)]
fn tickets_of_clusters(queue: Global<u32>, out: Global<u32>, tiles: u32) {
    let next: SharedArray<u32, 1> = shared();
    loop {
        if cluster_rank() == 0 && lane_idx() == 0 {
            let tile = queue.fetch_add(0, 1, Order::Relaxed, Scope::Device);
            next.set(0, tile);
            remote(next, 1).set(0, tile);
        }
        sync_cluster();
        let tile = next.get(0);
        sync_cluster();
        if tile >= tiles {
            break;
        }
        out.set((tile * 2 + cluster_rank()) * 32 + lane_idx(), tile);
    }
}

/// Tasks create tasks: the creator reserves entries, writes the tasks, and sets their flags. No
/// block ends while a task is unfinished.
#[tma_kernel(threads = 32)]
fn tasks_that_make_tasks(
    started: Global<u32>,
    state: Global<u32>,
    tasks: Global<u32>,
    flags: Global<u32>,
    out: Global<u32>,
) {
    // state[0]: entries taken; state[1]: entries reserved; state[2]: tasks that have ended.
    if lane_idx() > 0 {
        return;
    }
    if started.fetch_add(0, 1, Order::Relaxed, Scope::Device) == 0 {
        tasks.set(0, 3);
        flags.store(0, 1, Order::Release, Scope::Device);
        state.fetch_add(1, 1, Order::Release, Scope::Device);
    }
    loop {
        let ended = state.load(2, Order::Acquire, Scope::Device);
        let made = state.load(1, Order::Acquire, Scope::Device);
        if made > 0 && ended == made {
            break;
        }
        let at = state.load(0, Order::Relaxed, Scope::Device);
        if at < made && state.compare_exchange(0, at, at + 1, Order::Relaxed, Scope::Device) == at {
            // The thread that has reserved this entry is running.
            while flags.load(at, Order::Acquire, Scope::Device) == 0 {}
            let task = tasks.get(at);
            out.set(at, task);
            if task > 0 {
                let place = state.fetch_add(1, 2, Order::Relaxed, Scope::Device);
                for child in 0..2 {
                    tasks.set(place + child, task - 1);
                    flags.store(place + child, 1, Order::Release, Scope::Device);
                }
            }
            state.fetch_add(2, 1, Order::AcqRel, Scope::Device);
        }
    }
}

/// Units of a tile are summed in the order of their tickets: a serial reduction whose result does
/// not depend on which block runs first.
#[tma_kernel(threads = 32)]
fn serial_reduction(tickets: Global<u32>, turns: Global<u32>, values: Global<f32>, out: Global<f32>) {
    let ticket: SharedArray<u32, 1> = shared();
    if lane_idx() == 0 {
        ticket.set(0, tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device));
    }
    sync_threads();
    let tile = ticket.get(0) / 2;
    let part = ticket.get(0) % 2;
    let mut sum = values.get(block_idx().x * 32 + lane_idx());
    if part > 0 {
        if lane_idx() == 0 {
            while turns.load(tile, Order::Acquire, Scope::Device) != part {}
        }
        sync_threads();
        sum += out.get(tile * 32 + lane_idx());
    }
    out.set(tile * 32 + lane_idx(), sum);
    sync_threads();
    if lane_idx() == 0 {
        turns.store(tile, part + 1, Order::Release, Scope::Device);
    }
}

/// Stream-K: ranges of units that end within a tile. The range with the tile's last unit finishes
/// the tile with the partial sum of the ticket before.
#[tma_kernel(threads = 32)]
fn shares_of_units(tickets: Global<u32>, rest: Global<u32>, flags: Global<u32>, out: Global<u32>) {
    // Three units per range and four per tile: no range is inside of one tile without an end of it.
    let ticket: SharedArray<u32, 1> = shared();
    if lane_idx() == 0 {
        ticket.set(0, tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device));
    }
    sync_warp();
    let share = ticket.get(0);
    let first = share * 3;
    let mut sum = 0;
    let mut has_rest = first % 4 != 0;
    for unit in first..first + 3 {
        sum += unit + lane_idx();
        if unit % 4 == 3 {
            if has_rest {
                while flags.load(share - 1, Order::Acquire, Scope::Device) == 0 {}
                sum += rest.get((share - 1) * 32 + lane_idx());
                has_rest = false;
            }
            out.set(unit / 4 * 32 + lane_idx(), sum);
            sum = 0;
        }
    }
    rest.set(share * 32 + lane_idx(), sum);
    sync_warp();
    if lane_idx() == 0 {
        flags.store(share, 1, Order::Release, Scope::Device);
    }
}

/// A sum of floats by compare-exchange of its bits.
#[tma_kernel(threads = 32)]
fn sum_by_compare_exchange(values: Global<f32>, sum: Global<f32>) {
    let part = warp_reduce_add(values.get(block_idx().x * 32 + lane_idx()));
    if elect_one() {
        let mut seen = sum.load(0, Order::Relaxed, Scope::Device);
        loop {
            let found = sum.compare_exchange(0, seen, seen + part, Order::Relaxed, Scope::Device);
            if found.to_bits() == seen.to_bits() {
                break;
            }
            seen = found;
        }
    }
}
