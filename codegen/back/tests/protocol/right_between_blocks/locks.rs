//! Locks, sequence locks and lists: plain data after a compare-exchange that acquires and before a
//! store that releases. The owner of a lock is running, so any grid is right.

/// A spin lock, and a plain element that it guards.
#[tma_kernel(threads = 32)]
fn spin_lock(lock: Global<u32>, guarded: Global<u32>) {
    if lane_idx() == 0 {
        while lock.compare_exchange(0, 0, 1, Order::Acquire, Scope::Device) != 0 {}
        guarded.set(0, guarded.get(0) + 1);
        guarded.set(guarded.get(0), block_idx().x);
        lock.store(0, 0, Order::Release, Scope::Device);
    }
}

/// Relaxed loads of the lock before the exchange; fences order the guarded element.
#[tma_kernel(threads = 32)]
fn looks_before_it_locks(lock: Global<u32>, guarded: Global<u32>) {
    if lane_idx() == 0 {
        loop {
            while lock.load(0, Order::Relaxed, Scope::Device) != 0 {}
            if lock.swap(0, 1, Order::Relaxed, Scope::Device) == 0 {
                break;
            }
        }
        fence();
        guarded.set(0, guarded.get(0) + 1);
        fence();
        lock.store(0, 0, Order::Relaxed, Scope::Device);
    }
}

/// A lock for the whole block: one thread takes it, and barriers pass on the order.
#[tma_kernel(threads = 64)]
fn lock_of_a_block(lock: Global<u32>, row: Global<u32>) {
    let t = thread_idx().x;
    if t == 0 {
        while lock.swap(0, 1, Order::Acquire, Scope::Device) == 1 {}
    }
    sync_threads();
    let before = row.get(63 - t);
    sync_threads();
    row.set(t, before + 1);
    sync_threads();
    if t == 63 {
        lock.store(0, 0, Order::Release, Scope::Device);
    }
}

/// A ticket lock: first come, first served.
#[tma_kernel(threads = 64)]
fn ticket_lock(lock: Global<u32>, guarded: Global<u64>) {
    if lane_idx() == 0 {
        let ticket = lock.fetch_add(0, 1, Order::Relaxed, Scope::Device);
        while lock.load(1, Order::Acquire, Scope::Device) != ticket {}
        guarded.set(0, guarded.get(0) * 3 + ticket as u64);
        lock.fetch_add(1, 1, Order::Release, Scope::Device);
    }
}

/// Many readers or one writer: the count of readers, or the highest bit.
#[tma_kernel(threads = 32)]
fn readers_and_writers(lock: Global<u32>, guarded: Global<u32>, out: Global<u32>) {
    if lane_idx() > 0 {
        return;
    }
    while lock.compare_exchange(0, 0, 1 << 31, Order::Acquire, Scope::Device) != 0 {}
    guarded.set(0, guarded.get(0) + 1);
    guarded.set(1, guarded.get(1) + 1);
    lock.fetch_and(0, (1 << 31) - 1, Order::Release, Scope::Device);
    while lock.fetch_add(0, 1, Order::Acquire, Scope::Device) >> 31 == 1 {
        lock.fetch_add(0, u32::MAX, Order::Relaxed, Scope::Device);
    }
    out.set(block_idx().x, guarded.get(0) - guarded.get(1));
    lock.fetch_add(0, u32::MAX, Order::Release, Scope::Device);
}

/// A queue lock (Mellor-Crummey and Scott): each block spins on its own word.
#[tma_kernel(threads = 32)]
fn queue_lock(tail: Global<u32>, next: Global<u32>, locked: Global<u32>, guarded: Global<u32>) {
    if lane_idx() == 0 {
        let me = block_idx().x + 1;
        locked.store(me, 1, Order::Relaxed, Scope::Device);
        let before = tail.swap(0, me, Order::AcqRel, Scope::Device);
        if before != 0 {
            next.store(before, me, Order::Release, Scope::Device);
            while locked.load(me, Order::Acquire, Scope::Device) == 1 {}
        }
        guarded.set(0, guarded.get(0) + me);
        if tail.compare_exchange(0, me, 0, Order::Release, Scope::Device) != me {
            let mut after = 0;
            while after == 0 {
                after = next.load(me, Order::Acquire, Scope::Device);
            }
            locked.store(after, 0, Order::Release, Scope::Device);
        }
    }
}

/// A lock that is tried a few times: a thread that does not get it counts its part as missed.
#[tma_kernel(threads = 32)]
fn tries_and_gives_up(locks: Global<u32>, guarded: Global<u32>, missed: Global<u32>, tries: u32) {
    if lane_idx() < 4 {
        let bucket = lane_idx() % 2;
        let mut has = false;
        for attempt in 0..tries {
            if !has && locks.compare_exchange(bucket, 0, 1, Order::Acquire, Scope::Device) == 0 {
                guarded.set(bucket, guarded.get(bucket) + attempt + 1);
                locks.store(bucket, 0, Order::Release, Scope::Device);
                has = true;
            }
        }
        if !has {
            missed.atomic_add(0, 1);
        }
    }
}

