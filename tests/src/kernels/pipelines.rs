//! Pipelines: stages, consumers of every size, slots that are kept, and states as arguments.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "pipelines::one_to_four_stages", run: stages },
    Case { name: "pipelines::two_tiles_and_warps", run: two_tiles },
    Case { name: "pipelines::warpgroups", run: warpgroups },
    Case { name: "pipelines::slots_kept_by_a_store", run: in_place },
    Case { name: "pipelines::one_thread_on_both_sides", run: both_sides },
    Case { name: "pipelines::asked_drained_and_made_anew", run: lives },
    Case { name: "pipelines::passed_to_device_functions", run: passed },
];

/// One thread of the last warp fills, 128 threads read and release.
#[tma_kernel(threads = 160, instances(one = <1>, two = <2>, three = <3>, four = <4>))]
pub fn pipeline_stages<const STAGES: u32>(
    src: TensorMap<Tile<u32, Shape2<8, 64>>>,
    out: Global<u32>,
    tiles: u32,
) {
    let ring: Pipeline<(Tile<u32, Shape2<8, 64>>,), STAGES> = shared();
    if thread_idx().x == 0 {
        ring.init(128);
        fence_barrier_init();
    }
    sync_threads();

    if warp_idx() == 4 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let slot = producer.acquire();
                src.load(slot.0, [k * 8, 0], slot.barrier());
            }
        }
    } else {
        let mut consumer = ring.consumer();
        let mut sum = 0;
        for _ in 0..tiles {
            let slot = consumer.wait();
            for row in 0..8 {
                sum = sum * 5 + slot.0.get([row, thread_idx().x % 64]);
            }
            slot.release();
        }
        out.set(thread_idx().x, sum + ring.len());
    }
}

fn stages(device: &Device, options: &Options) -> anyhow::Result<()> {
    let most = options.elements(2048);
    let source = noise::<u32>(71, most * 512);
    let src = device.tensor(&source, [most * 8, 64])?;
    for stages in 1..=4 {
        // No tile, fewer tiles than stages, equally many, and more.
        for tiles in [0, stages - 1, stages, most] {
            let mut out = device.filled_bytes([128], 0xab)?;
            let count = tiles as u32;
            match stages {
                1 => pipeline_stages::one::launch(device, 1, &src, &mut out, count)?,
                2 => pipeline_stages::two::launch(device, 1, &src, &mut out, count)?,
                3 => pipeline_stages::three::launch(device, 1, &src, &mut out, count)?,
                _ => pipeline_stages::four::launch(device, 1, &src, &mut out, count)?,
            }
            let sum = |t: usize| {
                let column = source.iter().skip(t % 64).step_by(64).take(tiles * 8);
                column.fold(0u32, |sum, &x| sum.wrapping_mul(5).wrapping_add(x)).wrapping_add(stages as u32)
            };
            let wanted: Vec<u32> = (0..128).map(sum).collect();
            same(&format!("{tiles} tiles in {stages} stages"), &out.to_vec()?, &wanted)?;
        }
    }
    Ok(())
}

/// A stage has two tiles of different elements, shapes and swizzles; one lane of each warp
/// releases.
#[tma_kernel(threads = 160)]
pub fn pipeline_two_tiles(
    a: TensorMap<Tile<f32, Shape2<8, 32>, Swizzle128>>,
    b: TensorMap<Tile<u8, Shape2<4, 32>, Swizzle32>>,
    out: Global<f32>,
    tiles: u32,
) {
    let ring: Pipeline<(Tile<f32, Shape2<8, 32>, Swizzle128>, Tile<u8, Shape2<4, 32>, Swizzle32>), 3> =
        shared();
    if thread_idx().x == 0 {
        ring.init(4);
        fence_barrier_init();
    }
    sync_threads();

    if warp_idx() == 4 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let slot = producer.acquire();
                b.load(slot.1, [k * 4, 0], slot.barrier());
                a.load(slot.0, [k * 8, 0], slot.barrier());
            }
        }
    } else {
        let mut consumer = ring.consumer();
        let mut sum = 0.0;
        for _ in 0..tiles {
            let slot = consumer.wait();
            for row in 0..slot.0.rows() {
                let weight = slot.1.get([warp_idx(), row]) as f32;
                sum = sum * 0.5 + weight * slot.0.get([row, lane_idx()]);
            }
            sync_warp();
            if lane_idx() == 0 {
                slot.release();
            }
        }
        out.set(thread_idx().x, sum);
    }
}

