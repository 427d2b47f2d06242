//! Adds up the rows of sequences: one warp loads tiles ahead, four warps add. With `--miscount` the
//! host promises one tile more than the producer loads, and the consumers wait for ever.
//!
//! On a GPU, run it so that the waits are limited, and see who waits for what:
//! `TMA_WATCH=1 cargo run --features cuda --bin row_sums -- --miscount`. The simulator finds the
//! deadlock by itself.

use tma_runtime::prelude::*;

/// Adds up the rows of a sequence: one warp loads tiles of eight rows ahead, four warps add.
#[tma_kernel(threads = 160)]
pub fn row_sums(
    src: TensorMap<Tile<f32, Shape2<8, 32>>>,
    rows: Global<u32>,  // of each sequence
    tiles: Global<u32>, // of each sequence, as the host has counted them
    sums: Global<f32>,
) {
    let ring: Pipeline<(Tile<f32, Shape2<8, 32>>,), 2> = shared();
    if thread_idx().x == 0 {
        ring.init(128);
        fence_barrier_init();
    }
    sync_threads();

    let sequence = block_idx().x;
    if warp_idx() == 4 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..rows.get(sequence) / 8 {
                let slot = producer.acquire();
                src.load(slot.0, [k * 8, 0], slot.barrier());
            }
        }
    } else {
        let mut consumer = ring.consumer();
        let mut sum = 0.0;
        for _ in 0..tiles.get(sequence) {
            let slot = consumer.wait();
            for row in (warp_idx()..8).step_by(4) {
                sum += slot.0.get([row, lane_idx()]);
            }
            slot.release();
        }
        sums.set(sequence * 128 + thread_idx().x, sum);
    }
}

/// Adds up the rows of three sequences of these lengths, which share one matrix. The kernel loads
/// whole tiles; `tiles` of them are expected for each sequence.
fn add(device: &Device, lengths: [u32; 3], tiles: [u32; 3]) -> anyhow::Result<()> {
    let [rows, columns] = [40, 32];
    let host: Vec<f32> = (0..rows * columns).map(|i| (i * 7919 % 101) as f32).collect();
    let src = device.tensor(&host, [rows, columns])?;
    let (lengths_there, tiles_there) = (device.tensor(&lengths, [3])?, device.tensor(&tiles, [3])?);
    let mut sums = device.zeros::<f32, 1>([3 * 128])?;
    row_sums::launch(device, 3, &src, &lengths_there, &tiles_there, &mut sums)?;

    let sums = sums.to_vec()?;
    for (sequence, &length) in lengths.iter().enumerate() {
        for (thread, &sum) in sums[128 * sequence..][..128].iter().enumerate() {
            let [warp, lane] = [thread / 32, thread % 32];
            let rows = (warp..length as usize).step_by(4);
            let wanted: f32 = rows.map(|row| host[row * columns + lane]).sum();
            anyhow::ensure!(sum == wanted, "sum {thread} of sequence {sequence} differs from plain Rust");
        }
    }
    println!("{}: added the rows of 3 sequences, equal to plain Rust", device.name());
    Ok(())
}

/// Adds up the rows of three sequences, and checks every sum.
pub fn run(device: &Device) -> anyhow::Result<()> {
    add(device, [40, 8, 24], [5, 1, 3])
}

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    match std::env::args().nth(1).as_deref() {
        Some("--miscount") => add(&device, [40, 8, 20], [5, 1, 3]),
        Some(other) => anyhow::bail!("`{other}` is not an option; there is `--miscount`"),
        None => run(&device),
    }
}
