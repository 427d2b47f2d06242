//! A GEMM in six steps, from one thread per element to blocks that stay, load for each other and
//! store while they multiply. The chapter "A GEMM, step by step" explains each.
//!
//! ```sh
//! cargo run --release -p tma-examples --bin gemm_steps --features cuda -- 4096 4096 4096
//! ```
//!
//! C = A · Bᵀ, for A of M × K, B of N × K and C of M × N, in `bf16` with sums in `f32`. The
//! arguments are M, N and K. On a GPU the steps are timed in turns. Without arguments each step
//! multiplies small ragged matrices, and every element is compared.

use anyhow::{Context, ensure};
use tma_runtime::launch::resident_blocks;
use tma_runtime::layout::DeviceId;
use tma_runtime::prelude::*;

/// The kernels. From the second step on `rows` and `columns` are the numbers of tiles along M and N.
#[tma_module]
pub mod steps {
    use tma_runtime::prelude::*;

    /// Rows of 64 elements, the most that a swizzle of 128 bytes holds.
    type Rows<const COUNT: u32> = Tile<bf16, Shape2<COUNT, 64>, Swizzle128>;

    /// The first row and column of a tile of C.
    #[derive(Clone, Copy)]
    struct Corner {
        row: u32,
        column: u32,
    }

    /// Stores sums to C in pieces of 64 columns, through the buffers of the warpgroup. When a store
    /// starts, `IN_FLIGHT` others may still read theirs.
    #[tma_device]
    fn store<const M: u32, const N: u32, const IN_FLIGHT: u32, const BUFFERS: u32>(
        sum: &Accumulator<f32, M, N>,
        c: TensorMap<Rows<M>>,
        buffers: Stages<Rows<M>, BUFFERS>,
        warpgroup: u32,
        at: Corner,
    ) {
        for j in unroll(0..N / 64) {
            let buffer = buffers[warpgroup * (IN_FLIGHT + 1) + j % (IN_FLIGHT + 1)];
            bulk_wait_group_read::<IN_FLIGHT>(); // the last store from this buffer has read it
            sync_warpgroup();
            sum.columns::<64>(j).store(buffer);
            fence_proxy_async();
            sync_warpgroup();
            if thread_idx().x % 128 == 0 {
                c.store([at.row, at.column + j * 64], buffer);
                bulk_commit_group();
            }
        }
    }

    /// Step 1: a thread for each element of C.
    #[tma_kernel(threads = 128)]
    pub fn naive(a: Global<bf16>, b: Global<bf16>, c: Global<bf16>, n: u32, k: u32) {
        let [row, column] = [block_idx().y, block_idx().x * 128 + thread_idx().x];
        if column < n {
            let mut sum = 0.0;
            for i in 0..k {
                sum = fma(a.get(row * k + i).to_f32(), b.get(column * k + i).to_f32(), sum);
            }
            c.set(row * n + column, bf16::from_f32(sum));
        }
    }

    /// Step 2: a block for each tile of 128 × 128. The copy engine loads, the tensor cores multiply.
    #[tma_kernel(threads = 128)]
    pub fn tensor_cores(
        a: TensorMap<Rows<128>>,
        b: TensorMap<Rows<128>>,
        c: TensorMap<Rows<128>>,
        rows: u32,
        columns: u32,
        steps: u32,
    ) {
        assume(rows > 0);
        let left: Rows<128> = shared();
        let right: Rows<128> = shared();
        let buffers: Stages<Rows<128>, 1> = shared();
        let full: Barrier = shared();
        if thread_idx().x == 0 {
            full.init(1);
            fence_barrier_init();
        }
        sync_threads();

        let at = Corner { row: block_idx().x / columns * 128, column: block_idx().x % columns * 128 };
        let mut phase = Phase::new();
        let mut sum = Accumulator::<f32, 128, 128>::zero();
        for step in 0..steps {
            if thread_idx().x == 0 {
                full.arrive_expect_tx(left.bytes() + right.bytes());
                a.load(left, [at.row, step * 64], full);
                b.load(right, [at.column, step * 64], full);
            }
            full.wait_next(&mut phase);
            sum.mma(left, right, ()).wait();
            sync_threads(); // all warps have read the tiles, which the next loads replace
        }
        store::<128, 128, 0, 1>(&sum, c, buffers, 0, at);
        bulk_wait_group_read::<0>();
    }

