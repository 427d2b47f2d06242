//! GEMMs of groups of rows, compared with plain Rust, on the simulator or on the device that
//! `TMA_DEVICE` names.
#![cfg(feature = "llvm")]

mod exact;

use exact::{Element, integers};
use tma_kernels::gemm::{GemmError, GroupedOptions, GroupedWorkspace, Product, Tile, gemm_grouped};
use tma_runtime::prelude::*;

/// The elements of C before the launch. They stay in rows that belong to no group.
const BEFORE: f32 = 77.0;

/// Groups with these numbers of rows, and rows after the last group.
struct Case<'a> {
    rows: &'a [usize],
    behind: usize,
    nk: [usize; 2],
    transpose_b: bool,
    tile: Option<Tile>,
}

impl Case<'_> {
    #[track_caller]
    fn check<AB: Element + Product<C>, C: Element>(&self, device: &Device) -> Result<(), GemmError> {
        let &Self { rows, behind, nk: [n, k], transpose_b, tile } = self;
        let m = rows.iter().sum::<usize>() + behind;
        let (a, b) = (integers::<AB>(1, m * k), integers::<AB>(2, rows.len() * n * k));
        let ends: Vec<u32> = rows
            .iter()
            .scan(0, |end, rows| {
                *end += *rows as u32;
                Some(*end)
            })
            .collect();
        let group = |row: usize| ends.iter().position(|&end| row < end as usize);
        let element = |place: usize| {
            let (row, column) = (place / n, place % n);
            let Some(group) = group(row) else { return BEFORE };
            let at = |x: usize| if transpose_b { column * k + x } else { x * n + column };
            (0..k).map(|x| a[row * k + x].value() * b[group * n * k + at(x)].value()).sum()
        };
        let wanted: Vec<C> = (0..m * n).map(|place| C::of(element(place))).collect();

        let of_b = if transpose_b { [rows.len(), n, k] } else { [rows.len(), k, n] };
        let (a, b) = (device.tensor(&a, [m, k])?, device.tensor(&b, of_b)?);
        let ends = device.tensor(&ends, [rows.len()])?;
        let mut c = device.tensor(&vec![C::of(BEFORE); m * n], [m, n])?;
        gemm_grouped(device, &a, &b, &ends, &mut c, GroupedOptions { transpose_b, tile, workspace: None })?;
        let found = c.to_vec()?;
        if let Some(i) = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted) {
            let (row, column) = (i / n, i % n);
            let (found, wanted) = (found[i].value(), wanted[i].value());
            panic!("groups of {rows:?} rows, {tile:?}: row {row} column {column} is {found}, not {wanted}");
        }
        Ok(())
    }
}

/// Groups without rows, of one row, of a tile, and of more than a cluster's tile, beginning
/// anywhere.
const RAGGED: [usize; 8] = [5, 0, 130, 257, 64, 1, 0, 3];

const TILES: [Tile; 2] = [Tile::T128x256Cluster2x1, Tile::T128x128Cluster1x2];

#[test]
fn ragged_groups_are_multiplied_by_every_tile() -> Result<(), GemmError> {
    let device = Device::open()?;
    for tile in TILES.map(Some) {
        for transpose_b in [false, true] {
            Case { rows: &RAGGED, behind: 0, nk: [72, 136], transpose_b, tile }
                .check::<bf16, bf16>(&device)?;
        }
        let case = Case { rows: &[70, 3, 129], behind: 7, nk: [264, 64], transpose_b: true, tile };
        case.check::<f16, f32>(&device)?;
    }
    Ok(())
}

/// Odd and even numbers of columns and rows of tiles, and more columns than rows.
#[test]
fn many_columns_of_tiles_are_multiplied() -> Result<(), GemmError> {
    let device = Device::open()?;
    for (tile, columns) in [(Tile::T128x256Cluster2x1, 256), (Tile::T128x128Cluster1x2, 128)] {
        for n in [9 * columns + 8, 10 * columns] {
            for rows in [300, 256, 90] {
                let nk = [n, 8];
                let case = Case { rows: &[rows, 3], behind: 0, nk, transpose_b: true, tile: Some(tile) };
                case.check::<bf16, bf16>(&device)?;
            }
        }
    }
    Ok(())
}

