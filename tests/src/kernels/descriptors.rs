//! Tensor maps that kernels make: of every rank that has strides, used in the launch that makes
//! them and in a later one.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "descriptors::cubes", run: cubes },
    Case { name: "descriptors::later_launch", run: later_launch },
    Case { name: "descriptors::line", run: line },
];

/// Loads a box of a cube and adds it. The kernel sets the address, all extents and all strides of
/// the map, which the first warp makes and another thread uses.
#[tma_kernel(threads = 64)]
pub fn descriptor_cube(
    template: TensorMap<Tile<u32, Shape3<2, 4, 8>>>,
    data: Global<u32>,
    maps: Maps<Tile<u32, Shape3<2, 4, 8>>>,
    out: TensorMap<Tile<u32, Shape3<2, 4, 8>>>,
    first: u64,
    depth: u32,
    height: u32,
    width: u32,
    at: u32,
) {
    let map: SharedMap<Tile<u32, Shape3<2, 4, 8>>> = shared();
    let tile: Tile<u32, Shape3<2, 4, 8>> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        map.copy_from(template);
        map.set_address(data, first);
        map.set_extent::<0>(depth);
        map.set_extent::<1>(height);
        map.set_extent::<2>(width);
        map.set_stride::<0>((height * width) as u64 * 4);
        map.set_stride::<1>(width as u64 * 4);
        full.init(1);
        fence_barrier_init();
    }
    if warp_idx() == 0 {
        sync_warp();
        map.publish(maps, 1);
    }
    sync_threads();
    if t == 32 {
        let cube = maps.at(1);
        maps.acquire(1);
        full.arrive_expect_tx(tile.bytes());
        cube.hint(l2_evict_first(1.0)).load(tile, [at, at, 4], full);
        full.wait(0);
        out.store([0, 0, 0], tile);
        cube.reduce_add([at, at, 4], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn cubes(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<u32>(801, 2000);
    for (first, [depth, height, width], at) in
        [(0, [2, 4, 12], 0), (100, [3, 5, 16], 1), (1000, [4, 6, 20], 2), (4, [1, 1, 8], 0)]
    {
        let template = device.zeros([2, 4, 8])?;
        let mut data = device.tensor(&source, [2000])?;
        let mut maps = MapWorkspace::new(device, 2)?;
        let mut out = device.filled_bytes([2, 4, 8], 0xab)?;
        let [d, h, w] = [depth as u32, height as u32, width as u32];
        descriptor_cube::launch(
            device,
            1,
            &template,
            &mut data,
            &mut maps,
            &mut out,
            first as u64,
            d,
            h,
            w,
            at as u32,
        )?;
        let (mut loaded, mut after) = (vec![], source.clone());
        for i in 0..64 {
            let [z, y, x] = [at + i / 32, at + i / 8 % 4, 4 + i % 8];
            let index = first + (z * height + y) * width + x;
            if z < depth && y < height && x < width {
                loaded.push(source[index]);
                after[index] = source[index].wrapping_mul(2);
            } else {
                loaded.push(0);
            }
        }
        same("loaded", &out.to_vec()?, &loaded)?;
        same("added", &data.to_vec()?, &after)?;
    }
    Ok(())
}

/// Publishes a map for each block's part of `data`.
#[tma_kernel(threads = 32)]
pub fn descriptor_make(
    template: TensorMap<Tile<f16, Shape2<8, 64>, Swizzle128>>,
    data: Global<f16>,
    maps: Maps<Tile<f16, Shape2<8, 64>, Swizzle128>>,
) {
    let map: SharedMap<Tile<f16, Shape2<8, 64>, Swizzle128>> = shared();
    let block = block_idx().x;
    if thread_idx().x == 0 {
        map.copy_from(template);
        map.set_address(data, block * 64);
        map.set_extent::<0>(block + 1);
    }
    sync_warp();
    map.publish(maps, block);
}

/// Copies by the maps of an earlier launch.
#[tma_kernel(threads = 32)]
pub fn descriptor_use(
    maps: Maps<Tile<f16, Shape2<8, 64>, Swizzle128>>,
    dst: TensorMap<Tile<f16, Shape2<8, 64>, Swizzle128>>,
) {
    let tile: Tile<f16, Shape2<8, 64>, Swizzle128> = shared();
    let full: Barrier = shared();
    let block = block_idx().x;
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        maps.acquire(block);
        full.arrive_expect_tx(tile.bytes());
        maps.at(block).prefetch([0, 0]);
        maps.at(block).load(tile, [0, 0], full);
        full.wait(0);
        dst.store([block * 8, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn later_launch(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<f16>(803, 12 * 64);
    let template = device.zeros([8, 64])?;
    let mut data = device.tensor(&source, [12 * 64])?;
    let mut maps = MapWorkspace::new(device, 4)?;
    descriptor_make::launch(device, 4, &template, &mut data, &mut maps)?;
    let mut dst = device.filled_bytes([32, 64], 0xab)?;
    descriptor_use::launch(device, 4, &mut maps, &mut dst)?;
    let element = |i: usize| {
        let (block, row, column) = (i / 512, i / 64 % 8, i % 64);
        if row <= block { source[(block + row) * 64 + column] } else { f16::ZERO }
    };
    same("rows", &dst.to_vec()?, &(0..32 * 64).map(element).collect::<Vec<_>>())
}

/// Copies a line whose length is a parameter.
#[tma_kernel(threads = 32)]
pub fn descriptor_line(
    template: TensorMap<Tile<u64, Shape1<32>>>,
    data: Global<u64>,
    maps: Maps<Tile<u64, Shape1<32>>>,
    out: Global<u64>,
    len: u32,
) {
    let map: SharedMap<Tile<u64, Shape1<32>>> = shared();
    let tile: Tile<u64, Shape1<32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        map.copy_from(template);
        map.set_address(data, 2);
        map.set_extent::<0>(len);
        full.init(1);
        fence_barrier_init();
    }
    sync_warp();
    map.publish(maps, 0);
    if thread_idx().x == 0 {
        maps.acquire(0);
        full.arrive_expect_tx(tile.bytes());
        maps.at(0).load(tile, [-2], full);
    }
    full.wait(0);
    out.set(lane_idx(), tile.get([lane_idx()]));
}

fn line(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<u64>(805, 64);
    for len in [1, 30, 31, 62] {
        let template = device.zeros([4])?;
        let mut data = device.tensor(&source, [64])?;
        let mut maps = MapWorkspace::new(device, 1)?;
        let mut out = device.filled_bytes([32], 0xab)?;
        descriptor_line::launch(device, 1, &template, &mut data, &mut maps, &mut out, len)?;
        // The line begins at element 2, and the tile two before it.
        let element = |i: u32| if (2..2 + len).contains(&i) { source[i as usize] } else { 0 };
        same("elements", &out.to_vec()?, &(0..32).map(element).collect::<Vec<_>>())?;
    }
    Ok(())
}
