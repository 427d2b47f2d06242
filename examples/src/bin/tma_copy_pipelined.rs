//! Copies a matrix with several tiles in flight: persistent blocks, several stages, phases kept by hand.
//!
//! There is one block a multiprocessor, and its one thread at work keeps several tiles in flight: while one is
//! being stored, the loads of the next ones are on their way. Two orders make that safe. A tile is stored when
//! its stage's barrier has completed the phase of its load; the phases of a barrier alternate, so the n-th use of
//! a stage waits for parity `n & 1`. And a stage is filled again when the store out of it has read it, which is
//! what the bulk groups tell.
//!
//! Blocks do not share the tiles out beforehand: each takes the next one from a counter. Some multiprocessors
//! are nearer to memory than others; if they ran ahead, the tiles in flight would lie scattered, which costs
//! memory bandwidth.

use tma_runtime::prelude::*;

/// Copies `src` to `dst`, which are `across` tiles wide and hold `tiles` tiles in all. `work` holds the number
/// of the next tile and that of the blocks that are done, both 0 before the launch and after it.
#[tma_kernel(threads = 32, instances(deep = <32, 256, 4>))]
pub fn tma_copy_pipelined<const ROWS: u32, const COLS: u32, const STAGES: u32>(
    src: TensorMap<Tile<f16, Shape2<ROWS, COLS>>>,
    dst: TensorMap<Tile<f16, Shape2<ROWS, COLS>>>,
    work: Global<u32>,
    across: u32,
    tiles: u32,
) {
    let stages: Stages<Tile<f16, Shape2<ROWS, COLS>>, STAGES> = shared();
    let numbers: SharedArray<u32, STAGES> = shared();
    let full: Stages<Barrier, STAGES> = shared();

    if thread_idx().x == 0 {
        for stage in 0..STAGES {
            full[stage].init(1);
        }
        fence_barrier_init();

        let mut loaded = 0;
        let mut stored = 0;
        let mut next = work.atomic_add(0, 1);
        loop {
            // A stage is free when the store out of it has read it: when at most one group is unfinished, all
            // stores but the newest have.
            while next < tiles && loaded < stored + STAGES - min(stored, 1) {
                let stage = loaded % STAGES;
                bulk_wait_group_read::<1>();
                numbers.set(stage, next);
                full[stage].arrive_expect_tx(stages[stage].bytes());
                src.load(stages[stage], [next / across * ROWS, next % across * COLS], full[stage]);
                loaded += 1;
                next = work.atomic_add(0, 1);
            }
            if stored == loaded {
                break;
            }
            let stage = stored % STAGES;
            let tile = numbers.get(stage);
            full[stage].wait((stored / STAGES) & 1);
            dst.store([tile / across * ROWS, tile % across * COLS], stages[stage]);
            bulk_commit_group();
            stored += 1;
        }
        bulk_wait_group_read::<0>();

        // The last block leaves the counters as it found them.
        if work.atomic_add(1, 1) == grid_dim().x - 1 {
            work.set(0, 0);
            work.set(1, 0);
        }
    }
}

/// Launches the copy with as many blocks as the device has multiprocessors. `work` holds two zeros.
pub fn launch(
    device: &Device,
    src: &DeviceTensor<f16, 2>,
    dst: &mut DeviceTensor<f16, 2>,
    work: &mut DeviceTensor<u32, 1>,
) -> Result<(), Error> {
    let [rows, cols] = src.shape();
    let (down, across) = (rows.div_ceil(32) as u32, cols.div_ceil(256) as u32);
    let blocks = device.multiprocessors().min(down * across);
    tma_copy_pipelined::deep::launch(device, blocks, src, dst, work, across, down * across)
}

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    let shape = [1000, 2056];
    let host: Vec<f16> = (0..shape[0] * shape[1]).map(|i| f16::from_f32((i % 2048) as f32)).collect();

    let src = device.tensor(&host, shape)?;
    let mut dst = device.zeros(shape)?;
    let mut work = device.zeros([2])?;
    launch(&device, &src, &mut dst, &mut work)?;

    anyhow::ensure!(dst.to_vec()? == host, "the copy differs from its source");
    println!("{}: copied {} × {} halves, every bit as it was", device.name(), shape[0], shape[1]);
    Ok(())
}