/// Clusters, only some of which have a tile, synchronise at its end.
#[test]
fn long_sums_are_multiplied() -> Result<(), GemmError> {
    let device = Device::open()?;
    for tile in TILES.map(Some) {
        Case { rows: &[257, 5], behind: 1, nk: [24, 2056], transpose_b: false, tile }
            .check::<bf16, f32>(&device)?;
    }
    Ok(())
}

#[test]
fn every_element_is_multiplied() -> Result<(), GemmError> {
    let device = Device::open()?;
    let case = Case { rows: &[9, 66], behind: 0, nk: [40, 72], transpose_b: false, tile: None };
    case.check::<bf16, f32>(&device)?;
    case.check::<f16, f16>(&device)
}

/// A cluster computes several tiles one after the other, from several groups.
#[test]
fn persistent_blocks_process_several_tiles() -> Result<(), GemmError> {
    let device = Device::open()?;
    let groups = device.multiprocessors() as usize + 5;
    let rows: Vec<usize> = (0..groups).map(|group| group * 7 % 5).collect();
    for tile in TILES.map(Some) {
        Case { rows: &rows, behind: 3, nk: [16, 8], transpose_b: true, tile }.check::<bf16, bf16>(&device)?;
    }
    Ok(())
}

/// The last of these tiles is split between two clusters. Blocks of a `T128x256Cluster2x1` are stacked in groups
/// of 130 and 250 rows, and side by side in groups of 70 rows.
#[test]
fn a_tile_of_the_last_round_is_halved() -> Result<(), GemmError> {
    let device = Device::open()?;
    let clusters = device.multiprocessors() as usize / 2;
    for (tile, rows) in [
        (Tile::T128x256Cluster2x1, 130),
        (Tile::T128x256Cluster2x1, 250),
        (Tile::T128x256Cluster2x1, 70),
        (Tile::T128x128Cluster1x2, 70),
    ] {
        let (rows, tile) = (vec![rows; clusters + 1], Some(tile));
        Case { rows: &rows, behind: 1, nk: [16, 136], transpose_b: true, tile }
            .check::<bf16, bf16>(&device)?;
    }
    Ok(())
}

/// Neither the order of warps and blocks nor that in which copies arrive changes a bit.
#[test]
fn results_are_the_same_under_every_seed() {
    let check = |device: &Device| {
        for tile in TILES.map(Some) {
            let case = Case { rows: &[131, 0, 70, 5], behind: 2, nk: [136, 136], transpose_b: true, tile };
            case.check::<bf16, bf16>(device)?;
        }
        Ok::<_, GemmError>(())
    };
    if let Err(failure) = tma_runtime::testing::under_seeds(5, check) {
        panic!("{failure}");
    }
}

#[test]
fn a_workspace_serves_one_product_after_the_other() -> Result<(), GemmError> {
    let device = Device::open()?;
    let mut workspace = GroupedWorkspace::new(&device)?;
    let (a, b) = (integers::<bf16>(1, 80 * 16), integers::<bf16>(2, 2 * 16 * 8));
    let (a, b) = (device.tensor(&a, [80, 16])?, device.tensor(&b, [2, 16, 8])?);
    let mut results = vec![];
    for end in [33_u32, 34, 33] {
        let ends = device.tensor(&[end, 80], [2])?;
        let mut c = device.zeros::<f32, 2>([80, 8])?;
        let options = GroupedOptions { workspace: Some(&mut workspace), ..GroupedOptions::default() };
        gemm_grouped(&device, &a, &b, &ends, &mut c, options)?;
        results.push(c.to_vec()?);
    }
    assert_eq!(results[0], results[2]);
    let differing: Vec<_> = (0..80 * 8).filter(|&i| results[0][i] != results[1][i]).map(|i| i / 8).collect();
    assert!(!differing.is_empty() && differing.iter().all(|&row| row == 33), "{differing:?}");
    Ok(())
}

