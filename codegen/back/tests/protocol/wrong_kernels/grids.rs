//! Barriers of the grid that not all blocks reach.

#[tma_kernel(threads = 32)]
fn only_the_first_block(counter: Global<u32>) {
    if block_idx().x == 0 { sync_grid(counter); }
}

#[tma_kernel(threads = 32)]
fn blocks_that_return_early(counter: Global<u32>, out: Global<u32>, blocks: u32) {
    if block_idx().x >= blocks { return; }
    sync_grid(counter);
    out.set(block_idx().x, 1);
}

/// Blocks with one more tile reach one more barrier.
#[tma_kernel(threads = 32)]
fn a_remainder_of_tiles(counter: Global<u32>, out: Global<u32>, tiles: u32) {
    for tile in (block_idx().x..tiles).step_by(grid_dim().x as usize) {
        out.set(tile * 32 + lane_idx(), tile);
        sync_grid(counter);
    }
}

#[tma_kernel(threads = 32)]
fn two_counters(even: Global<u32>, odd: Global<u32>) {
    if block_idx().x % 2 == 0 { sync_grid(even); } else { sync_grid(odd); }
}

#[tma_kernel(threads = 32)]
fn as_often_as_data_says(counter: Global<u32>, counts: Global<u32>) {
    let count = counts.get(block_idx().x);
    for turn in 0..count { sync_grid(counter); }
}
