//! Tensors of one to five dimensions: edges, negative coordinates, strides, and waits for
//! stores.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::{same, same_bits};
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "tensors::one_dimension", run: one_dimension },
    Case { name: "tensors::three_dimensions", run: three_dimensions },
    Case { name: "tensors::four_dimensions", run: four_dimensions },
    Case { name: "tensors::five_dimensions", run: five_dimensions },
    Case { name: "tensors::before_the_tensor", run: before_the_tensor },
    Case { name: "tensors::strided_views", run: strided_views },
    Case { name: "tensors::stores_waited_for", run: stores_waited_for },
];

/// Copies a tile of one dimension.
#[tma_kernel(threads = 32)]
pub fn tensor_copy_1(src: TensorMap<Tile<u8, Shape1<256>>>, dst: TensorMap<Tile<u8, Shape1<256>>>) {
    let tile: Tile<u8, Shape1<256>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [block_idx().x * 256], full);
        full.wait(0);
        dst.store([block_idx().x * 256], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn one_dimension(device: &Device, options: &Options) -> anyhow::Result<()> {
    for n in [16, 256, 272, 10_000, 16 * options.elements(6251)] {
        let source = noise::<u8>(61, n);
        let mut dst = device.filled_bytes([n], 0xab)?;
        tensor_copy_1::launch(device, Grid::tiles([n], [256]), &device.tensor(&source, [n])?, &mut dst)?;
        same_bits(&dst.to_vec()?, &source)?;
    }
    Ok(())
}

/// Copies a swizzled tile of three dimensions, and writes its elements to `seen`.
#[tma_kernel(threads = 128)]
pub fn tensor_copy_3(
    src: TensorMap<Tile<f16, Shape3<3, 10, 64>, Swizzle128>>,
    dst: TensorMap<Tile<f16, Shape3<3, 10, 64>, Swizzle128>>,
    seen: Global<u16>,
) {
    let tile: Tile<f16, Shape3<3, 10, 64>, Swizzle128> = shared();
    let full: Barrier = shared();
    let at = [block_idx().z * 3, block_idx().y * 10, block_idx().x * 64];
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, at, full);
    }
    sync_threads();
    full.wait(0);
    let block = (block_idx().z * grid_dim().y + block_idx().y) * grid_dim().x + block_idx().x;
    for i in (thread_idx().x..3 * 10 * 64).step_by(128) {
        seen.set(block * (3 * 10 * 64) + i, tile.get([i / 640, i / 64 % 10, i % 64]).to_bits());
    }
    if thread_idx().x == 0 {
        dst.store(at, tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn three_dimensions(device: &Device, _: &Options) -> anyhow::Result<()> {
    let shape = [7, 25, 72];
    let source = noise::<f16>(62, 7 * 25 * 72);
    let blocks = [3, 3, 2];
    let mut wanted = vec![0; 18 * 1920];
    for (i, wanted) in wanted.iter_mut().enumerate() {
        let (block, i) = (i / 1920, i % 1920);
        let z = block / 6 * 3 + i / 640;
        let y = block / 2 % 3 * 10 + i / 64 % 10;
        let x = block % 2 * 64 + i % 64;
        if z < shape[0] && y < shape[1] && x < shape[2] {
            *wanted = source[(z * shape[1] + y) * shape[2] + x].to_bits();
        }
    }
    let mut dst = device.filled_bytes(shape, 0xab)?;
    let mut seen = device.filled_bytes([wanted.len()], 0xab)?;
    let grid = Grid::new(blocks[2], blocks[1], blocks[0]);
    tensor_copy_3::launch(device, grid, &device.tensor(&source, shape)?, &mut dst, &mut seen)?;
    same("elements read", &seen.to_vec()?, &wanted)?;
    same_bits(&dst.to_vec()?, &source)
}

/// Copies a tile of four dimensions.
#[tma_kernel(threads = 32)]
pub fn tensor_copy_4(
    src: TensorMap<Tile<i32, Shape4<2, 3, 4, 8>, Swizzle32>>,
    dst: TensorMap<Tile<i32, Shape4<2, 3, 4, 8>, Swizzle32>>,
) {
    let tile: Tile<i32, Shape4<2, 3, 4, 8>, Swizzle32> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        for outer in 0..grid_dim().z {
            let at = [outer * 2, block_idx().z * 3, block_idx().y * 4, block_idx().x * 8];
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, at, full);
            full.wait(outer & 1);
            dst.store(at, tile);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
    }
}

fn four_dimensions(device: &Device, _: &Options) -> anyhow::Result<()> {
    let shape = [5, 8, 9, 20];
    let source = noise::<i32>(63, shape.iter().product());
    let mut dst = device.filled_bytes(shape, 0xab)?;
    tensor_copy_4::launch(device, (3, 3, 3), &device.tensor(&source, shape)?, &mut dst)?;
    same_bits(&dst.to_vec()?, &source)
}

/// Copies a tile of five dimensions, by one block.
#[tma_kernel(threads = 32)]
pub fn tensor_copy_5(
    src: TensorMap<Tile<f32, Shape5<2, 2, 2, 2, 4>>>,
    dst: TensorMap<Tile<f32, Shape5<2, 2, 2, 2, 4>>>,
) {
    let tile: Tile<f32, Shape5<2, 2, 2, 2, 4>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        let mut parity = 0;
        for n in 0..32u32 {
            let at = [(n >> 4) * 2, (n >> 3 & 1) * 2, (n >> 2 & 1) * 2, (n >> 1 & 1) * 2, (n & 1) * 4];
            full.arrive_expect_tx(tile.bytes());
            src.load(tile, at, full);
            full.wait(parity);
            parity ^= 1;
            dst.store(at, tile);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
        }
    }
}

