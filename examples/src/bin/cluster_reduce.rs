//! Subtracts from each row of a matrix its mean. A row exceeds one block, so each has a cluster.
//!
//! Each block reads a quarter of the row into its shared memory and adds it up. All blocks then
//! read the four sums from each other's shared memory, so that the row is read from global memory
//! only once, and only the result is written there.

use tma_runtime::prelude::*;

/// The blocks per cluster, and the maximum number of elements that each holds.
const BLOCKS: usize = 4;
const PART: usize = 8192;

/// The maximum length of a row.
pub const LONGEST: usize = BLOCKS * PART;

/// `dst = src` minus the mean of its row; row `block_idx().y` has `cols` elements.
#[tma_kernel(threads = 256, cluster = 4)]
pub fn cluster_reduce(src: Global<f32>, dst: Global<f32>, cols: u32) {
    let part: SharedArray<f32, 8192> = shared();
    let sums: SharedArray<f32, 256> = shared();
    let t = thread_idx().x;
    let len = cols.div_ceil(4);
    let first = min(cluster_rank() * len, cols);
    let len = min(len, cols - first);
    let row = block_idx().y as u64 * cols as u64 + first as u64;

    let mut sum = 0.0;
    for i in (t..len).step_by(256) {
        let value = src.get(row + i as u64);
        part.set(i, value);
        sum += value;
    }
    sums.set(t, sum);
    let mut width = 128;
    while width > 0 {
        sync_threads();
        if t < width {
            sums.set(t, sums.get(t) + sums.get(t + width));
        }
        width /= 2;
    }

    sync_cluster(); // the sum of each block is in its `sums[0]`
    let mut total = 0.0;
    for rank in unroll(0..4u32) {
        total += remote(sums, rank).get(0);
    }
    sync_cluster(); // all have read: blocks may end

    let mean = total / cols as f32;
    for i in (t..len).step_by(256) {
        dst.set(row + i as u64, part.get(i) - mean);
    }
}

/// Launches the kernel over all rows of `src`, which have at most [`LONGEST`] elements.
pub fn launch(
    device: &Device,
    src: &DeviceTensor<f32, 2>,
    dst: &mut DeviceTensor<f32, 2>,
) -> anyhow::Result<()> {
    let [rows, cols] = src.shape();
    anyhow::ensure!(cols <= LONGEST, "rows of {cols} elements; a cluster holds {LONGEST}");
    cluster_reduce::launch(device, (BLOCKS as u32, rows as u32), src, dst, cols as u32)?;
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    let [rows, cols] = [16, 5000];
    // Whole numbers with a small sum, so that every order of addition gives the same result.
    let host: Vec<f32> = (0..rows * cols).map(|i| (i % 17) as f32).collect();
    let src = device.tensor(&host, [rows, cols])?;
    let mut dst = device.zeros([rows, cols])?;
    launch(&device, &src, &mut dst)?;

    for (row, (found, source)) in dst.to_vec()?.chunks(cols).zip(host.chunks(cols)).enumerate() {
        let mean = source.iter().sum::<f32>() / cols as f32;
        let right = found.iter().zip(source).all(|(found, source)| *found == source - mean);
        anyhow::ensure!(right, "row {row} is wrong");
    }
    println!(
        "{}: {rows} rows of {cols} floats less their means, a cluster of {BLOCKS} blocks each",
        device.name()
    );
    Ok(())
}