    /// Step 3: loads run ahead, through a ring of four slots.
    #[tma_kernel(threads = 128)]
    pub fn pipelined(
        a: TensorMap<Rows<128>>,
        b: TensorMap<Rows<128>>,
        c: TensorMap<Rows<128>>,
        rows: u32,
        columns: u32,
        steps: u32,
    ) {
        assume(rows > 0 && steps > 0);
        let ring: Pipeline<(Rows<128>, Rows<128>), 4> = shared();
        let buffers: Stages<Rows<128>, 1> = shared();
        let leader = warp_idx() == 0 && elect_one();
        if leader {
            ring.init(4); // one arrival per warp
            fence_barrier_init();
        }
        sync_threads();

        let at = Corner { row: block_idx().x / columns * 128, column: block_idx().x % columns * 128 };
        let mut producer = ring.producer();
        if leader {
            for step in 0..min(steps, 4) {
                let slot = producer.acquire();
                a.load(slot.0, [at.row, step * 64], slot.barrier());
                b.load(slot.1, [at.column, step * 64], slot.barrier());
            }
        }
        let mut consumer = ring.consumer();
        let mut sum = Accumulator::<f32, 128, 128>::zero();
        let slot = consumer.wait();
        let mut flight = sum.mma(slot.0, slot.1, slot);
        for step in 1..steps {
            let slot = consumer.wait();
            let done = flight.mma(slot.0, slot.1, slot);
            if elect_one() {
                done.release();
            }
            if leader && step + 3 < steps {
                let slot = producer.acquire();
                a.load(slot.0, [at.row, (step + 3) * 64], slot.barrier());
                b.load(slot.1, [at.column, (step + 3) * 64], slot.barrier());
            }
        }
        let _last = flight.wait();
        store::<128, 128, 0, 1>(&sum, c, buffers, 0, at);
        bulk_wait_group_read::<0>();
    }

    /// Step 4: a warp that only loads, and two warpgroups that multiply 64 × 256 each.
    #[tma_kernel(threads = 256 + 32)]
    pub fn specialised(
        a: TensorMap<Rows<128>>,
        b: TensorMap<Rows<256>>,
        c: TensorMap<Rows<64>>,
        rows: u32,
        columns: u32,
        steps: u32,
    ) {
        assume(rows > 0 && steps > 0);
        let ring: Pipeline<(Rows<128>, Rows<256>), 4> = shared();
        let buffers: Stages<Rows<64>, 2> = shared();
        if thread_idx().x == 0 {
            ring.init(8); // one arrival per multiplying warp
            fence_barrier_init();
        }
        sync_threads();

        let at = Corner { row: block_idx().x / columns * 128, column: block_idx().x % columns * 256 };
        if warp_idx() == 8 {
            if elect_one() {
                let mut producer = ring.producer();
                for step in 0..steps {
                    let slot = producer.acquire();
                    a.load(slot.0, [at.row, step * 64], slot.barrier());
                    b.load(slot.1, [at.column, step * 64], slot.barrier());
                }
                producer.drain();
            }
        } else {
            let warpgroup = warpgroup_idx();
            let mut consumer = ring.consumer();
            let mut sum = Accumulator::<f32, 64, 256>::zero();
            let slot = consumer.wait();
            let mut flight = sum.mma(slot.0.band::<64>(warpgroup), slot.1, slot);
            for _ in 1..steps {
                let slot = consumer.wait();
                let done = flight.mma(slot.0.band::<64>(warpgroup), slot.1, slot);
                if elect_one() {
                    done.release();
                }
            }
            let last = flight.wait();
            if elect_one() {
                last.release();
            }
            let at = Corner { row: at.row + warpgroup * 64, ..at };
            store::<64, 256, 0, 2>(&sum, c, buffers, warpgroup, at);
            bulk_wait_group_read::<0>();
        }
    }

