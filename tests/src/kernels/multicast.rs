//! Loads into several blocks of a cluster: by mask, and in slices.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::{Sample, noise};

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "multicast::masks", run: masks },
    Case { name: "multicast::each_block_for_all", run: each_for_all },
    Case { name: "multicast::slices_along_x", run: slices_along_x },
    Case { name: "multicast::slices_along_y", run: slices_along_y },
    Case { name: "multicast::slices_along_z", run: slices_along_z },
    Case { name: "multicast::slices_for_all", run: slices_for_all },
    Case { name: "multicast::rows_and_columns", run: rows_and_columns },
];

/// One block loads for those in `mask`; the others keep their own contents.
#[tma_kernel(threads = 64, cluster = [2, 2])]
pub fn multicast_mask(src: TensorMap<Tile<u32, Shape2<4, 64>>>, out: Global<u32>, issuer: u32, mask: u32) {
    let tile: Tile<u32, Shape2<4, 64>> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    let rank = cluster_rank();
    let gets = mask >> rank & 1 == 1;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        if gets {
            full.arrive_expect_tx(tile.bytes());
        }
    }
    if !gets {
        for row in 0..tile.rows() {
            tile.set([row, t], rank);
        }
    }
    sync_cluster();
    if rank == issuer && t == 0 {
        src.load_multicast(tile, [2, 0], full, mask as u16);
    }
    if gets {
        full.wait(0);
    }
    for row in 0..tile.rows() {
        out.set((4 * rank + row) * 64 + t, tile.get([row, t]));
    }
    sync_cluster();
}

fn masks(device: &Device, options: &Options) -> anyhow::Result<()> {
    // The last two rows of the box are outside of the tensor.
    let source = noise::<u32>(91, 4 * 64);
    let src = device.tensor(&source, [4, 64])?;
    let tile = [&source[128..], &[0; 128]].concat();
    let masks = if options.quick { vec![0b0001, 0b1010, 0b1111, 0b0110, 0b1000] } else { (1..16).collect() };
    for issuer in 0..4u32 {
        for &mask in &masks {
            let mut out = device.filled_bytes([4 * 256], 0xab)?;
            multicast_mask::launch(device, (2, 2), &src, &mut out, issuer, mask)?;
            let of_block = |rank: u32| if mask >> rank & 1 == 1 { tile.clone() } else { vec![rank; 256] };
            let wanted: Vec<_> = (0..4).flat_map(of_block).collect();
            same(&format!("block {issuer} for {mask:#06b}"), &out.to_vec()?, &wanted)?;
        }
    }
    Ok(())
}

/// Each block loads the tile of its rank for all: every barrier receives the bytes of all tiles.
#[tma_kernel(threads = 64, cluster = BLOCKS, instances(two = <2>, four = <4>, eight = <8>))]
pub fn multicast_from_each<const BLOCKS: u32>(src: TensorMap<Tile<u32, Shape2<4, 64>>>, out: Global<u32>) {
    let tiles: Stages<Tile<u32, Shape2<4, 64>>, BLOCKS> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    let rank = cluster_rank();
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(BLOCKS * tiles[0].bytes());
    }
    sync_cluster();
    if t == 0 {
        src.load_multicast(tiles[rank], [4 * rank, 0], full, ((1u32 << BLOCKS) - 1) as u16);
    }
    full.wait(0);
    for row in 0..4 * BLOCKS {
        out.set((4 * BLOCKS * rank + row) * 64 + t, tiles[row / 4].get([row % 4, t]));
    }
    sync_cluster();
}

fn each_for_all(device: &Device, _: &Options) -> anyhow::Result<()> {
    for blocks in [2usize, 4, 8] {
        let source = noise::<u32>(92, blocks * 256);
        let src = device.tensor(&source, [blocks * 4, 64])?;
        let mut out = device.filled_bytes([blocks * source.len()], 0xab)?;
        match blocks {
            2 => multicast_from_each::two::launch(device, 2, &src, &mut out)?,
            4 => multicast_from_each::four::launch(device, 4, &src, &mut out)?,
            _ => multicast_from_each::eight::launch(device, 8, &src, &mut out)?,
        }
        same(&format!("tiles of {blocks} blocks"), &out.to_vec()?, &source.repeat(blocks))?;
    }
    Ok(())
}