#[test]
fn without_elements_there_is_nothing_to_do_and_without_k_there_are_zeros() -> Result<(), GemmError> {
    let device = Device::open()?;
    let cases: [(&[usize], _); 4] =
        [(&[0, 0], [8, 8]), (&[], [8, 8]), (&[3, 4], [0, 8]), (&[70, 0, 3], [24, 0])];
    for (rows, nk) in cases {
        for transpose_b in [false, true] {
            let case = Case { rows, behind: 0, nk, transpose_b, tile: None };
            case.check::<bf16, bf16>(&device)?;
        }
    }
    // Rows, but none that belong to a group.
    Case { rows: &[0, 0], behind: 9, nk: [8, 8], transpose_b: true, tile: None }.check::<bf16, bf16>(&device)
}

#[test]
fn invalid_arguments_are_rejected() -> Result<(), GemmError> {
    let device = Device::open()?;
    let (a, b) = (device.zeros::<bf16, 2>([64, 32])?, device.zeros::<bf16, 3>([2, 32, 16])?);
    let ends = device.tensor(&[10_u32, 64], [2])?;
    let mut c = device.zeros::<bf16, 2>([64, 16])?;
    let mut refused = |b: &DeviceTensor<bf16, 3>, ends: &DeviceTensor<u32, 1>, tile| {
        let options = GroupedOptions { tile, ..GroupedOptions::default() };
        gemm_grouped(&device, &a, b, ends, &mut c, options).map_err(|error| (error.code(), error.to_string()))
    };
    assert_eq!(refused(&b, &ends, None), Ok(()));
    let (code, text) = refused(&b, &device.tensor(&[64_u32], [1])?, None).expect_err("one end");
    assert_eq!(code, "TMA0558");
    assert!(text.contains("`ends` is [1], but must be [2]"), "{text}");
    let turned = device.zeros::<bf16, 3>([2, 16, 32])?;
    assert_eq!(refused(&turned, &ends, None).expect_err("N × K").0, "TMA0558");
    let many = device.zeros::<bf16, 3>([513, 32, 16])?;
    let (code, text) = refused(&many, &device.zeros([513])?, None).expect_err("too many groups");
    assert_eq!(code, "TMA0558");
    assert!(text.contains("at most 512 groups: B has 513"), "{text}");
    assert_eq!(refused(&b, &ends, Some(Tile::T64x64)).expect_err("no such tile").0, "TMA0547");
    let mut narrow = device.zeros::<bf16, 2>([64, 8])?;
    let options = GroupedOptions::default();
    let text = gemm_grouped(&device, &a, &b, &ends, &mut narrow, options).expect_err("another N").to_string();
    assert!(text.contains("C is [64, 8], but must be [64, 16]"), "{text}");
    Ok(())
}

/// Data that the host never reads is checked on the device. A GPU would reject all later calls.
#[test]
fn ends_that_do_not_rise_or_are_beyond_the_rows_stop_the_kernel() -> Result<(), GemmError> {
    let device = Device::simulator();
    let (a, b) = (device.zeros::<bf16, 2>([64, 32])?, device.zeros::<bf16, 3>([2, 32, 16])?);
    for ends in [[40_u32, 30], [40, 65]] {
        let ends = device.tensor(&ends, [2])?;
        let mut c = device.zeros::<bf16, 2>([64, 16])?;
        let error =
            gemm_grouped(&device, &a, &b, &ends, &mut c, GroupedOptions::default()).expect_err("wrong ends");
        assert!(error.to_string().contains("`ends` must be ascending"), "{error}");
    }
    Ok(())
}
