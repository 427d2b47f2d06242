//! Pipelines whose stages are filled by multicast. Every block of a cluster has a ring, loads fill
//! the rings of several blocks, and a stage is loaded again when the consumers of all of them have
//! released it.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "multicast_pipelines::persistent_copy", run: persistent },
    Case { name: "multicast_pipelines::rows_and_columns", run: rows_and_columns },
    Case { name: "multicast_pipelines::one_block_loads", run: one_loads },
];

/// Clusters are persistent, with a stride of the number of clusters. Each of the two blocks loads
/// half of a tile for both; each stores the whole tile to its own copy, and their sums prove that
/// both had all of it.
#[tma_kernel(threads = 96, cluster = 2, instances(three = <3>, four = <4>))]
pub fn multicast_persistent_copy<const STAGES: u32>(
    src: TensorMap<Tile<u32, Shape2<4, 64>>>,
    dst: TensorMap<Tile<u32, Shape2<8, 64>>>,
    sums: Global<u32>,
    tiles: u32,
) {
    let ring: Pipeline<(Tile<u32, Shape2<8, 64>>,), STAGES> = shared();
    let rank = cluster_rank();
    let clusters = (grid_dim().x / 2) as usize;
    if thread_idx().x == 0 {
        // In each of the two blocks, the thread that stores and a warp that reads.
        ring.init(2 * 2);
        fence_barrier_init();
    }
    sync_cluster();

    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for tile in (cluster_idx().x..tiles).step_by(clusters) {
                let slot = producer.acquire();
                src.load_sliced(slot.0, [tile * 8, 0], slot.barrier(), ClusterAxis::X);
            }
            // The other block arrives at this block's barriers, so this one may not exit before.
            producer.drain();
        }
    } else if warp_idx() == 1 {
        if elect_one() {
            let mut consumer = ring.consumer();
            for tile in (cluster_idx().x..tiles).step_by(clusters) {
                let slot = consumer.wait();
                dst.store([(2 * tile + rank) * 8, 0], slot.0);
                bulk_commit_group();
                bulk_wait_group_read::<0>();
                slot.release_cluster();
            }
        }
    } else {
        let mut consumer = ring.consumer();
        let mut sum = 0;
        for _ in (cluster_idx().x..tiles).step_by(clusters) {
            let slot = consumer.wait();
            for row in 0..8 {
                sum = sum * 5 + slot.0.get([row, 2 * lane_idx() + rank]);
            }
            sync_warp();
            if lane_idx() < 2 {
                slot.release_to(lane_idx());
            }
        }
        sums.set(block_idx().x * 32 + lane_idx(), sum);
    }
}

fn persistent(device: &Device, options: &Options) -> anyhow::Result<()> {
    let most = options.elements(2048);
    let source = noise::<u32>(101, most * 512);
    let src = device.tensor(&source, [most * 8, 64])?;
    for (stages, clusters) in [(3, 1), (4, 1), (3, 2), (4, 3)] {
        for tiles in [0, clusters, stages * clusters, most] {
            let mut dst = device.filled_bytes([most * 16, 64], 0xab)?;
            let mut sums = device.filled_bytes([clusters * 64], 0xab)?;
            let (grid, count) = (2 * clusters as u32, tiles as u32);
            let to = (&mut dst, &mut sums);
            match stages {
                3 => multicast_persistent_copy::three::launch(device, grid, &src, to.0, to.1, count)?,
                _ => multicast_persistent_copy::four::launch(device, grid, &src, to.0, to.1, count)?,
            }
            let what = format!("{tiles} tiles, {stages} stages, {clusters} clusters");
            let moved = source.chunks(512).take(tiles).flat_map(|tile| tile.repeat(2));
            let untouched = std::iter::repeat_n(0xabab_abab, (most - tiles) * 1024);
            same(&what, &dst.to_vec()?, &moved.chain(untouched).collect::<Vec<_>>())?;
            let sum = |block: usize, lane: usize| {
                let of_cluster = source.chunks(512).take(tiles).skip(block / 2).step_by(clusters);
                let column = of_cluster.flat_map(|tile| tile.iter().skip(2 * lane + block % 2).step_by(64));
                column.fold(0u32, |sum, &x| sum.wrapping_mul(5).wrapping_add(x))
            };
            let wanted: Vec<_> = (0..clusters * 64).map(|i| sum(i / 32, i % 32)).collect();
            same(&what, &sums.to_vec()?, &wanted)?;
        }
    }
    Ok(())
}

