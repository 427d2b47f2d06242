//! Clusters: indices, barriers, and shared memory that other blocks read and write.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

/// The cases of this module.
pub const CASES: &[Case] = &[
    Case { name: "clusters::places", run: places },
    Case { name: "clusters::places_at_launch", run: places_at_launch },
    Case { name: "clusters::ring", run: ring },
    Case { name: "clusters::ring_at_launch", run: ring_at_launch },
    Case { name: "clusters::ring_of_sixteen", run: ring_of_sixteen },
    Case { name: "clusters::sum", run: sum },
    Case { name: "clusters::tile_that_all_write", run: written_by_all },
    Case { name: "clusters::arrive_and_wait_apart", run: apart },
];

/// The number of values that [`cluster_kernels::write_places`] writes per block.
const PLACES: usize = 10;

/// Kernels that do the same whether the attribute or the launch sets the cluster size.
#[tma_module]
pub mod cluster_kernels {
    use tma_runtime::prelude::*;

    /// Writes the position of this block in its cluster, and of its cluster in the grid.
    #[tma_device]
    fn write_places(out: Global<u32>) {
        let block = block_idx().x + grid_dim().x * (block_idx().y + grid_dim().y * block_idx().z);
        let at = block * 10;
        if thread_idx().x == 0 {
            out.set(at, cluster_rank());
            out.set(at + 1, block_in_cluster().x);
            out.set(at + 2, block_in_cluster().y);
            out.set(at + 3, block_in_cluster().z);
            out.set(at + 4, cluster_idx().x);
            out.set(at + 5, cluster_idx().y);
            out.set(at + 6, cluster_idx().z);
            out.set(at + 7, cluster_dim().x);
            out.set(at + 8, cluster_dim().y);
            out.set(at + 9, cluster_dim().z);
        }
    }

    /// The attribute sets the size.
    #[tma_kernel(
        threads = 32,
        cluster = [X, Y, Z],
        instances(
            one = <1, 1, 1>, two = <2, 1, 1>, four = <4, 1, 1>, square = <2, 2, 1>, upright = <1, 2, 1>,
            deep = <1, 2, 3>, eight = <8, 1, 1>, cube = <2, 2, 2>
        )
    )]
    pub fn cluster_places<const X: u32, const Y: u32, const Z: u32>(out: Global<u32>) {
        write_places(out);
    }

    /// The launch sets the size.
    #[tma_kernel(threads = 32, cluster = launch)]
    pub fn cluster_places_at_launch(out: Global<u32>) {
        write_places(out);
    }

    /// Each block reads the next one's values, and writes its own to the one after that.
    #[tma_device]
    fn pass_on(
        src: Global<u32>,
        out: Global<u32>,
        own: SharedArray<u32, 64>,
        given: Stages<SharedArray<u32, 64>, 2>,
    ) {
        let t = thread_idx().x;
        let blocks = cluster_dim().x * cluster_dim().y * cluster_dim().z;
        let block = block_idx().x + grid_dim().x * (block_idx().y + grid_dim().y * block_idx().z);
        let mine = src.get(block * 64 + t);
        own.set(t, mine);
        sync_cluster();
        let next = remote(own, (cluster_rank() + 1) % blocks);
        let after_next: Remote<Stages<SharedArray<u32, 64>, 2>> =
            remote(given, (cluster_rank() + 2) % blocks);
        let taken = next.get((t + 1) % next.len());
        after_next[t % after_next.len()].set(t, mine);
        sync_cluster();
        out.set(block * 64 + t, taken * 7 + given[t % 2].get(t));
    }

    /// The attribute sets the size.
    #[tma_kernel(
        threads = 64,
        cluster = [X, Y, Z],
        nonportable_cluster,
        instances(
            one = <1, 1, 1>, two = <2, 1, 1>, four = <4, 1, 1>, square = <2, 2, 1>, upright = <1, 2, 1>,
            eight = <8, 1, 1>, cube = <2, 2, 2>, sixteen = <4, 2, 2>
        )
    )]
    pub fn cluster_ring<const X: u32, const Y: u32, const Z: u32>(src: Global<u32>, out: Global<u32>) {
        let own: SharedArray<u32, 64> = shared();
        let given: Stages<SharedArray<u32, 64>, 2> = shared();
        pass_on(src, out, own, given);
    }

    /// The launch sets the size.
    #[tma_kernel(threads = 64, cluster = launch, nonportable_cluster)]
    pub fn cluster_ring_at_launch(src: Global<u32>, out: Global<u32>) {
        let own: SharedArray<u32, 64> = shared();
        let given: Stages<SharedArray<u32, 64>, 2> = shared();
        pass_on(src, out, own, given);
    }
}