fn two_tiles(device: &Device, options: &Options) -> anyhow::Result<()> {
    let tiles = options.elements(512);
    let a: Vec<f32> = noise::<u32>(72, tiles * 256).into_iter().map(|x| (x % 1024) as f32).collect();
    let b = noise::<u8>(73, tiles * 128);
    let sum = |t: usize| {
        (0..tiles * 8).fold(0.0f32, |sum, row| {
            let weight = f32::from(b[(row / 8 * 4 + t / 32) * 32 + row % 8]);
            // The products are exact, so a fused multiply-add has the same result.
            sum * 0.5 + weight * a[row * 32 + t % 32]
        })
    };
    let src = (device.tensor(&a, [tiles * 8, 32])?, device.tensor(&b, [tiles * 4, 32])?);
    let mut out = device.filled_bytes([128], 0xab)?;
    pipeline_two_tiles::launch(device, 1, &src.0, &src.1, &mut out, tiles as u32)?;
    same("sums", &out.to_vec()?, &(0..128).map(sum).collect::<Vec<_>>())
}

/// One warpgroup fills, two others read; each of these synchronises, and one thread releases.
#[tma_kernel(threads = 384)]
pub fn pipeline_warpgroups(src: TensorMap<Tile<u32, Shape2<2, 128>>>, out: Global<u32>, tiles: u32) {
    let ring: Pipeline<(Tile<u32, Shape2<2, 128>>,), 2> = shared();
    if thread_idx().x == 0 {
        ring.init(2);
        fence_barrier_init();
    }
    sync_threads();

    let group = warpgroup_idx();
    if group == 0 {
        if warp_idx() == 0 && elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let slot = producer.acquire();
                src.load(slot.0, [k * 2, 0], slot.barrier());
            }
        }
    } else {
        let t = thread_idx().x % 128;
        let mut consumer = ring.consumer();
        let mut sum = 0;
        for _ in 0..tiles {
            let slot = consumer.wait();
            sum = sum * 7 + slot.0.get([group - 1, t]);
            named_barrier_sync(group, 128);
            if t == 0 {
                slot.release();
            }
        }
        out.set(thread_idx().x - 128, sum);
    }
}

fn warpgroups(device: &Device, options: &Options) -> anyhow::Result<()> {
    let tiles = options.elements(1024);
    let source = noise::<u32>(74, tiles * 256);
    let column = |t: usize| source.iter().skip(t).step_by(256);
    let sum = |t| column(t).fold(0u32, |sum, &x| sum.wrapping_mul(7).wrapping_add(x));
    let src = device.tensor(&source, [tiles * 2, 128])?;
    let mut out = device.filled_bytes([256], 0xab)?;
    pipeline_warpgroups::launch(device, 1, &src, &mut out, tiles as u32)?;
    same("sums", &out.to_vec()?, &(0..256).map(sum).collect::<Vec<_>>())
}

