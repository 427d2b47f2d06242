//! A grouped copy: one launch copies matrices of different sizes, contiguous in memory. The kernel
//! derives a tensor map for each of them from the one that is a parameter.

use anyhow::ensure;
use tma_runtime::prelude::*;

/// Block `g` copies matrix `g`, with origin, rows and columns in `shapes`. `template` is any map.
#[tma_kernel(threads = 32)]
pub fn tma_grouped_copy(
    template: TensorMap<Tile<f32, Shape2<8, 32>>>,
    shapes: Global<u32>,
    src: Global<f32>,
    dst: Global<f32>,
    maps: Maps<Tile<f32, Shape2<8, 32>>>,
) {
    let from: SharedMap<Tile<f32, Shape2<8, 32>>> = shared();
    let to: SharedMap<Tile<f32, Shape2<8, 32>>> = shared();
    let tile: Tile<f32, Shape2<8, 32>> = shared();
    let full: Barrier = shared();
    let group = block_idx().x;
    let first = shapes.get(group * 3);
    let rows = shapes.get(group * 3 + 1);
    let cols = shapes.get(group * 3 + 2);

    if thread_idx().x == 0 {
        from.copy_from(template);
        from.set_address(src, first);
        from.set_extent::<0>(rows);
        from.set_extent::<1>(cols);
        from.set_stride::<0>(cols as u64 * 4);
        to.copy_from(template);
        to.set_address(dst, first);
        to.set_extent::<0>(rows);
        to.set_extent::<1>(cols);
        to.set_stride::<0>(cols as u64 * 4);
        full.init(1);
        fence_barrier_init();
    }
    sync_warp();
    from.publish(maps, group * 2);
    to.publish(maps, group * 2 + 1);

    if thread_idx().x == 0 {
        maps.acquire(group * 2);
        maps.acquire(group * 2 + 1);
        let mut parity = 0;
        for row in (0..rows).step_by(8) {
            for col in (0..cols).step_by(32) {
                full.arrive_expect_tx(tile.bytes());
                maps.at(group * 2).load(tile, [row, col], full);
                full.wait(parity);
                parity ^= 1;
                maps.at(group * 2 + 1).store([row, col], tile);
                bulk_commit_group();
                bulk_wait_group_read::<0>();
            }
        }
    }
}

/// Copies five matrices, and leaves the gaps between them unchanged.
pub fn run(device: &Device) -> anyhow::Result<()> {
    let sizes: [[usize; 2]; 5] = [[1, 4], [8, 32], [20, 36], [3, 100], [17, 64]];
    let mut shapes = vec![];
    let mut end = 0;
    for [rows, cols] in sizes {
        shapes.extend([end, rows, cols].map(|n| n as u32));
        end += rows * cols + 12; // a gap
    }
    let source: Vec<f32> = (0..end).map(|i| i as f32 + 1.0).collect();
    let mut src = device.tensor(&source, [end])?;
    let mut dst = device.zeros([end])?;
    let template = device.zeros::<f32, 2>([8, 32])?;
    let mut maps = MapWorkspace::new(device, 2 * sizes.len())?;
    let groups = device.tensor(&shapes, [shapes.len()])?;
    tma_grouped_copy::launch(
        device,
        Grid::x(sizes.len() as u32),
        &template,
        &groups,
        &mut src,
        &mut dst,
        &mut maps,
    )?;

    let mut wanted = vec![0.0; end];
    for shape in shapes.chunks_exact(3) {
        let [first, count] = [shape[0] as usize, (shape[1] * shape[2]) as usize];
        wanted[first..first + count].copy_from_slice(&source[first..first + count]);
    }
    ensure!(dst.to_vec()? == wanted, "the matrices differ from plain Rust");
    println!("{}: copied {} matrices by one launch", device.name(), sizes.len());
    Ok(())
}

fn main() -> anyhow::Result<()> {
    run(&Device::open()?)
}
