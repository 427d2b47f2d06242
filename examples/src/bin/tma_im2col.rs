//! A convolution of images with 3 × 3 filters, with padding and strides. The copy engine gathers
//! the input in im2col mode: tap by tap, the pixels for 64 positions of the filter.

use anyhow::ensure;
use tma_runtime::prelude::*;

/// Computes 64 consecutive pixels of the output for 32 filters, in one block. `filters` has one
/// weight per tap, channel and filter. `height` and `width` are those of the output.
#[tma_kernel(threads = 128)]
pub fn tma_im2col(
    images: Im2colMap<Tile<f32, Shape2<64, 32>, Swizzle128>, 4>,
    filters: Global<f32>,
    output: Global<f32>,
    height: u32,
    width: u32,
) {
    let input: Tile<f32, Shape2<64, 32>, Swizzle128> = shared();
    let full: Barrier = shared();
    let first = block_idx().x * 64;
    let row = (first / width) % height;
    let image = first / (width * height);
    // The position of the filter's first tap for the block's first pixel: stride 2, padding 1.
    let at = [image as i32, row as i32 * 2 - 1, (first % width) as i32 * 2 - 1, 0];
    let filter = lane_idx();
    let mut sums = [0.0f32; 16];

    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
    }
    sync_threads();
    for tap in 0..9u32 {
        if thread_idx().x == 0 {
            full.arrive_expect_tx(input.bytes());
            images.load(input, at, [(tap / 3) as u16, (tap % 3) as u16], full);
        }
        full.wait(tap & 1);
        for channel in 0..32u32 {
            let weight = filters.get((tap * 32 + channel) * 32 + filter);
            for i in unroll(0..16u32) {
                let pixel = input.get([i * 4 + warp_idx(), channel]);
                sums[i as usize] = fma(pixel, weight, sums[i as usize]);
            }
        }
        fence_proxy_async(); // reads of threads precede the load's write through the other proxy
        sync_threads(); // all have read the tile before it is filled again
    }
    for i in unroll(0..16u32) {
        let pixel = first + i * 4 + warp_idx();
        if (pixel as u64 + 1) * 32 <= output.len() {
            output.set(pixel as u64 * 32 + filter as u64, sums[i as usize]);
        }
    }
}

/// Convolves three images of 15 × 13 pixels of 32 channels, and compares with plain Rust.
pub fn run(device: &Device) -> anyhow::Result<()> {
    let [count, height, width, channels, filters] = [3usize, 15, 13, 32, 32];
    // Small whole numbers, whose sums are exact in any order.
    let number = |i: usize| ((i * 7919) % 13) as f32 - 6.0;
    let pixels: Vec<f32> = (0..count * height * width * channels).map(number).collect();
    let weights: Vec<f32> = (0..9 * channels * filters).map(|i| number(i + 5)).collect();
    let [down, across] = [height.div_ceil(2), width.div_ceil(2)];

    let images = device.tensor(&pixels, [count, height, width, channels])?;
    let mut output = device.zeros::<f32, 4>([count, down, across, filters])?;
    // The first tap goes from one before the first pixel to one before the last, with stride 2.
    let taps = Im2col { lower: [-1, -1], upper: [-1, -1], strides: [2, 2] };
    let grid = Grid::tiles([count * down * across], [64]);
    let [h, w] = [down as u32, across as u32];
    tma_im2col::launch(
        device,
        grid,
        images.im2col(taps),
        &device.tensor(&weights, [weights.len()])?,
        &mut output,
        h,
        w,
    )?;

    let found = output.to_vec()?;
    for (i, &sum) in found.iter().enumerate() {
        let (filter, x, y) = (i % filters, i / filters % across, i / filters / across % down);
        let image = i / filters / across / down;
        let mut wanted = 0.0;
        for tap in 0..9 {
            let (row, column) = ((2 * y + tap / 3).wrapping_sub(1), (2 * x + tap % 3).wrapping_sub(1));
            if row < height && column < width {
                let pixel = ((image * height + row) * width + column) * channels;
                for channel in 0..channels {
                    wanted +=
                        pixels[pixel + channel] * weights[(tap * channels + channel) * filters + filter];
                }
            }
        }
        ensure!(sum == wanted, "filter {filter} at [{image}, {y}, {x}] gives {sum}, wanted {wanted}");
    }
    println!(
        "{}: convolved {count} images of {height} × {width} pixels by {filters} filters: {} sums agree",
        device.name(),
        found.len()
    );
    Ok(())
}

fn main() -> anyhow::Result<()> {
    run(&Device::open()?)
}