    /// Step 5: blocks stay, and load the next tile while they store the last one.
    #[tma_kernel(threads = 256 + 32)]
    pub fn persistent(
        a: TensorMap<Rows<128>>,
        b: TensorMap<Rows<256>>,
        c: TensorMap<Rows<64>>,
        rows: u32,
        columns: u32,
        steps: u32,
    ) {
        assume(steps > 0);
        let ring: Pipeline<(Rows<128>, Rows<256>), 4> = shared();
        let buffers: Stages<Rows<64>, 4> = shared();
        if thread_idx().x == 0 {
            ring.init(8); // one arrival per multiplying warp
            fence_barrier_init();
        }
        sync_threads();

        let tiles = rows * columns;
        if warp_idx() == 8 {
            if elect_one() {
                let mut producer = ring.producer();
                for tile in (block_idx().x..tiles).step_by(grid_dim().x as usize) {
                    let at = Corner { row: tile / columns * 128, column: tile % columns * 256 };
                    for step in 0..steps {
                        let slot = producer.acquire();
                        a.load(slot.0, [at.row, step * 64], slot.barrier());
                        b.load(slot.1, [at.column, step * 64], slot.barrier());
                    }
                }
                producer.drain();
            }
        } else {
            let warpgroup = warpgroup_idx();
            let mut consumer = ring.consumer();
            for tile in (block_idx().x..tiles).step_by(grid_dim().x as usize) {
                let mut sum = Accumulator::<f32, 64, 256>::zero();
                let slot = consumer.wait();
                let mut flight = sum.mma(slot.0.band::<64>(warpgroup), slot.1, slot);
                for _ in 1..steps {
                    let slot = consumer.wait();
                    let done = flight.mma(slot.0.band::<64>(warpgroup), slot.1, slot);
                    if elect_one() {
                        done.release();
                    }
                }
                let last = flight.wait();
                if elect_one() {
                    last.release();
                }
                let row = tile / columns * 128 + warpgroup * 64;
                let at = Corner { row, column: tile % columns * 256 };
                store::<64, 256, 1, 4>(&sum, c, buffers, warpgroup, at);
            }
            bulk_wait_group_read::<0>();
        }
    }

    /// Returns the tile of this block in its cluster's tile number `tile`, in bands of 8 rows of
    /// clusters: blocks that run at the same time read the same rows of A and B.
    #[tma_device]
    fn in_bands(tile: u32, rows: u32, columns: u32) -> Corner {
        let first = tile / (8 * columns) * 8;
        let height = min(rows - first, 8);
        let inside = tile % (8 * columns);
        let row = 2 * (first + inside % height) + cluster_rank();
        Corner { row: row * 128, column: inside / height * 256 }
    }

    /// Step 6: two blocks, one above the other in C, load half of B each, for both.
    #[tma_kernel(threads = 256 + 32, cluster = 2)]
    pub fn clustered(
        a: TensorMap<Rows<128>>,
        b: TensorMap<Rows<128>>,
        c: TensorMap<Rows<64>>,
        rows: u32,
        columns: u32,
        steps: u32,
    ) {
        assume(steps > 0);
        let ring: Pipeline<(Rows<128>, Rows<256>), 4> = shared();
        let buffers: Stages<Rows<64>, 4> = shared();
        if thread_idx().x == 0 {
            ring.init(16); // one arrival per multiplying warp of both blocks
            fence_barrier_init();
        }
        sync_cluster();

        let (tiles, clusters) = (rows * columns, grid_dim().x / 2);
        if warp_idx() == 8 {
            if elect_one() {
                let mut producer = ring.producer();
                for tile in (cluster_idx().x..tiles).step_by(clusters as usize) {
                    let at = in_bands(tile, rows, columns);
                    for step in 0..steps {
                        let slot = producer.acquire();
                        a.load(slot.0, [at.row, step * 64], slot.barrier());
                        b.load_sliced(slot.1, [at.column, step * 64], slot.barrier(), ClusterAxis::X);
                    }
                }
                producer.drain();
            }
        } else {
            let warpgroup = warpgroup_idx();
            let mut consumer = ring.consumer();
            for tile in (cluster_idx().x..tiles).step_by(clusters as usize) {
                let mut sum = Accumulator::<f32, 64, 256>::zero();
                let slot = consumer.wait();
                let mut flight = sum.mma(slot.0.band::<64>(warpgroup), slot.1, slot);
                for _ in 1..steps {
                    let slot = consumer.wait();
                    let done = flight.mma(slot.0.band::<64>(warpgroup), slot.1, slot);
                    if elect_one() {
                        done.release_cluster();
                    }
                }
                let last = flight.wait();
                if elect_one() {
                    last.release_cluster();
                }
                let at = in_bands(tile, rows, columns);
                let at = Corner { row: at.row + warpgroup * 64, ..at };
                store::<64, 256, 1, 4>(&sum, c, buffers, warpgroup, at);
            }
            bulk_wait_group_read::<0>();
        }
    }
}

