//! Every operation at the other ranks, one after the other into the same tensor.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::noise;

pub(super) const CASES: &[Case] = &[
    Case { name: "reductions::one_dimension", run: one_dimension },
    Case { name: "reductions::three_dimensions", run: three_dimensions },
    Case { name: "reductions::four_dimensions", run: four_dimensions },
    Case { name: "reductions::five_dimensions", run: five_dimensions },
];

/// Kernels in which a block loads the tile of each of eight tensors, stored one after the other
/// along the outermost dimension of `src`, and reduces each by another operation.
#[tma_module]
mod every_operation {
    use tma_runtime::prelude::*;

    type Line = Tile<u32, Shape1<32>>;
    type Cube = Tile<u32, Shape3<2, 6, 16>, Swizzle64>;
    type Four = Tile<u32, Shape4<2, 3, 4, 8>>;
    type Five = Tile<u32, Shape5<2, 2, 3, 2, 8>, Swizzle32>;

    /// Announces eight tiles of `bytes` each.
    #[tma_device]
    fn expect(full: Barrier, bytes: u32) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(8 * bytes);
    }

    /// Waits until the reduction so far is in global memory.
    #[tma_device]
    fn settle() {
        bulk_commit_group();
        bulk_wait_group::<0>();
    }

    /// Tiles of one dimension.
    #[tma_kernel(threads = 32)]
    pub fn reductions_1(src: TensorMap<Line>, dst: TensorMap<Line>) {
        let tiles: Stages<Line, 8> = shared();
        let full: Barrier = shared();
        let at = [block_idx().x * 32];
        if thread_idx().x == 0 {
            expect(full, tiles[0].bytes());
            for i in 0..8 {
                src.load(tiles[i], [i * grid_dim().x * 32 + at[0]], full);
            }
            full.wait(0);
            dst.reduce_add(at, tiles[0]);
            settle();
            dst.reduce_min(at, tiles[1]);
            settle();
            dst.reduce_max(at, tiles[2]);
            settle();
            dst.reduce_inc(at, tiles[3]);
            settle();
            dst.reduce_dec(at, tiles[4]);
            settle();
            dst.reduce_and(at, tiles[5]);
            settle();
            dst.reduce_or(at, tiles[6]);
            settle();
            dst.reduce_xor(at, tiles[7]);
            settle();
        }
    }

    /// Tiles of three dimensions.
    #[tma_kernel(threads = 32)]
    pub fn reductions_3(src: TensorMap<Cube>, dst: TensorMap<Cube>) {
        let tiles: Stages<Cube, 8> = shared();
        let full: Barrier = shared();
        let at = [block_idx().z * 2, block_idx().y * 6, block_idx().x * 16];
        if thread_idx().x == 0 {
            expect(full, tiles[0].bytes());
            for i in 0..8 {
                src.load(tiles[i], [i * grid_dim().z * 2 + at[0], at[1], at[2]], full);
            }
            full.wait(0);
            dst.reduce_add(at, tiles[0]);
            settle();
            dst.reduce_min(at, tiles[1]);
            settle();
            dst.reduce_max(at, tiles[2]);
            settle();
            dst.reduce_inc(at, tiles[3]);
            settle();
            dst.reduce_dec(at, tiles[4]);
            settle();
            dst.reduce_and(at, tiles[5]);
            settle();
            dst.reduce_or(at, tiles[6]);
            settle();
            dst.reduce_xor(at, tiles[7]);
            settle();
        }
    }

    /// Tiles of four dimensions.
    #[tma_kernel(threads = 32)]
    pub fn reductions_4(src: TensorMap<Four>, dst: TensorMap<Four>) {
        let tiles: Stages<Four, 8> = shared();
        let full: Barrier = shared();
        let at = [0, block_idx().z * 3, block_idx().y * 4, block_idx().x * 8];
        if thread_idx().x == 0 {
            expect(full, tiles[0].bytes());
            for i in 0..8 {
                src.load(tiles[i], [i * 2 + at[0], at[1], at[2], at[3]], full);
            }
            full.wait(0);
            dst.reduce_add(at, tiles[0]);
            settle();
            dst.reduce_min(at, tiles[1]);
            settle();
            dst.reduce_max(at, tiles[2]);
            settle();
            dst.reduce_inc(at, tiles[3]);
            settle();
            dst.reduce_dec(at, tiles[4]);
            settle();
            dst.reduce_and(at, tiles[5]);
            settle();
            dst.reduce_or(at, tiles[6]);
            settle();
            dst.reduce_xor(at, tiles[7]);
            settle();
        }
    }

    /// Tiles of five dimensions.
    #[tma_kernel(threads = 32)]
    pub fn reductions_5(src: TensorMap<Five>, dst: TensorMap<Five>) {
        let tiles: Stages<Five, 8> = shared();
        let full: Barrier = shared();
        let at = [0, 0, block_idx().z * 3, block_idx().y * 2, block_idx().x * 8];
        if thread_idx().x == 0 {
            expect(full, tiles[0].bytes());
            for i in 0..8 {
                src.load(tiles[i], [i * 2 + at[0], at[1], at[2], at[3], at[4]], full);
            }
            full.wait(0);
            dst.reduce_add(at, tiles[0]);
            settle();
            dst.reduce_min(at, tiles[1]);
            settle();
            dst.reduce_max(at, tiles[2]);
            settle();
            dst.reduce_inc(at, tiles[3]);
            settle();
            dst.reduce_dec(at, tiles[4]);
            settle();
            dst.reduce_and(at, tiles[5]);
            settle();
            dst.reduce_or(at, tiles[6]);
            settle();
            dst.reduce_xor(at, tiles[7]);
            settle();
        }
    }
}

