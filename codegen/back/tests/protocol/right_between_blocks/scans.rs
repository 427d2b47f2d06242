//! Running sums in one pass: tiles look back at those with smaller tickets.

/// Decoupled look-back: status and value are one word, so no other access needs an order.
#[tma_kernel(threads = 32)]
fn look_back_at_words(tickets: Global<u32>, values: Global<u32>, words: Global<u64>, out: Global<u32>) {
    let mut tile = 0;
    if lane_idx() == 0 {
        tile = tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device);
    }
    tile = shuffle_idx(tile, 0);
    let value = values.get(tile * 32 + lane_idx());
    let sum = warp_reduce_add(value);
    let mut before = 0;
    if lane_idx() == 0 {
        let kind = if tile == 0 { 2u64 } else { 1u64 };
        words.store(tile, kind << 32 | sum as u64, Order::Relaxed, Scope::Device);
        let mut at = tile;
        while at > 0 {
            let word = words.load(at - 1, Order::Relaxed, Scope::Device);
            match word >> 32 {
                0 => {}
                1 => {
                    before += word as u32;
                    at -= 1;
                }
                _ => {
                    before += word as u32;
                    at = 0;
                }
            }
        }
        words.store(tile, 2u64 << 32 | (before + sum) as u64, Order::Relaxed, Scope::Device);
    }
    out.set(tile * 32 + lane_idx(), shuffle_idx(before, 0) + value);
}

/// The same with sums in plain memory, after flags of two kinds.
#[tma_kernel(threads = 32)]
fn look_back_at_flags(
    tickets: Global<u32>,
    flags: Global<u32>,
    own: Global<u32>,
    running: Global<u32>,
    out: Global<u32>,
) {
    if lane_idx() > 0 {
        return;
    }
    let tile = tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device);
    own.set(tile, tile + 1);
    flags.store(tile, 1, Order::Release, Scope::Device);
    let mut before = 0;
    let mut at = tile;
    while at > 0 {
        let flag = flags.load(at - 1, Order::Acquire, Scope::Device);
        if flag == 2 {
            before += running.get(at - 1);
            break;
        }
        if flag == 1 {
            before += own.get(at - 1);
            at -= 1;
        }
    }
    running.set(tile, before + tile + 1);
    flags.store(tile, 2, Order::Release, Scope::Device);
    assert!(before == tile * (tile + 1) / 2);
    out.set(tile, before);
}

/// A whole warp looks back, a tile per lane, and ballots how far sums are known.
#[tma_kernel(threads = 32)]
fn look_back_by_a_warp(tickets: Global<u32>, words: Global<u64>, out: Global<u32>) {
    let mut tile = 0;
    if elect_one() {
        tile = tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device);
    }
    tile = warp_reduce_max(tile);
    let sum = tile + 1;
    if lane_idx() == 0 {
        words.store(tile, 1u64 << 32 | sum as u64, Order::Relaxed, Scope::Device);
    }
    let mut before = 0;
    let mut end = tile;
    while end > 0 {
        // Lane 0 reads the tile next to the end; lanes before the first tile have a sum of zero.
        let mut word = 2u64 << 32;
        if lane_idx() < end {
            word = words.load(end - 1 - lane_idx(), Order::Relaxed, Scope::Device);
        }
        if vote_any(word >> 32 == 0) {
            continue;
        }
        let whole = ballot(word >> 32 == 2);
        let last = if whole == 0 { 31 } else { whole.trailing_zeros() };
        before += warp_reduce_add(if lane_idx() <= last { word as u32 } else { 0 });
        end = if whole == 0 { end - 32 } else { 0 };
    }
    if lane_idx() == 0 {
        words.store(tile, 2u64 << 32 | (before + sum) as u64, Order::Relaxed, Scope::Device);
        out.set(tile, before);
    }
}

/// Kept elements find their indices by one addition per block, and a ballot in it.
#[tma_kernel(threads = 64)]
fn kept_elements(values: Global<u32>, length: Global<u32>, kept: Global<u32>) {
    let counts: SharedArray<u32, 2> = shared();
    let first: SharedArray<u32, 1> = shared();
    let value = values.get(block_idx().x * 64 + thread_idx().x);
    let keeps = value % 3 != 0;
    let mask = ballot(keeps);
    if lane_idx() == 0 {
        counts.set(warp_idx(), mask.count_ones());
    }
    sync_threads();
    if thread_idx().x == 0 {
        first.set(0, length.fetch_add(0, counts.get(0) + counts.get(1), Order::Relaxed, Scope::Device));
    }
    sync_threads();
    if keeps {
        let below = (mask & ((1 << lane_idx()) - 1)).count_ones();
        let warps = if warp_idx() == 1 { counts.get(0) } else { 0 };
        kept.set(first.get(0) + warps + below, value);
    }
}

/// A running sum in one word, whose upper half is the ticket that may continue it.
#[tma_kernel(threads = 32)]
fn carry_in_one_word(tickets: Global<u32>, carry: Global<u64>, values: Global<u32>, out: Global<u32>) {
    let mut tile = 0;
    let mut before = 0;
    if lane_idx() == 0 {
        tile = tickets.fetch_add(0, 1, Order::Relaxed, Scope::Device);
    }
    tile = shuffle_idx(tile, 0);
    let value = values.get(tile * 32 + lane_idx());
    let sum = warp_reduce_add(value);
    if lane_idx() == 0 {
        let mut word = carry.load(0, Order::Relaxed, Scope::Device);
        while (word >> 32) as u32 != tile {
            word = carry.load(0, Order::Relaxed, Scope::Device);
        }
        carry.fetch_add(0, 1u64 << 32 | sum as u64, Order::Relaxed, Scope::Device);
        before = word as u32;
    }
    out.set(tile * 32 + lane_idx(), shuffle_idx(before, 0) + value);
}