/// A step of the chapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A thread for each element.
    Naive,
    /// The copy engine and the tensor cores.
    TensorCores,
    /// Loads that run ahead.
    Pipelined,
    /// A warp that only loads.
    Specialised,
    /// Blocks that stay.
    Persistent,
    /// Blocks that load for each other.
    Clustered,
}

impl Step {
    /// All steps, in order.
    pub const ALL: [Self; 6] = [
        Self::Naive,
        Self::TensorCores,
        Self::Pipelined,
        Self::Specialised,
        Self::Persistent,
        Self::Clustered,
    ];
}

/// A, B and C of a GEMM, C = A · Bᵀ.
struct Matrices {
    a: DeviceTensor<bf16, 2>,
    b: DeviceTensor<bf16, 2>,
    c: DeviceTensor<bf16, 2>,
}

impl Matrices {
    /// Makes matrices of M × K, N × K and M × N.
    fn new(device: &Device, extents: [usize; 3]) -> Result<Self, Error> {
        let [m, n, k] = extents;
        let matrix = |seed, shape: [usize; 2]| {
            let elements = (0..shape[0] * shape[1]).map(|i| bf16::from_f32(element(seed, i)));
            device.tensor(&elements.collect::<Vec<_>>(), shape)
        };
        Ok(Self { a: matrix(1, [m, k])?, b: matrix(2, [n, k])?, c: device.filled_bytes([m, n], 0xff)? })
    }
}

/// Queues a step. Blocks that stay are at most `most_blocks`.
fn queue(step: Step, stream: &Stream, matrices: &mut Matrices, most_blocks: u32) -> Result<(), Error> {
    let Matrices { a, b, c } = matrices;
    let ([m, k], [n, _]) = (a.shape(), b.shape());
    let count = k.div_ceil(64) as u32;
    let tiles = |rows: usize, columns: usize| [m.div_ceil(rows) as u32, n.div_ceil(columns) as u32];
    match step {
        Step::Naive => {
            let grid = Grid::new(n.div_ceil(128) as u32, m as u32, 1);
            steps::naive::launch(stream, grid, a, b, c, n as u32, k as u32)
        }
        Step::TensorCores => {
            let [rows, columns] = tiles(128, 128);
            steps::tensor_cores::launch(stream, rows * columns, a, b, c, rows, columns, count)
        }
        Step::Pipelined => {
            let [rows, columns] = tiles(128, 128);
            steps::pipelined::launch(stream, rows * columns, a, b, c, rows, columns, count)
        }
        Step::Specialised => {
            let [rows, columns] = tiles(128, 256);
            steps::specialised::launch(stream, rows * columns, a, b, c, rows, columns, count)
        }
        Step::Persistent => {
            let [rows, columns] = tiles(128, 256);
            let resident = resident_blocks(stream, &steps::persistent::SPEC)?;
            let blocks = resident.min(most_blocks).min(rows * columns);
            steps::persistent::launch(stream, blocks, a, b, c, rows, columns, count)
        }
        Step::Clustered => {
            let [rows, columns] = tiles(2 * 128, 256);
            let resident = resident_blocks(stream, &steps::clustered::SPEC)?;
            let blocks = resident.min(most_blocks).min(2 * rows * columns);
            steps::clustered::launch(stream, blocks, a, b, c, rows, columns, count)
        }
    }
}

