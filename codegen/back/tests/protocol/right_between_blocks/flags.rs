//! Flags: data that one block writes, and another one reads after an acquire. A block waits only
//! for blocks of its cluster, or for blocks with an earlier ticket.

/// Blocks append to a log in the order of their tickets, by one word that only grows.
#[tma_kernel(threads = 32)]
fn turns_by_ticket(tickets: Global<u32>, turn: Global<u32>, length: Global<u32>, log: Global<u32>) {
    if lane_idx() == 0 {
        let ticket = tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device);
        while turn.load(0, Order::Acquire, Scope::Device) != ticket {}
        let at = length.get(0);
        log.set(at, ticket);
        length.set(0, at + 1);
        turn.store(0, ticket + 1, Order::Release, Scope::Device);
    }
}

/// One thread releases a row that all threads write, and one thread of the next block acquires it
/// for all of its threads.
#[tma_kernel(threads = 64)]
fn rows_passed_on(tickets: Global<u32>, rows: Global<u32>, flags: Global<u32>) {
    let ticket: SharedArray<u32, 1> = shared();
    let t = thread_idx().x;
    if t == 0 {
        ticket.set(0, tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device));
    }
    sync_threads();
    let row = ticket.get(0);
    if row > 0 && t == 63 {
        while flags.load(row - 1, Order::Acquire, Scope::Device) == 0 {}
    }
    sync_threads();
    let mut value = t;
    if row > 0 {
        value += rows.get((row - 1) * 64 + 63 - t);
    }
    rows.set(row * 64 + t, value);
    sync_threads();
    if t == 0 {
        flags.store(row, 1, Order::Release, Scope::Device);
    }
}

/// Every thread polls the flag itself, so that no barrier is needed afterwards.
#[tma_kernel(threads = 64)]
fn all_threads_acquire(tickets: Global<u32>, values: Global<u32>, flags: Global<u32>, out: Global<u32>) {
    let ticket: SharedArray<u32, 1> = shared();
    if thread_idx().x == 32 {
        ticket.set(0, tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device));
    }
    sync_threads();
    let mine = ticket.get(0);
    if thread_idx().x == 0 {
        values.set(mine, mine * mine);
        flags.store(mine, 1, Order::Release, Scope::Device);
    }
    for earlier in 0..mine {
        while flags.load(earlier, Order::Acquire, Scope::Device) == 0 {}
        out.set(mine * 4096 + earlier * 64 + thread_idx().x, values.get(earlier));
    }
}

/// Relaxed accesses with a fence on either side of them.
#[tma_kernel(threads = 32)]
fn fences_around_a_flag(tickets: Global<u32>, rows: Global<u32>, flags: Global<u32>, out: Global<u32>) {
    let mut ticket = 0;
    if lane_idx() == 0 {
        ticket = tickets.atomic_add(0, 1);
    }
    ticket = shuffle_idx(ticket, 0);
    rows.set(ticket * 32 + lane_idx(), ticket + lane_idx());
    sync_warp();
    if lane_idx() == 0 {
        fence();
        flags.store(ticket, 1, Order::Relaxed, Scope::Device);
        if ticket > 0 {
            while flags.load(ticket - 1, Order::Relaxed, Scope::Device) == 0 {}
            fence();
        }
    }
    sync_warp();
    if ticket > 0 {
        out.set(ticket * 32 + lane_idx(), rows.get(ticket * 32 - 32 + 31 - lane_idx()));
    }
}

/// The value and its flag are one word, which needs no order at all.
#[tma_kernel(threads = 32)]
fn value_within_the_flag(tickets: Global<u32>, words: Global<u64>, out: Global<u64>) {
    if lane_idx() == 0 {
        let ticket = tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device);
        let mut sum = 0u64;
        if ticket > 0 {
            let mut word = words.load(ticket - 1, Order::Relaxed, Scope::Device);
            while word >> 63 == 0 {
                word = words.load(ticket - 1, Order::Relaxed, Scope::Device);
            }
            sum = word & 0xffff_ffff;
        }
        sum += ticket as u64 + 1;
        words.store(ticket, 1u64 << 63 | sum, Order::Relaxed, Scope::Device);
        out.set(ticket, sum);
    }
}

/// Flags hold the number of the launch and are never reset; a larger number is valid too.
#[tma_kernel(threads = 32)]
fn flags_of_this_launch(tickets: Global<u32>, flags: Global<u32>, sums: Global<u32>, launch: u32) {
    if lane_idx() == 0 {
        let ticket = tickets.fetch_add(launch, 1, Order::Relaxed, Scope::Device);
        let mut sum = 1;
        if ticket > 0 {
            while flags.load(ticket - 1, Order::Acquire, Scope::Device) < launch {}
            sum += sums.get(ticket - 1);
        }
        sums.set(ticket, sum);
        flags.store(ticket, launch, Order::Release, Scope::Device);
    }
}