/// Slices of 16 rows for the blocks that differ in x. Blocks that differ in y load other columns.
#[tma_kernel(
    threads = 64,
    cluster = [X, Y],
    instances(two = <2, 1, 32>, four = <4, 1, 64>, square = <2, 2, 32>, upright = <1, 2, 16>, eight = <8, 1, 128>)
)]
pub fn sliced_x<const X: u32, const Y: u32, const ROWS: u32>(
    src: TensorMap<Tile<f16, Shape2<16, 64>, Swizzle128>>,
    out: Global<f16>,
) {
    let tile: Tile<f16, Shape2<ROWS, 64>, Swizzle128> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if t == 0 {
        src.load_sliced(tile, [cluster_idx().x * ROWS, block_idx().y * 64], full, ClusterAxis::X);
    }
    full.wait(0);
    let block = block_idx().x + grid_dim().x * block_idx().y;
    for row in 0..ROWS {
        out.set((block * ROWS + row) * 64 + t, tile.get([row, t]));
    }
    sync_cluster();
}

/// Returns the tile of `tile` extents at `at` of a matrix, with zeros outside of the matrix.
fn tile_of<T: Sample>(source: &[T], shape: [usize; 2], at: [usize; 2], tile: [usize; 2]) -> Vec<T> {
    let element = |row: usize, column: usize| {
        let inside = row < shape[0] && column < shape[1];
        if inside { source[row * shape[1] + column] } else { T::default() }
    };
    let row = |row: usize| (0..tile[1]).map(move |column| element(at[0] + row, at[1] + column));
    (0..tile[0]).flat_map(row).collect()
}

fn slices_along_x(device: &Device, options: &Options) -> anyhow::Result<()> {
    for [x, y] in [[2usize, 1], [4, 1], [2, 2], [1, 2], [8, 1]] {
        let rows = 16 * x;
        // Ragged: the tiles of the last cluster cross the bounds in both directions.
        let shapes = [[3 * rows - 21, 2 * y * 64 - 40], [3 * rows, 2 * y * 64]];
        for shape in shapes.into_iter().take(if options.quick { 1 } else { 2 }) {
            let source = noise::<f16>(93, shape[0] * shape[1]);
            let src = device.tensor(&source, shape)?;
            let grid = (3 * x as u32, 2 * y as u32);
            let blocks = 6 * x * y;
            let mut out = device.filled_bytes([blocks * rows * 64], 0xab)?;
            match (x, y) {
                (2, 1) => sliced_x::two::launch(device, grid, &src, &mut out)?,
                (4, 1) => sliced_x::four::launch(device, grid, &src, &mut out)?,
                (2, 2) => sliced_x::square::launch(device, grid, &src, &mut out)?,
                (1, 2) => sliced_x::upright::launch(device, grid, &src, &mut out)?,
                _ => sliced_x::eight::launch(device, grid, &src, &mut out)?,
            }
            let of_block = |block: usize| {
                let (bx, by) = (block % (3 * x), block / (3 * x));
                tile_of(&source, shape, [bx / x * rows, by * 64], [rows, 64])
            };
            let wanted: Vec<_> = (0..blocks).flat_map(of_block).collect();
            same(&format!("cluster [{x}, {y}], {shape:?}"), &out.to_vec()?, &wanted)?;
        }
    }
    Ok(())
}

/// Slices for the blocks that differ in y; blocks that differ in x load other columns.
#[tma_kernel(threads = 32, cluster = [X, Y, 1], instances(upright = <1, 2, 16>, square = <2, 2, 16>, tall = <2, 4, 32>))]
pub fn sliced_y<const X: u32, const Y: u32, const ROWS: u32>(
    src: TensorMap<Tile<u16, Shape2<8, 32>, Swizzle64>>,
    out: Global<u16>,
) {
    let tile: Tile<u16, Shape2<ROWS, 32>, Swizzle64> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if t == 0 {
        src.load_sliced(tile, [cluster_idx().y * ROWS, block_idx().x * 32], full, ClusterAxis::Y);
    }
    full.wait(0);
    let block = block_idx().x + grid_dim().x * block_idx().y;
    for row in 0..ROWS {
        out.set((block * ROWS + row) * 32 + t, tile.get([row, t]));
    }
    sync_cluster();
}

