//! Loads of 1, 4 and 5 dimensions into several blocks; `multicast` has those of 2 and 3.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "multicast::one_dimension", run: one_dimension },
    Case { name: "multicast::four_dimensions", run: four_dimensions },
    Case { name: "multicast::five_dimensions", run: five_dimensions },
];

/// Slices of a row.
#[tma_kernel(threads = 64, cluster = 4)]
pub fn sliced_row(src: TensorMap<Tile<u32, Shape1<64>>>, out: Global<u32>) {
    let tile: Tile<u32, Shape1<256>> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if t == 0 {
        src.load_sliced(tile, [8 * cluster_idx().x], full, ClusterAxis::X);
    }
    full.wait(0);
    for i in (t..256).step_by(64) {
        out.set(block_idx().x * 256 + i, tile.get([i]));
    }
    sync_cluster();
}

fn one_dimension(device: &Device, _: &Options) -> anyhow::Result<()> {
    // The second cluster's tile ends outside of the tensor.
    let source = noise::<u32>(101, 256);
    let mut out = device.filled_bytes([8 * 256], 0xab)?;
    sliced_row::launch(device, 8, &device.tensor(&source, [256])?, &mut out)?;
    let second = [&source[8..], &[0; 8]].concat();
    same("rows", &out.to_vec()?, &[source.repeat(4), second.repeat(4)].concat())
}

/// The last block loads for the first and the third.
#[tma_kernel(threads = 32, cluster = [2, 2])]
pub fn multicast_4(src: TensorMap<Tile<u16, Shape4<2, 2, 2, 8>>>, out: Global<u16>) {
    let tile: Tile<u16, Shape4<2, 2, 2, 8>> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    let gets = cluster_rank() % 2 == 0;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        if gets {
            full.arrive_expect_tx(tile.bytes());
        }
    }
    sync_cluster();
    if t == 0 && cluster_rank() == 3 {
        src.hint(l2_evict_last(1.0)).load_multicast(tile, [1, 0, 1, 0], full, 0b0101);
    }
    if gets {
        full.wait(0);
        for i in (t..64).step_by(32) {
            out.set(cluster_rank() / 2 * 64 + i, tile.get([i / 32, i / 16 % 2, i / 8 % 2, i % 8]));
        }
    }
    sync_cluster();
}

fn four_dimensions(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<u16>(102, 3 * 2 * 3 * 8);
    let mut out = device.filled_bytes([128], 0xab)?;
    multicast_4::launch(device, (2, 2), &device.tensor(&source, [3, 2, 3, 8])?, &mut out)?;
    let element = |i: usize| source[(((1 + i / 32) * 2 + i / 16 % 2) * 3 + 1 + i / 8 % 2) * 8 + i % 8];
    let tile: Vec<_> = (0..64).map(element).collect();
    same("tiles", &out.to_vec()?, &tile.repeat(2))
}

/// Slices along the outermost of five dimensions.
#[tma_kernel(threads = 32, cluster = [1, 2])]
pub fn sliced_5(src: TensorMap<Tile<f32, Shape5<1, 2, 1, 4, 4>>>, out: Global<f32>) {
    let tile: Tile<f32, Shape5<2, 2, 1, 4, 4>> = shared();
    let full: Barrier = shared();
    let t = thread_idx().x;
    if t == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
    }
    sync_cluster();
    if t == 0 {
        src.load_sliced(tile, [1, 0, 1, 0, 4], full, ClusterAxis::Y);
    }
    full.wait(0);
    for i in (t..64).step_by(32) {
        out.set(cluster_rank() * 64 + i, tile.get([i / 32, i / 16 % 2, 0, i / 4 % 4, i % 4]));
    }
    sync_cluster();
}

fn five_dimensions(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<f32>(103, 3 * 2 * 2 * 4 * 8);
    let mut out = device.filled_bytes([128], 0xab)?;
    sliced_5::launch(device, (1, 2), &device.tensor(&source, [3, 2, 2, 4, 8])?, &mut out)?;
    let element = |i: usize| {
        let plane = ((1 + i / 32) * 2 + i / 16 % 2) * 2 + 1;
        source[(plane * 4 + i / 4 % 4) * 8 + 4 + i % 4]
    };
    let tile: Vec<_> = (0..64).map(element).collect();
    same("tiles", &out.to_vec()?, &tile.repeat(2))
}