use cluster_kernels::{cluster_places, cluster_places_at_launch, cluster_ring, cluster_ring_at_launch};

type Extents = [u32; 3];

fn volume(extents: Extents) -> usize {
    extents.iter().map(|&n| n as usize).product()
}

fn grid(extents: Extents) -> Grid {
    Grid::new(extents[0], extents[1], extents[2])
}

/// Returns the block indices of a grid, x fastest.
fn blocks(grid: Extents) -> impl Iterator<Item = Extents> {
    (0..grid[2]).flat_map(move |z| (0..grid[1]).flat_map(move |y| (0..grid[0]).map(move |x| [x, y, z])))
}

fn rank(block: Extents, cluster: Extents) -> u32 {
    let [x, y, z] = [0, 1, 2].map(|axis| block[axis] % cluster[axis]);
    x + cluster[0] * (y + cluster[1] * z)
}

/// Returns the grids that a cluster is launched in: one cluster, and several along each axis.
fn grids([x, y, z]: Extents) -> [Extents; 2] {
    [[x, y, z], [3 * x, 2 * y, 2 * z]]
}

fn check_places(
    device: &Device,
    cluster: Extents,
    launch: impl Fn(Grid, &mut DeviceTensor<u32, 1>) -> Result<(), Error>,
) -> anyhow::Result<()> {
    for extents in grids(cluster) {
        let of_block = |block: Extents| {
            let place = [0, 1, 2].map(|axis| block[axis] % cluster[axis]);
            let index = [0, 1, 2].map(|axis| block[axis] / cluster[axis]);
            [vec![rank(block, cluster)], place.to_vec(), index.to_vec(), cluster.to_vec()].concat()
        };
        let mut out = device.filled_bytes([volume(extents) * PLACES], 0xab)?;
        launch(grid(extents), &mut out)?;
        let wanted: Vec<_> = blocks(extents).flat_map(of_block).collect();
        same(&format!("clusters of {cluster:?} in {extents:?}"), &out.to_vec()?, &wanted)?;
    }
    Ok(())
}

fn places(device: &Device, _: &Options) -> anyhow::Result<()> {
    check_places(device, [1, 1, 1], |grid, out| cluster_places::one::launch(device, grid, out))?;
    check_places(device, [2, 1, 1], |grid, out| cluster_places::two::launch(device, grid, out))?;
    check_places(device, [4, 1, 1], |grid, out| cluster_places::four::launch(device, grid, out))?;
    check_places(device, [2, 2, 1], |grid, out| cluster_places::square::launch(device, grid, out))?;
    check_places(device, [1, 2, 1], |grid, out| cluster_places::upright::launch(device, grid, out))?;
    check_places(device, [1, 2, 3], |grid, out| cluster_places::deep::launch(device, grid, out))?;
    check_places(device, [8, 1, 1], |grid, out| cluster_places::eight::launch(device, grid, out))?;
    check_places(device, [2, 2, 2], |grid, out| cluster_places::cube::launch(device, grid, out))
}

fn places_at_launch(device: &Device, _: &Options) -> anyhow::Result<()> {
    let stream = device.stream()?;
    for cluster in [[1, 1, 1], [2, 1, 1], [1, 2, 1], [1, 1, 4], [2, 2, 2], [8, 1, 1], [3, 2, 1]] {
        check_places(device, cluster, |grid, out| {
            cluster_places_at_launch::launch(device.with().cluster(cluster), grid, out)
        })?;
        check_places(device, cluster, |grid, out| {
            cluster_places_at_launch::launch(stream.with().cluster(cluster), grid, out)?;
            stream.synchronize()
        })?;
    }
    Ok(())
}

