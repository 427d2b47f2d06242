//! Two-dimensional reductions of every element type.

use tma_runtime::prelude::*;

use crate::case::{Case, Options};
use crate::compare::same;
use crate::random::{Sample, hash};

pub(super) const CASES: &[Case] = &[
    Case { name: "reductions::add", run: add },
    Case { name: "reductions::add_rounded", run: add_rounded },
    Case { name: "reductions::add_subnormal", run: add_subnormal },
    Case { name: "reductions::min_and_max", run: min_and_max },
    Case { name: "reductions::inc_and_dec", run: inc_and_dec },
    Case { name: "reductions::and_or_and_xor", run: and_or_and_xor },
];

// `dst` is one matrix. `src` has several, stacked, each of the height of the grid: block `z`
// reduces a tile of the z-th.

/// Adds.
#[tma_kernel(threads = 32, instances(T in [u32, i32, u64, f16, bf16, f32]))]
pub fn reduction_add<T: ReduceAdd>(
    src: TensorMap<Tile<T, Shape2<8, 16>>>,
    dst: TensorMap<Tile<T, Shape2<8, 16>>>,
) {
    let tile: Tile<T, Shape2<8, 16>> = shared();
    let full: Barrier = shared();
    let row = block_idx().y * 8;
    let at = [row, block_idx().x * 16];
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [block_idx().z * grid_dim().y * 8 + row, at[1]], full);
        full.wait(0);
        dst.reduce_add(at, tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Takes the minimum, or the maximum.
#[tma_kernel(threads = 32, instances(
    GREATER in [min = false, max = true], T in [u32, i32, u64, i64, f16, bf16]
))]
pub fn reduction_order<T: ReduceOrder, const GREATER: bool>(
    src: TensorMap<Tile<T, Shape2<8, 16>>>,
    dst: TensorMap<Tile<T, Shape2<8, 16>>>,
) {
    let tile: Tile<T, Shape2<8, 16>> = shared();
    let full: Barrier = shared();
    let row = block_idx().y * 8;
    let at = [row, block_idx().x * 16];
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [block_idx().z * grid_dim().y * 8 + row, at[1]], full);
        full.wait(0);
        if GREATER {
            dst.reduce_max(at, tile);
        } else {
            dst.reduce_min(at, tile);
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Counts up, or down.
#[tma_kernel(threads = 32, instances(inc = <u32, true>, dec = <u32, false>))]
pub fn reduction_count<T: ReduceCount, const UP: bool>(
    src: TensorMap<Tile<T, Shape2<8, 16>>>,
    dst: TensorMap<Tile<T, Shape2<8, 16>>>,
) {
    let tile: Tile<T, Shape2<8, 16>> = shared();
    let full: Barrier = shared();
    let row = block_idx().y * 8;
    let at = [row, block_idx().x * 16];
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [block_idx().z * grid_dim().y * 8 + row, at[1]], full);
        full.wait(0);
        if UP {
            dst.reduce_inc(at, tile);
        } else {
            dst.reduce_dec(at, tile);
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Combines bits: `and` (0), `or` (1), `xor` (2).
#[tma_kernel(threads = 32, instances(OP in [and = 0, or = 1, xor = 2], T in [u32, i32, u64]))]
pub fn reduction_bits<T: ReduceBits, const OP: u32>(
    src: TensorMap<Tile<T, Shape2<8, 16>>>,
    dst: TensorMap<Tile<T, Shape2<8, 16>>>,
) {
    let tile: Tile<T, Shape2<8, 16>> = shared();
    let full: Barrier = shared();
    let row = block_idx().y * 8;
    let at = [row, block_idx().x * 16];
    if thread_idx().x == 0 {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, [block_idx().z * grid_dim().y * 8 + row, at[1]], full);
        full.wait(0);
        match OP {
            0 => dst.reduce_and(at, tile),
            1 => dst.reduce_or(at, tile),
            _ => dst.reduce_xor(at, tile),
        }
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// The extents of the matrix: one and a half tiles each way, with rows of whole 16-byte units.
const SHAPE: [usize; 2] = [13, 24];
/// The number of elements of the matrix, and of each matrix that is reduced into it.
const ELEMENTS: usize = SHAPE[0] * SHAPE[1];
const PART: usize = 16 * SHAPE[1];

/// Reduces the matrices of `parts` into `before`, and compares with plain Rust.
fn check<T: Sample>(
    what: &str,
    device: &Device,
    before: impl Fn(u64) -> T,
    parts: &[T],
    combine: impl Fn(T, T) -> T,
    launch: impl Fn(Grid, &DeviceTensor<T, 2>, &mut DeviceTensor<T, 2>) -> Result<(), Error>,
) -> anyhow::Result<()> {
    let before: Vec<T> = (0..ELEMENTS as u64).map(before).collect();
    let count = parts.len() / PART;
    let src = device.tensor(parts, [count * 16, SHAPE[1]])?;
    let mut dst = device.tensor(&before, SHAPE)?;
    launch(Grid::new(2, 2, count as u32), &src, &mut dst)?;
    let element = |(i, &before): (usize, &T)| {
        parts.iter().skip(i).step_by(PART).fold(before, |sum, &operand| combine(sum, operand))
    };
    let wanted: Vec<T> = before.iter().enumerate().map(element).collect();
    same(what, &dst.to_vec()?, &wanted)
}

/// Returns matrices of random bits.
fn bits<T: Sample>(seed: u64, count: usize) -> Vec<T> {
    (0..count * PART).map(|i| T::random(hash(seed, i as u64))).collect()
}

/// Returns an integer from -8 to 8, so that every sum of a few is exact in each float type, in any
/// order.
fn small(i: u64) -> f32 {
    (hash(401, i) % 17) as f32 - 8.0
}

fn small_parts<T>(convert: impl Fn(f32) -> T) -> Vec<T> {
    (0..5 * PART as u64).map(|i| convert(small(i + 1000))).collect()
}

/// Adds matrices by the instance for their elements.
fn sum<T: Sample>(
    device: &Device,
    before: impl Fn(u64) -> T,
    parts: &[T],
    combine: impl Fn(T, T) -> T,
) -> anyhow::Result<()>
where
    reduction_add::Instance<T>: reduction_add::Compiled,
{
    let name = <reduction_add::Instance<T> as reduction_add::Compiled>::SPEC.name;
    check(name, device, before, parts, combine, |grid, src, dst| {
        reduction_add::launch::<T>(device, grid, src, dst)
    })
}

fn add(device: &Device, _: &Options) -> anyhow::Result<()> {
    sum(device, |i| hash(1, i) as u32, &bits(2, 5), u32::wrapping_add)?;
    sum(device, |i| hash(3, i) as i32, &bits(4, 5), i32::wrapping_add)?;
    sum(device, |i| hash(5, i), &bits(6, 5), u64::wrapping_add)?;
    let f16_parts = small_parts(f16::from_f32);
    sum(device, |i| f16::from_f32(small(i)), &f16_parts, |a, b| a + b)?;
    let bf16_parts = small_parts(bf16::from_f32);
    sum(device, |i| bf16::from_f32(small(i)), &bf16_parts, |a, b| a + b)?;
    sum(device, small, &small_parts(|x| x), |a, b| a + b)
}

/// Sums around the smallest normal number. The numbers are multiples of the smallest subnormal one,
/// whose sums are exact in any order.
fn add_subnormal(device: &Device, _: &Options) -> anyhow::Result<()> {
    let multiple = |i: u64| {
        let size = f32::from_bits(hash(402, i) as u32 % (1 << 22));
        if hash(403, i).is_multiple_of(2) { size } else { -size }
    };
    let parts: Vec<f32> = (0..5 * PART as u64).map(|i| multiple(i + 1000)).collect();
    sum(device, multiple, &parts, |a, b| a + b)
}

/// One addition to each element, which rounds to nearest, ties to even.
fn add_rounded(device: &Device, _: &Options) -> anyhow::Result<()> {
    /// Numbers of many digits and similar magnitude.
    fn number<T: Sample>(seed: u64, i: u64) -> T {
        T::random(hash(seed, i) & !1)
    }
    fn numbers<T: Sample>(seed: u64) -> Vec<T> {
        (0..PART as u64).map(|i| number(seed, i)).collect()
    }
    // Rounding through f32 is exact for 16 bits: f32 has more than twice as many digits plus two.
    let halves = |a: f16, b: f16| f16::from_f32(a.to_f32() + b.to_f32());
    sum(device, |i| number(411, i), &numbers(412), halves)?;
    let bfloats = |a: bf16, b: bf16| bf16::from_f32(a.to_f32() + b.to_f32());
    sum(device, |i| number(413, i), &numbers(414), bfloats)?;
    sum(device, |i| number(415, i), &numbers(416), |a: f32, b| a + b)
}

fn min_and_max(device: &Device, _: &Options) -> anyhow::Result<()> {
    macro_rules! both {
        ($($ty:ty, $min:ident, $max:ident, $before:expr, $parts:expr;)+) => { $(
            check(stringify!($min), device, $before, &$parts, <$ty>::min, |grid, src, dst| {
                reduction_order::$min::launch(device, grid, src, dst)
            })?;
            check(stringify!($max), device, $before, &$parts, <$ty>::max, |grid, src, dst| {
                reduction_order::$max::launch(device, grid, src, dst)
            })?;
        )+ };
    }
    both! {
        u32, min_u32, max_u32, |i| hash(421, i) as u32, bits(422, 3);
        i32, min_i32, max_i32, |i| hash(423, i) as i32, bits(424, 3);
        u64, min_u64, max_u64, |i| hash(425, i), bits(426, 3);
        i64, min_i64, max_i64, |i| hash(427, i) as i64, bits(428, 3);
        // Zeros have one sign here: no document says which of two zeros is the smaller.
        f16, min_f16, max_f16, |i| f16::from_f32(small(i)), small_parts(f16::from_f32);
        bf16, min_bf16, max_bf16, |i| bf16::from_f32(small(i)), small_parts(bf16::from_f32);
    }
    Ok(())
}

fn inc_and_dec(device: &Device, _: &Options) -> anyhow::Result<()> {
    // The bounds of each element are the same in all matrices: the order of the blocks must not
    // matter.
    let bounds: Vec<u32> =
        (0..PART as u64).map(|i| [0, 1, 2, 5, u32::MAX][hash(431, i) as usize % 5]).collect();
    let parts = bounds.repeat(4);
    let before = |i| [0, 1, 2, 3, 6, u32::MAX - 1, u32::MAX][hash(432, i) as usize % 7];
    let inc = |old: u32, bound: u32| if old >= bound { 0 } else { old + 1 };
    check("inc", device, before, &parts, inc, |grid, src, dst| {
        reduction_count::inc::launch(device, grid, src, dst)
    })?;
    let dec = |old: u32, bound: u32| if old == 0 || old > bound { bound } else { old - 1 };
    check("dec", device, before, &parts, dec, |grid, src, dst| {
        reduction_count::dec::launch(device, grid, src, dst)
    })
}

fn and_or_and_xor(device: &Device, _: &Options) -> anyhow::Result<()> {
    macro_rules! all {
        ($($ty:ty, $and:ident, $or:ident, $xor:ident;)+) => { $(
            let before = |i| <$ty>::random(hash(441, i));
            check(stringify!($and), device, before, &bits(442, 2), |a, b| a & b, |grid, src, dst| {
                reduction_bits::$and::launch(device, grid, src, dst)
            })?;
            check(stringify!($or), device, before, &bits(443, 2), |a, b| a | b, |grid, src, dst| {
                reduction_bits::$or::launch(device, grid, src, dst)
            })?;
            check(stringify!($xor), device, before, &bits(444, 5), |a, b| a ^ b, |grid, src, dst| {
                reduction_bits::$xor::launch(device, grid, src, dst)
            })?;
        )+ };
    }
    all! {
        u32, and_u32, or_u32, xor_u32;
        i32, and_i32, or_i32, xor_i32;
        u64, and_u64, or_u64, xor_u64;
    }
    Ok(())
}
