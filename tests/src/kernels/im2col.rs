//! Columns of pixels of tensors of three to five dimensions: loads, stores and reductions, with
//! corners, steps and offsets.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::column::Column;
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "im2col::lines", run: lines },
    Case { name: "im2col::images", run: images },
    Case { name: "im2col::volumes", run: volumes },
    Case { name: "im2col::stores", run: stores },
];

/// Loads a column of the pixels of lines and writes the tile to `out`, row by row.
#[tma_kernel(threads = 32)]
pub fn im2col_line(
    lines: Im2colMap<Tile<u16, Shape2<40, 8>>, 3>,
    out: Global<u16>,
    image: i32,
    x: i32,
    right: u16,
) {
    let tile: Tile<u16, Shape2<40, 8>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        lines.prefetch([image, x, 8], [right]);
        lines.load(tile, [image, x, 8], [right], full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..40 * 8).step_by(32) {
        out.set(i, tile.get([i / 8, i % 8]));
    }
}

/// Loads a column of the pixels of images.
#[tma_kernel(threads = 32, instances(plain = <f32, 64, 8, NoSwizzle>, swizzled = <f16, 100, 32, Swizzle64>, bytes = <e4m3, 300, 16, NoSwizzle>))]
pub fn im2col_image<T: TileElement, const PIXELS: u32, const CHANNELS: u32, W: Swizzle>(
    images: Im2colMap<Tile<T, Shape2<PIXELS, CHANNELS>, W>, 4>,
    out: Global<T>,
    image: i32,
    y: i32,
    x: i32,
    down: u32,
    right: u32,
) {
    let tile: Tile<T, Shape2<PIXELS, CHANNELS>, W> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        images.prefetch_descriptor();
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        let offsets = [down as u16, right as u16];
        images.hint(l2_evict_last(1.0)).prefetch([image, y, x, 0], offsets);
        images.hint(l2_evict_first(1.0)).load(tile, [image, y, x, 0], offsets, full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..PIXELS * CHANNELS).step_by(32) {
        out.set(i, tile.get([i / CHANNELS, i % CHANNELS]));
    }
}

/// Loads a column of the pixels of volumes.
#[tma_kernel(threads = 32)]
pub fn im2col_volume(
    volumes: Im2colMap<Tile<u32, Shape2<90, 4>>, 5>,
    out: Global<u32>,
    image: i32,
    z: i32,
    y: i32,
    x: i32,
    deep: u16,
    down: u16,
    right: u16,
) {
    let tile: Tile<u32, Shape2<90, 4>> = shared();
    let full: Barrier = shared();
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        volumes.prefetch([image, z, y, x, 0], [deep, down, right]);
        volumes.load(tile, [image, z, y, x, 0], [deep, down, right], full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..90 * 4).step_by(32) {
        out.set(i, tile.get([i / 4, i % 4]));
    }
}