/// A sequence lock, odd during a write. All accesses to its data are strong; a fence keeps the
/// writer's after the odd number, and another one the reader's before the second load.
#[tma_kernel(threads = 32)]
fn sequence_lock(lock: Global<u32>, sequence: Global<u32>, data: Global<u32>, out: Global<u32>) {
    if lane_idx() > 0 {
        return;
    }
    while lock.swap(0, 1, Order::Acquire, Scope::Device) == 1 {}
    let number = sequence.load(0, Order::Relaxed, Scope::Device);
    sequence.store(0, number + 1, Order::Relaxed, Scope::Device);
    fence();
    for i in 0..3 {
        data.store(i, number + i, Order::Relaxed, Scope::Device);
    }
    sequence.store(0, number + 2, Order::Release, Scope::Device);
    lock.store(0, 0, Order::Release, Scope::Device);
    let mut sum = 0;
    loop {
        let before = sequence.load(0, Order::Acquire, Scope::Device);
        sum = 0;
        for i in 0..3 {
            sum += data.load(i, Order::Relaxed, Scope::Device);
        }
        fence();
        if before % 2 == 0 && sequence.load(0, Order::Relaxed, Scope::Device) == before {
            assert!(sum == 3 * before - 3);
            break;
        }
    }
    out.set(block_idx().x, sum);
}

/// One block makes a table that all use: the first to come, which the others wait for.
#[tma_kernel(threads = 32)]
fn made_once(state: Global<u32>, table: Global<u32>, out: Global<u32>) {
    let mut seen = 0;
    if lane_idx() == 0 {
        seen = state.compare_exchange(0, 0, 1, Order::Acquire, Scope::Device);
    }
    seen = shuffle_idx(seen, 0);
    if seen == 0 {
        table.set(lane_idx(), lane_idx() * lane_idx());
        sync_warp();
        if lane_idx() == 0 {
            state.store(0, 2, Order::Release, Scope::Device);
        }
    } else {
        while state.load(0, Order::Acquire, Scope::Device) != 2 {}
    }
    out.set(block_idx().x * 32 + lane_idx(), table.get(31 - lane_idx()));
}

/// Nodes are pushed to a list by compare-exchange of its head; the last thread follows the list.
#[tma_kernel(threads = 32)]
fn list_without_locks(head: Global<u32>, next: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let node = block_idx().x * 32 + lane_idx() + 1;
    let mut seen = head.load(0, Order::Relaxed, Scope::Device);
    loop {
        next.set(node, seen);
        let found = head.compare_exchange(0, seen, node, Order::Release, Scope::Device);
        if found == seen {
            break;
        }
        seen = found;
    }
    if count.fetch_add(0, 1, Order::AcqRel, Scope::Device) + 1 == grid_dim().x * 32 {
        let mut length = 0;
        let mut at = head.load(0, Order::Relaxed, Scope::Device);
        while at != 0 {
            length += 1;
            at = next.get(at);
        }
        assert!(length == grid_dim().x * 32);
        out.set(0, length);
    }
}

/// A table of keys that are inserted by compare-exchange, and counted in a second table.
#[tma_kernel(threads = 32)]
fn keys_of_a_table(values: Global<u32>, keys: Global<u32>, counts: Global<u32>) {
    let key = values.get(block_idx().x * 32 + lane_idx()) + 1;
    let mut at = key * 7 % 64;
    loop {
        let found = keys.compare_exchange(at, 0, key, Order::Relaxed, Scope::Device);
        if found == 0 || found == key {
            break;
        }
        at = (at + 1) % 64;
    }
    counts.fetch_add(at, 1, Order::Relaxed, Scope::Device);
}

/// Warps of a block lock a word in shared memory, and the block counts itself in global memory.
#[tma_kernel(threads = 128)]
fn lock_in_shared_memory(parts: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let lock: SharedArray<u32, 1> = shared();
    let sum: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 {
        lock.store(0, 0, Order::Relaxed, Scope::Block);
        sum.set(0, 0);
    }
    sync_threads();
    if lane_idx() == 0 {
        while lock.compare_exchange(0, 0, 1, Order::Acquire, Scope::Block) != 0 {}
        sum.set(0, sum.get(0) + warp_idx());
        lock.store(0, 0, Order::Release, Scope::Block);
    }
    sync_threads();
    if thread_idx().x == 0 {
        parts.set(block_idx().x, sum.get(0));
        if count.fetch_add(0, 1, Order::AcqRel, Scope::Device) + 1 == grid_dim().x {
            for block in 0..grid_dim().x {
                assert!(parts.get(block) == 6);
            }
            out.set(0, 6 * grid_dim().x);
        }
    }
}
