//! Copies a matrix with several tiles in flight, by persistent blocks with a pipeline.
//!
//! There is one block per multiprocessor. A thread of its first warp loads tiles into empty stages
//! of a ring; a thread of its second warp stores them in turn, and releases each stage once the
//! store has read it. The pipeline tracks the phases of the ring's barriers.
//!
//! Tiles are not assigned to blocks in advance: each block takes the next one from a counter. If
//! multiprocessors close to memory ran ahead, the tiles in flight would be scattered, which costs
//! memory bandwidth. The loading thread therefore passes each tile's number to the storing one.

use tma_runtime::prelude::*;

/// Copies `src` to `dst`, which are `across` tiles wide and have `tiles` tiles in all. `work` holds
/// the numbers of the next tile and of finished blocks, both 0 before and after the launch.
#[tma_kernel(threads = 64, instances(deep = <32, 256, 4>))]
pub fn tma_copy_pipelined<const ROWS: u32, const COLS: u32, const STAGES: u32>(
    src: TensorMap<Tile<f16, Shape2<ROWS, COLS>>>,
    dst: TensorMap<Tile<f16, Shape2<ROWS, COLS>>>,
    work: Global<u32>,
    across: u32,
    tiles: u32,
) {
    let ring: Pipeline<(Tile<f16, Shape2<ROWS, COLS>>,), STAGES> = shared();
    let numbers: SharedArray<u32, STAGES> = shared();
    if thread_idx().x == 0 {
        ring.init(1);
        fence_barrier_init();
    }
    sync_threads();

    if thread_idx().x == 0 {
        let mut producer = ring.producer();
        loop {
            let tile = work.atomic_add(0, 1);
            let empty = producer.wait();
            numbers.set(empty.stage(), tile);
            let slot = empty.announce();
            // The first number past the end tells the other thread to stop. Its tile is outside of
            // the tensor, so nothing is read.
            src.load(slot.0, src.tile_at([tile / across, tile % across]), slot.barrier());
            if tile >= tiles {
                break;
            }
        }

        // The last block resets the counters to zero.
        if work.fetch_add(1, 1, Order::AcqRel, Scope::Device) == grid_dim().x - 1 {
            work.store(0, 0, Order::Relaxed, Scope::Device);
            work.store(1, 0, Order::Relaxed, Scope::Device);
        }
    }
    if thread_idx().x == 32 {
        let mut consumer = ring.consumer();
        loop {
            let slot = consumer.wait();
            let tile = numbers.get(slot.stage());
            if tile >= tiles {
                break;
            }
            dst.store(dst.tile_at([tile / across, tile % across]), slot.0);
            bulk_commit_group();
            bulk_wait_group_read::<0>();
            slot.release();
        }
    }
}

/// Launches the copy with one block per multiprocessor. `work` holds two zeros.
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
