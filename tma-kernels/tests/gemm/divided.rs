//! Tiles that are split among clusters, and their sums.

use tma_kernels::gemm::Division::{Even, Halved, Parts, Whole};
use tma_kernels::gemm::{GemmError, GemmOptions, Tile, Workspace};
use tma_runtime::prelude::*;

use super::case::{Case, by, device};

/// The last of these tiles is split between two clusters, with and without rounds before it, and
/// also if half of a tile is outside of C.
#[test]
fn tiles_of_the_last_round_are_halved() {
    let clusters = device().multiprocessors() as usize / 2;
    for (tile, [rows, columns]) in [
        (Tile::T128x256Cluster2x1, [256, 256]),
        (Tile::T128x192Cluster2x1, [256, 192]),
        (Tile::T128x128Cluster2x1, [256, 128]),
    ] {
        for (rows, columns) in [
            (rows - 8, columns * (clusters + 1) - 8),
            (rows / 4, columns * (clusters + 1)),
            (rows - 8, columns - 8),
            (rows / 4 - 8, columns),
        ] {
            Case::nt([rows, columns, 200, 1]).product::<bf16, bf16>(by(tile, Halved));
        }
    }
    Case::nt([248, 128 * (2 * clusters + 1), 72, 1])
        .product::<f16, f16>(by(Tile::T128x128Cluster2x1, Halved));
    for transposed in [[false, false], [true, false], [true, true]] {
        let mnkl = [248, 256 * (clusters + 1) - 8, 136, 1];
        Case { mnkl, transposed }.product::<bf16, bf16>(by(Tile::T128x256Cluster2x1, Halved));
    }
}

/// In a tile of more steps than the ring has slots, one warpgroup finishes before the other. This
/// is tested with a tile before it, and also with halved last tiles.
#[test]
fn one_warpgroup_starts_first() {
    let clusters = device().multiprocessors() as usize / 2;
    for (tile, columns, k) in [
        (Tile::T128x256Cluster2x1, 256, 328),
        (Tile::T128x256Cluster2x1, 256, 264),
        (Tile::T128x192Cluster2x1, 192, 392),
    ] {
        for division in [Whole, Halved] {
            Case::nt([248, columns * (clusters + 1) - 8, k, 1]).product::<bf16, bf16>(by(tile, division));
        }
    }
}

#[test]
fn sums_are_split_among_blocks() {
    for (tile, parts) in [
        (Tile::T128x256Cluster2x1, 2),
        (Tile::T128x128Cluster2x1, 3),
        (Tile::T128x128Cluster1x2, 2),
        (Tile::T128x64Cluster1x2, 2),
        (Tile::T64x128, 4),
        (Tile::T64x64, 8),
    ] {
        Case::nt([72, 144, 264, 2]).product::<bf16, bf16>(by(tile, Parts(parts)));
        Case::nt([72, 144, 264, 2]).product::<f16, f16>(by(tile, Even));
    }
    // More parts than steps.
    Case::nt([8, 8, 72, 1]).product::<bf16, bf16>(by(Tile::T64x64, Parts(100)));
}

/// Tiles are in two parts if there are as many as clusters, and in more parts if there are fewer.
/// With more tiles, clusters compute whole ones first.
#[test]
fn clusters_compute_several_tiles_and_share_steps() {
    let blocks = device().multiprocessors() as usize;
    for (tile, clusters, [rows, columns]) in
        [(Tile::T64x64, blocks, [64, 64]), (Tile::T128x128Cluster2x1, blocks / 2, [256, 128])]
    {
        for (tiles, division) in [
            (2, Even),
            (clusters - 1, Even),
            (clusters + 3, Even),
            (2 * clusters + 5, Even),
            (clusters + 5, Whole),
        ] {
            Case::nt([rows - 8, columns * tiles - 8, 200, 1]).product::<bf16, bf16>(by(tile, division));
        }
    }
}

#[test]
fn a_workspace_serves_one_product_after_the_other() -> Result<(), GemmError> {
    let device = device();
    for mut workspace in [Workspace::new(&device)?, Workspace::empty(&device)?] {
        for k in [136, 264, 136] {
            let choice = Some(by(Tile::T64x64, Parts(2)));
            let options = GemmOptions { choice, workspace: Some(&mut workspace), ..GemmOptions::default() };
            Case::nt([72, 80, k, 1]).run::<bf16, bf16>(&device, options, |sum, _| sum)?;
        }
    }
    Ok(())
}
