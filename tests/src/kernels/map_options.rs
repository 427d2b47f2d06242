//! The options of a tensor map that a launch sets: steps between elements, NaN outside of the
//! tensor, fetches from L2, overlapping rows.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "map_options::steps", run: steps },
    Case { name: "map_options::nan_fill", run: nan_fill },
    Case { name: "map_options::l2_promotion", run: l2_promotion },
    Case { name: "map_options::windows", run: windows },
];

const ROWS: usize = 16;
const COLS: usize = 32;

/// Writes out one tile, which starts at any coordinates.
#[tma_kernel(threads = 32, instances(floats = <f32>, halves = <f16>, words = <u32>))]
pub fn show_tile<T: TileElement>(
    src: TensorMap<Tile<T, Shape2<16, 32>>>,
    out: Global<T>,
    row: i32,
    column: i32,
) {
    let tile: Tile<T, Shape2<16, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [row, column], full);
    }
    sync_threads();
    full.wait(0);
    for row in 0..tile.rows() {
        out.set(row * tile.cols() + lane_idx(), tile.get([row, lane_idx()]));
    }
}

/// Returns the tile at `at` with rows `step` apart, and `outside` for all outside of the tensor.
fn tile_of<T: Copy>(source: &[T], shape: [usize; 2], at: [i32; 2], step: i32, outside: T) -> Vec<T> {
    let inside = |i: i32, extent: usize| usize::try_from(i).ok().filter(|&i| i < extent);
    let element = |i: usize| {
        let row = inside(at[0] + (i / COLS) as i32 * step, shape[0])?;
        let column = inside(at[1] + (i % COLS) as i32, shape[1])?;
        Some(source[row * shape[1] + column])
    };
    (0..ROWS * COLS).map(|i| element(i).unwrap_or(outside)).collect()
}

fn steps(device: &Device, _: &Options) -> anyhow::Result<()> {
    let shape = [100, 40];
    let source = noise::<u32>(201, 100 * 40);
    let src = device.tensor(&source, shape)?;
    for step in 1..=8 {
        for at in [[0, 0], [7, 8], [-9, -4], [90, 36]] {
            let mut out = device.zeros([ROWS * COLS])?;
            show_tile::words::launch(device, 1, src.element_strides([step, 1]), &mut out, at[0], at[1])?;
            same("the tile", &out.to_vec()?, &tile_of(&source, shape, at, step as i32, 0))?;
        }
    }
    Ok(())
}

fn nan_fill(device: &Device, _: &Options) -> anyhow::Result<()> {
    let shape = [20, 40];
    let source: Vec<f32> = (0..20 * 40).map(|i| i as f32).collect();
    let src = device.tensor(&source, shape)?;
    for at in [[0, 0], [10, 16], [-9, -4], [-40, 0]] {
        let mut out = device.zeros([ROWS * COLS])?;
        show_tile::floats::launch(device, 1, src.nan_fill(), &mut out, at[0], at[1])?;
        let wanted = tile_of(&source, shape, at, 1, f32::NAN);
        // No document says which NaN it is.
        let seen: Vec<f32> = out.to_vec()?;
        anyhow::ensure!(
            seen.iter().zip(&wanted).all(|(a, b)| a == b || (a.is_nan() && b.is_nan())),
            "{seen:?}"
        );
    }
    Ok(())
}

fn l2_promotion(device: &Device, _: &Options) -> anyhow::Result<()> {
    let shape = [20, 40];
    let source: Vec<f16> = (0..20 * 40).map(|i| f16::from_f32(i as f32)).collect();
    let src = device.tensor(&source, shape)?;
    for promotion in [L2Promotion::None, L2Promotion::B64, L2Promotion::B128, L2Promotion::B256] {
        let mut out = device.zeros([ROWS * COLS])?;
        show_tile::halves::launch(device, 1, src.l2_promotion(promotion), &mut out, 8, 16)?;
        same("the tile", &out.to_vec()?, &tile_of(&source, shape, [8, 16], 1, f16::ZERO))?;
    }
    Ok(())
}

/// A matrix whose rows are windows of a signal, each a few elements after the one before.
fn windows(device: &Device, _: &Options) -> anyhow::Result<()> {
    let signal = noise::<u32>(203, 4096);
    let src = device.tensor(&signal, [signal.len()])?;
    for step in [4, 8, 24, 36] {
        let shape = [100, 48];
        // SAFETY: the last window ends at element 99 * 36 + 48 of 4096, and `src` outlives the
        // launches.
        let view = unsafe { TensorView::<u32, 2>::from_raw(device, src.as_ptr(), shape, [step, 1]) };
        let rows = (0..shape[0]).flat_map(|row| signal[row * step..][..shape[1]].iter().copied());
        let rows: Vec<u32> = rows.collect();
        for at in [[0, 0], [50, 16], [-3, -4], [95, 32]] {
            let mut out = device.zeros([ROWS * COLS])?;
            show_tile::words::launch(device, 1, view, &mut out, at[0], at[1])?;
            same("the tile", &out.to_vec()?, &tile_of(&rows, shape, at, 1, 0))?;
        }
    }
    Ok(())
}
