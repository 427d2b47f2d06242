//! Loops that only a plain read of memory can end.

#[tma_kernel(threads = 32)]
fn of_a_flag(flag: Global<u32>) {
    while flag.get(0) == 0 {} //~ TMA0713
}

#[tma_kernel(threads = 32)]
fn with_a_break(flag: Global<u32>, out: Global<u32>) {
    loop {
        let seen = flag.get(block_idx().x); //~ TMA0713
        if seen == 7 { break; }
        fence();
    }
    out.set(lane_idx(), 1);
}

#[tma_kernel(threads = 64)]
fn of_shared_memory(out: Global<u32>) {
    let flag: SharedArray<u32, 1> = shared();
    if thread_idx().x == 0 { flag.set(0, 0); }
    sync_threads();
    if warp_idx() == 0 {
        flag.set(0, 1);
    } else {
        while flag.get(0) == 0 {} //~ TMA0713
    }
}

#[tma_kernel(threads = 32)]
fn under_a_condition(flag: Global<u32>, tries: Global<u32>) {
    let mut done = false;
    let mut turns = 0;
    while !done {
        if flag.get(0) > 3 { done = true; } //~ TMA0713
        turns += 1;
    }
    tries.set(0, turns);
}

#[tma_kernel(threads = 32)]
fn of_all_of_several(flags: Global<u32>) {
    loop {
        let mut came = 0;
        for i in 0..8u32 { came += flags.get(i); } //~ TMA0713
        if came == 8 { break; }
    }
}

/// The place of the read changes in each turn, or there is another end.
#[tma_kernel(threads = 32)]
fn that_end(src: Global<u32>, out: Global<u32>, n: u32) {
    let mut i = 0;
    while i < n && src.get(i) == 0 { i += 1; }
    let mut at = 0;
    while src.get(at) != at { at = src.get(at); }
    let mut tries = 0;
    loop {
        if src.get(0) == 1 || tries == 9 { break; }
        tries += 1;
    }
    let mut once = true;
    while once { once = false; }
    out.set(lane_idx(), i + at);
}