/// Doubles each tile in place, stores it, and releases its slot one iteration later, when the store
/// has read it.
#[tma_kernel(threads = 64)]
pub fn pipeline_in_place(
    src: TensorMap<Tile<u32, Shape2<4, 32>>>,
    dst: TensorMap<Tile<u32, Shape2<4, 32>>>,
    tiles: u32,
) {
    assume(tiles > 0);
    let ring: Pipeline<(Tile<u32, Shape2<4, 32>>,), 3> = shared();
    if thread_idx().x == 0 {
        ring.init(1);
        fence_barrier_init();
    }
    sync_threads();

    if warp_idx() == 1 {
        if elect_one() {
            let mut producer = ring.producer();
            for k in 0..tiles {
                let slot = producer.acquire();
                src.load(slot.0, [k * 4, 0], slot.barrier());
            }
        }
    } else {
        let mut consumer = ring.consumer();
        let mut reading = consumer.wait();
        for k in 0..tiles {
            for row in 0..4 {
                reading.0.set([row, lane_idx()], reading.0.get([row, lane_idx()]) * 2);
            }
            fence_proxy_async();
            sync_warp();
            if lane_idx() == 0 {
                dst.store([k * 4, 0], reading.0);
                bulk_commit_group();
            }
            if k + 1 < tiles {
                let next = consumer.wait();
                if lane_idx() == 0 {
                    bulk_wait_group_read::<0>();
                    reading.release();
                }
                reading = next;
            }
        }
        bulk_wait_group_read::<0>();
    }
}

fn in_place(device: &Device, options: &Options) -> anyhow::Result<()> {
    let tiles = options.elements(1024);
    let source = noise::<u32>(75, tiles * 128);
    let src = device.tensor(&source, [tiles * 4, 32])?;
    let mut dst = device.filled_bytes([tiles * 4, 32], 0xab)?;
    pipeline_in_place::launch(device, 1, &src, &mut dst, tiles as u32)?;
    let wanted: Vec<u32> = source.into_iter().map(|x| x.wrapping_mul(2)).collect();
    same("doubles", &dst.to_vec()?, &wanted)
}

/// One thread fills two slots ahead of its reads, with a variable of its own for each slot.
#[tma_kernel(threads = 32)]
pub fn pipeline_both_sides(src: TensorMap<Tile<u32, Shape2<1, 32>>>, out: Global<u32>, rows: u32) {
    let ring: Pipeline<(Tile<u32, Shape2<1, 32>>,), 3> = shared();
    let factors: SharedArray<u32, 3> = shared();
    if thread_idx().x == 0 {
        ring.init(1);
        fence_barrier_init();
        let mut producer = ring.producer();
        let mut consumer = ring.consumer();
        let mut sum = 0;
        for row in 0..rows + 2 {
            if row < rows {
                let slot = producer.acquire();
                factors.set(slot.stage(), row * 2 + 1);
                src.load(slot.0, [row, 0], slot.barrier());
            }
            if row >= 2 {
                let slot = consumer.wait();
                for column in 0..32 {
                    sum = sum * 3 + slot.0.get([0, column]) * factors.get(slot.stage());
                }
                slot.release();
            }
        }
        out.set(0, sum);
    }
}

fn both_sides(device: &Device, options: &Options) -> anyhow::Result<()> {
    let rows = options.elements(1024);
    let source = noise::<u32>(76, rows * 32);
    let add = |sum: u32, (i, x): (usize, &u32)| {
        sum.wrapping_mul(3).wrapping_add(x.wrapping_mul((i / 32 * 2 + 1) as u32))
    };
    let wanted = source.iter().enumerate().fold(0, add);
    let src = device.tensor(&source, [rows, 32])?;
    let mut out = device.filled_bytes([1], 0xab)?;
    pipeline_both_sides::launch(device, 1, &src, &mut out, rows as u32)?;
    same("sum", &out.to_vec()?, &[wanted])
}

/// A ring of two stages is initialised twice; producer and consumers poll before they wait.
#[tma_kernel(threads = 64)]
pub fn pipeline_lives(src: TensorMap<Tile<u32, Shape2<1, 32>>>, out: Global<u32>, rows: u32) {
    let ring: Pipeline<(Tile<u32, Shape2<1, 32>>,), 2> = shared();
    let mut sum = 0;
    for life in 0..2u32 {
        if thread_idx().x == 32 {
            ring.init(32);
            fence_barrier_init();
        }
        sync_threads();
        if thread_idx().x == 32 {
            let mut producer = ring.producer();
            let mut asked = 0u32;
            for row in 0..rows {
                while !producer.ready() {
                    asked += 1;
                }
                let slot = producer.acquire();
                src.load(slot.0, [life * rows + row, 0], slot.barrier());
            }
            producer.drain();
            assert!(producer.ready(), "a drained ring is empty");
            // No thread waits any more: the consumers have released every stage.
            ring.invalidate();
            sum += min(asked, 0);
        }
        if warp_idx() == 0 {
            let mut consumer = ring.consumer();
            for _ in 0..rows {
                while !consumer.ready() {}
                let slot = consumer.wait();
                sum = sum * 11 + slot.0.get([0, lane_idx()]);
                slot.release();
            }
        }
        sync_threads();
    }
    if warp_idx() == 0 {
        out.set(lane_idx(), sum);
    }
}

