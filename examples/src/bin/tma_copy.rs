//! Copies a matrix tile by tile: the smallest complete use of the copy engine.
//!
//! One thread issues a load and tells the barrier how many bytes will arrive. All threads wait for
//! them, and one thread issues the store. Tiles that extend past the matrix need no code:
//! out-of-bounds elements read as zero and are skipped on store.

use tma_runtime::prelude::*;

/// Copies `src` to `dst`, one block per tile.
#[tma_kernel(threads = 128)]
pub fn tma_copy(src: TensorMap<Tile<f16, Shape2<32, 256>>>, dst: TensorMap<Tile<f16, Shape2<32, 256>>>) {
    let tile: Tile<f16, Shape2<32, 256>> = shared();
    let full: Barrier = shared();
    let at = dst.block_tile();
    let leader = thread_idx().x == 0;

    if leader {
        full.init(1);
        fence_barrier_init();
    }
    sync_threads();
    if leader {
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, at, full);
    }
    full.wait(0);
    if leader {
        dst.store(at, tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Launches the copy over all of `src`.
pub fn launch(
    device: &Device,
    src: &DeviceTensor<f16, 2>,
    dst: &mut DeviceTensor<f16, 2>,
) -> Result<(), Error> {
    tma_copy::launch(device, tma_copy::tiles_of_dst(dst.shape()), src, dst)
}

/// Prints the elements around the first one of the last tile, with lines between four tiles.
fn show_corner(matrix: &[f16], [rows, cols]: [usize; 2]) {
    let [row, col] = [(rows - 1) / 32 * 32, (cols - 1) / 256 * 256];
    println!("where the last tile begins, at row {row} and column {col}:");
    for r in row - 2..row + 2 {
        let pair = |c: usize| format!("{:6}{:6}", matrix[r * cols + c], matrix[r * cols + c + 1]);
        if r == row {
            println!("    {0}+{0}", "-".repeat(13));
        }
        println!("    {} |{}", pair(col - 2), pair(col));
    }
}

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    let shape = [1000, 520];
    let host: Vec<f16> = (0..shape[0] * shape[1]).map(|i| f16::from_f32((i % 2048) as f32)).collect();

    let src = device.tensor(&host, shape)?;
    let mut dst = device.zeros(shape)?;
    launch(&device, &src, &mut dst)?;

    let copy = dst.to_vec()?;
    anyhow::ensure!(copy == host, "the copy differs from its source");
    println!("{}: copied {} × {} halves, every bit as it was", device.name(), shape[0], shape[1]);
    show_corner(&copy, shape);
    Ok(())
}