fn check_ring(
    device: &Device,
    cluster: Extents,
    launch: impl Fn(Grid, &DeviceTensor<u32, 1>, &mut DeviceTensor<u32, 1>) -> Result<(), Error>,
) -> anyhow::Result<()> {
    for extents in grids(cluster) {
        let source = noise::<u32>(81, volume(extents) * 64);
        let (src, mut out) =
            (device.tensor(&source, [source.len()])?, device.filled_bytes([source.len()], 0xab)?);
        launch(grid(extents), &src, &mut out)?;
        let all = volume(cluster) as u32;
        // The values read by the block `steps` ranks after `block`.
        let mate = |block: Extents, steps: u32| {
            let [cx, cy, _] = cluster;
            let rank = (rank(block, cluster) + steps) % all;
            let place = [rank % cx, rank / cx % cy, rank / cx / cy];
            let [x, y, z] = [0, 1, 2].map(|axis| block[axis] / cluster[axis] * cluster[axis] + place[axis]);
            &source[(x + extents[0] * (y + extents[1] * z)) as usize * 64..]
        };
        let of_block = |block: Extents| {
            let (next, before) = (mate(block, 1), mate(block, 2 * all - 2));
            (0..64).map(move |t| next[(t + 1) % 64].wrapping_mul(7).wrapping_add(before[t]))
        };
        let wanted: Vec<_> = blocks(extents).flat_map(of_block).collect();
        same(&format!("clusters of {cluster:?} in {extents:?}"), &out.to_vec()?, &wanted)?;
    }
    Ok(())
}

fn ring(device: &Device, _: &Options) -> anyhow::Result<()> {
    check_ring(device, [1, 1, 1], |grid, src, out| cluster_ring::one::launch(device, grid, src, out))?;
    check_ring(device, [2, 1, 1], |grid, src, out| cluster_ring::two::launch(device, grid, src, out))?;
    check_ring(device, [4, 1, 1], |grid, src, out| cluster_ring::four::launch(device, grid, src, out))?;
    check_ring(device, [2, 2, 1], |grid, src, out| cluster_ring::square::launch(device, grid, src, out))?;
    check_ring(device, [1, 2, 1], |grid, src, out| cluster_ring::upright::launch(device, grid, src, out))?;
    check_ring(device, [8, 1, 1], |grid, src, out| cluster_ring::eight::launch(device, grid, src, out))?;
    check_ring(device, [2, 2, 2], |grid, src, out| cluster_ring::cube::launch(device, grid, src, out))
}

fn ring_at_launch(device: &Device, _: &Options) -> anyhow::Result<()> {
    for cluster in [[1, 1, 1], [2, 1, 1], [1, 2, 1], [1, 1, 4], [2, 2, 2], [8, 1, 1]] {
        check_ring(device, cluster, |grid, src, out| {
            cluster_ring_at_launch::launch(device.with().cluster(cluster), grid, src, out)
        })?;
    }
    Ok(())
}

/// Clusters larger than every device allows, by the attribute and by the launch.
fn ring_of_sixteen(device: &Device, _: &Options) -> anyhow::Result<()> {
    check_ring(device, [4, 2, 2], |grid, src, out| cluster_ring::sixteen::launch(device, grid, src, out))?;
    check_ring(device, [16, 1, 1], |grid, src, out| {
        cluster_ring_at_launch::launch(device.with().cluster([16, 1, 1]), grid, src, out)
    })
}

/// Sums all elements of a cluster: each block adds its part, and the first block adds the parts.
#[tma_kernel(threads = 128, cluster = BLOCKS, instances(two = <2>, four = <4>, eight = <8>))]
pub fn cluster_sum<const BLOCKS: u32>(src: Global<u32>, out: Global<u32>, per_block: u32) {
    let parts: SharedArray<u32, 128> = shared();
    let t = thread_idx().x;
    let mut sum = 0;
    for i in (t..per_block).step_by(128) {
        sum += src.get(block_idx().x * per_block + i);
    }
    parts.set(t, sum);
    sync_cluster();
    if cluster_rank() == 0 && t < BLOCKS {
        let theirs = remote(parts, t);
        let mut total = 0;
        for i in 0..theirs.len() {
            total += theirs.get(i);
        }
        out.atomic_add(cluster_idx().x, total);
    }
    sync_cluster();
}

