//! One load for several blocks: data read from global memory once lands in several blocks.
//!
//! Two blocks share a tile of 16 × 16 integers. Then, of four blocks, the two of each row share
//! one. Each case is shown with a *mask*, where one block loads for all, and in *slices*, where
//! each block loads its part for all. The program prints the tile that each block holds.

use tma_runtime::prelude::*;

/// The tile that a block holds.
const TILE: [usize; 2] = [16, 16];

/// Block 0 loads the tile for both blocks of its cluster.
#[tma_kernel(threads = 32, cluster = 2)]
pub fn multicast_by_mask(
    src: TensorMap<Tile<i32, Shape2<16, 16>>>,
    held: TensorMap<Tile<i32, Shape2<16, 16>>>,
) {
    let tile: Tile<i32, Shape2<16, 16>> = shared();
    let full: Barrier = shared();
    let leader = thread_idx().x == 0;
    if leader {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes()); // in both blocks: each waits for its own copy
    }
    sync_cluster(); // both barriers are ready
    if leader && cluster_rank() == 0 {
        src.load_multicast(tile, [0, 0], full, 0b11);
    }
    full.wait(0);
    if leader {
        held.store([16 * cluster_rank(), 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
    sync_cluster(); // no block ends while another may still use its shared memory
}

/// Each block loads 8 of the 16 rows for both.
#[tma_kernel(threads = 32, cluster = 2)]
pub fn multicast_by_slices(
    src: TensorMap<Tile<i32, Shape2<8, 16>>>,
    held: TensorMap<Tile<i32, Shape2<16, 16>>>,
) {
    let tile: Tile<i32, Shape2<16, 16>> = shared();
    let full: Barrier = shared();
    let leader = thread_idx().x == 0;
    if leader {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes()); // the whole tile: half comes from the other block
    }
    sync_cluster();
    if leader {
        src.load_sliced(tile, [0, 0], full, ClusterAxis::X);
    }
    full.wait(0);
    if leader {
        held.store([16 * cluster_rank(), 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
    sync_cluster();
}

/// Four blocks, two by two: the first of each row loads for its row.
#[tma_kernel(threads = 32, cluster = [2, 2])]
pub fn multicast_rows_by_mask(
    src: TensorMap<Tile<i32, Shape2<16, 16>>>,
    held: TensorMap<Tile<i32, Shape2<16, 16>>>,
) {
    let tile: Tile<i32, Shape2<16, 16>> = shared();
    let full: Barrier = shared();
    let leader = thread_idx().x == 0;
    let row = block_in_cluster().y;
    if leader {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if leader && block_in_cluster().x == 0 {
        // Ranks 0 and 1 are in the first row, 2 and 3 in the second.
        src.load_multicast(tile, [16 * row, 0], full, 0b11 << (2 * row));
    }
    full.wait(0);
    if leader {
        held.store([16 * cluster_rank(), 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
    sync_cluster();
}

/// Four blocks, two by two: each loads half of its row's tile for the row.
#[tma_kernel(threads = 32, cluster = [2, 2])]
pub fn multicast_rows_by_slices(
    src: TensorMap<Tile<i32, Shape2<8, 16>>>,
    held: TensorMap<Tile<i32, Shape2<16, 16>>>,
) {
    let tile: Tile<i32, Shape2<16, 16>> = shared();
    let full: Barrier = shared();
    let leader = thread_idx().x == 0;
    if leader {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if leader {
        src.load_sliced(tile, [16 * block_in_cluster().y, 0], full, ClusterAxis::X);
    }
    full.wait(0);
    if leader {
        held.store([16 * cluster_rank(), 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
    sync_cluster();
}

/// A launch of one of the programs over one cluster.
pub type Launch = fn(&Device, &DeviceTensor<i32, 2>, &mut DeviceTensor<i32, 2>) -> Result<(), Error>;

/// The programs: description, tile of the block of each rank, and launch.
pub const PROGRAMS: [(&str, &[usize], Launch); 4] = [
    ("block 0 loads for two blocks", &[0, 0], |device, src, held| {
        multicast_by_mask::launch(device, 2, src, held)
    }),
    ("two blocks load a slice each", &[0, 0], |device, src, held| {
        multicast_by_slices::launch(device, 2, src, held)
    }),
    ("of 2 × 2 blocks the first of each row loads for its row", &[0, 0, 1, 1], |device, src, held| {
        multicast_rows_by_mask::launch(device, (2, 2), src, held)
    }),
    ("of 2 × 2 blocks each loads a slice for its row", &[0, 0, 1, 1], |device, src, held| {
        multicast_rows_by_slices::launch(device, (2, 2), src, held)
    }),
];

/// Runs a program on tiles of `source`, stacked vertically. Returns the blocks' tiles in order.
pub fn run(device: &Device, launch: Launch, source: &[i32], blocks: usize) -> Result<Vec<i32>, Error> {
    let [rows, cols] = TILE;
    let src = device.tensor(source, [source.len() / cols, cols])?;
    let mut held = device.zeros([blocks * rows, cols])?;
    launch(device, &src, &mut held)?;
    held.to_vec()
}

/// Prints a tile under the blocks that hold it.
fn show(blocks: &[usize], tile: &[i32]) {
    println!("  blocks {blocks:?} hold");
    for row in tile.chunks(TILE[1]) {
        let numbers: Vec<_> = row.iter().map(|number| format!("{number:4}")).collect();
        println!("   {}", numbers.concat());
    }
}

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    let elements = TILE[0] * TILE[1];
    let source: Vec<i32> = (0..2 * elements as i32).collect();
    for (what, tiles, launch) in PROGRAMS {
        let found = run(&device, launch, &source, tiles.len())?;
        println!("{}: {what}", device.name());
        for tile in 0..2 {
            let holders: Vec<_> = (0..tiles.len()).filter(|&block| tiles[block] == tile).collect();
            if let Some(first) = holders.first() {
                show(&holders, &found[first * elements..][..elements]);
            }
        }
        for (block, tile) in tiles.iter().enumerate() {
            let (found, wanted) =
                (&found[block * elements..][..elements], &source[tile * elements..][..elements]);
            anyhow::ensure!(found == wanted, "{what}: block {block} holds something else");
        }
    }
    Ok(())
}