/// Relaxed additions continue the release sequence; the last reader waits for the end of the chain.
#[tma_kernel(threads = 32, cluster = 4)]
fn chain_of_additions(data: Global<u32>, count: Global<u32>, out: Global<u32>) {
    let cluster = cluster_idx().x;
    if lane_idx() == 0 {
        match cluster_rank() {
            0 => {
                data.set(cluster, 7);
                count.fetch_add(cluster, 1, Order::Release, Scope::Cluster);
            }
            1 => {
                while count.load(cluster, Order::Relaxed, Scope::Cluster) != 1 {}
                count.fetch_add(cluster, 1, Order::Relaxed, Scope::Cluster);
            }
            2 => {
                while count.load(cluster, Order::Relaxed, Scope::Cluster) != 2 {}
                count.fetch_max(cluster, 3, Order::Relaxed, Scope::Cluster);
            }
            _ => {
                while count.load(cluster, Order::Acquire, Scope::Cluster) != 3 {}
                out.set(cluster, data.get(cluster));
            }
        }
    }
}

/// Two links of different scopes: a flag of the block in shared memory, then one of the cluster.
#[tma_kernel(threads = 64, cluster = 2)]
fn two_links_of_different_scopes(data: Global<u32>, flags: Global<u32>, out: Global<u32>) {
    let near: SharedArray<u32, 1> = shared();
    let i = cluster_idx().x * 32 + lane_idx();
    if thread_idx().x == 0 {
        near.store(0, 0, Order::Relaxed, Scope::Block);
    }
    sync_threads();
    if cluster_rank() == 0 {
        if warp_idx() == 0 {
            data.set(i, i + 1);
            sync_warp();
            if lane_idx() == 0 {
                near.store(0, 1, Order::Release, Scope::Block);
            }
        } else if lane_idx() == 0 {
            while near.load(0, Order::Acquire, Scope::Block) == 0 {}
            flags.store(cluster_idx().x, 1, Order::Release, Scope::Cluster);
        }
    } else if warp_idx() == 1 {
        while flags.load(cluster_idx().x, Order::Acquire, Scope::Cluster) == 0 {}
        out.set(i, data.get(i));
    }
}

/// The writer has system scope, the reader device scope: each scope includes the other thread.
#[tma_kernel(threads = 32, cluster = 2)]
fn scopes_that_include_each_other(data: Global<u32>, flags: Global<u32>, out: Global<u32>) {
    let i = cluster_idx().x * 32 + lane_idx();
    if cluster_rank() == 1 {
        data.set(i, lane_idx());
        sync_warp();
        if lane_idx() == 0 {
            flags.swap(cluster_idx().x, 1, Order::Release, Scope::System);
        }
    } else {
        while flags.fetch_or(cluster_idx().x, 0, Order::Acquire, Scope::Device) == 0 {}
        out.set(i, data.get(i));
    }
}

/// Either of two writers may be first; the reader takes the data of the one whose flag it sees.
#[tma_kernel(threads = 32, cluster = 4)]
fn whichever_is_first(data: Global<u32>, flags: Global<u32>, out: Global<u32>) {
    let first = cluster_idx().x * 2;
    if lane_idx() == 0 {
        if cluster_rank() < 2 {
            data.set(first + cluster_rank(), 5 + cluster_rank());
            flags.store(first + cluster_rank(), 1, Order::Release, Scope::Device);
        } else if cluster_rank() == 3 {
            let mut at = first;
            while flags.load(at, Order::Acquire, Scope::Device) == 0 {
                at = if at == first { first + 1 } else { first };
            }
            out.set(cluster_idx().x, data.get(at));
        }
    }
}

/// A mailbox of one word that is filled and emptied by exchanges, `rounds` times.
#[tma_kernel(threads = 32, cluster = 2)]
fn mailbox_by_exchange(boxes: Global<u32>, letters: Global<u32>, out: Global<u32>, rounds: u32) {
    let mailbox = cluster_idx().x;
    if lane_idx() == 0 {
        for round in 0..rounds {
            if cluster_rank() == 0 {
                letters.set(mailbox, round * 3);
                while boxes.compare_exchange(mailbox, 0, round + 1, Order::AcqRel, Scope::Cluster) != 0 {}
                while boxes.load(mailbox, Order::Acquire, Scope::Cluster) != 0 {}
            } else {
                while boxes.load(mailbox, Order::Acquire, Scope::Cluster) != round + 1 {}
                out.set(mailbox * 64 + round, letters.get(mailbox));
                boxes.swap(mailbox, 0, Order::Release, Scope::Cluster);
            }
        }
    }
}

/// An element of the output is its own flag: it is never zero once it is written.
#[tma_kernel(threads = 32)]
fn elements_that_are_flags(tickets: Global<u32>, powers: Global<u32>) {
    let ticket: SharedArray<u32, 1> = shared();
    if lane_idx() == 31 {
        ticket.set(0, tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device));
    }
    sync_warp();
    let row = ticket.get(0);
    let mut before = 1;
    if row > 0 {
        before = 0;
        while before == 0 {
            before = powers.load((row - 1) * 32 + lane_idx(), Order::Relaxed, Scope::Device);
        }
    }
    powers.store(row * 32 + lane_idx(), before * (2 * lane_idx() + 1), Order::Relaxed, Scope::Device);
}
