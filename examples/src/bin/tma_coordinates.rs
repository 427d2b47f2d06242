//! Loads a matrix tile by tile; each block prints its tile's coordinates and corner elements.
//!
//! Coordinates count elements, not tiles: block `[y, x]` starts at row `y * 32`, column `x * 16`.
//! The last blocks extend past the end of the matrix, and read zeros there.

use tma_runtime::prelude::*;

/// Writes the first and the last element of each tile to `corners`.
#[tma_kernel(threads = 32)]
pub fn tma_coordinates(src: TensorMap<Tile<u32, Shape2<32, 16>>>, corners: Global<u32>) {
    let tile: Tile<u32, Shape2<32, 16>> = shared();
    let full: Barrier = shared();
    let y = block_idx().y;
    let x = block_idx().x;
    let row = y * 32;
    let col = x * 16;

    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [row, col], full);
        full.wait(0);

        let first = tile.get([0, 0]);
        let last = tile.get([31, 15]);
        printf!("block [{y}, {x}]: tile at [{row}, {col}], {first} to {last}\n");
        let block = y * grid_dim().x + x;
        corners.set(block * 2, first);
        corners.set(block * 2 + 1, last);
    }
}

/// Launches the kernel on a matrix whose elements encode their indices, and checks the corners.
pub fn run(device: &Device) -> anyhow::Result<()> {
    let shape = [80_usize, 40];
    let element = |row, col| if row < shape[0] && col < shape[1] { (row * 1000 + col) as u32 } else { 0 };
    let host: Vec<u32> = (0..shape[0] * shape[1]).map(|i| element(i / shape[1], i % shape[1])).collect();
    let [down, across] = [shape[0].div_ceil(32), shape[1].div_ceil(16)];

    let src = device.tensor(&host, shape)?;
    let mut corners = device.zeros([2 * down * across])?;
    tma_coordinates::launch(device, Grid::tiles(shape, [32, 16]), &src, &mut corners)?;

    let blocks = (0..down).flat_map(|y| (0..across).map(move |x| [y * 32, x * 16]));
    let wanted: Vec<u32> = blocks.flat_map(|[y, x]| [element(y, x), element(y + 31, x + 15)]).collect();
    anyhow::ensure!(corners.to_vec()? == wanted, "the corners of the tiles differ from those of the matrix");
    println!("{}: {} tiles lie where they should", device.name(), down * across);
    Ok(())
}

fn main() -> anyhow::Result<()> {
    run(&Device::open()?)
}