use every_operation::{reductions_1, reductions_3, reductions_4, reductions_5};

/// Computes the result of the eight operations, one after the other.
fn all(before: u32, operands: [u32; 8]) -> u32 {
    let [add, min, max, inc, dec, and, or, xor] = operands;
    let sum = before.wrapping_add(add).min(min).max(max);
    let up = if sum >= inc { 0 } else { sum + 1 };
    let down = if up == 0 || up > dec { dec } else { up - 1 };
    (down & and | or) ^ xor
}

/// Launches on a tensor of `shape`; the tensors of the operands have `outer` for their outermost
/// extent.
fn check<const RANK: usize>(
    device: &Device,
    shape: [usize; RANK],
    outer: usize,
    launch: impl Fn(&DeviceTensor<u32, RANK>, &mut DeviceTensor<u32, RANK>) -> Result<(), Error>,
) -> anyhow::Result<()> {
    let slice: usize = shape[1..].iter().product();
    let (elements, part) = (shape[0] * slice, outer * slice);
    let before = noise::<u32>(451, elements);
    let operands = noise::<u32>(452, 8 * part);
    let mut stacked = shape;
    stacked[0] = 8 * outer;
    let src = device.tensor(&operands, stacked)?;
    let mut dst = device.tensor(&before, shape)?;
    launch(&src, &mut dst)?;
    let element = |i: usize| all(before[i], std::array::from_fn(|op| operands[op * part + i]));
    let wanted: Vec<u32> = (0..elements).map(element).collect();
    same("elements reduced", &dst.to_vec()?, &wanted)
}

fn one_dimension(device: &Device, _: &Options) -> anyhow::Result<()> {
    check(device, [76], 96, |src, dst| reductions_1::launch(device, 3, src, dst))
}

fn three_dimensions(device: &Device, _: &Options) -> anyhow::Result<()> {
    check(device, [3, 10, 20], 4, |src, dst| reductions_3::launch(device, (2, 2, 2), src, dst))
}

fn four_dimensions(device: &Device, _: &Options) -> anyhow::Result<()> {
    check(device, [1, 4, 7, 12], 2, |src, dst| reductions_4::launch(device, (2, 2, 2), src, dst))
}

fn five_dimensions(device: &Device, _: &Options) -> anyhow::Result<()> {
    check(device, [2, 1, 5, 3, 12], 2, |src, dst| reductions_5::launch(device, (2, 2, 2), src, dst))
}
