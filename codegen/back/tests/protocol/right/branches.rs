//! Conditions that several threads evaluate in the same way, and early exits.

/// Blocks past the end do nothing at all.
#[tma_kernel(threads = 64)]
fn early_end(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, rows: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if block_idx().x * 32 >= rows { return; }
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [block_idx().x * 32, 0], full);
    }
    sync_threads();
    full.wait(0);
    out.set(thread_idx().x, tile.get([0, lane_idx()]));
}

/// A warp exits early, and the others synchronise at another barrier.
#[tma_kernel(threads = 96)]
fn a_warp_ends(out: Global<u32>) {
    let row: SharedArray<u32, 64> = shared();
    if warp_idx() == 2 { return; }
    row.set(thread_idx().x, 1);
    named_barrier_sync(1, 64);
    out.set(thread_idx().x, row.get(63 - thread_idx().x));
}

/// Two tiles or one, depending on a flag: bytes and loads agree.
#[tma_kernel(threads = 64)]
fn one_or_two(
    a: TensorMap<Tile<f32, Shape2<32, 32>>>,
    b: TensorMap<Tile<f32, Shape2<32, 32>>>,
    out: Global<f32>,
    both: bool,
) {
    let left: Tile<f32, Shape2<32, 32>> = shared();
    let right: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        let mut bytes = left.bytes();
        if both { bytes += right.bytes(); }
        full.arrive_expect_tx(bytes);
        a.load(left, [0, 0], full);
        if both { b.load(right, [0, 0], full); }
    }
    sync_threads();
    full.wait(0);
    let mut sum = left.get([0, lane_idx()]);
    if both { sum += right.get([0, lane_idx()]); }
    out.set(thread_idx().x, sum);
}

/// The same condition in two forms.
#[tma_kernel(threads = 64)]
fn in_other_words(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, n: u32) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        if n >= 4 {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [0, 0], full);
        }
    }
    sync_threads();
    if !(n < 4) {
        full.wait(0);
        out.set(thread_idx().x, tile.get([0, lane_idx()]));
    }
}

/// One of three ways to fill a tile.
#[tma_kernel(threads = 32)]
fn one_of_three(
    a: TensorMap<Tile<f32, Shape2<32, 32>>>,
    b: TensorMap<Tile<f32, Shape2<32, 32>>>,
    out: Global<f32>,
    mode: u32,
) {
    let tile: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    if lane_idx() == 0 { full.init(1); fence_barrier_init(); }
    sync_threads();
    match mode {
        0 => {
            if lane_idx() == 0 {
                full.arrive_expect_tx(tile.bytes());
                a.load(tile, [0, 0], full);
            }
            full.wait(0);
        }
        1 | 2 => {
            if lane_idx() == 1 {
                full.arrive_expect_tx(tile.bytes());
                b.load(tile, [0, 0], full);
            }
            full.wait(0);
        }
        _ => {
            for row in 0..32 { tile.set([row, lane_idx()], 0.0); }
            sync_threads();
        }
    }
    out.set(lane_idx(), tile.get([lane_idx(), 0]));
}

/// Each thread of a block reads the same flag from memory.
#[tma_kernel(threads = 128)]
fn by_a_flag_in_memory(flags: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 128> = shared();
    let is_needed = flags.get(block_idx().x) != 0;
    if is_needed { row.set(thread_idx().x, 3); }
    sync_threads();
    if is_needed { out.set(thread_idx().x, row.get(127 - thread_idx().x)); }
}

/// Thread 0 reads the flag and passes it to the others through shared memory.
#[tma_kernel(threads = 128)]
fn told_through_memory(flags: Global<u32>, out: Global<u32>) {
    let told: SharedArray<u32, 1> = shared();
    let row: SharedArray<u32, 128> = shared();
    if thread_idx().x == 0 { told.set(0, flags.get(block_idx().x)); }
    sync_threads();
    if told.get(0) > 7 {
        row.set(thread_idx().x, 1);
        sync_threads();
        out.set(thread_idx().x, row.get(127 - thread_idx().x));
    }
}

/// A lane passes a number to all lanes of its warp.
#[tma_kernel(threads = 32)]
fn told_by_a_shuffle(flags: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    let mut flag = 0;
    if lane_idx() == 0 { flag = flags.get(0); }
    flag = shuffle_idx(flag, 0);
    if flag != 0 {
        row.set(lane_idx(), flag);
        sync_warp();
        out.set(lane_idx(), row.get(31 - lane_idx()));
    }
}

/// A vote decides for the whole warp.
#[tma_kernel(threads = 32)]
fn by_a_vote(values: Global<u32>, out: Global<u32>) {
    let row: SharedArray<u32, 32> = shared();
    if vote_any(values.get(lane_idx()) > 9) {
        row.set(lane_idx(), 1);
        sync_warp();
        out.set(lane_idx(), row.get(31 - lane_idx()));
    }
}

/// Threads past the edge take part in the barrier, but store no result.
#[tma_kernel(threads = 64)]
fn at_the_edge(out: Global<u32>, rows: u32) {
    let row: SharedArray<u32, 64> = shared();
    let at = block_idx().x * 64 + thread_idx().x;
    if at < rows { row.set(thread_idx().x, at); } else { row.set(thread_idx().x, 0); }
    sync_threads();
    if at < rows { out.set(at, row.get(63 - thread_idx().x)); }
}

/// A block without work still takes part in its barriers.
#[tma_kernel(threads = 64)]
fn no_work(out: Global<u32>, tiles: u32) {
    let row: SharedArray<u32, 64> = shared();
    let has_work = block_idx().x < tiles;
    if has_work { row.set(thread_idx().x, 2); }
    sync_threads();
    if has_work { out.set(thread_idx().x, row.get(63 - thread_idx().x)); }
    sync_threads();
}
