//! Instances with computed constants and aliases with parameters, launched by types and keys.

use tma_runtime::launch::{Instances, MapOptions};
use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] =
    &[Case { name: "tables::all", run: all }, Case { name: "tables::added", run: added }];

/// Kernels that are launched by types and keys.
#[tma_module]
pub mod sums {
    use tma_runtime::prelude::*;

    type Rows<T, const ROWS: u32, const COLUMNS: u32> = Tile<T, Shape2<ROWS, COLUMNS>>;
    type Words<const ROWS: u32> = Rows<u32, ROWS, 8>;

    /// The sum of a row.
    #[tma_device]
    fn row_sum<T, const R: u32, const C: u32>(tile: Rows<T, R, C>, row: u32) -> u32
    where
        T: TileElement + Number,
    {
        let mut sum = 0;
        for column in 0..C {
            sum += cast::<u32>(tile.get([row, column]));
        }
        sum
    }

    /// Sums rows of a tile whose width follows from its layout, and adds what an optional slice
    /// holds.
    #[tma_kernel(threads = 32, instances(
        T in [u32, u16], (BYTES, DOUBLE) in [(64, false), (32, true)],
        let ROWS = if DOUBLE { 16 } else { 8 },
        let COLUMNS = BYTES / size_of::<T>() as u32,
    ))]
    pub fn table_rows<T, const BYTES: u32, const DOUBLE: bool, const ROWS: u32, const COLUMNS: u32>(
        src: TensorMap<Rows<T, ROWS, COLUMNS>>,
        out: Global<u32>,
        factor: u32,
        offsets: Option<Global<u32>>,
    ) where
        T: TileElement + Number,
    {
        let tile: Rows<T, ROWS, COLUMNS> = shared();
        let totals: Words<ROWS> = shared();
        let full: Barrier = shared();
        if thread_idx().x == 0 {
            full.init(1);
            fence_barrier_init();
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, [0, 0], full);
        }
        sync_threads();
        full.wait(0);
        let row = thread_idx().x;
        if row < ROWS {
            totals.set([row, 0], row_sum(tile, row) * factor);
            let offset = match offsets {
                Some(offsets) => offsets.get(row),
                None => 0,
            };
            out.set(row, totals.get([row, 0]) + offset);
        }
    }
}

use sums::table_rows::{self, Key, Launcher};

/// The columns of a tile of `u32`.
const COLUMNS: [usize; 2] = [16, 8];

/// Returns the sums of rows of `columns` elements.
fn wanted(values: &[u32], columns: usize, factor: u32, offset: u32) -> Vec<u32> {
    values.chunks(columns).map(|row| row.iter().sum::<u32>() * factor + offset).collect()
}

fn values() -> Vec<u32> {
    noise::<u32>(41, 128).into_iter().map(|x| x % 100).collect()
}

/// Launches every instance with elements of `u32`.
fn all(device: &Device, _: &Options) -> anyhow::Result<()> {
    let keys: Vec<_> = table_rows::keys::<u32>().collect();
    anyhow::ensure!(keys == [Key { bytes: 64, double: false }, Key { bytes: 32, double: true }], "{keys:?}");
    anyhow::ensure!(table_rows::find::<i32>(keys[0]).is_none());
    anyhow::ensure!(table_rows::find::<u16>(Key { bytes: 64, double: true }).is_none());
    let values = values();
    let offsets = device.tensor(&[7u32; 16], [16])?;
    for (key, columns) in keys.into_iter().zip(COLUMNS) {
        let rows = 128 / columns;
        let src = device.tensor(&values, [rows, columns])?;
        let mut out = device.filled_bytes([rows], 0xab)?;
        let Some(launcher) = table_rows::find::<u32>(key) else { anyhow::bail!("{key:?}") };
        let src = src.view().map_options(MapOptions::default());
        launcher.launch(device, 1, src, &mut out, 3, Some(&offsets))?;
        same(launcher.spec().name, &out.to_vec()?, &wanted(&values, columns, 3, 7))?;
    }
    Ok(())
}

/// Launches through a table, as a library does with the kernels of its users.
fn added(device: &Device, _: &Options) -> anyhow::Result<()> {
    through(device, &table_rows::table())
}

fn through(device: &Device, table: &Instances<'_, Key>) -> anyhow::Result<()> {
    let values = values();
    let halves: Vec<_> = values.iter().cycle().take(256).map(|&x| x as u16).collect();
    let words: Vec<_> = halves.iter().map(|&x| x.into()).collect();
    for (key, columns) in table.keys::<Launcher<'_, u16>>().zip(COLUMNS.map(|columns| 2 * columns)) {
        let rows = 256 / columns;
        let src = device.tensor(&halves, [rows, columns])?;
        let mut out = device.filled_bytes([rows], 0xab)?;
        let Some(launcher) = table.find::<Launcher<'_, u16>>(key) else { anyhow::bail!("{key:?}") };
        launcher.launch(device, 1, &src, &mut out, 1, None::<&DeviceTensor<u32, 1>>)?;
        same(launcher.spec().name, &out.to_vec()?, &wanted(&words, columns, 1, 0))?;
    }
    Ok(())
}
