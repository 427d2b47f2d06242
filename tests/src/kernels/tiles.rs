//! Coordinates by tile, grids of tiles, slices along inner dimensions, and instances selected by
//! their generics.

use tma_runtime::launch::LaunchOn;
use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::{same, same_bits};
use crate::random::{Sample, noise};

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "tiles::of_blocks", run: of_blocks },
    Case { name: "tiles::by_index", run: by_index },
    Case { name: "tiles::sliced_planes", run: sliced_planes },
    Case { name: "tiles::sliced_lines", run: sliced_lines },
    Case { name: "tiles::sliced_pixels", run: sliced_pixels },
    Case { name: "tiles::generic_launches", run: generic_launches },
    Case { name: "tiles::views", run: views },
];

/// Copies this block's tile of three dimensions.
#[tma_kernel(threads = 32)]
pub fn tile_of_block(
    src: TensorMap<Tile<f32, Shape3<2, 8, 16>>>,
    dst: TensorMap<Tile<f32, Shape3<2, 8, 16>>>,
) {
    let tile: Tile<f32, Shape3<2, 8, 16>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, src.block_tile(), full);
        full.wait(0);
        dst.store(dst.block_tile(), tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// The extents of the grid differ, so that swapped or missing tiles would show.
fn of_blocks(device: &Device, _: &Options) -> anyhow::Result<()> {
    for shape in [[2, 8, 16], [3, 17, 36], [7, 8, 80], [40, 9, 4]] {
        let source = noise::<f32>(171, shape.iter().product());
        let (src, mut dst) = (device.tensor(&source, shape)?, device.filled_bytes(shape, 0xab)?);
        let grid = tile_of_block::tiles_of_dst(dst.shape());
        anyhow::ensure!(grid == Grid::tiles(shape, [2, 8, 16]), "the grid of {shape:?}");
        tile_of_block::launch(device, grid, &src, &mut dst)?;
        same_bits(&dst.to_vec()?, &source)?;
    }
    Ok(())
}

/// Reverses the order of the tiles of a row, beginning with one before the tensor.
#[tma_kernel(threads = 32)]
pub fn tiles_turned(
    src: TensorMap<Tile<u32, Shape2<4, 8>>>,
    dst: TensorMap<Tile<u32, Shape2<4, 8>>>,
    columns: i32,
) {
    let tile: Tile<u32, Shape2<4, 8>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        let mut phase = Phase::new();
        full.init(1);
        fence_barrier_init();
        for column in -1..columns {
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, src.tile_at([block_idx().x as i32, column]), full);
            full.wait_next(&mut phase);
            let to = (columns - 1 - column) as u32;
            dst.store(dst.tile_at([block_idx().x, to]), tile);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
    }
}

fn by_index(device: &Device, _: &Options) -> anyhow::Result<()> {
    let [rows, columns] = [11, 5];
    let source = noise::<u32>(172, rows * columns * 8);
    let src = device.tensor(&source, [rows, columns * 8])?;
    let mut dst = device.filled_bytes([rows, (columns + 1) * 8], 0xab)?;
    tiles_turned::launch(device, rows.div_ceil(4) as u32, &src, &mut dst, columns as i32)?;
    let turned = source.chunks(columns * 8).flat_map(|row| {
        let tiles = row.chunks(8).rev().flatten().copied();
        tiles.chain([0; 8]).collect::<Vec<_>>()
    });
    same("tiles", &dst.to_vec()?, &turned.collect::<Vec<_>>())
}

/// Loads a plane of 16 rows in slices of 8, of a tensor of planes.
#[tma_kernel(threads = 64, cluster = [1, 2])]
pub fn slice_of_plane(src: TensorMap<Tile<f16, Shape3<1, 8, 64>, Swizzle128>>, out: Global<f16>, plane: u32) {
    let tile: Tile<f16, Shape3<1, 16, 64>, Swizzle128> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if t == 0 {
        src.load_sliced(tile, tile.tile_at([plane, cluster_idx().x, 0]), full, ClusterAxis::Y);
    }
    full.wait(0);
    let block = cluster_idx().x * 2 + cluster_rank();
    for row in 0..16 {
        out.set((block * 16 + row) * 64 + t, tile.get([0, row, t]));
    }
    sync_cluster();
}

fn sliced_planes(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<f16>(173, 3 * 32 * 64);
    let mut out = device.filled_bytes([2 * 2 * 16 * 64], 0xab)?;
    let src = device.tensor(&source, [3, 32, 64])?;
    slice_of_plane::launch(device, (2, 2), &src, &mut out, 1)?;
    let plane = &source[32 * 64..][..32 * 64];
    let wanted: Vec<_> = plane.chunks(16 * 64).flat_map(|half| half.repeat(2)).collect();
    same_bits(&out.to_vec()?, &wanted)
}

/// Loads a row of 128 elements in slices of 32: its outermost dimensions have one element each.
#[tma_kernel(threads = 32, cluster = 4)]
pub fn slice_of_line(src: TensorMap<Tile<u32, Shape3<1, 1, 32>>>, out: Global<u32>) {
    let tile: Tile<u32, Shape3<1, 1, 128>> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if t == 0 {
        src.load_sliced(tile, [1, 2, 4], full, ClusterAxis::All);
    }
    full.wait(0);
    for i in (t..128).step_by(32) {
        out.set(cluster_rank() * 128 + i, tile.get([0, 0, i]));
    }
    sync_cluster();
}