/// Loads as in a GEMM: a stage has two tiles, of which one is shared along x and one along
/// y. Every block releases to all four, so no barrier has to know which of them load into
/// it.
#[tma_kernel(threads = 160, cluster = [2, 2])]
pub fn multicast_ring_products(
    a: TensorMap<Tile<u32, Shape2<8, 32>, Swizzle128>>,
    b: TensorMap<Tile<u32, Shape2<8, 32>, Swizzle128>>,
    out: Global<u32>,
    steps: u32,
) {
    let ring: Pipeline<(Tile<u32, Shape2<16, 32>, Swizzle128>, Tile<u32, Shape2<16, 32>, Swizzle128>), 3> =
        shared();
    if thread_idx().x == 0 {
        ring.init(4 * 4);
        fence_barrier_init();
    }
    sync_cluster();

    if warp_idx() == 4 {
        if elect_one() {
            let mut producer = ring.producer();
            for step in 0..steps {
                let slot = producer.acquire();
                a.load_sliced(slot.0, [block_idx().y * 16, step * 32], slot.barrier(), ClusterAxis::X);
                b.load_sliced(slot.1, [block_idx().x * 16, step * 32], slot.barrier(), ClusterAxis::Y);
            }
            producer.drain();
        }
    } else {
        let row = thread_idx().x / 8;
        let column = thread_idx().x % 8;
        let mut consumer = ring.consumer();
        let mut left = 0;
        let mut right = 0;
        for _ in 0..steps {
            let slot = consumer.wait();
            for k in 0..32 {
                let x = slot.0.get([row, k]);
                left += x * slot.1.get([column, k]);
                right += x * slot.1.get([column + 8, k]);
            }
            sync_warp();
            if lane_idx() == 0 {
                slot.release_cluster();
            }
        }
        let at = (block_idx().y * 16 + row) * (16 * grid_dim().x) + block_idx().x * 16 + column;
        out.set(at, left);
        out.set(at + 8, right);
    }
}

fn rows_and_columns(device: &Device, options: &Options) -> anyhow::Result<()> {
    let (m, n, k) = if options.quick { (32, 64, 160) } else { (192, 128, 1024) };
    let (a, b) = (noise::<u32>(102, m * k), noise::<u32>(103, n * k));
    let mut out = device.filled_bytes([m * n], 0xab)?;
    let (left, right) = (device.tensor(&a, [m, k])?, device.tensor(&b, [n, k])?);
    let (grid, steps) = ((n as u32 / 16, m as u32 / 16), k as u32 / 32);
    multicast_ring_products::launch(device, grid, &left, &right, &mut out, steps)?;
    let product = |i: usize| {
        let (row, column) = (&a[i / n * k..][..k], &b[i % n * k..][..k]);
        row.iter().zip(column).fold(0u32, |sum, (x, y)| sum.wrapping_add(x.wrapping_mul(*y)))
    };
    same("products", &out.to_vec()?, &(0..m * n).map(product).collect::<Vec<_>>())
}

/// The first block of a cluster, whose size the launch sets, loads for all by mask. The others
/// announce the bytes.
#[tma_kernel(threads = 64, cluster = launch)]
pub fn multicast_ring_leader(src: TensorMap<Tile<u32, Shape2<2, 32>>>, out: Global<u32>, tiles: u32) {
    let ring: Pipeline<(Tile<u32, Shape2<2, 32>>,), 3> = shared();
    let blocks = cluster_dim().x * cluster_dim().y * cluster_dim().z;
    let rank = cluster_rank();
    if thread_idx().x == 0 {
        ring.init(blocks);
        fence_barrier_init();
    }
    sync_cluster();

    if warp_idx() == 0 {
        if elect_one() {
            let mut producer = ring.producer();
            for tile in 0..tiles {
                let slot = producer.acquire();
                if rank == 0 {
                    src.load_multicast(slot.0, [tile * 2, 0], slot.barrier(), ((1u32 << blocks) - 1) as u16);
                }
            }
            producer.drain();
        }
    } else {
        let mut consumer = ring.consumer();
        let mut sum = rank;
        for _ in 0..tiles {
            let slot = consumer.wait();
            sum = (sum * 7 + slot.0.get([0, lane_idx()])) * 3 + slot.0.get([1, lane_idx()]);
            sync_warp();
            if lane_idx() == 0 {
                slot.release_cluster();
            }
        }
        out.set(rank * 32 + lane_idx(), sum);
    }
}

fn one_loads(device: &Device, options: &Options) -> anyhow::Result<()> {
    let tiles = options.elements(2048);
    let source = noise::<u32>(104, tiles * 64);
    let src = device.tensor(&source, [tiles * 2, 32])?;
    for cluster in [[1u32, 1, 1], [2, 1, 1], [2, 1, 2], [1, 5, 1]] {
        let blocks = cluster.iter().product::<u32>();
        let mut out = device.filled_bytes([blocks as usize * 32], 0xab)?;
        let [x, y, z] = cluster;
        multicast_ring_leader::launch(
            device.with().cluster(cluster),
            (x, y, z),
            &src,
            &mut out,
            tiles as u32,
        )?;
        let sum = |i: usize| {
            source.chunks(64).fold(i as u32 / 32, |sum, tile| {
                let sum = sum.wrapping_mul(7).wrapping_add(tile[i % 32]);
                sum.wrapping_mul(3).wrapping_add(tile[32 + i % 32])
            })
        };
        let wanted: Vec<_> = (0..blocks as usize * 32).map(sum).collect();
        same(&format!("cluster {cluster:?}"), &out.to_vec()?, &wanted)?;
    }
    Ok(())
}