/// Stores a column, adds it to a second tensor, and xors it into a third, each of another rank.
#[tma_kernel(threads = 32)]
pub fn im2col_stores(
    src: Global<u32>,
    stored: Im2colMap<Tile<u32, Shape2<50, 4>>, 4>,
    added: Im2colMap<Tile<u32, Shape2<50, 4>>, 3>,
    flipped: Im2colMap<Tile<u32, Shape2<50, 4>>, 5>,
    x: i32,
) {
    let tile: Tile<u32, Shape2<50, 4>> = shared();
    for i in (thread_idx().x..50 * 4).step_by(32) {
        tile.set([i / 4, i % 4], src.get(i));
    }
    fence_proxy_async();
    sync_threads();
    if thread_idx().x == 0 {
        stored.store([0, 1, x, 0], tile);
        added.hint(l2_evict_last(1.0)).reduce_add([0, x, 0], tile);
        flipped.reduce_xor([0, 1, 0, x, 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn lines(device: &Device, _: &Options) -> anyhow::Result<()> {
    for (lower, upper, stride, at, offset) in
        [(0, 0, 1, 0, 0), (-2, -2, 1, -2, 4), (-1, 3, 2, 5, 0), (3, -4, 3, 6, 1)]
    {
        let column = Column {
            shape: [3, 17, 24],
            columns: Im2col { lower: [lower], upper: [upper], strides: [stride] },
            at: [1, at, 8],
            offsets: [offset],
        };
        let source = noise::<u16>(601, column.elements());
        let src = device.tensor(&source, column.shape)?;
        let mut out = device.filled_bytes([40 * 8], 0xab)?;
        im2col_line::launch(device, 1, src.im2col(column.columns), &mut out, 1, at, offset as u16)?;
        same("pixels", &out.to_vec()?, &column.loaded(&source, 40, 8))?;
    }
    Ok(())
}

fn images(device: &Device, _: &Options) -> anyhow::Result<()> {
    macro_rules! taken {
        ($($ty:ty, $instance:ident, $pixels:literal, $channels:literal, $lower:expr, $upper:expr, $strides:expr, $at:expr, $offsets:expr;)+) => { $(
            let [image, y, x] = $at;
            let column = Column {
                shape: [3, 9, 11, 32],
                columns: Im2col { lower: $lower, upper: $upper, strides: $strides },
                at: [image, y, x, 0],
                offsets: $offsets,
            };
            let source = noise::<$ty>(603, column.elements());
            let src = device.tensor(&source, column.shape)?;
            let mut out = device.filled_bytes([$pixels * $channels], 0xab)?;
            let [down, right] = column.offsets;
            im2col_image::$instance::launch(
                device, 1, src.im2col(column.columns), &mut out, image, y, x, down, right,
            )?;
            same(stringify!($instance), &out.to_vec()?, &column.loaded(&source, $pixels, $channels))?;
        )+ };
    }
    taken! {
        // All pixels; the taps of a 3 × 3 filter with padding, and with steps; a small box; the end
        // of the last image.
        f32, plain, 64, 8, [0, 0], [0, 0], [1, 1], [0, 0, 0], [0, 0];
        f32, plain, 64, 8, [-1, -1], [-1, -1], [1, 1], [0, -1, -1], [0, 2];
        f32, plain, 64, 8, [-1, -1], [-1, -1], [2, 2], [1, 1, 3], [2, 1];
        f32, plain, 64, 8, [3, 4], [-4, -5], [1, 1], [0, 4, 5], [0, 0];
        f32, plain, 64, 8, [0, 0], [0, 0], [1, 1], [2, 7, 2], [1, 0];
        f16, swizzled, 100, 32, [-2, 0], [-2, -1], [1, 3], [0, -2, 0], [4, 1];
        f16, swizzled, 100, 32, [0, 0], [0, 0], [1, 1], [2, 0, 10], [0, 0];
        e4m3, bytes, 300, 16, [-1, -1], [-1, -1], [1, 1], [0, 2, 3], [1, 1];
    }
    Ok(())
}

fn volumes(device: &Device, _: &Options) -> anyhow::Result<()> {
    for (lower, strides, at, offsets) in [
        ([0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 0, 0]),
        ([-1, -1, -1], [1, 1, 1], [-1, 2, 3], [2, 1, 0]),
        ([-1, 0, -1], [2, 1, 3], [1, 1, 2], [1, 0, 2]),
    ] {
        let column = Column {
            shape: [2, 4, 5, 6, 4],
            columns: Im2col { lower, upper: lower, strides },
            at: [0, at[0], at[1], at[2], 0],
            offsets,
        };
        let source = noise::<u32>(605, column.elements());
        let src = device.tensor(&source, column.shape)?;
        let mut out = device.filled_bytes([90 * 4], 0xab)?;
        let [z, y, x] = at;
        let [deep, down, right] = offsets.map(|offset| offset as u16);
        im2col_volume::launch(
            device,
            1,
            src.im2col(column.columns),
            &mut out,
            0,
            z,
            y,
            x,
            deep,
            down,
            right,
        )?;
        same("voxels", &out.to_vec()?, &column.loaded(&source, 90, 4))?;
    }
    Ok(())
}

/// Returns the tensor after each element of the tile was combined with the element in its position.
fn combined<const N: usize, const RANK: usize>(
    column: &Column<N, RANK>,
    before: &[u32],
    tile: &[u32],
    combine: impl Fn(u32, u32) -> u32,
) -> Vec<u32> {
    let mut after = before.to_vec();
    for (index, &value) in column.indices(50, 4).into_iter().zip(tile) {
        if let Some(element) = index.and_then(|index| after.get_mut(index)) {
            *element = combine(*element, value);
        }
    }
    after
}

fn stores(device: &Device, _: &Options) -> anyhow::Result<()> {
    let tile = noise::<u32>(607, 50 * 4);
    let src = device.tensor(&tile, [50 * 4])?;
    let x = 3;
    // A tile inside the tensor, one past the last image, and one in the middle of an image.
    let images = Column {
        shape: [2, 5, 9, 4],
        columns: Im2col { lower: [1, 2], upper: [-1, 0], strides: [1, 1] },
        at: [0, 1, x, 0],
        offsets: [0; 2],
    };
    let lines = Column {
        shape: [9, 12, 4],
        columns: Im2col { lower: [0], upper: [-1], strides: [2] },
        at: [0, x, 0],
        offsets: [0],
    };
    let volumes = Column {
        shape: [2, 3, 2, 7, 4],
        columns: Im2col { lower: [1, 0, 2], upper: [0; 3], strides: [1; 3] },
        at: [0, 1, 0, x, 0],
        offsets: [0; 3],
    };
    let [a, b, c] = [
        noise::<u32>(608, images.elements()),
        noise::<u32>(609, lines.elements()),
        noise::<u32>(610, volumes.elements()),
    ];
    let mut stored = device.tensor(&a, images.shape)?;
    let mut added = device.tensor(&b, lines.shape)?;
    let mut flipped = device.tensor(&c, volumes.shape)?;
    im2col_stores::launch(
        device,
        1,
        &src,
        stored.view_mut().im2col(images.columns),
        added.view_mut().im2col(lines.columns),
        flipped.view_mut().im2col(volumes.columns),
        x,
    )?;
    same("stored", &stored.to_vec()?, &combined(&images, &a, &tile, |_, new| new))?;
    same("added", &added.to_vec()?, &combined(&lines, &b, &tile, u32::wrapping_add))?;
    same("flipped", &flipped.to_vec()?, &combined(&volumes, &c, &tile, |old, new| old ^ new))
}