fn slices_along_y(device: &Device, _: &Options) -> anyhow::Result<()> {
    for [x, y] in [[1usize, 2], [2, 2], [2, 4]] {
        let rows = 8 * y;
        for shape in [[2 * rows, 2 * x * 32], [2 * rows - 5, 2 * x * 32 - 16]] {
            let source = noise::<u16>(94, shape[0] * shape[1]);
            let src = device.tensor(&source, shape)?;
            let grid = (2 * x as u32, 2 * y as u32);
            let blocks = 4 * x * y;
            let mut out = device.filled_bytes([blocks * rows * 32], 0xab)?;
            match (x, y) {
                (1, 2) => sliced_y::upright::launch(device, grid, &src, &mut out)?,
                (2, 2) => sliced_y::square::launch(device, grid, &src, &mut out)?,
                _ => sliced_y::tall::launch(device, grid, &src, &mut out)?,
            }
            let of_block = |block: usize| {
                let (bx, by) = (block % (2 * x), block / (2 * x));
                tile_of(&source, shape, [by / y * rows, bx * 32], [rows, 32])
            };
            let wanted: Vec<_> = (0..blocks).flat_map(of_block).collect();
            same(&format!("cluster [{x}, {y}], {shape:?}"), &out.to_vec()?, &wanted)?;
        }
    }
    Ok(())
}

/// Planes of a tensor of three dimensions, for the blocks that differ in z.
#[tma_kernel(threads = 32, cluster = [2, 1, 2])]
pub fn sliced_z(src: TensorMap<Tile<u8, Shape3<1, 16, 16>, Swizzle32>>, out: Global<u8>) {
    let tile: Tile<u8, Shape3<2, 16, 16>, Swizzle32> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if t == 0 {
        src.load_sliced(tile, [1, 16 * block_idx().x, 0], full, ClusterAxis::Z);
    }
    full.wait(0);
    for i in (t..512).step_by(32) {
        out.set(512 * cluster_rank() + i, tile.get([i / 256, i / 16 % 16, i % 16]));
    }
    sync_cluster();
}

fn slices_along_z(device: &Device, _: &Options) -> anyhow::Result<()> {
    let shape = [3, 32, 16];
    let source = noise::<u8>(95, 3 * 32 * 16);
    let mut out = device.filled_bytes([4 * 512], 0xab)?;
    sliced_z::launch(device, (2, 1, 2), &device.tensor(&source, shape)?, &mut out)?;
    let of_block = |rank: usize| {
        let element = |i: usize| source[(1 + i / 256) * 512 + (16 * (rank % 2) + i / 16 % 16) * 16 + i % 16];
        (0..512).map(element).collect::<Vec<_>>()
    };
    same("planes", &out.to_vec()?, &(0..4).flat_map(of_block).collect::<Vec<_>>())
}

/// Slices for the whole cluster, one per rank; the tile begins before the tensor.
#[tma_kernel(
    threads = 64,
    cluster = [X, Y, Z],
    instances(two = <2, 1, 1, 8>, square = <2, 2, 1, 16>, cube = <2, 2, 2, 32>, eight = <8, 1, 1, 32>)
)]
pub fn sliced_all<const X: u32, const Y: u32, const Z: u32, const ROWS: u32>(
    src: TensorMap<Tile<f32, Shape2<4, 64>>>,
    out: Global<f32>,
) {
    let tile: Tile<f32, Shape2<ROWS, 64>> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if t == 0 {
        src.load_sliced(tile, [-3, 4], full, ClusterAxis::All);
    }
    full.wait(0);
    for row in 0..ROWS {
        out.set((cluster_rank() * ROWS + row) * 64 + t, tile.get([row, t]));
    }
    sync_cluster();
}