fn lives(device: &Device, options: &Options) -> anyhow::Result<()> {
    let rows = options.elements(512) + 1;
    let source = noise::<u32>(77, 2 * rows * 32);
    let column = |t: usize| source.iter().skip(t).step_by(32);
    let sum = |t| column(t).fold(0u32, |sum, &x| sum.wrapping_mul(11).wrapping_add(x));
    let src = device.tensor(&source, [2 * rows, 32])?;
    let mut out = device.filled_bytes([32], 0xab)?;
    pipeline_lives::launch(device, 1, &src, &mut out, rows as u32)?;
    same("sums", &out.to_vec()?, &(0..32).map(sum).collect::<Vec<_>>())
}

/// States by `&mut`, a pipeline and a slot by value.
#[tma_module]
pub mod in_functions {
    use tma_runtime::prelude::*;

    type Row = Tile<u32, Shape2<1, 32>>;
    type Rows = Pipeline<(Row,), 4>;

    #[tma_device]
    fn start(ring: Rows) {
        if thread_idx().x == 0 {
            ring.init(32);
            fence_barrier_init();
        }
        sync_threads();
    }

    #[tma_device]
    fn fill(producer: &mut Producer<(Row,), 4>, src: TensorMap<Row>, first: u32, count: u32) {
        for row in first..first + count {
            fill_one(producer, src, row);
        }
    }

    #[tma_device]
    fn fill_one(producer: &mut Producer<(Row,), 4>, src: TensorMap<Row>, row: u32) {
        let slot = producer.acquire();
        src.load(slot.0, [row, 0], slot.barrier());
    }

    #[tma_device]
    fn read(consumer: &mut Consumer<(Row,), 4>, sum: &mut u32) {
        let slot = consumer.wait();
        *sum = *sum * 13 + first_of(slot.0);
        give_back(slot);
    }

    #[tma_device]
    fn first_of(row: Row) -> u32 {
        row.get([0, lane_idx()])
    }

    #[tma_device]
    fn give_back(slot: FullSlot<(Row,)>) {
        slot.release();
    }

    /// One warp fills in two loops, the other reads.
    #[tma_kernel(threads = 64)]
    pub fn pipeline_passed(src: TensorMap<Tile<u32, Shape2<1, 32>>>, out: Global<u32>, rows: u32) {
        let ring: Rows = shared();
        start(ring);
        if warp_idx() == 1 {
            if elect_one() {
                // Two loops share one state.
                let mut producer = ring.producer();
                fill(&mut producer, src, 0, rows / 3);
                fill(&mut producer, src, rows / 3, rows - rows / 3);
            }
        } else {
            let mut consumer = ring.consumer();
            let mut sum = 0;
            for _ in 0..rows {
                read(&mut consumer, &mut sum);
            }
            out.set(lane_idx(), sum);
        }
    }
}

fn passed(device: &Device, options: &Options) -> anyhow::Result<()> {
    let rows = options.elements(512);
    let source = noise::<u32>(78, rows * 32);
    let column = |t: usize| source.iter().skip(t).step_by(32);
    let sum = |t| column(t).fold(0u32, |sum, &x| sum.wrapping_mul(13).wrapping_add(x));
    let src = device.tensor(&source, [rows, 32])?;
    let mut out = device.filled_bytes([32], 0xab)?;
    in_functions::pipeline_passed::launch(device, 1, &src, &mut out, rows as u32)?;
    same("sums", &out.to_vec()?, &(0..32).map(sum).collect::<Vec<_>>())
}