fn sum(device: &Device, options: &Options) -> anyhow::Result<()> {
    let (clusters, per_block) = (3, options.elements(4096) + 5);
    for blocks in [2, 4, 8] {
        let source = noise::<u32>(82, clusters * blocks * per_block);
        let src = device.tensor(&source, [source.len()])?;
        let mut out = device.zeros([clusters])?;
        let grid = (clusters * blocks) as u32;
        match blocks {
            2 => cluster_sum::two::launch(device, grid, &src, &mut out, per_block as u32)?,
            4 => cluster_sum::four::launch(device, grid, &src, &mut out, per_block as u32)?,
            _ => cluster_sum::eight::launch(device, grid, &src, &mut out, per_block as u32)?,
        }
        let of_cluster = |part: &[u32]| part.iter().fold(0u32, |sum, &x| sum.wrapping_add(x));
        let wanted: Vec<_> = source.chunks(blocks * per_block).map(of_cluster).collect();
        same(&format!("sums of {blocks} blocks"), &out.to_vec()?, &wanted)?;
    }
    Ok(())
}

/// Each block writes a row of every block's swizzled tile, and stores its own tile.
#[tma_kernel(threads = 64, cluster = [2, 2])]
pub fn cluster_shared_tile(dst: TensorMap<Tile<u16, Shape2<4, 64>, Swizzle128>>) {
    let tile: Tile<u16, Shape2<4, 64>, Swizzle128> = shared();
    let t = thread_idx().x;
    let row = cluster_rank();
    sync_cluster();
    for block in unroll(0..4u32) {
        let theirs = remote(tile, block);
        theirs.set([row, t], (1000 * block + 100 * row + t) as u16);
        assert!(theirs.get([row, t]) as u32 == 1000 * block + 100 * row + t);
    }
    fence_proxy_async();
    sync_cluster();
    if t == 0 {
        dst.store([4 * cluster_rank(), 0], tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

fn written_by_all(device: &Device, _: &Options) -> anyhow::Result<()> {
    let mut dst = device.filled_bytes([16, 64], 0xab)?;
    cluster_shared_tile::launch(device, (2, 2), &mut dst)?;
    let of_row = |row: u16| (0..64).map(move |t| 1000 * (row / 4) + 100 * (row % 4) + t);
    same("tiles", &dst.to_vec()?, &(0..16).flat_map(of_row).collect::<Vec<_>>())
}

/// Between arriving and waiting, each block does work that does not depend on the others. Threads
/// of a warp arrive at different instructions.
#[tma_kernel(threads = 64, cluster = 4)]
pub fn cluster_apart(out: Global<u32>, rounds: u32) {
    let values: Stages<SharedArray<u32, 64>, 2> = shared();
    let t = thread_idx().x;
    let mut mine = 64 * cluster_rank() + t;
    for round in 0..rounds {
        let now = values[round % 2];
        if t % 2 == 0 {
            now.set(t, mine);
            cluster_arrive();
        } else {
            now.set(t, mine + 1);
            cluster_arrive();
        }
        let own = mine * mine;
        cluster_wait();
        mine = own + remote(now, (cluster_rank() + round) % 4).get((t + 1) % 64);
    }
    out.set(64 * block_idx().x + t, mine);
    sync_cluster();
}

fn apart(device: &Device, _: &Options) -> anyhow::Result<()> {
    let rounds = 10;
    let mut values: Vec<u32> = (0..256).collect();
    for round in 0..rounds {
        let shown = |i: usize| values[i].wrapping_add((i % 2) as u32);
        let next = |i: usize| {
            let (rank, t) = (i / 64, i % 64);
            values[i].wrapping_mul(values[i]).wrapping_add(shown((rank + round) % 4 * 64 + (t + 1) % 64))
        };
        values = (0..256).map(next).collect();
    }
    let mut out = device.filled_bytes([512], 0xab)?;
    cluster_apart::launch(device, 8, &mut out, rounds as u32)?;
    same("values", &out.to_vec()?, &values.repeat(2))
}