fn slices_for_all(device: &Device, _: &Options) -> anyhow::Result<()> {
    for [x, y, z] in [[2u32, 1, 1], [2, 2, 1], [2, 2, 2], [8, 1, 1]] {
        let blocks = (x * y * z) as usize;
        let (rows, shape) = (4 * blocks, [4 * blocks, 64]);
        let source = noise::<f32>(96, shape[0] * shape[1]);
        let src = device.tensor(&source, shape)?;
        let mut out = device.filled_bytes([blocks * rows * 64], 0xab)?;
        let grid = (x, y, z);
        match grid {
            (2, 1, 1) => sliced_all::two::launch(device, grid, &src, &mut out)?,
            (2, 2, 1) => sliced_all::square::launch(device, grid, &src, &mut out)?,
            (2, 2, 2) => sliced_all::cube::launch(device, grid, &src, &mut out)?,
            _ => sliced_all::eight::launch(device, grid, &src, &mut out)?,
        }
        let inside = tile_of(&source, shape, [0, 4], [rows - 3, 64]);
        let tile = [vec![0.0; 3 * 64], inside].concat();
        same(&format!("cluster {grid:?}"), &out.to_vec()?, &tile.repeat(blocks))?;
    }
    Ok(())
}

/// Loads as in a GEMM: a tile of rows is shared along x, a tile of columns along y, and one barrier
/// waits for both. Each thread sums the products of a row and a column.
#[tma_kernel(threads = 256, cluster = [2, 2])]
pub fn sliced_both_ways(
    a: TensorMap<Tile<u32, Shape2<8, 32>, Swizzle128>>,
    b: TensorMap<Tile<u32, Shape2<8, 32>, Swizzle128>>,
    out: Global<u32>,
    steps: u32,
) {
    let rows: Tile<u32, Shape2<16, 32>, Swizzle128> = shared();
    let columns: Tile<u32, Shape2<16, 32>, Swizzle128> = shared();
    let full: Barrier = shared();
    let empty: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        full.init(1);
        empty.init(4);
        fence_barrier_init();
    }
    sync_cluster();
    let mut sum = 0;
    for step in 0..steps {
        if t == 0 {
            // No block loads into a block that is still reading.
            empty.wait(step & 1 ^ 1);
            full.arrive_expect_tx(rows.bytes() + columns.bytes());
            a.load_sliced(rows, [block_idx().y * 16, step * 32], full, ClusterAxis::X);
            b.load_sliced(columns, [block_idx().x * 16, step * 32], full, ClusterAxis::Y);
        }
        full.wait(step & 1);
        for k in 0..32 {
            sum += rows.get([t / 16, k]) * columns.get([t % 16, k]);
        }
        fence_proxy_async();
        sync_threads();
        if t < 4 {
            remote(empty, t).arrive();
        }
    }
    out.set((block_idx().y * 16 + t / 16) * (16 * grid_dim().x) + block_idx().x * 16 + t % 16, sum);
    sync_cluster();
}

fn rows_and_columns(device: &Device, options: &Options) -> anyhow::Result<()> {
    let (m, n, k) = if options.quick { (32, 32, 64) } else { (192, 128, 1024) };
    let (a, b) = (noise::<u32>(97, m * k), noise::<u32>(98, n * k));
    let mut out = device.filled_bytes([m * n], 0xab)?;
    let (left, right) = (device.tensor(&a, [m, k])?, device.tensor(&b, [n, k])?);
    let (grid, steps) = ((n as u32 / 16, m as u32 / 16), k as u32 / 32);
    sliced_both_ways::launch(device, grid, &left, &right, &mut out, steps)?;
    let product = |i: usize| {
        let (row, column) = (&a[i / n * k..][..k], &b[i % n * k..][..k]);
        row.iter().zip(column).fold(0u32, |sum, (x, y)| sum.wrapping_add(x.wrapping_mul(*y)))
    };
    same("products", &out.to_vec()?, &(0..m * n).map(product).collect::<Vec<_>>())
}