/// Returns the integer from -2 to 2 that is element `i` of a matrix. Sums of products of such
/// numbers are exact.
fn element(seed: usize, i: usize) -> f32 {
    let hash = (i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f32 % 5.0 - 2.0
}

/// Multiplies by one step, on at most `most_blocks` blocks if they stay, and compares elements with
/// the host's: all of a small matrix, else some 4096.
///
/// # Errors
///
/// An error of the device, or a wrong element.
pub fn check(device: &Device, step: Step, extents: [usize; 3], most_blocks: u32) -> anyhow::Result<()> {
    let [m, n, k] = extents;
    let mut matrices = Matrices::new(device, extents)?;
    queue(step, &device.stream()?, &mut matrices, most_blocks)?;
    let found = matrices.c.to_vec()?;
    let is_small = m * n * k <= 1 << 25;
    for i in (0..m * n).step_by(if is_small { 1 } else { (m * n).div_ceil(4096) }) {
        let (row, column) = (i / n, i % n);
        let wanted: f32 = (0..k).map(|j| element(1, row * k + j) * element(2, column * k + j)).sum();
        ensure!(
            found[i] == bf16::from_f32(wanted),
            "{step:?}, {extents:?}: element ({row}, {column}) is {}, not {wanted}",
            found[i]
        );
    }
    Ok(())
}

/// Multiplies small and ragged matrices by each step. Blocks that stay compute several tiles.
///
/// # Errors
///
/// The errors of [`check`].
pub fn run(device: &Device) -> anyhow::Result<()> {
    for step in Step::ALL {
        check(device, step, [8, 8, 8], 2)?;
        check(device, step, [136, 264, 328], 2)?;
    }
    println!("{}: all steps are right", device.name());
    Ok(())
}

/// Returns the median of each step's TFLOP/s, over rounds in which the steps alternate.
fn measured(device: &Device, extents: [usize; 3]) -> anyhow::Result<Vec<(Step, f64)>> {
    const ROUNDS: usize = 7;
    let [m, n, k] = extents;
    let mut matrices = Matrices::new(device, extents)?;
    let stream = device.stream()?;
    let operations = 2.0 * m as f64 * n as f64 * k as f64;
    // Some 20 ms of the fastest step. The naive one takes longer than that alone.
    let launches = |step| if step == Step::Naive { 1 } else { (1e13 / operations).clamp(4.0, 2e3) as u32 };
    let mut speeds = vec![vec![]; Step::ALL.len()];
    for _ in 0..ROUNDS {
        for (step, speeds) in Step::ALL.into_iter().zip(&mut speeds) {
            queue(step, &stream, &mut matrices, u32::MAX)?;
            let begin = stream.record()?;
            for _ in 0..launches(step) {
                queue(step, &stream, &mut matrices, u32::MAX)?;
            }
            let seconds = f64::from(begin.elapsed_ms(&stream.record()?)?) / 1e3;
            speeds.push(1e-12 * operations * f64::from(launches(step)) / seconds);
        }
    }
    let median = |mut speeds: Vec<f64>| {
        speeds.sort_by(f64::total_cmp);
        speeds[ROUNDS / 2]
    };
    Ok(Step::ALL.into_iter().zip(speeds.into_iter().map(median)).collect())
}

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    let words: Vec<_> = std::env::args().skip(1).collect();
    if words.is_empty() {
        return run(&device);
    }
    let extents = words.iter().map(|word| word.parse()).collect::<Result<Vec<usize>, _>>();
    let extents = extents.ok().and_then(|extents| <[usize; 3]>::try_from(extents).ok());
    let extents = extents.context("the arguments are M, N and K")?;
    ensure!(extents.iter().all(|extent| *extent > 0 && extent % 8 == 0), "M, N and K are multiples of 8");
    for step in Step::ALL {
        check(&device, step, extents, u32::MAX)?;
    }
    println!("{}: all steps are right", device.name());
    if matches!(device.id(), DeviceId::Cuda(_)) {
        for (step, speed) in measured(&device, extents)? {
            println!("{step:?}: {speed:.1} TFLOP/s");
        }
    }
    Ok(())
}