fn sliced_lines(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<u32>(174, 2 * 3 * 144);
    let mut out = device.filled_bytes([4 * 128], 0xab)?;
    slice_of_line::launch(device, 4, &device.tensor(&source, [2, 3, 144])?, &mut out)?;
    same("lines", &out.to_vec()?, &source[5 * 144 + 4..][..128].repeat(4))
}

/// Loads 16 pixels of 8 channels in slices of 8 pixels: the hardware counts pixels where the
/// language counts elements.
#[tma_kernel(threads = 128, cluster = 2)]
pub fn slice_of_pixels(src: TensorMap<Tile<u16, Shape3<1, 1, 64>, Interleave16>>, out: Global<u16>) {
    let tile: Tile<u16, Shape3<1, 1, 128>, Interleave16> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if t == 0 {
        src.load_sliced(tile, [0, 1, 16], full, ClusterAxis::X);
    }
    full.wait(0);
    out.set(cluster_rank() * 128 + t, tile.get([0, 0, t]));
    sync_cluster();
}

fn sliced_pixels(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<u16>(175, 2 * 160);
    let mut out = device.filled_bytes([2 * 128], 0xab)?;
    slice_of_pixels::launch(device, 2, &device.tensor(&source, [1, 2, 160])?, &mut out)?;
    same("pixels", &out.to_vec()?, &source[160 + 16..][..128].repeat(2))
}

/// Copies tiles of the elements and widths of its instances.
#[tma_kernel(threads = 32, instances(narrow = <u8, 16>, f32 = <f32, 8>, wide = <f32, 32>))]
pub fn tiles_of<T: TileElement, const COLS: u32>(
    src: TensorMap<Tile<T, Shape2<4, COLS>>>,
    dst: TensorMap<Tile<T, Shape2<4, COLS>>>,
    last: Global<T>,
    value: T,
) {
    let tile: Tile<T, Shape2<4, COLS>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, src.block_tile(), full);
        full.wait(0);
        dst.store(dst.block_tile(), tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
        last.set(block_idx().y * grid_dim().x + block_idx().x, value);
    }
}

/// Copies a matrix by the instance for its elements.
fn copied<T: Scalar, const COLS: u32>(
    on: &impl LaunchOn,
    src: &DeviceTensor<T, 2>,
    dst: &mut DeviceTensor<T, 2>,
    value: T,
) -> Result<Vec<T>, Error>
where
    tiles_of::Instance<T, COLS>: tiles_of::Compiled,
{
    let grid = tiles_of::tiles_of_dst::<T, COLS>(dst.shape());
    let blocks = grid.blocks().iter().product::<u64>() as usize;
    let mut last = on.device().zeros([blocks])?;
    tiles_of::launch::<T, COLS>(on, grid, src, dst, &mut last, value)?;
    last.to_vec()
}

fn generic_launches(device: &Device, _: &Options) -> anyhow::Result<()> {
    fn check<T: Sample, const COLS: u32>(device: &Device, value: T, name: &str) -> anyhow::Result<()>
    where
        tiles_of::Instance<T, COLS>: tiles_of::Compiled,
    {
        let spec = <tiles_of::Instance<T, COLS> as tiles_of::Compiled>::SPEC;
        anyhow::ensure!(spec.name == name, "`{}` was chosen, not `{name}`", spec.name);
        let source = noise::<T>(176, 10 * 48);
        let (src, mut dst) = (device.tensor(&source, [10, 48])?, device.filled_bytes([10, 48], 0xab)?);
        let last = copied::<T, COLS>(&device, &src, &mut dst, value)?;
        same_bits(&dst.to_vec()?, &source)?;
        same("blocks", &last, &vec![value; 3 * 48_usize.div_ceil(COLS as usize)])
    }
    check::<u8, 16>(device, 7, "tiles_of::narrow")?;
    check::<f32, 8>(device, 1.5, "tiles_of::f32")?;
    check::<f32, 32>(device, -2.5, "tiles_of::wide")
}

/// Copies parts of one tensor to parts of another, all made without `unsafe`.
fn views(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<f32>(177, 6 * 20 * 40);
    let src = device.tensor(&source, [6, 20, 40])?;
    let mut dst = device.filled_bytes::<f32, 3>([8, 24, 48], 0xab)?;
    let untouched = dst.to_vec()?;
    // Planes become rows and rows planes, on the way from one box to another.
    let from = src.view().slice([1..5, 2..19, 8..40])?.permute([1, 0, 2])?;
    let to = dst.view_mut().slice([3..7, 4..21, 16..48])?.permute([1, 0, 2])?;
    let grid = tile_of_block::tiles_of_dst(to.shape());
    tile_of_block::launch(device, grid, from, to)?;
    let mut wanted = untouched;
    for (plane, row, column) in
        (0..4).flat_map(|p| (0..17).flat_map(move |r| (0..32).map(move |c| (p, r, c))))
    {
        wanted[((3 + plane) * 24 + 4 + row) * 48 + 16 + column] =
            source[((1 + plane) * 20 + 2 + row) * 40 + 8 + column];
    }
    same_bits(&dst.to_vec()?, &wanted)?;

    // Overlapping windows of a signal: rows of 32, each 16 after the one before.
    let windows = src.view().with_strides([1, 299, 32], [0, 16, 1])?;
    let mut rows = device.filled_bytes::<f32, 2>([299, 32], 0xab)?;
    let out = rows.view_mut().with_strides([1, 299, 32], [0, 32, 1])?;
    let grid = tile_of_block::tiles_of_dst(out.shape());
    tile_of_block::launch(device, grid, windows, out)?;
    let wanted: Vec<_> = (0..299).flat_map(|row| &source[row * 16..][..32]).copied().collect();
    same_bits(&rows.to_vec()?, &wanted)
}