fn five_dimensions(device: &Device, _: &Options) -> anyhow::Result<()> {
    let shape = [3, 4, 3, 4, 8];
    let source = noise::<f32>(64, shape.iter().product());
    let mut dst = device.filled_bytes(shape, 0xab)?;
    tensor_copy_5::launch(device, 1, &device.tensor(&source, shape)?, &mut dst)?;
    same_bits(&dst.to_vec()?, &source)
}

/// Loads boxes that start anywhere around the tensor, also before it.
#[tma_kernel(threads = 128)]
pub fn tensor_around(src: TensorMap<Tile<i32, Shape2<16, 32>>>, out: Global<i32>, row: i32, col: i32) {
    let tile: Tile<i32, Shape2<16, 32>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [row - 16, col], full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..512).step_by(128) {
        out.set(i, tile.get([i / 32, i % 32]));
    }
}

fn before_the_tensor(device: &Device, _: &Options) -> anyhow::Result<()> {
    let source = noise::<i32>(65, 60 * 44);
    let src = device.tensor(&source, [60, 44])?;
    let mut out = device.filled_bytes([512], 0xab)?;
    for row in [-1000, -16, -15, -1, 0, 50, 59, 60, 70_000] {
        for col in [-4000, -32, -28, -4, 0, 16, 40, 44, 70_000] {
            let element = |i: i32| {
                let (row, col) = (row + i / 32, col + i % 32);
                let inside = (0..60).contains(&row) && (0..44).contains(&col);
                if inside { source[(row * 44 + col) as usize] } else { 0 }
            };
            let wanted: Vec<i32> = (0..512).map(element).collect();
            out.fill_bytes(0xab)?;
            tensor_around::launch(device, 1, &src, &mut out, row + 16, col)?;
            same(&format!("the box at [{row}, {col}]"), &out.to_vec()?, &wanted)?;
        }
    }
    Ok(())
}

/// Copies between parts of tensors whose rows have other lengths.
#[tma_kernel(threads = 32)]
pub fn tensor_copy_2(src: TensorMap<Tile<f32, Shape2<8, 16>>>, dst: TensorMap<Tile<f32, Shape2<8, 16>>>) {
    let tile: Tile<f32, Shape2<8, 16>> = shared();
    let full: Barrier = shared();
    let at = [block_idx().y * 8, block_idx().x * 16];
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, at, full);
        full.wait(0);
        dst.store(at, tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn strided_views(device: &Device, _: &Options) -> anyhow::Result<()> {
    let part = [21, 36];
    let (from, to) = ([40, 64], [30, 48]);
    let source = noise::<f32>(66, from[0] * from[1]);
    let src = device.tensor(&source, from)?;
    let mut dst = device.filled_bytes::<f32, 2>(to, 0xab)?;
    let poison = dst.to_vec()?;
    // Row 5, column 8 of `src`; row 3, column 4 of `dst`.
    let src_address = src.as_ptr() + 4 * (5 * 64 + 8);
    let dst_address = dst.view_mut().as_ptr() + 4 * (3 * 48 + 4);
    // SAFETY: both parts are inside their tensors, which outlive the launch and are not used by
    // anything else.
    let (src_part, dst_part) = unsafe {
        (
            TensorView::<f32, 2>::from_raw(device, src_address, part, [64, 1]),
            TensorViewMut::<f32, 2>::from_raw(device, dst_address, part, [48, 1]),
        )
    };
    tensor_copy_2::launch(device, Grid::tiles(part, [8, 16]), src_part, dst_part)?;
    let mut wanted = poison;
    for row in 0..part[0] {
        let (from, to) = ((row + 5) * 64 + 8, (row + 3) * 48 + 4);
        wanted[to..to + part[1]].copy_from_slice(&source[from..from + part[1]]);
    }
    same_bits(&dst.to_vec()?, &wanted)
}

/// Several stores in flight, a tile rewritten once its store has read it, and a read of the stored
/// elements.
#[tma_kernel(threads = 128)]
pub fn tensor_stores(dst: TensorMap<Tile<u32, Shape2<4, 32>>>, same_memory: Global<u32>, out: Global<u32>) {
    let tiles: Stages<Tile<u32, Shape2<4, 32>>, 2> = shared();
    let t = thread_idx().x;
    for k in 0..8u32 {
        if t == 0 {
            bulk_wait_group_read::<1>();
        }
        sync_threads();
        tiles[k % 2].set([t / 32, t % 32], k * 1000 + t);
        fence_proxy_async();
        sync_threads();
        if t == 0 {
            dst.store([k * 4, 0], tiles[k % 2]);
            bulk_commit_group();
        }
    }
    if t == 0 {
        bulk_wait_group::<0>();
        let mut sum = 0;
        for i in 0..1024u32 {
            sum = sum * 3 + same_memory.get(i);
        }
        out.set(0, sum);
    }
}

fn stores_waited_for(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut dst = device.filled_bytes::<u32, 2>([32, 32], 0xab)?;
    let mut out = device.filled_bytes([1], 0xab)?;
    // SAFETY: the memory of `dst`, which the kernel reads only after its stores have completed.
    let memory = unsafe { TensorView::<u32, 1>::from_raw(device, dst.as_ptr(), [1024], [1]) };
    tensor_stores::launch(device, 1, &mut dst, memory, &mut out)?;
    let wanted: Vec<u32> = (0..1024).map(|i| i / 128 * 1000 + i % 128).collect();
    same("elements stored", &dst.to_vec()?, &wanted)?;
    let sum = wanted.iter().fold(0u32, |sum, &x| sum.wrapping_mul(3).wrapping_add(x));
    same("sum of the elements read back", &out.to_vec()?, &[sum])
}
